# %% [markdown]
# # [[naive.ipynb]] · The naive kernel
#
# One thread, one element of `C`: the shortest kernel that multiplies matrices. It is right, and it uses less
# than one percent of the machine.
#
# **After this notebook you can**
# - write a matrix multiplication kernel with a guard, α and β;
# - count what a warp asks of memory, and forecast a kernel's speed from it with pencil and paper;
# - spot a float64 that sneaked in.
#
# *Time: about 30 minutes to read, 44 for the exercises. Comes from document 004, kernel v00.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, emulate, run
from gemm_course import widgets as see

# %% [markdown]
# ## In one picture
#
# The kernel at work on a small product. Look at a thread, its warp, its block, and let the steps along `k`
# play. What does a warp read of A, what of B? Keep your answer: the hardware's comes after your kernel.

# %%
see.multiply("naive_uncoalesced")

# %% [markdown]
# ## Your kernel first
#
# A matrix multiplication kernel computes $C \leftarrow \alpha A B + \beta C$; the caller chooses α and β.
# Two things to know:
#
# - `beta = 0` must not even *read* `C`: there may be anything in it, and $0 \cdot \mathrm{NaN}$ is `NaN`.
# - `x`, the fast index, counts **rows** here, not columns as in notebook [[welcome.ipynb]]. Document 004
#   makes this mistake on purpose; notebook [[coalesced.ipynb]] repairs it.
#
# ### Exercise [[naive]] · Write it
# *core · medium · everything builds on it · 12 minutes*
#
# The kernel gets `(m, n, k, alpha, A, B, beta, C)`. Rows of the arrays may be longer than the matrices are
# wide, so take the sizes from `m, n, k`. Blocks have (32, 4) threads, and **x runs over the rows**:
# `ceil(m / 32)` × `ceil(n / 4)` blocks. Store each element of C once. The checker tries sizes that do not
# fit, and a `C` full of NaN with `beta = 0`.


# %% id="ex-naive"
@cuda.jit
def naive(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    ### BEGIN SOLUTION
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]
    ### END SOLUTION


check.naive(naive)

# %% [markdown]
# And here is the course's own, document 004's v00:

# %% tags=["listing"]
see.fold(see.source("naive_uncoalesced"), first="Write the exercise first, then open this.")

# %% [markdown]
# A block makes `BM` × `BN` of C, 32 × 32 by default. (Yours has 32 × 4, the first picture 32 × 8; a warp
# makes the same 32 × 1 in all three.) `u32(...)`, from `lockstep.intrinsics`, and `while`
# instead of `for` are there for the compiler; your kernel needs neither.
#
# `run` launches a stage, or your kernel if you say how many blocks and threads. It uses the GPU if there is
# one, the emulator if not, and returns `C`:

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 60), np.float32)
result = run("naive_uncoalesced", A, B)
np.abs(result.C - A @ B).max()

# %% id="own-run"
### BEGIN SOLUTION
np.abs(run(naive[(3, 15), (32, 4)], A, B).C - A @ B).max()
### STUB
# # np.abs(run(naive[(3, 15), (32, 4)], A, B).C - A @ B).max()  # yours: take the first # away
### END SOLUTION

# %% [markdown]
# Not zero, and that is fine: both are float32 sums of 50 products, but rounded at different points. So we
# compare with a [tolerance](glossary.md#tolerance), never with `==`. If yours prints `nan`, some elements
# were never stored: look at the numbers of blocks. Or [[naive]] is still empty.
#
# ## One request
#
# When a warp executes `A[row, p]`, all its lanes ask at once: one **request**. The hardware finds out which
# sectors the 32 addresses lie in, and moves those, whole. Lanes that want the same sector share it.
#
# In a block of 32 × 32, lane 0 has row 0, lane 1 row 1, ..., and all have the same `p`: 32 elements one above
# the other.

# %%
see.predict("naive.moved")

# %% [markdown]
# And how many sectors has the load of B? The store of C? Write both down, then look: the lanes on the left,
# the memory on the right. The slider adds four lanes at a time; the hardware takes all 32 together. (The
# matrices have 256 columns; 8 of A are drawn.)

# %%
see.fold(lambda: see.warp_and_memory("naive_uncoalesced", blocks=False))

