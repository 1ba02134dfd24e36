# %% [markdown]
# # 05 · Which sixty-four results?
#
# In notebook [[thread_tiles_1d.ipynb]] a thread computed a column of C. What it read from Bs served the whole
# column. What it read from As served one result, and was thrown away.
#
# Here is a thread with a column of 64 results. In each step along k it reads 65 elements of shared memory,
# for 64 multiply-adds. **Keep the 64 results, and give them another shape. Get below 17 reads.**

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check
from gemm_course import widgets as see

see.registers("thread_tiled_2d", results=64)

# %% [markdown]
# A thread has TM × TN results, TM rows of TN. How many elements does it read in a step, and for how many
# multiply-adds? Say it before you open this.

# %% [markdown] tags=["thought"]
# It reads TM elements of As and TN of Bs, and each of the TM meets each of the TN: **TM + TN reads for TM ·
# TN multiply-adds.** For 8 × 8 results these are 16 reads for 64 multiply-adds: a quarter of a read for each.
# With one result per thread it was two.

# %% [markdown]
# *Time: about 52 minutes to read, 48 for the exercises; a pause is marked. The
# [glossary](glossary.md#document) says what documents 001 and 004 are.*
#
# First two questions from memory, without looking back:

# %%
see.recall("thread_tiles_2d")

# %% [markdown]
# And a bet for [your ladder](glossary.md#ladder). The column of notebook [[thread_tiles_1d.ipynb]] reached 21
# TFLOPS on an H200. How many will 8 × 8 results per thread reach? Write a number in place of the dots.

# %%
see.my_bet("thread_tiles_2d", tflops=...)

# %% [markdown]
# ## How do you multiply a column by a row?
#
# With a pencil you finish one element of C, then the next: the loop along k is the innermost. Make it the
# **outermost**:

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((8, 50), np.float32), rng.standard_normal((50, 8), np.float32)
C = np.zeros((8, 8), np.float32)
for p in range(50):
    C += np.outer(A[:, p], B[p])
np.abs(C - A @ B).max()

# %% [markdown]
# In every step one column of A and one row of B come in. Each element of one meets each of the other, and 64
# sums grow by one product each. That is an [outer product](glossary.md#outer-product). What holds a sum while
# it grows is called an **accumulator**.
#
# Here a thread does it, with its accumulators in registers. Choose another thread: what does it read in this
# step?

# %%
see.multiply("thread_tiled_2d")

# %% [markdown]
# ### Exercise [[outer_product]] · The outer product
# *core · hard · the heart of this notebook · 20 minutes*
#
# `fetch` fills both tiles for you. Write the rest: TM × TN accumulators, the outer products, and the store.
#
# - The block has BN/TN threads along x and BM/TM along y. Thread (tx, ty) computes TM rows of C, from `row0 +
#   ty * TM` on, and TN columns, from `col0 + tx * TN` on. (Other rows and columns pass as well, if each
#   result has one thread. What follows counts these.)
# - Store `alpha` times the sum, plus `beta` times what C held. Where `beta == 0`, do not read C.
# - The checker wants TM + TN reads of shared memory per step, and the accumulators in registers.
# - The shape of an array must be a constant, such as `TM` or `(TM, TN)`. `TM * TN` is computed in the kernel:
#   that is refused.

# %%
from gemm_course.checks.kits import make_fetch


# %% id="ex-outer_product"
def make_outer(BM, BN, BK, TM, TN):
    fetch = make_fetch(BM, BN, BK, TM, TN)

    @cuda.jit
    def outer(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        ### BEGIN SOLUTION
        acc = cuda.local.array((TM, TN), float32)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        ### STUB
        # # your code: TM by TN results, all zero
        ### END SOLUTION
        for k0 in range(0, k, BK):
            fetch(m, n, k, k0, A, B, As, Bs)
            cuda.syncthreads()
            ### BEGIN SOLUTION
            for p in range(BK):
                for i in range(TM):
                    a[i] = As[ty * TM + i, p]
                for j in range(TN):
                    b[j] = Bs[p, tx * TN + j]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            ### STUB
            # # your code: an outer product for each step along k
            ### END SOLUTION
            cuda.syncthreads()
        ### BEGIN SOLUTION
        for i in range(TM):
            for j in range(TN):
                row, col = row0 + ty * TM + i, col0 + tx * TN + j
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]
        ### STUB
        # # your code: store the results
        ### END SOLUTION

    return outer


