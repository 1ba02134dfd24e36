# %% [markdown]
# # [[coalesced.ipynb]] · Coalescing
#
# The same loop, the same arithmetic, the same number of loads. We change **which thread computes which
# element**, and nothing else.
#
# **After this notebook you can**
# - arrange threads so that a warp's lanes read neighbours;
# - rule out blocks and lengths of rows by counting sectors and wavefronts;
# - work out a profile with pencil and paper, before the profiler shows it.
#
# *Time: about 40 minutes to read, 45 for the exercises. Comes from document 004, kernel v01.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, run
from gemm_course import widgets as see

# %% [markdown]
# ## In one picture
#
# What limits v00 is L1: 33 wavefronts for every step of a warp along k, 32 of them for A. Neighbouring lanes
# differ in `x`, and x counted rows. Let it count **columns**, and the warp lies along a row of C. It still
# reads 33 numbers in a step. Look: which array do the 32 come from now, and how are they laid out?

# %%
see.multiply("naive_coalesced")

# %% [markdown]
# ## Turn it
#
# With `cuda.grid(2)` the grid turns as well: the blocks along x now have to cover the columns. Forgetting to
# turn the grid is the classic mistake.
#
# ### Exercise [[coalesced]] · Coalesce it
# *core · medium · the most useful habit of all · 10 minutes*
#
# Let neighbouring lanes work side by side in a row of C. `(m, n, k, alpha, A, B, beta,
# C)` as before; blocks of (32, 8) threads, **x runs over the columns**: `ceil(n / 32)` × `ceil(m / 8)`
# blocks. The checker counts sectors: a right result is not enough.


# %% id="ex-coalesced"
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

# %% id="own-run"
rng = np.random.default_rng(0)
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 60), np.float32)
### BEGIN SOLUTION
np.abs(run(coalesced[(2, 9), (32, 8)], A, B).C - A @ B).max()
### STUB
# # np.abs(run(coalesced[(2, 9), (32, 8)], A, B).C - A @ B).max()  # yours: take the first # away
### END SOLUTION

# %% [markdown]
# The course's own, document 004's v01, differs from v00 in two lines:

# %% tags=["listing"]
see.fold(see.diff("naive_uncoalesced", "naive_coalesced"), first="Write the exercise first, then open this.")

# %% [markdown] tags=["listing"]
# Only the threads *within* a block were turned here; blocks are still numbered down the rows, and launched
# that way. Both coalesce: lanes come from `threadIdx`.

# %% [markdown]
# **How blocks are written.** From here on, words and pictures give a block as **rows × columns of C**. Only
# code has `(x, y)`. So v01's own block, 2 × 128, is `(128, 2)` in v01's code: x counts columns there.
#
# Leave the block at 32 × 32, and go along the lanes (in fours) in v01's load of B. Which very lane is the
# first that needs a second sector? How many sectors of A has v00 touched by then?

# %%
see.warp_and_memory("naive_uncoalesced", "naive_coalesced")

# %% [markdown] tags=["thought"]
# Lane 8, the ninth: a sector holds 8 floats. v00 has touched 9 sectors of A by then, one per lane.

# %% [markdown]
# When neighbouring lanes' addresses fall together into few sectors, the access is **coalesced**. And your
# kernel? Take the `#` away and compare.

# %% id="own-lanes"
### BEGIN SOLUTION
see.warp_and_memory(coalesced)
### STUB
# # see.warp_and_memory(coalesced)
### END SOLUTION

# %% [markdown]
# ### Exercise [[partial_sums]] · Row sums
# *core · medium · its walk returns in notebook [[shared_memory_tiles.ipynb]] · 12 minutes*
#
# Another kernel, and the same habit: the sums of A's rows, with **one warp per row**. It is launched as
# `partial_sums[rows, 32](A, out)`: block b has row b, and its 32 threads are a warp.
#
# - Share a row out among the lanes. Lane l adds its elements and stores the sum into `out[row, l]`. NumPy
#   adds these 32 numbers afterwards.
# - The row may have any length: a lane without elements stores 0.
# - The checker wants each element loaded once, all sums in float32, and as few sectors per request as the
#   rows allow: 4 where each row begins at a sector.


# %% id="ex-partial_sums"
@cuda.jit
def partial_sums(A, out):
    ### BEGIN SOLUTION
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    acc = float32(0)
    for col in range(lane, A.shape[1], 32):
        acc += A[row, col]
    out[row, lane] = acc
    ### END SOLUTION


check.partial_sums(partial_sums)

# %% [markdown]
# ### Exercise [[documentation_matmul]] · Repair the manual
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
# It is right, widely copied, and has **two** faults that you know. Fix both. It is launched with blocks of
# (32, 4) threads, x along the columns of C.


