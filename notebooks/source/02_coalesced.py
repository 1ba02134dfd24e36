# %% [markdown]
# # 02 · Coalescing
#
# The same loop, the same arithmetic, the same number of loads. We change **which thread computes which
# element**, and nothing else.
#
# **After this notebook you can**
# - arrange threads so that a warp's lanes read neighbours;
# - choose a block shape and a leading dimension by counting sectors;
# - read a roofline with several roofs, and a point that lies above one of them.
#
# *Time: about 30 minutes to read, 40 for the exercises. Comes from document 004, kernel v01.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, run
from gemm_course import widgets as see

# %% [markdown]
# ## In one picture
#
# The same product, with the warp laid another way over C. Which numbers does it read now, and in how many
# sectors do they lie? Compare with notebook 01.

# %%
see.multiply("naive_coalesced")

# %% [markdown]
# ## What limits it now?
#
# L1, busy 99 % of the time. A warp of v00 moves 33 sectors for every step along k: 32 for A, 1 for B. Of
# each sector of A, the step uses an eighth.
#
# `x` is the fast index: neighbouring lanes of a warp differ in `x`. In v00, x counted rows. What if it counts
# **columns**? Then the lanes of a warp sit side by side in a row of C, as in the picture above. With
# `cuda.grid(2)` the grid turns too: now the blocks along x have to cover the columns. Forgetting that is the
# classic mistake.
#
# ### Exercise 02.1 · Coalesce it
# *core · medium · the most useful habit of all · 10 minutes*
#
# Write the kernel so that neighbouring lanes work side by side in a row of C. `(m, n, k, alpha, A, B, beta,
# C)` as before; blocks of (32, 8) threads, **x runs over the columns**: `ceil(n / 32)` × `ceil(m / 8)`
# blocks. The checker counts sectors: a right result is not enough.


# %% id="ex-02-1"
@cuda.jit
def coalesced(m, n, k, alpha, A, B, beta, C):
    ### BEGIN SOLUTION
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]
    ### END SOLUTION


check.coalesced(coalesced)

# %% [markdown]
# The course's own, document 004's v01, differs from v00 in two lines:

# %% tags=["listing"]
see.diff("naive_uncoalesced", "naive_coalesced")

# %% [markdown] tags=["listing"]
# Look at `blockIdx`: here only the threads *within* a block were turned. Blocks are still numbered down the
# rows, and the launch is `ceil(m / BM)` × `ceil(n / BN)` blocks as before. Your kernel has its blocks along
# the columns. Both coalesce: that is a matter of lanes, and lanes come from `threadIdx`.

# %% [markdown]
# Go to the last lanes and compare both kernels: the load of A, the load of B, the store of C. (The buttons
# say x × y: rows × columns in v00, columns × rows in v01.)

# %%
see.warp_and_memory("naive_uncoalesced", "naive_coalesced")

# %% [markdown]
# When neighbouring lanes' addresses fall together into few sectors, the access is **coalesced**. Here B
# takes 4 sectors (128 bytes, all used), A one, and the store of C 4 instead of 32. The result is the same:

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 60), np.float32)
np.abs(run("naive_coalesced", A, B).C - A @ B).max()

# %% [markdown]
# ### Exercise 02.2 · Repair the manual
# *core · medium · two faults in eight lines · 8 minutes*
#
# This is, but for its name, the matrix multiplication that Numba's own documentation shows:


# %%
@cuda.jit
def matmul(A, B, C):
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for p in range(A.shape[1]):
            tmp += A[i, p] * B[p, j]
        C[i, j] = tmp


# %% [markdown]
# It is right, it is widely copied, and it has **two** faults that you know. Fix both. It is launched with
# blocks of (32, 4) threads and x along the columns of C.


# %% id="ex-02-2"
@cuda.jit
def matmul(A, B, C):
    ### BEGIN SOLUTION
    j, i = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = float32(0)
        for p in range(A.shape[1]):
            tmp += A[i, p] * B[p, j]
        C[i, j] = tmp
    ### END SOLUTION


check.documentation_matmul(matmul)

# %% [markdown]
# ## Predict, then look

# %%
see.predict("02.speedup")

# %% tags=["answer"]
see.tflops("naive_uncoalesced", "naive_coalesced")

