# %% [markdown]
# # [[own_kernel.ipynb]] · What will you build?
#
# *Time: about 30 minutes to read, 40 for the exercises.*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32, int32

from gemm_course import check, own, records
from gemm_course import widgets as see
from lockstep.intrinsics import mbarrier_wait

# %% [markdown]
# ---
# ## Your own kernel
#
# The ladder ends here, and the tools that measured it are yours. A command writes a file to begin with. In a
# terminal, in the course's folder:
#
# ```
# python3 course.py new mine
# ```
#
# This puts `mine.py` beside the notebooks: notebook [[thread_tiles_2d.ipynb]]'s `thread_tiled_2d`, with
# comments that say what may be changed, and that is everything. (If `course.py` has not set the course up
# here yet, it does so first, which takes minutes.) `--from` begins at another rung. Until there is such a
# file, the next cell takes what it would hold.

# %%
mine = own("mine.py", otherwise="thread_tiled_2d")
mine.check()

# %% [markdown]
# `check` ran it on the emulator at odd shapes, with NaN in the padding, and looked for races. **After each
# edit read the file again**: run the cell once more.
#
# Now break it: in your `mine.py`, put a `#` before the first `cuda.syncthreads()`, save, and run the cell
# above once more. What will it say?

# %% [markdown] tags=["thought"]
# It names a race: the line that reads a tile, the line that stores it, and two threads. On a GPU the result
# may be right all the same, today. Take the `#` away again before you go on.

# %% [markdown]
# A card compares your kernel with every rung of its kind, and with cuBLAS. Without a GPU its bar stays empty,
# and the table tells what can be known all the same.

# %%
see.card(mine)

# %% [markdown]
# All that this course did to the ladder you can do to `mine`:
#
# | in a notebook | in a terminal | needs |
# |---|---|---|
# | `mine.check(tiles={"BK": 16})` | `python3 course.py check mine.py` | nothing |
# | `see.tiles(mine)`, `see.occupancy(mine)` | | nothing |
# | `compiled(mine)`, `see.machine_code(mine)` | `python3 course.py compile mine.py` | the compiler |
# | `run(mine, A, B).tflops` | `python3 course.py bench mine.py` | a GPU |
# | `see.limits(profiled(mine))` | `python3 course.py profile mine.py` | a GPU, Nsight Compute |
#
# Where to begin? With what limits it: 73 % of the loop's instructions are multiply-adds, so its issue slots
# allow 48.6 TFLOPS at most. Move TM and TN: which legal choice reads shared memory least often per
# multiply-add?

# %%
see.tiles(mine)

# %% [markdown] tags=["thought"]
# With the other sizes as they begin, 16 × 8 and 8 × 16: 0.19 reads, where 16 × 4 takes 0.31. A block then has
# half as many warps. Is it faster? `bench` on your GPU tells.

# %% [markdown]
# ## Why people still write kernels
#
# After a product a neural network adds a **bias** to each column and sets what is negative to zero, **ReLU**.
# A second kernel for this reads and stores all of C. A kernel of your own does both while its results still
# lie in registers: an [**epilogue**](glossary.md#epilogue), *fused* into the multiplication.
#
# For C of 4096 × 4096 floats, a kernel of its own for bias and ReLU reads 64 MiB and stores 64 MiB. What does
# the fused epilogue read more than the multiplication alone?

# %% [markdown] tags=["thought"]
# One element of `bias` per column for each block (or per thread, through the caches): kilobytes instead of
# 128 MiB. At 4.8 TB/s, the H200's memory by its data sheet, they take 28 µs; less where L2 still holds a part
# of C. The product itself takes 2.6 ms at 52 TFLOPS, but with k = 256, at 45 TFLOPS, only 0.19 ms: there the
# second kernel is a large part.

# %% [markdown]
# ### Exercise [[fused_epilogue]] · A fused epilogue
# *core · medium · 10 minutes*
#
# The kernel below computes TM results per thread, one below the other, straight from global memory; its sums
# are done. Write what is left: `C = max(A @ B + bias, 0)`. `bias` has an element for each column of C. Any
# m, n and k; C is stored once and never read, and a thread reads its element of `bias` once.


# %% id="ex-fused_epilogue"
def make_fused(BM, BN, TM):
    @cuda.jit
    def fused(m, n, k, A, B, bias, C):
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        row0 = cuda.blockIdx.y * BM + cuda.threadIdx.y * TM
        col = cuda.blockIdx.x * BN + cuda.threadIdx.x
        for p in range(k):
            b = B[p, col] if col < n else float32(0)
            for i in range(TM):
                if row0 + i < m:
                    acc[i] += A[row0 + i, p] * b
        ### BEGIN SOLUTION
        if col < n:
            extra = bias[col]
            for i in range(TM):
                if row0 + i < m:
                    C[row0 + i, col] = max(acc[i] + extra, float32(0))
        ### END SOLUTION

    return fused


check.fused_epilogue(make_fused)

# %% [markdown]
# ## From PyTorch and CuPy
#
# A stage of your own is a function as well. It takes the arrays of CuPy and PyTorch where they lie, by
# [`__cuda_array_interface__`](https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html) or
# [DLPack](https://dmlc.github.io/dlpack/latest/), writes into their memory, and runs in turn with their own
# operations, on their current stream:
#
# ```python
# import torch
# A, B = torch.randn(4096, 4096, device="cuda"), torch.randn(4096, 4096, device="cuda")
# C = torch.empty(4096, 4096, device="cuda")
# mine(A, B, out=C)                        # returns before it has run, as PyTorch's own operations do
# ```
#
# To give `mine.py` your epilogue takes four edits:
#
# ```python
# # 1: at the top
# import numpy as np
# # 2: the kernel takes bias after C
#     def thread_tiled_2d(m, n, k, alpha, A, B, beta, C, bias):
# # 3: the store; alpha and beta stay
#                     c = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]
#                     C[row, col] = max(c + bias[col], float32(0))
# # 4: in STAGE; "n": bias has n elements; check compares with the epilogue
#     extras={"bias": "n"},
#     epilogue=lambda C, bias: np.maximum(C + bias, 0),
# ```
#
# `python3 course.py check mine.py` says whether it is right. Then `mine(A, B, bias=bias)` is a layer of a
# network. Here, without PyTorch, the same call takes NumPy arrays:

# %%
A, B = np.ones((65, 33), np.float32), np.ones((33, 70), np.float32)
extras = {name: np.zeros(70, np.float32) for name in mine.extras}
mine(A, B, **extras)[0, 0]

# %%
see.progress()