# %% id="ex-documentation_matmul"
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
# ## How much faster?
#
# Sectors fell from 33 to 5. But notebook [[naive.ipynb]] told the speed by **wavefronts**: number the floats
# of a line from 0 to 31, these are 32 *places*; in a wavefront, L1 delivers at most one float from each
# place.
#
# - v00: its 32 floats of A share a place, so they take 32 wavefronts. The one float of B takes 1.
# - v01: the one float of A takes 1. Its 32 floats of B are neighbours, at 32 places: 1 as well.
#
# So 33 wavefronts become 2, and L1's roof for a kernel, 16.7 TFLOPS / wavefronts, rises from 0.51 to 8.4. A
# roof tells the most that is possible, so the question below is a bet.

# %%
see.predict("coalesced.speedup")

# %% [markdown] tags=["answer"]
# **10 times**: from 0.50 to 5.2 TFLOPS. Another limit lies below L1's roof: see the mystery further down.
#
# The chart of notebook [[welcome.ipynb]] had 6.6. There the block has changed as well: v01's own is 2 × 128.
# (From run to run, speeds differ by 1 or 2 %.)

# %% [markdown]
# ## The same sectors, and slower
#
# Do wavefronts matter? Take v00, never repaired, and change its *block* to 4 × 64. A warp has 4
# rows and 8 columns: 4 sectors of A and 1 of B, **5, just as in v01**. But it reaches 3.3 TFLOPS.
#
# **Your hunt:** set *block* to 4 × 64 first. Keep n, and make the rows longer, by 8, 16 or 32 floats. Each
# leaves 5 sectors. Which reaches v01's 5.2 TFLOPS? Count wavefronts first, then try it.

# %%
see.row_lengths("naive_uncoalesced", "naive_coalesced")

# %% [markdown] tags=["thought"]
# **8 floats.** Where rows are 4096 long, or 32 longer, the warp's 4 floats of A have one place: 4 + 1 = 5
# wavefronts, a roof of 3.3. With 8 more they have the places 0, 8, 16 and 24: 1 + 1 = 2 wavefronts, still 5
# sectors. That is what v01 has in blocks of 32 × 32, and both reach 5.2. With 16 more they have two places: 2
# + 1 = 3, a roof of 5.6, which would do; but it brings 4.6.
#
# (24, 40 and 56 have the same counts, and bring 4.8 or 4.9. Counts give a roof; a speed may stay below it.)

# %% [markdown]
# **A bet.** "v00 needs no repair at all," says a friend. "Its code stays, the rows keep their 4096 floats,
# and still it gets as fast as v01 at its best. Only the block is different." Which block can that be?

# %% [markdown] tags=["thought"]
# One row high: 1 × 256 reaches 6.5 TFLOPS, 1 × 128 reaches 6.4. x counts rows, and there is only one: a warp
# is 32 threads of different y, side by side in a row of C.

# %% [markdown]
# ## Count it three ways
#
# The requests are as many as before. But how many sectors do all loads of A and B take together, and all
# stores of C? Blocks are 2 × 128, m and n fit, and rows are aligned to sectors. Count what each request
# touches, and write the formulas.


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
# ## Fewer sectors still?
#
# A warp has to fetch what *surrounds* its patch of C: a strip of A on the left, a strip of B on top. Each row
# of the patch costs a sector of A. A sector of B serves 8 columns at once. So which patch of 32
# elements needs the fewest?
#
# ### Exercise [[best_block]] · Which block asks for the fewest sectors?
# *core · easy · 5 minutes*
#
# `naive_coalesced` with 256 threads per block. Which shape needs the fewest sectors of A and B together in a
# warp's k step? Give it as code does, `(x, y)`; x counts columns. Find it by thinking; the buttons of the
# picture below [[coalesced]] can confirm it. And guess: will it be faster than 32 × 32?

# %% id="ex-best_block"
### BEGIN SOLUTION
check.best_block((16, 16))
### STUB
# check.best_block(None)
### END SOLUTION

# %% [markdown] tags=["listing"]
# 16 × 16: a warp covers 2 rows of 16 columns, 2 + 2 sectors instead of 1 + 4. Faster? No: both have
# 5.2 TFLOPS. Why, you find out next.

# %% [markdown]
# ## Mystery profiles
#
# Four kernels, and the profiler found L1 busy in **61, 78, 93** and **99 %** of the clocks. Which is whose?
# You have their speeds, and you can count wavefronts. (Rows of 4096 floats. Blocks are rows × columns of C:
# 2 × 128 is 2 rows high.) At 16.7 TFLOPS / wavefronts L1 is busy all the time; at half
# that speed, half the time.

# %% id="mystery"
measured = {"v00, 32 × 32": 0.50, "v01, 16 × 16": 5.2, "v01, 32 × 32": 5.2, "v01, 2 × 128": 6.6}
### BEGIN SOLUTION
wavefronts = {"v00, 32 × 32": 33, "v01, 16 × 16": 3, "v01, 32 × 32": 2, "v01, 2 × 128": 2}
### STUB
# wavefronts = {"v00, 32 × 32": 33, "v01, 16 × 16": None, "v01, 32 × 32": None, "v01, 2 × 128": None}
### END SOLUTION
{kernel: f"{measured[kernel] / (16.7 / each):.0%}" for kernel, each in wavefronts.items() if each}