# %% [markdown] tags=["answer"]
# 13 times as fast. But two things have changed: the order of the threads, and the block, which is 2 × 128 by
# default and was 32 × 32. One at a time, in single launches with the profiler (the pictures are timed
# without it, so speeds differ by some per cent):
#
# | stage | block, rows × columns of C | time, ms | per k step: sectors | wavefronts | L1 busy |
# |---|---|---|---|---|---|
# | v00 | 32 × 32 | 275.7 | 33 | 33 | 99 % |
# | v00 | 4 × 64 | 41.4 | 5 | 5 | 100 % |
# | v01 | 32 × 32 | 27.3 | 5 | 2 | 61 % |
# | v01 | 2 × 128 | 21.0 | 5 | 2 | 78 % |
#
# - The order alone makes it 10.1 times as fast. Why not 33 / 2 = 16.5 times? L1 is busy 61 % of the time
#   instead of 99 %, and 16.5 · 61 / 99 is 10.2. At 61 % it is no longer the limit: warps wait 68 % of their
#   time for loads.
# - The block makes it another 1.3 times as fast. Why is not known: blocks of v01 with 128 or 256 columns
#   reach 6.4 to 6.7 TFLOPS, all narrower ones at most 5.3.
# - With 4 × 64, v00 needs as few sectors as v01, but 5 wavefronts: its four rows of A lie at the same place
#   in their lines.

# %% [markdown]
# Sectors do not explain this alone, nor do bytes. Look at both kernels again with longer rows. Which of them
# cares? And with which length does v00 with blocks of 4 × 64 come near v01 with 32 × 32?

# %%
see.row_lengths("naive_uncoalesced", "naive_coalesced")

# %% [markdown] tags=["thought"]
# v01 hardly cares. v00 does: with rows 8 floats longer and blocks of 4 × 64 it reaches 5.19 TFLOPS, about as
# much as the 5.13 of v01 in blocks of 32 × 32. Its four rows of A then lie at four different places. With 1,
# 2 or 4 floats they do so too, and it reaches only 5.04, 4.67 and 4.51. Most rows of B then begin inside a
# sector; whether that is the reason, nobody measured.

# %% [markdown]
# Lei Mao measured both kernels on an RTX 3090, and found 6.37 times:

# %%
see.tflops("naive_uncoalesced", "naive_coalesced", on="RTX 3090")

# %% [markdown]
# That is another GPU, and his C++. Nobody profiled it for us, so the difference stays unexplained here.

# %% [markdown]
# ## Count it three ways
#
# The requests are as many as before. But what about the sectors, of all loads of A and B together, and of
# all stores of C? Write the formulas:


# %% id="formula"
def load_sectors(m, n, k):
    ### BEGIN SOLUTION
    return (1 + 4) * m * n * k // 32
    ### STUB
    # return None
    ### END SOLUTION


def store_sectors(m, n, k):
    ### BEGIN SOLUTION
    return 4 * m * n // 32
    ### STUB
    # return None
    ### END SOLUTION


# %%
size = (1024, 1024, 1024)
see.counts("naive_coalesced", size, global_load_sectors=load_sectors, global_store_sectors=store_sectors)

# %% [markdown]
# ## Is 32 × 32 the best block?
#
# A warp has to fetch what *surrounds* its patch of C: a strip of A on the left, a strip of B on top. Rows are
# expensive and columns are cheap. Each row of the patch costs a sector
# of A; a sector of B serves 8 columns at once. So what is the best patch of 32 elements?
#
# ### Exercise 02.3 · The best block
# *core · easy · 5 minutes*
#
# `naive_coalesced` with 256 threads per block. Which shape `(x, y)` moves the fewest sectors of A and B
# together in a warp's k step? (x counts columns: the 2 × 128 of the table is `(128, 2)`.) Find it by
# thinking; the buttons of the picture below 02.1 can confirm it.

# %% id="ex-02-3"
### BEGIN SOLUTION
check.best_block((16, 16))
### STUB
# check.best_block(None)
### END SOLUTION

