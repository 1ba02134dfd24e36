# %% [markdown]
# # [[fp16_in_use.ipynb]] · When is FP16 safe?
#
# A side trip from [notebook [[tensor_cores.ipynb]]](tensor_cores.ipynb#cell-id=side-fp16_in_use), and back.
#
# There you saw that a sum of FP16 values stops to grow, and chose float32 accumulators. The course has a
# kernel that did not: `wmma_fp16_acc` is `wmma` with FP16 accumulators. Both store C as FP16. **For k = 32,
# 256 and 1,024, how large is the worst relative error of each?** Say roughly: below 0.001, or above?
#
# *Time: about 20 minutes to read, 8 for the exercises. Needs notebook [[tensor_cores.ipynb]].*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32
from numba.types import float16

from gemm_course import check, run
from gemm_course import widgets as see
from lockstep.intrinsics import ROW_MAJOR, wmma_load_a, wmma_load_b, wmma_mma, wmma_store


# %%
def fp16(x):
    """x as FP16, as a float32 again."""
    with np.errstate(over="ignore"):
        return np.asarray(x).astype(np.float16).astype(np.float32)


def worst_error(stage, k):
    rng = np.random.default_rng(0)
    A, B = (rng.random(shape).astype(np.float16) for shape in ((64, k), (k, 64)))
    exact = A.astype(float) @ B.astype(float)
    return abs(run(stage, A, B).C / exact - 1).max()


# %%
{stage: [f"{worst_error(stage, k):.5f}" for k in (32, 256, 1024)] for stage in ("wmma", "wmma_fp16_acc")}

# %% [markdown]
# `wmma` stays below 0.0005 whatever k is: rounding C to FP16 costs that, once. The other is rounded at every
# step, and its error grows with k. (Without a GPU the emulator computes this. It rounds where a Tensor
# Core cuts.)
#
# ## What can go wrong?
#
# - **Range.** From 65,520 on a number becomes infinite, below 3 · 10⁻⁸ zero, and already below 6 · 10⁻⁵ it
#   has fewer digits. That holds for A, for B *and for C*. You rescued A by a power of two and `alpha`. What C
#   holds has to fit by itself.
# - **Precision.** Each element of A and B is rounded once, by at most 0.05 %.
# - **Sums.** Add them up in float32, unless k is small.
#
# Try the limits: put numbers of your own in place of these three.

# %%
fp16([65_519, 65_520, 2e-8])

# %% [markdown]
# ### Would another short number do?
#
# **bfloat16** divides the 16 bits differently: 8 for the exponent, as many as float32 has, and 7 for the
# fraction. **Which of 0.1, 257, 60,000, a million and 10⁻⁷ does FP16 keep better, and which bfloat16?** Say
# it of each, then run both cells.


# %%
def bfloat16(x):
    """x with 8 bits of exponent and 7 of fraction: the upper half of a float32, rounded to nearest even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


# %%
numbers = np.array([0.1, 257, 60_000, 1e6, 1e-7], np.float32)
pd.DataFrame({"FP16": fp16(numbers), "bfloat16": bfloat16(numbers)}, numbers).map("{:.6g}".format)

# %% [markdown] tags=["thought"]
# FP16 keeps 0.1, 257 and 60,000 better: it has three more bits of fraction, so it rounds 8 times as finely.
# bfloat16 makes 256 of 257, and 59,904 of 60,000. But a million is infinite in FP16, and 10⁻⁷ is off by a
# fifth. bfloat16 has both to within 0.2 %.

# %% [markdown]
# So bfloat16 needs no scaling, and pays with digits. Neural networks are mostly trained with it.
#
# **What we now know:** a short number has range or digits. What is added up has to be longer.
#
# ## Where does C end?
#
# ### Exercise [[ragged_product]] · The edge of C
# *stretch · easy · 8 minutes*
#
# The product of [[warp_product]] for **any** m, n and k. Where the matrices have ended, the tiles hold zeros,
# so the accumulators are right. But a fragment is 16 × 16, and C may end in the middle of it. Bring to C what
# belongs there (float32; its rows may be longer than n), and nothing else: first `wmma_store` into `Cs`, then
# each lane copies its part.


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
# **What we now know:** a warp stores a fragment whole, so it does it where there is room: in shared memory.
#
# ## What else do short accumulators save?
#
# `wmma_fp16_acc` is 13 % faster than `wmma`, though a product takes a Tensor Core as long. Think of what an
# SM has to hold for a block. Then look at what first limits the blocks on an SM:

# %%
see.fold(lambda: see.occupancy("wmma"), lambda: see.occupancy("wmma_fp16_acc"))

# %% [markdown] tags=["thought"]
# Registers: an SM has room for three blocks instead of two, so there is more to do while one waits. Is that
# the reason? Keep the third block out, by shared memory that nobody uses: in one run 342 TFLOPS fell to 311.
# So mostly it is. The price is the error, which you have seen.

# %% [markdown]
# ## Which three moves?
#
# The sliders stand at our example. Document 004's tiles, 128 × 128 × 16 with warps of 64 × 32 and a padding
# of 16, do 120 TFLOPS. Three **moves** lie between: BK to 64, WN to 64, PAD to 8. A move sets one slider, as
# far as you like. **Rank the three before you try them**, and say of each what it saves: wavefronts, or
# waiting? (With PAD 16 a BK of 64 does not fit into shared memory, so set PAD before BK.)
#
# Then do better. Keep two of the three moves and replace one, and you get from the document's tiles to the
# best of all 254 that were measured. **Find it.**

# %%
see.tiles("wmma", tiles={"BM": 128, "BN": 128, "BK": 64, "WM": 64, "WN": 64, "PAD": 8}, tells_best=False)

# %% [markdown] tags=["thought"]
# PAD 8, then BK 64, then WN 64: 164, 291, 303 TFLOPS, each on top of the moves before. PAD and WN save
# wavefronts, one by fewer conflicts, the other by fewer loads. BK saves waiting, with not one wavefront
# fewer, and brings the most in every order that was measured. PAD and WN depend on the order: WN second,
# before BK, even loses 11.
#
# For the best, leave WN and set WM to 128 instead: 310 TFLOPS.

# %% [markdown]
# ## The way back
#
# **FP16 is safe** if A, B and C fit into its range, if 0.05 % per number is good enough, and if the sums are
# float32. [Back to notebook [[tensor_cores.ipynb]]](tensor_cores.ipynb#cell-id=side-fp16_in_use).