# %% [markdown] tags=["thought"]
# | kernel, block | wavefronts of A + B | your L1 | the profiler's |
# |---|---|---|---|
# | v00, 32 × 32 | 32 + 1 | 99 % | 99 % |
# | v01, 16 × 16 | 2 + 1 | 93 % | 93 % |
# | v01, 32 × 32 | 1 + 1 | 62 % | 61 % |
# | v01, 2 × 128 | 1 + 1 | 79 % | 78 % |
#
# And the riddle is solved: 16 × 16 saves a sector, but its two rows of A share a place, and it runs into L1's
# roof. 32 × 32 has a higher roof and stays below it: no part of the GPU is busier than L1's 61 %, while warps
# wait for loads to arrive. **Two limits, one speed, by accident.** (With 8 floats more per row 16 × 16 has a
# roof of 8.4, and stays at 5.3: the waiting is there already.) In 2 × 128 warps wait less for loads; why, we
# do not know.

# %% [markdown]
# ## Rows that start in the middle of a sector
#
# So far every row began at a sector. 333 floats are 1332 bytes, no multiple of 32: most rows of B begin
# inside a sector, and 32 neighbours then lie in 5. A larger leading dimension puts that right. A Numba array
# carries it along: `B[p, col]` finds its element even in a view, such as `wide[:, :333]`.
#
# ### Exercise [[leading_dimension]] · Padding
# *stretch · medium · 10 minutes*
#
# Write `padded(B)`: an array of float32 whose first columns hold `B`, and whose **every row starts at a
# sector**, for any width of `B`. Make no row longer than it must be. Return the wide array, or a view of its
# first columns. With it, `naive_coalesced` on 333 columns is back at 4 sectors a request.


# %% id="ex-leading_dimension"
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
# Here is how many sectors it saves. Choose a width, and then one *step along k* after the other. Guess as you
# go: v00 became 3.3 times as fast by one float per row, 4097 for 4096. What does that float do to v01?

# %%
see.warp_and_memory("naive_coalesced", widths=True)

# %% [markdown] tags=["thought"]
# It costs v01 1 %. In v00 one float changed the *places* of A's floats. v01's lanes read neighbours of B: 4
# sectors become 5, no more. So whole sectors save hardly any time here; notebook [[vectorized_access.ipynb]]
# needs them for another reason.

# %% [markdown]
# ## What limits it now?
#
# v01 in its own block, 2 × 128: two wavefronts for a step, and L1 busy in 78 % of the clocks. That is
# the busiest part. (Busy is not yet the limit: a limit shows when its work is taken away.)

# %%
see.predict("coalesced.limit")

# %%
see.fold(lambda: see.limits("naive_uncoalesced", "naive_coalesced"))

# %% [markdown] tags=["answer"]
# **L1, 78 %, and close behind it the issue slots, 76 %.** Only one instruction in 8 is a multiply-add.
# Each still needs two loads, $2mnk$ in all: that is what to change next.

# %% [markdown]
# ## A point above a roof
#
# For 64 FLOP, v01 asks for 5 sectors: 160 bytes. At DRAM's 4.8 TB/s that makes 1.9 TFLOPS. v01 reaches 6.6.

# %%
see.predict("coalesced.above")

# %%
see.fold(lambda: see.roofline(until="naive_coalesced"))

# %% [markdown] tags=["answer"]
# Both points stand **above** DRAM's roof, and that is no mistake. The axis counts the bytes that warps ask L1
# for; what L1 or L2 holds never comes from DRAM. **A roofline without the name of its bytes on the axis says
# nothing.**
#
# The line "L1, 33.5 TB/s" assumes that each wavefront delivers 128 bytes. Those of v00's A deliver one float.
# So the roofs that you counted lie below it: 0.51, not 2.0, for v00, and 8.4, not 13.4, for v01. That v00
# lies near L2's line is chance: in its profile L2 is hardly busy.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("coalesced")

# %% [markdown]
# ## Recap
#
# - You turned a kernel so that its lanes lie along a row: **coalesced**, 5 sectors per step instead of 33.
# - You counted its **wavefronts**, 2 instead of 33, and saw that equal sectors are not equal work.
# - You repaired the kernel of a manual, and won a bet with one that nobody repaired.
# - You worked out four profiles: L1's share of the clocks is measured speed / roof.
# - You padded rows to sectors: a leading dimension that is a multiple of 8 floats.
# - You saw a point above a roof, and asked whose bytes the axis counts.
#
# **Next:** tiles in shared memory, which get rid of most of the loads.

# %%
see.my_ladder()
