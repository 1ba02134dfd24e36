"""What CUDA allows one launch, one block and one thread; the rest of the course takes it from here.

CUDA C++ programming guide, "Technical specifications per compute capability". What differs between GPUs is
Hopper's here; what the multiprocessors of other GPUs hold is in the model's `gpus.py`.
"""

MAX_THREADS = 1024  # per block
MAX_BLOCK = (1024, 1024, 64)  # threads along x, y and z
MAX_GRID = (2**31 - 1, 65535, 65535)  # blocks along x, y and z
MAX_STATIC_SHARED_BYTES = 48 * 1024  # per block, in arrays of fixed shape; more must be opted in to
MAX_SHARED_BYTES = 227 * 1024  # per block, with that opt-in; older GPUs have less
MAX_REGISTERS = 255  # per thread
REGISTERS_PER_SM = 65536
MAX_BLOCKS_PER_SM = 32