# %% [markdown] tags=["thought"]
# - **A**: every lane in a sector of its own. It touches 1024 bytes, and uses 128.
# - **B**: all lanes read the *same* element. One sector, handed to all: a **broadcast**.
# - **C**: like A, when the result is stored.

# %% [markdown]
# ## Two counts: sectors and wavefronts
#
# All loads go through **L1**, the cache of the multiprocessor. Keep two counts apart:
#
# - **Sectors**: what a request touches. What L1 does not have must come from further away.
# - **Wavefronts**: the deliveries that L1 makes for it, one per clock. That is the **work of L1**.
#
# A float's **place** is its position in its line, 0 to 31. One delivery serves every place, each with one
# float, for all lanes that want it. Floats at the same place of different lines take turns: 16 at place 0 and
# 16 at place 5 take 16 wavefronts. Floats side by side have places of their own: 1 wavefront.
#
# ```text
# place    0    1    2   ...   31
# row 0   [A]   .    .          .    Rows of 4096 floats are 128 whole lines.
# row 1   [A]   .    .          .    So all 32 floats of A have the same place: 32 wavefronts.
# row 2   [A]   .    .          .    B is one float: 1 wavefront.
# ```
#
# So both counts are 33 for a step along `k`. *Longer rows*, below, takes them apart.
#
# > **Isn't the sector of A there already, from the step before?** Nearly always: the next float lies beside
# > the last one, and the 32 warps of a block read the same 32 rows. In the profile L1 has 99 % of the sectors
# > already. That saves trips, but not one wavefront: L1 delivers again.
#
# ### Exercise [[naive_loads]] · How many loads?
# *core · easy · 4 minutes*
#
# How many elements of A and B does the whole launch load, with `beta = 0`? A load by each of two threads
# counts twice.


# %% id="ex-naive_loads"
def loads(m, n, k):
    ### BEGIN SOLUTION
    return 2 * m * n * k
    ### STUB
    # return None
    ### END SOLUTION


check.naive_loads(loads)

# %% [markdown]
# ### Exercise [[naive_sectors]] · Another block
# *core · medium · 6 minutes*
#
# `naive_uncoalesced` again, but with blocks of 8 × 32 threads: 8 along x, 32 along y. Rows are aligned to
# sectors. Which rows and columns does a warp have now, and how many sectors does **one request** touch: a
# load of A, a load of B, the store of C?

# %% id="ex-naive_sectors"
### BEGIN SOLUTION
check.naive_sectors(A=8, B=1, C=8)
### STUB
# check.naive_sectors(A=None, B=None, C=None)
### END SOLUTION

# %% [markdown]
# ### Exercise [[l1_queue]] · The queue
# *core · medium · the same rule returns with shared memory · 8 minutes*
#
# Write `wavefronts(addresses)`: from a list of 32 byte addresses, one float of 4 bytes for each lane, to the
# number of deliveries that L1 needs.
#
# - A line has 128 bytes, and each delivery takes at most one float from each of its 32 places. Floats at one
#   place queue up, whatever line they are in. All lanes that want the same float get it at once.
# - `[4 * lane for lane in range(32)]`: 32 neighbours, each at a place of its own. **1 delivery.**
# - `[16384 * (lane // 2) for lane in range(32)]`: rows of 4096 floats, two lanes for each row. 16 different
#   floats, all at place 0. **16 deliveries.**
#
# Lanes may ask in any order. (L1 also needs time for each line, which this rule leaves out. *Longer rows*
# shows when that counts; the checker asks only where the longest queue decides.)


