# %% [markdown]
# # [[kernel5.ipynb]] · What does Kernel 5 cost, and what cures it?
#
# A side trip from [notebook [[thread_tiles_2d.ipynb]]](thread_tiles_2d.ipynb#cell-id=side-kernel5), and back.
# Document 000's Kernel 5 fetches its tiles in slices, and leaves no hole in them. Here you see what that
# costs, cure it piece by piece, and find out whether the cure pays.
#
# *Time: about 20 minutes to read, 27 for the exercises. Needs notebook [[thread_tiles_2d.ipynb]] up to
# exercise [[slices]]. All figures are for its square: 128 × 128 × 16, and 8 × 8 results per thread.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, run
from gemm_course import widgets as see

rng = np.random.default_rng(0)

# %% [markdown]
# This is the kernel. Thread (x, y) fetches slices of its own TM rows of A, and of its own TN columns of B.

# %%
see.source("kernel5")

# %% [markdown]
# ## What the slices cost
#
# The tiles are complete. But at what price? Sectors per request, for Kernel 5 and for
# `thread_tiled_2d`:

# %%
square = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
A, B = rng.standard_normal((128, 64), np.float32), rng.standard_normal((64, 128), np.float32)


def sectors(stage):
    report = run(stage, A, B, tiles=square, backend="emulator").report
    return {name: report.sectors_per_request(array=name, op="load") for name in "AB"}


sectors("kernel5"), sectors("thread_tiled_2d")

# %% [markdown]
# Of B, neighbours in x fetch elements TN = 8 floats apart, each in a sector of its own: what cost the kernel
# of notebook [[naive.ipynb]] so much is back.
#
# ### Exercise [[coalesced_b]] · From 32 sectors to 4
# *core · medium · 10 minutes*
#
# Fill `Bs` again, and `Bs` alone, so that the load of B is coalesced: 4 sectors per request, and all threads
# take part. Change nothing else: the same parameters as in [[slices]], every element exactly once, zeros
# where B has ended. Numbering the threads, as in [[tile_walk]], would do it, and passes. Better: find the
# way that keeps the rows, `ty`, `ty + BM // TM` and so on, and changes only the columns. (`device=True`: a
# function that kernels call.) Which columns should a thread take?