check.outer_product(make_outer)

# %% [markdown]
# The course's kernel of this notebook is `thread_tiled_2d`, document 004's v04. Here it is beside the kernel
# of notebook [[thread_tiles_1d.ipynb]].

# %% tags=["listing"]
see.fold(see.diff("thread_tiled_1d", "thread_tiled_2d"), first="Write the exercise first, then open this.")

# %% [markdown]
# From here on every figure is for one choice of tiles, **the square**: a block computes 128 × 128 results, 16
# steps along k at a time, and a thread 8 × 8 of them. So a block has 16 × 16 threads.

# %%
square = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}

# %% [markdown]
# **What we now know:** of all shapes, a square of results needs the fewest reads. The results take registers.
#
# ## Which elements are missing?
#
# So far `fetch` filled your tiles. Before you do it yourself, look at document 001, a first draft that is
# nearly right. Each of its threads brings one **slice** of each tile: TM rows of As in column `tx`, and TN
# columns of Bs in row `ty`. (`top` and `left` are the thread's first row and column of C.)
#
# ```python
# for i in range(TM):
#     As[ty * TM + i, tx] = A[top + i, k0 + tx] if top + i < m and k0 + tx < k else float32(0)
# for j in range(TN):
#     Bs[ty, tx * TN + j] = B[k0 + ty, left + j] if k0 + ty < k and left + j < n else float32(0)
# ```
#
# This is what a block of 4 × 4 threads leaves in the tiles when BK is 8. Nobody stored the hatched elements.
# Then try every other BK, and the other blocks.

# %%
see.coverage("kernel5_draft")

# %%
see.predict("thread_tiles_2d.draft")

# %% [markdown]
# ### Exercise [[draft_is_right]] · When is the draft right?
# *core · easy · 8 minutes*
#
# For which tiles does the draft store every element of both tiles, and nothing beside them? Write a function
# of the five sizes that returns True or False. (BM and BN are multiples of TM and TN.) The checker asks the
# emulator.


# %% id="ex-draft_is_right"
def right(BM, BN, BK, TM, TN):
    ### BEGIN SOLUTION
    return BK == BN // TN and BK == BM // TM
    ### STUB
    # return None
    ### END SOLUTION


check.draft_is_right(right)

# %% [markdown]
# Now ask your function about the square: 128, 128, 16, 8, 8. What would a test of the draft with these tiles
# have found?

# %% [markdown] tags=["thought"]
# Nothing. 16 = 128 / 8 = 128 / 8: the square is just where the draft is right. Its author knew that there is
# a condition, and wrote half of it into the draft: "you'll only load the first BM/TM rows of the BK rows
# unless BM/TM == BK". **Test a kernel with sizes that all differ.** The checkers of this course do.

# %% [markdown]
# ## Can you fill them for any BK?
#
# ### Exercise [[slices]] · No line is a gift
# *core · hard · 20 minutes*
#
# Copy what stands in your `make_outer` of [[outer_product]] into `make_kernel`. Take the call of `fetch` out,
# and fill both tiles in its place, with loops of your own, for **any** BK: for fewer columns than threads
# along x, and for more.
#
# - As begins at row `row0` and column `k0` of A, Bs at row `k0` and column `col0` of B.
# - Store every element of As and of Bs **exactly once**, and a zero where a matrix has ended.
# - Share the work among the threads, in slices or in any other way, such as the walk of [[tile_walk]].
#   Leave the two barriers where they are.


