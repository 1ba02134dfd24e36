"""Tells whether there is a GPU that Numba can compile for and launch on."""

import functools

from lockstep import active


class NoGpu(RuntimeError):
    """The error if there is no GPU to run on. Its message is one sentence that says why."""


def why_no_gpu() -> str | None:
    """Return why kernels cannot run on a GPU here, as a sentence, or None if they can."""
    if active() is not None:
        return "numba.cuda is emulated at the moment, so no kernel runs on a GPU."
    return _why_no_gpu()


@functools.cache
def _why_no_gpu() -> str | None:
    """Return the same as `why_no_gpu`, without regard to emulation, found out once per process."""
    from numba import config, cuda

    if config.ENABLE_CUDASIM:
        return "NUMBA_ENABLE_CUDASIM is set, so Numba simulates CUDA instead of using a GPU."
    problem = cuda.cuda_error()
    if problem is not None:
        return _about_the_driver(str(problem))
    try:
        devices = len(cuda.gpus)
    except Exception as error:  # A broken driver may raise anything, and the answer is the same.
        return _about_the_driver(str(error))
    if not devices:
        return "The NVIDIA driver is installed, but it sees no GPU."
    if not cuda.is_available():
        return (
            "There is a GPU, but CUDA's compiler (NVVM) is missing: install the course's gpu extra "
            "(`gemm-course doctor` says which)."
        )
    return None


def gpu_available() -> bool:
    """Tell whether kernels can be compiled for and launched on a GPU here."""
    return why_no_gpu() is None


def require_gpu() -> None:
    """Raise NoGpu, with the reason, if there is no GPU to run on."""
    reason = why_no_gpu()
    if reason is not None:
        raise NoGpu(reason)


def _about_the_driver(message: str) -> str:
    if "cannot be found" in message or "not found" in message:
        return "There is no NVIDIA GPU here: no NVIDIA driver is installed."
    return "The NVIDIA driver did not start: " + " ".join(message.split()).rstrip(".:") + "."