# %% id="ex-coalesced_b"
def make_fetch_b(BM, BN, BK, TM, TN):
    @cuda.jit(device=True)
    def fetch_b(m, n, k, k0, A, B, As, Bs):
        ### BEGIN SOLUTION
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col0 = cuda.blockIdx.x * BN
        for r in range(ty, BK, BM // TM):
            for j in range(TN):
                c = tx + j * (BN // TN)
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
        ### END SOLUTION

    return fetch_b


check.coalesced_b(make_fetch_b)

# %% [markdown]
# ## Banks again
#
# The picture shows one read of a step of Kernel 5 by a whole warp, 16 × 2 threads, **as written**.
#
# **A bet:** two tiles, six widths of padding behind each row. In how many of these twelve cases is the read
# free of conflicts? Then find them, and the rule.

# %%
see.tile_banks()

# %% [markdown] tags=["thought"]
# Three: As with 1, 2 or 3 words. The warp's two rows of threads read 8 rows of As apart, 8 · (16 + padding)
# words, and that must not be a multiple of 32. With 4 or 8 words it is one again. Padding behind the rows
# cannot cure Bs, whose words lie all in one row. Padding inside the row can: column c at `c + c // 32`. (But
# C would still be stored 8 columns apart.)

# %% [markdown]
# ### Exercise [[no_conflicts]] · Conflict-free
# *stretch · hard · 17 minutes*
#
# The cell below has a right answer to [[slices]]. Fix both conflicts, and take its last line away.
# Padding mends As. For Bs and the store of C together, give a thread other columns. Every **read** of As and
# of Bs should take one wavefront, and a store of C should move 4 sectors per request. (Stores into the tiles
# may take two wavefronts: every element is stored once and read 16 times.)
#
# Compute new shapes beside `THREADS`: `BK + 1` written inside the kernel is no constant.


# %% id="ex-no_conflicts"
def make_fixed(BM, BN, BK, TM, TN):
    ### BEGIN SOLUTION
    THREADS, WIDTH, APART = BM * BN // (TM * TN), BK + 1, BN // TN
    ### STUB
    # THREADS, APART = BM * BN // (TM * TN), BN // TN
    ### END SOLUTION

    @cuda.jit
    def fixed(m, n, k, alpha, A, B, beta, C):
        ### BEGIN SOLUTION
        As = cuda.shared.array((BM, WIDTH), float32)
        ### STUB
        # As = cuda.shared.array((BM, BK), float32)
        ### END SOLUTION
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array((TM, TN), float32)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * APART + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * APART + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                for i in range(TM):
                    a[i] = As[ty * TM + i, p]
                for j in range(TN):
                    ### BEGIN SOLUTION
                    b[j] = Bs[p, tx + j * APART]
                    ### STUB
                    # b[j] = Bs[p, tx * TN + j]
                    ### END SOLUTION
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                ### BEGIN SOLUTION
                row, col = row0 + ty * TM + i, col0 + tx + j * APART
                ### STUB
                # row, col = row0 + ty * TM + i, col0 + tx * TN + j
                ### END SOLUTION
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]

    return fixed


### BEGIN SOLUTION
### STUB
# make_fixed = None  # change the kernel above, then take this line away
### END SOLUTION

check.no_conflicts(make_fixed)

# %% [markdown]
# ### What helped

# %% [markdown] tags=["listing"]
# - **As**: a word of **padding**.
# - **Bs**: the **order of the columns**. Thread x takes x, x + 16, x + 32, ... Now neighbours in x touch
#   neighbouring words, in Bs, in B and in C. In Kernel 5 this also coalesces the load of B and the store of
#   C.
# - Or, instead of padding, the **order of the rows**: thread y takes y, y + 16, ... The two rows of a warp
#   are neighbours then, 16 words apart.
#
# (The course's solution takes 196 registers, so only one block fits on an SM.)

# %% tags=["listing"]
see.fold(lambda: see.tile_banks(spread=True), first="Write the exercise first, then open this.")

# %% [markdown] tags=["listing"]
# Below, `A_WIDTH` and `B_WIDTH` are the lengths of a tile's rows with padding. Thread tx has the columns
# `tx * BY_X + j * BY_J`.

# %%
from gemm_course.kernels.variants.kernel5_spread import STAGE as spread

sectors(spread)

# %% tags=["listing"]
see.fold(see.diff("kernel5", spread), first="Write the exercise first, then open this.")

# %% [markdown]
# **Does it pay?** Put three kernels in order, slowest first:
#
# - **`thread_tiled_2d`**: a conflict in As, one in Bs, all loads coalesced;
# - **Kernel 5, columns spread** (`kernel5_spread`): the conflict in As only, all loads coalesced;
# - **Kernel 5**: both conflicts, loads of B not coalesced.

# %%
three = ("kernel5", square), ("kernel5_spread", {"PAD": 0}), ("thread_tiled_2d", square)
see.fold(lambda: see.waits(*three, meanings=False), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# Kernel 5, columns spread, `thread_tiled_2d`: 25.8, 29.7 and 32.9 TFLOPS. Spreading pays. But
# `thread_tiled_2d`, conflicts and all, beats both.
#
# It is not fewer instructions: the faster kernels issue *more* per multiply-add: 1.26, 1.35, 1.36. Nor is it
# shared memory alone. That is busy in 77, 47 and 72 % of the clocks, and `thread_tiled_2d`, at 72 %, beats
# the kernel at 47 %. What falls all the way is the **waiting** for global memory (c): 23, 15 and 7 % of a
# warp's time.
#
# Part of it is reading back what was spilled, 48 bytes in Kernel 5 and 16 in the spread kernel: without
# that it is 20, 10 and 6.5 %. For the rest: a thread of `thread_tiled_2d` asks for all 16 elements before
# it stores the first. The other two ask for 8, wait, store, and ask for 8 more: their loops begin at `tx`
# and `ty`, so the compiler cannot know how often they run.
#
# ([Dispatch](glossary.md#dispatch), n: an instruction is ready, but is held back from its unit. Why this wait
# does not fall, no measurement says.)

# %% [markdown]
# And the word of padding? Forecast what it adds to the spread kernel, at 29.7 TFLOPS, and what it does to
# Kernel 5 as it was, at 25.7.

# %%
from gemm_course import records

padded = records.one_change().query("question == 'padding beside spread columns'")
see.fold(padded[["change", "tflops", "local_bytes"]].round(1), first="Forecast first, then open this.")

# %% [markdown] tags=["thought"]
# 31.4 beside spread columns, where it takes the last conflict away. Alone it makes Kernel 5 slower, 25.0,
# though it takes the conflict of As away.

# %% [markdown]
# ## The way back
#
# You coalesced Kernel 5's loads by the order of its columns, and cured its conflicts by padding and by that
# order. Together they bring 25.7 TFLOPS to 31.4, and yet a kernel with both conflicts is faster: it waits
# less. [Back to notebook
# [[thread_tiles_2d.ipynb]]](thread_tiles_2d.ipynb#cell-id=side-kernel5).