# %% id="ex-slices"
### BEGIN SOLUTION
def make_kernel(BM, BN, BK, TM, TN):
    @cuda.jit
    def kernel(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
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
            for c in range(tx, BK, BN // TN):
                for i in range(TM):
                    r = ty * TM + i
                    As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for r in range(ty, BK, BM // TM):
                for j in range(TN):
                    c = tx * TN + j
                    Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                for i in range(TM):
                    a[i] = As[ty * TM + i, p]
                for j in range(TN):
                    b[j] = Bs[p, tx * TN + j]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                row, col = row0 + ty * TM + i, col0 + tx * TN + j
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]

    return kernel


### STUB
# def make_kernel(BM, BN, BK, TM, TN):
#     return None  # your code: begin with what stands in make_outer
### END SOLUTION

check.slices(make_kernel)

# %% [markdown]
# The tiles that your kernel leaves, with BK at 8:

# %%
see.coverage(make_kernel)

# %% [markdown]
# **What we now know:** a loop that starts at the thread's own number, and moves on by the number of threads,
# fills a tile of any size. Now the whole kernel is yours.

# %% [markdown] id="side-kernel5"
# Side trip, 45 minutes: the finished kernel, document 000's, fills the same holes in slices. [What does that
# cost, and what cures it?](kernel5.ipynb) It leads back to this line.

# %% [markdown]
# *A good place for a pause. What follows takes about 30 minutes.*
#
# ## How fast can it be?
#
# Count one step of one warp, as you wrote it. Shared memory has 32 banks, as L1 has 32 places, so your
# function of [[l1_queue]] counts its wavefronts. Here is a right version. `in_a_step` has the addresses of
# one read of As. Write those of one read of Bs between the brackets.


# %%
def wavefronts(addresses):
    """The most different words that one bank holds. An address counts bytes, a word has 4."""
    words = {address // 4 for address in addresses}
    return max(sum(word % 32 == bank for word in words) for bank in range(32))


def in_a_step(TM, TN, BN=128, BK=16):
    """The wavefronts that one warp's reads take in a step."""
    warp = [(lane % (BN // TN), lane // (BN // TN)) for lane in range(32)]  # tx and ty of each lane
    i, j, p = 0, 0, 0
    # As[ty * TM + i, p]: its rows have BK elements of 4 bytes.
    of_As = [4 * ((ty * TM + i) * BK + p) for tx, ty in warp]
    # Bs[p, tx * TN + j]: your turn.
    of_Bs = []
    return TM * wavefronts(of_As) + TN * wavefronts(of_Bs) if of_Bs else None


in_a_step(8, 8)

# %%
see.predict("thread_tiles_2d.ceiling")

# %% [markdown]
# `thread_tiled_2d` reached **33 TFLOPS** on an H200, with the square. As in notebook
# [[thread_tiles_1d.ipynb]], the program that ran is not the one that you counted. How many reads per step has
# the compiler made of your 16? Say it, then look.

# %%
see.fold(lambda: see.as_compiled("thread_tiled_2d", tiles=square), first="Say it first, then open this.")

# %% [markdown] tags=["thought"]
# Four. The compiler reads four neighbours at once. Two such reads bring 8 of a row of Bs. A read of As brings
# four of a row, which serve four steps. They take 20 wavefronts instead of 48. So shared memory allows 67 ·
# 16 / 20 = 54 TFLOPS.
#
# **A roof that is counted from the source holds for the source only.**

# %% [markdown]
# Where do the wavefronts of such a read come from? A read of four floats asks for 16 bytes per lane. That
# is 512 bytes for a warp, and a wavefront carries 128. So the lanes come in **turns** of eight. Step through
# one read of Bs, and add up its wavefronts.

# %%
see.turns(only_bs=True)

# %% [markdown]
# Four turns of two: 8 wavefronts, and a step has two such reads of Bs.
#
# In a read of As, lanes 0 to 15 have the same `ty`, so they want the same 16 bytes. Their two turns join to
# one wavefront, and those of lanes 16 to 31 to another. Such a read brings the elements of four steps. So
# the 8 rows take 8 reads in four steps, 2 per step. Together: 2 · 8 + 2 · 2 = 20.
#
# And your kernel? Take the # away and run it: which rows of the table differ?

# %%
from lockstep.intrinsics import u32, unroll  # noqa: F401

# (This needs NVIDIA's compiler, and no GPU: `python3 course.py doctor` says how to get it.)
# see.as_compiled("thread_tiled_2d", make_kernel, tiles=square)

# %% [markdown]
# `thread_tiled_2d` tells the compiler three things that yours does not. Its loops ask to be written out, `for
# i in unroll(range(TM))`. Its thread and block numbers have 32 bits instead of 64, `u32(cuda.threadIdx.x)`.
# It has a cap, `@cuda.jit(max_registers=128)`. None of them changes what is computed.

# %%
see.predict("thread_tiles_2d.told")

# %% [markdown]
# **Tell the compiler in your kernel** of [[slices]]: `unroll` around the ranges of constant length, then
# `u32` around the thread and block numbers. After each, run its cell and then the table: what has become of
# the reads, of the registers, of the blocks? (Which of the two merges reads depends on how yours is written.)
#
# **What we now know:** the compiler makes one read of four, if it is told enough. Then shared memory
# allows 54 TFLOPS, and 33 are reached.
#
# ## Are sixteen warps enough?
#
# With the square a thread takes 128 registers, 64 of them for accumulators. An SM has 65,536 registers, 228
# KB of shared memory, and places for 64 warps and 32 blocks. How many blocks of 256 threads and 16 KB fit
# (each takes 17, for the system keeps 1 KB), and what is full first? Compute it here.

# %%
by_registers = ...
by_shared_memory = ...

# %%
see.fold(lambda: see.occupancy("thread_tiled_2d", tiles=square), first="Work it out first, then open this.")

# %% [markdown]
# Two blocks, 16 of 64 warps. Now let one block less in. The machine code stays the same: a block only asks
# for shared memory that it never uses, so that the SM holds one. That was measured: 24 TFLOPS instead of 33.
#
# **What we now know:** registers leave room for two blocks, and one is too few. While a block waits for its
# tiles, only another block can compute.
#
# ## What stops it now?
#
# Two parts of the SM are busiest. Shared memory is busy in 72 % of the clocks, and 69 % of the issue slots
# are taken. Which of the two is the limit?
#
# **A limit shows when you take its work away.** Which shape of 64 results takes the fewest wavefronts, as
# written? Try all seven with `in_a_step`. Then put it in place of the square, and see what the compiler makes
# of it.

# %%
# your code: in_a_step(64, 1), in_a_step(32, 2), ...
TM, TN = 8, 8  # the square: put your shape here
see.as_compiled("thread_tiled_2d", tiles=square | {"TM": TM, "TN": TN})

# %% [markdown] tags=["thought"]
# 16 × 4: as written 32 wavefronts instead of 48. It is no square, and it reads more, 20 elements instead of
# 16. But a warp now is one row of 32 threads: all its lanes ask for the same of As, and side by side of Bs.
# Compiled, a step takes 12 wavefronts instead of 20.

# %%
see.predict("thread_tiles_2d.tall")

# %%
see.fold(
    lambda: see.limits(("thread_tiled_2d", square), ("thread_tiled_2d", square | {"TM": 16, "TN": 4})),
    first="Choose your answer first, then open this.",
)

# %% [markdown]
# The picture below has the square. Forecast what 4 × 4 results per thread change: the shared loads per
# multiply-add, the registers, and the speed. Then set TM and TN to 4.

# %%
see.tiles("thread_tiled_2d", tiles={"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}, tells_best=False)

# %% [markdown] tags=["thought"]
# 8 reads for 16 multiply-adds: half of a read for each, twice as many as in the square. It takes fewer
# registers, and is slower: 23 TFLOPS instead of 33. Because of the reads? A block has 1,024 threads now, so
# the SM holds one instead of two. Two things have changed, and this does not tell which of them costs.

# %% [markdown]
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a kernel whose threads compute 8 × 8 results each, from 16 reads per step.
# - **It reached** 33 TFLOPS on an H200, with the compiler told three things. The column of notebook
#   [[thread_tiles_1d.ipynb]] reached 21.
# - **What stops it now** is not shared memory: 40 % fewer wavefronts brought 2 %. Next are the issue slots,
#   taken in 69 %, one in four of them not by a multiply-add. That is a suspect, and no proof. Notebook
#   [[vectorized_access.ipynb]] tries them.
#
# Which sixty-four, then? A square has the fewest reads, 16 × 4 the fewest wavefronts. On an H200 they are
# nearly as fast, since neither is the limit.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("thread_tiles_2d")
