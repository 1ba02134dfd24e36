# %% [markdown]
# # 02 · Coalescing
#
# The same loop, the same arithmetic, the same number of loads. We only change **which thread computes which
# element**, and the kernel becomes many times faster.
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
# In notebook 01 we counted: a warp of v00 moves 33 sectors for every step along k: 32 for A, 1 for B. Seven
# eighths of what it moves for A is never used. The remedy takes two lines:

# %%
see.diff("naive_uncoalesced", "naive_coalesced")

# %% [markdown]
# `x` is the fast index: lanes of a warp differ in `x` first. Now `x` counts *columns*. So the lanes of a
# warp sit side by side in a row of `C`. They want the same element of A, and 32 neighbours of B. Go to the
# last lanes and compare both kernels: the load of A, the load of B, the store of C.

# %%
see.warp_and_memory("naive_uncoalesced", "naive_coalesced")

# %% [markdown]
# When neighbouring lanes' addresses fall together into few sectors, the access is **coalesced**. Here B
# takes 4 sectors (128 bytes, all used), A one, and the store of C 4 instead of 32.
#
# The grid has to turn with it: `ceil(n / 32)` blocks along x, because x now counts columns. Forgetting that
# is the classic mistake.

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 60), np.float32)
np.abs(run("naive_coalesced", A, B).C - A @ B).max()

# %% [markdown]
# ## Predict, then look

# %%
see.predict("02.speedup")

# %% tags=["answer"]
see.tflops("naive_uncoalesced", "naive_coalesced")

# %% tags=["answer"]
see.tflops("naive_uncoalesced", "naive_coalesced", on="RTX 3090")

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
# "Four sectors a request" is a bad rule. Go back to the picture above and choose blocks of 16 × 16. A
# warp then covers two rows of 16: A takes 2 sectors, and B also takes 2. Four in all, instead of five!
#
# A warp has to fetch what *surrounds* its patch of C: a strip of A on the left, a strip of B on top. The
# nearer the patch is to a square, the less there is to fetch for the same 32 elements. Remember this
# thought: in notebook 03 a whole block will use it, in 05 every single thread.
#
# ## Rows that start in the middle of a sector
#
# So far the matrices were 256 wide, and every row began at a sector. Choose 333 columns below, and then one
# *step along k* after the other:

# %%
see.warp_and_memory("naive_coalesced", widths=True)

# %% [markdown]
# 333 floats are 1332 bytes, no multiple of 32. Most rows of B begin inside a sector, and 32 neighbours then
# lie in 5 sectors. A few elements of padding at the end of every row put all rows back in step. That is
# what the *leading dimension* is for, and why document 004 pads its rows to 64 bytes.
#
# ## The roofline, and a paradox
#
# v00 does 64 FLOP for $33 \cdot 32 = 1056$ bytes, v01 for $5 \cdot 32 = 160$. Times 4.8 TB/s, that would
# allow 0.29 and 1.9 TFLOPS.

# %%
see.predict("02.above")

# %% tags=["answer"]
see.roofline("naive_uncoalesced", "naive_coalesced")

# %% [markdown] tags=["answer"]
# Both points lie **above** the roof of DRAM, and that is no mistake. The axis counts the bytes that warps
# *ask for*, and these requests go to the L1 cache of their multiprocessor. Only what neither L1 nor L2
# holds comes from DRAM. So the roof that belongs to this axis is L1's, and the DRAM roof belongs to a
# different count. **A roofline without the name of its bytes on the axis says nothing.**

# %% [markdown]
# Choose the other *stage*: the point goes to where that one stands, and the title names the lowest roof over
# it. For v01 that is *issue slots*: only 13 % of its instructions multiply, and an SM issues four a clock.
#
# The answer to *what limits it now?*: requests to L1, and all the instructions that make them. Every
# multiply-add still needs two loads from global memory, $2mnk$ of them. They are cheap requests now, but
# there are as many as ever.
#
# ---
# ## Exercises
#
# ### Exercise 02.1 · Coalesce it
# *core · medium · the most useful habit of all · 10 minutes*
#
# Write the kernel so that it coalesces. `(m, n, k, alpha, A, B, beta, C)` as before; blocks of (32, 8)
# threads, **x runs over the columns**: `ceil(n / 32)` × `ceil(m / 8)` blocks. The checker counts sectors: a
# right result is not enough.


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
# It is right, it is widely copied, and it has **two** faults that you know. Mend both. It is launched with
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
# ### Exercise 02.3 · The best block
# *core · easy · 5 minutes*
#
# `naive_coalesced` with 256 threads a block. Which shape `(x, y)` moves the fewest sectors of A and B
# together in a warp's k step? Find it with the sliders or, better, by thinking.

# %% id="ex-02-3"
### BEGIN SOLUTION
check.best_block((16, 16))
### STUB
# check.best_block(None)
### END SOLUTION

# %% [markdown]
# ### Exercise 02.4 · Padding
# *stretch · medium · 10 minutes*
#
# Write `padded(B)`: an array of float32 whose first columns hold `B`, and whose **every row starts at a
# sector**. It must be C-contiguous (the kernels take `.shape[1]` as the leading dimension), and not wider
# than necessary. With it, `naive_coalesced` on 333 columns is back at 4 sectors a request.


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
# ---
# ## Quiz

# %%
see.quiz("02")

# %% [markdown]
# ## Recap
#
# - **Coalesced**: the lanes of a warp want few sectors and use all of them. v01: 5 sectors a k step, v00:
#   33.
# - Compare sectors with the best possible for the same work, not with the number 4.
# - Aligned rows need a leading dimension that is a multiple of 8 floats.
# - Sectors count requests to L1. Their roof is L1's.
#
# **Next:** tiles in shared memory, which get rid of most of the loads.
