"""Calculates what a learner could with pen and paper: what follows from a kernel's tiles before it runs.

accesses(stage, m, n, k, tiles)             how often it touches global and shared memory, by formula
occupancy(threads, registers, shared, gpu)  how many blocks a multiprocessor holds, and what limits them
tanks(threads, registers, shared, limits)   the same, resource by resource: what a block takes, what is left
waves(blocks, per_multiprocessor, gpu)      how evenly a grid fills the GPU
Roofline(gpu).attainable(...)               the TFLOPS that memory allows
"""

from gemm_course.model.accesses import Accesses, accesses
from gemm_course.model.gpus import GPUS, Gpu
from gemm_course.model.occupancy import Occupancy, Tank, Waves, occupancy, tanks, waves
from gemm_course.model.roofline import Roofline, issue_ceiling, shared_memory_ceiling

__all__ = [
    "GPUS",
    "Accesses",
    "Gpu",
    "Occupancy",
    "Roofline",
    "Tank",
    "Waves",
    "accesses",
    "issue_ceiling",
    "occupancy",
    "shared_memory_ceiling",
    "tanks",
    "waves",
]