# %% [markdown] tags=["listing"]
# 16 × 16: a warp covers 2 rows of 16 columns, 2 + 2 sectors instead of 1 + 4. Not because it is closer to a
# square: 4 rows of 8 are closer still, and cost 4 + 1. And is it faster? Hardly: 5.24 TFLOPS, 5.20
# with 32 × 32. Sectors limit neither: it takes 3 wavefronts instead of 2, and L1 is busy 93 % of the time
# instead of 61 %. Counts tell where to look; a measurement decides.

# %% [markdown]
# Remember the thought of the patch: in notebook 03 a whole block will use it, in 05 every single thread.
#
# ## Rows that start in the middle of a sector
#
# So far every row began at a sector. 333 floats are 1332 bytes, no multiple of 32: most rows of B begin
# inside a sector, and 32 neighbours then lie in 5 sectors. A few floats of padding at the end of every row
# put all rows back in step.
#
# The kernel must know how long the rows really are: that is the *leading dimension*. It exists first of all
# for matrices that are part of a larger one. Document 004 uses it to pad rows to 64 bytes.
#
# ### Exercise 02.4 · Padding
# *stretch · medium · 10 minutes*
#
# Write `padded(B)`: an array of float32 whose first columns hold `B`, and whose **every row starts at a
# sector**, for any width of `B`. It must be C-contiguous (the kernels take `.shape[1]` as the leading
# dimension), and not wider than necessary. With it, `naive_coalesced` on 333 columns is back at 4 sectors a
# request.


# %% id="ex-02-4"
def padded(B):
    ### BEGIN SOLUTION
    rows, columns = B.shape
    wide = np.zeros((rows, -(-columns // 8) * 8), np.float32)
    wide[:, :columns] = B
    return wide
    ### STUB
    # return None
    ### END SOLUTION


check.leading_dimension(padded)

# %% [markdown]
# Here is what it brings in sectors. Choose a width, and then one *step along k* after the other:

# %%
see.warp_and_memory("naive_coalesced", widths=True)

# %% [markdown]
# And in time? For v01 little: with rows of 4097 floats, not 4096, it reaches 6.44 instead of 6.52 TFLOPS.
#
# ## The roofline, and how near its roof a kernel can come
#
# v00 does 64 FLOP for $33 \cdot 32 = 1056$ bytes, v01 for $5 \cdot 32 = 160$. v00 reached a quarter of L1's
# roof, with one sector in each wavefront.

# %%
see.predict("02.roof")

# %% tags=["answer"]
see.roofline("naive_uncoalesced", "naive_coalesced")

# %% [markdown] tags=["answer"]
# L1's roof assumes wavefronts of 128 bytes, 4 sectors. v00 gets one sector from each, so a quarter of the
# roof is all that there is. v01 gets 5 sectors from 2 wavefronts, which have room for 8.
#
# Both points lie **above** the roof of DRAM (0.29 and 1.9 TFLOPS), and that is no mistake. The axis counts
# the bytes that warps *ask for*, of L1. Only what neither L1 nor L2 holds comes from DRAM: a different count.
# **A roofline without the name of its bytes on the axis says nothing.**

# %% [markdown]
# Choose the other *stage*: the title names the lowest roof over its point. v01 reaches 49 % of L1's roof. So
# is L1 idle half of the time? The profiler says no:

# %%
see.limits("naive_uncoalesced", "naive_coalesced")

# %% [markdown]
# 5/8 of 78 % is 49 %. (That v00's point almost touches the roof of L2 is a coincidence: 99 % of its sectors
# never get there.)
#
# The answer to *what limits it now?*: **L1, busy 78 % of the time, and close behind it issue slots, 76 %.**
# Only 13 % of v01's instructions multiply. Every multiply-add still needs two loads from global memory,
# $2mnk$ of them. They are cheap now, but there are as many as ever.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("02")

# %% [markdown]
# ## Recap
#
# - **Coalesced**: the lanes of a warp want few sectors and use all of them. v01: 5 sectors per k step, v00:
#   33.
# - Compare sectors with the best possible for the same work, not with the number 4.
# - Aligned rows need a leading dimension that is a multiple of 8 floats.
# - Sectors count what warps ask of L1. Their roof is L1's.
# - Change one thing at a time: the order of the threads brings 10.1 times, the block 1.3 times.
#
# **Next:** tiles in shared memory, which get rid of most of the loads.