# %% id="ex-l1_queue"
def wavefronts(addresses):
    ### BEGIN SOLUTION
    floats = {address // 4 for address in addresses}
    places = [each % 32 for each in floats]
    return max(places.count(place) for place in places)
    ### STUB
    # return None
    ### END SOLUTION


check.l1_queue(wavefronts)

# %% [markdown]
# ## Pencil and paper
#
# How fast *can* this kernel be, if L1 never pauses? A warp's step is 32 multiply-adds, 64 FLOP, and takes
# L1 a clock per wavefront. An H200 has 132 multiprocessors and 1.98 · 10⁹ clocks per second:
#
# $$132 \cdot 1.98 \cdot 10^9 \cdot \frac{64}{\text{wavefronts per step}} =
# \frac{16.7\ \text{TFLOPS}}{\text{wavefronts per step}}$$
#
# Forecast these blocks of x × y threads; x counts rows. How many rows of A has a warp? B's columns lie
# side by side. Write three numbers before you open the measurements.

# %% id="forecast"
### BEGIN SOLUTION
wavefronts = {"32 × 32": 33, "16 × 16": 17, "8 × 32": 9, "4 × 64": 5}
### STUB
# wavefronts = {"32 × 32": 33, "16 × 16": None, "8 × 32": None, "4 × 64": None}  # for A and B together
### END SOLUTION
{block: round(16.7 / each, 2) for block, each in wavefronts.items() if each}

# %% [markdown]
# Rows of 256 floats are whole lines, so here both counts agree: check your forecasts against the sectors that
# *your* kernel touches. Take the `#` away, and choose the blocks.

# %% id="own-lanes"
### BEGIN SOLUTION
see.warp_and_memory(naive)
### STUB
# # see.warp_and_memory(naive)
### END SOLUTION

# %% [markdown] tags=["thought"]
# | block | rows, columns of a warp | wavefronts | forecast | measured, TFLOPS |
# |---|---|---|---|---|
# | 32 × 32 | 32, 1 | 32 + 1 = 33 | 0.51 | 0.50 |
# | 16 × 16 | 16, 2 | 16 + 1 = 17 | 0.98 | 0.97 |
# | 8 × 32 | 8, 4 | 8 + 1 = 9 | 1.86 | 1.85 |
# | 4 × 64 | 4, 8 | 4 + 1 = 5 | 3.34 | 3.31 |
#
# None is off by more than 2 percent. Changing only the block's shape makes the kernel 6.6 times as fast.

# %% [markdown]
# ## What limits it now?
#
# Every notebook asks this. The answer comes from NVIDIA's profiler, Nsight Compute, which watched the kernel
# (32 × 32 again) on an H200: in how many clocks was each part busy? L1 leads with 99 %.

# %%
see.predict("naive.busy")

# %%
see.fold(lambda: see.limits("naive_uncoalesced"))

# %% [markdown] tags=["answer"]
# L1 works without a pause, and all else waits for it: three quarters of the time, a warp waits merely for
# room in the queue to global memory, which L1 serves. (An **issue slot** is one clock of a scheduler, room
# for one instruction. **Integer units** compute addresses. Multiply-add units help them: the products
# alone would be 1 %, not 2.)

# %% [markdown]
# ## Longer rows
#
# Leave the kernel and its block alone. Only make every row longer in memory: some floats of **padding** at
# its end, which nobody reads. Each lane still has a sector of its own.

# %%
see.predict("naive.padding")

# %% [markdown]
# Now hunt: **Which paddings up to 8 does your rule call best? Which one is fastest? Which two, of all but 0,
# change nothing?** The picture below is your map, its lower half; the steps get longer to the right. Open it
# now, choose one padding after the other, and set *speed of* to *all lengths* last.

# %%
see.fold(lambda: see.row_lengths("naive_uncoalesced"))

# %% [markdown] tags=["thought"]
# By the rule, 1, 3, 5 and 7 are equally good: each float has a place of its own, so 1 + 1 wavefronts and 8.4
# TFLOPS. **One float** is the fastest, and 3.3 times as fast as none; but that is 1.62 TFLOPS. 7 reach 1.44.
# With 32 and 64, rows move by whole lines, and the places stay.
#
# So what did the profiler count? Per step of a warp, with square matrices, 2048 and as many floats more as
# the table says:
#
# | floats of padding | lanes at one place | wavefronts | clocks |
# |---|---|---|---|
# | 0 | 32 | 33.0 | 34.4 |
# | 16 | 16 | 17.0 | 18.0 |
# | 8 | 8 | 9.2 | 11.4 |
# | 1 | 1 | 3.0 | 10.2 |
#
# With 16 or 32 lanes at a place, wavefronts are the time. With fewer, these 32 × 32 blocks stay above 10
# clocks, whatever the wavefronts.

# %% [markdown]
# **And other blocks?** Take one float of padding, and 16 × 16, then 4 × 64 in place of 32 × 32. By the rule
# all three have 1 + 1 wavefronts. What changes is the rows of a warp. Guess: do they take as many clocks?

# %% [markdown] tags=["thought"]
# No. With one float of padding and n = 2048:
#
# | block | rows of a warp | clocks per step | 2 + rows / 4 |
# |---|---|---|---|
# | 32 × 32 | 32 | 10.3 | 10 |
# | 16 × 16 | 16 | 6.2 | 6 |
# | 4 × 64 | 4 | 3.0 | 3 |
# | 2 × 128 | 2 | 2.6 | 2.5 |
#
# A quarter of a clock per row. This is L1's second limit: it [looks up four lines in a
# clock](https://forums.developer.nvidia.com/t/pascal-l1-cache/49571/14), so 32 rows take 8. A forecast from
# one limit is a **roof**: no kernel beats it, and another may lie below.

# %% [markdown]
# So the slow rows were an accident of the size: multiples of 32 floats are the worst, and 4096 is one.
# Notebook [[coalesced.ipynb]] gains more, for rows of any length.
#
# ---
# ## A trap in the types
#
# ### Exercise [[no_float64]] · The hidden float64
# *core · medium · easily missed · 8 minutes*
#
# This kernel gives the right numbers. Yet the emulator has something to say:


# %%
@cuda.jit
def lean(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = 0.0
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = 1.0 * alpha * acc + beta * C[row, col] if beta != 0 else 1.0 * alpha * acc


# %%
a, b, c = (np.ones((32, 32), np.float32) for _ in range(3))
report = emulate(lean, (1, 8), (32, 4), 32, 32, 32, np.float32(1), a, b, np.float32(0), c)
report.arithmetic

# %% [markdown]
# *lanes* are operations: line 7 makes 32 768 = 32³ additions in float64. Numba gives a literal such as `0.0`
# the type float64, and float64 with float32 is float64.
#
# An H200 does float64 at half the speed of float32; many consumer cards at a 64th. (Here the arithmetic waits
# for L1 anyway; in later notebooks it does not.) Write it again without float64, to be launched as in
# [[naive]].


# %% id="ex-no_float64"
@cuda.jit
def lean(m, n, k, alpha, A, B, beta, C):
    ### BEGIN SOLUTION
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc
    ### STUB
    # pass  # copy the kernel above and fix it
    ### END SOLUTION


check.no_float64(lean)

# %% [markdown]
# ---
# ## Count it three ways
#
# ### Exercise [[naive_counts]] · The formulas
# *core · medium · 6 minutes*
#
# How many load **requests** do all warps of `naive_uncoalesced` make for A and B, and how many **sectors** do
# these requests touch? Blocks of 32 × 32; m and n are multiples of 32, rows are aligned to sectors.


# %% id="ex-naive_counts"
def load_counts(m, n, k):
    ### BEGIN SOLUTION
    return 2 * m * n * k // 32, 33 * m * n * k // 32
    ### STUB
    # return None  # (requests, sectors)
    ### END SOLUTION


check.naive_counts(load_counts)

# %% [markdown]
# Your formulas beside two other counts. **The emulator** counts what the source asks for. **The hardware**
# has counters of its own, read with Nsight Compute and kept in `data/`. (*Global* memory holds A, B
# and C.)

# %%
size = (1024, 1024, 1024)
counted = load_counts(*size)
requests, sectors = counted if np.size(counted) == 2 else (None, None)
see.counts("naive_uncoalesced", size, global_load_requests=requests, global_load_sectors=sectors)

# %% [markdown]
# Where all three agree, your counts are right. From notebook [[shared_memory_tiles.ipynb]] on the compiler
# changes the source, and they will not always agree.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("naive")

# %% [markdown]
# ## Recap
#
# - You wrote a kernel with a guard, α and β.
# - You counted **sectors**: 32 for lanes down a column, 1 for a broadcast.
# - You counted **wavefronts**, the work of L1: floats at the same place of their lines take turns.
# - You forecast speeds, 16.7 TFLOPS / wavefronts. The profiler agrees: L1 is busy 99 % of the time.
# - You gained a factor of three by one float of padding, and found another limit below the wavefront roof.
# - You drove out a float64: `0.` is one.
#
# **Next:** coalescing. It changes which thread takes which element, and nothing else.

# %%
see.my_ladder()
