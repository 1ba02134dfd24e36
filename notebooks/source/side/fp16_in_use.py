# %% [markdown]
# # [[fp16_in_use.ipynb]] · When is FP16 safe?
#
# A side trip from [notebook [[tensor_cores.ipynb]]](tensor_cores.ipynb#cell-id=side-fp16_in_use), and back.
#
# *Time: about 15 minutes to read, 10 for the exercises. Needs notebook [[tensor_cores.ipynb]].*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32
from numba.types import float16

from gemm_course import LADDER, check, launch, records, run
from gemm_course import widgets as see
from lockstep.intrinsics import (
    COL_MAJOR,
    ROW_MAJOR,
    unroll,
    wmma_load_a,
    wmma_load_b,
    wmma_mma,
    wmma_store,
)

# %% [markdown]
# C is FP16 in both, ready to be an operand of the next product. Rounding to it costs up to 0.0005. What is
# beyond that comes from the accumulators.
#
# ## When is FP16 safe?
#
# - **Range.** From 65,520 on a number becomes infinite, below 3 · 10⁻⁸ zero, and already below 6 · 10⁻⁵ it
#   has fewer digits. That holds for A, for B *and for C*. Are A's values too large or too small? Divide A by
#   a power of two, which is exact, and put that power into `alpha`. What C holds has to fit by itself.
# - **Precision.** Each element of A and B is rounded once, by at most 0.05 %.
# - **Accumulation.** In FP32, unless k is small.
#
# **Rescue it (2 minutes).** A goes up to a million here, and C becomes infinite. Which is the smallest power
# of two, and which the largest, with an error below 0.001?

# %%
scale = 1.0  # change this, to 2.0**3 for example
A, B = np.random.default_rng(0).random((2, 64, 64))
A, B = 1e6 * A, 1e-3 * B
with np.errstate(over="ignore"):
    C = run("wmma", (A / scale).astype(np.float16), B.astype(np.float16), alpha=scale).C
    error = abs(C / (A @ B) - 1).max()
f"largest relative error: {error:.5f}"

# %% [markdown] tags=["thought"]
# 2⁴ and 2³⁵. Below, A still reaches infinity; above, its values lose too many digits. A factor of two billion
# lies between, and a largest value of about 1, with 2²⁰ here, is in the middle.

# %% [markdown]
# **bfloat16** divides the 16 bits differently: 8 for the exponent, as float32 has, and 7 for the fraction. It
# needs no scaling, and rounds 8 times as coarsely. Neural networks are mostly trained with it. **TF32** has 8
# bits of exponent and 10 of fraction. cuBLAS uses it for FP32 only if it is told to; our figures are without.
# By its data sheet an H200's Tensor Cores multiply FP8, INT8 and FP64 as well.


# %%
def bfloat16(x):
    """x with 8 bits of exponent and 7 of fraction: the upper half of a float32, rounded to nearest even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


numbers = np.array([0.1, 257, 60_000, 1e6, 1e-7], np.float32)
with np.errstate(over="ignore"):
    as_fp16 = numbers.astype(np.float16).astype(np.float32)
pd.DataFrame({"FP16": as_fp16, "bfloat16": bfloat16(numbers)}, numbers).map("{:.6g}".format)

# %% [markdown]
# ## Where C ends
#
# ### Exercise [[ragged_product]] · The edge of C
# *stretch · easy · 5 minutes*
#
# The product of [[warp_product]] for **any** m, n and k. Where the matrices have ended, the tiles hold zeros,
# so the accumulators are right. But a fragment is 16 × 16, and C may end in the middle of it. v07 stores
# whole fragments and writes beyond C. Bring to C what belongs there (float32; its rows may be longer than n),
# and nothing else.


# %% id="ex-ragged_product"
@cuda.jit
def product(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    Cs = cuda.shared.array((16, 24), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    ### BEGIN SOLUTION
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    cuda.syncwarp()
    for e in range(8):
        if row0 + r < m and col0 + c + e < n:
            C[row0 + r, col0 + c + e] = Cs[r, c + e]
    ### STUB
    # # your code: from acc to C
    ### END SOLUTION


check.ragged_product(product)

# %% [markdown]
# ### Half the accumulator, more speed?
#
# `wmma_fp16_acc` is 13 % faster than `wmma`, though a product takes as long. What else do short accumulators
# save? Think of what an SM has to hold, then look:

# %%
see.fold(lambda: see.occupancy("wmma_fp16_acc"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# Registers: an SM has room for three blocks instead of two, so there is more to do while one waits. Is that
# the reason? Keep the third block out, by shared memory that nobody uses: in one run 342 TFLOPS fell to 311.
# So mostly it is. The price you know: the error.

# %% [markdown]
# ## Tune it in three moves
#
# The sliders stand at our example. Document 004's tiles, 128 × 128 × 16 with warps of 64 × 32 and a padding
# of 16, do 120 TFLOPS. Three **moves** lie between: a move sets one slider, as far as you like. **Rank the
# three before you try them**, and say of each what it saves: wavefronts, or waiting?
#
# Then do better. Keep two of the three moves and replace one, and you get from the document's tiles to the
# best of all 254 that were measured. **Find it.**

# %%
see.tiles("wmma", tells_best=False)

# %% [markdown] tags=["thought"]
# PAD 8, then BK 64, then WN 64: 164, 291, 303 TFLOPS, each on top of the moves before. PAD and WN save
# wavefronts, one by fewer conflicts, the other by fewer loads. BK saves waiting, with not one wavefront
# fewer, and brings the most in every order that was measured. PAD and WN depend on the order: WN second,
# before BK, even loses 11.
#
# For the best, leave WN and set WM to 128 instead: 310 TFLOPS. By loads it should lose, 10 against 8 for 16
# products. Why it wins nobody has profiled. A good question to end with.
