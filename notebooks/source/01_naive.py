# %% [markdown]
# # 01 · The naive kernel
#
# One thread, one element of `C`: the shortest kernel that multiplies matrices. It is right, and it reaches
# one percent of what the machine can do. This notebook finds out why, by counting and by measuring.
#
# **After this notebook you can**
# - write a matrix multiplication kernel with a guard, α and β;
# - count what a warp asks of memory: requests, sectors, bytes used;
# - spot a float64 that sneaked in.
#
# *Time: about 30 minutes to read, 40 for the exercises. Comes from document 004, kernel v00.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, emulate, run
from gemm_course import widgets as see

# %% [markdown]
# ## In one picture
#
# What does a warp of this notebook's kernel read of A and of B, in one step along `k`? Look at an element
# of C, its thread, its warp and its block, and let the steps play.

# %%
see.multiply("naive_uncoalesced")

# %% [markdown]
# ## Your kernel first
#
# A matrix multiplication kernel computes $C \leftarrow \alpha A B + \beta C$, as every BLAS library does. Two
# things to know before you write it:
#
# - `beta = 0` must not even *read* `C`: there may be anything in it, and $0 \cdot \mathrm{NaN}$ is `NaN`.
# - `x`, the fast index, counts **rows** here. Document 004 calls that an oversight, made on purpose so that
#   we can fix it in notebook 02.
#
# ### Exercise 01.1 · Write it
# *core · medium · everything builds on it · 12 minutes*
#
# The kernel gets `(m, n, k, alpha, A, B, beta, C)`. The rows of the arrays may be longer than the matrices
# are wide, so take the sizes from `m, n, k`. It is launched with blocks of (32, 4) threads, and **x runs over
# the rows**: `ceil(m / 32)` × `ceil(n / 4)` blocks. The checker tries sizes that do not fit, and a `C` full
# of NaN with `beta = 0`.


# %% id="ex-01-1"
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
see.source("naive_uncoalesced")

# %% [markdown]
# It is made for a compiler, and for blocks of any shape:
#
# - `BM` and `BN` are the rows and columns of C that belong to a block, 32 × 32 if nobody says otherwise.
# - `float32(0)` is a zero of 32 bits. Exercise 01.4 shows what `0.0` is.
# - `u32(...)` makes an unsigned integer of 32 bits (`from gemm_course.intrinsics import u32`), and `while`
#   stands for `for p in range(k)`. Both are there for the compiler; your kernel does without them.
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
# Not zero, and that is fine. Both are float32 sums of 50 products, but taken in another order and rounded
# at other places (an FMA rounds once, a multiplication and an addition twice). So we compare with a
# **tolerance**, never with `==`: the checkers allow (k + 4) · 1.2 · 10⁻⁷ times the sum of the
# products' sizes. If yours prints `nan`, some elements were never stored: look at the numbers of blocks.
#
# ## One request
#
# When a warp executes `A[row, p]`, all its lanes ask at once: that is one **request**. The hardware looks
# at the 32 addresses, finds out which sectors they lie in, and moves those, whole. Lanes that want the same
# sector share it.
#
# In a block of 32 × 32, lane 0 has row 0, lane 1 has row 1, ... and all have the same `p`. So a warp reads 32
# elements one above the other:

# %%
see.predict("01.moved")

# %% [markdown]
# And how many sectors has the load of B? The store of C? Look them up: on the left of the picture the warp's
# lanes on C and what they ask for, on the right the memory. The hardware takes all 32 lanes together; you can
# follow four at a time. Go to the last lanes with each request.

# %% tags=["answer"]
see.warp_and_memory("naive_uncoalesced")

# %% [markdown] tags=["thought"]
# - **A**: every lane in a sector of its own. 1024 bytes move, 128 are used.
# - **B**: all lanes read the *same* element. One sector, handed to all: a **broadcast**.
# - **C**: like A, when the result is stored.

# %% [markdown]
# The same picture can be drawn from *your* code: take the `#` away.

# %% id="own-lanes"
### BEGIN SOLUTION
see.warp_and_memory(naive)
### STUB
# # see.warp_and_memory(naive)
### END SOLUTION

# %% [markdown]
# > **Isn't the sector of A used again at the next k?** Yes: at p + 1 every lane wants the next float in the
# > same sector, and L1, the cache of the multiprocessor, still holds it. That saves a trip to DRAM. But L1
# > must serve all 32 sectors again. A count of sectors is the work of L1, not the traffic to DRAM.
#
# ### Exercise 01.2 · How many loads?
# *core · easy · 4 minutes*
#
# How many elements of A and B does the whole launch load, with `beta = 0`? A load by each of two threads
# counts twice.


# %% id="ex-01-2"
def loads(m, n, k):
    ### BEGIN SOLUTION
    return 2 * m * n * k
    ### STUB
    # return None
    ### END SOLUTION


check.naive_loads(loads)

# %% [markdown]
# ### Exercise 01.3 · Another block
# *core · medium · 6 minutes*
#
# `naive_uncoalesced` again, but with blocks of 8 × 32 threads: 8 along x, 32 along y. Rows are aligned to
# sectors. Which rows and columns does a warp have now, and how many sectors does **one request** touch: a
# load of A, a load of B, the store of C?

# %% id="ex-01-3"
### BEGIN SOLUTION
check.naive_sectors(A=8, B=1, C=8)
### STUB
# check.naive_sectors(A=None, B=None, C=None)
### END SOLUTION

# %% [markdown]
# Which of the blocks in the picture above makes A cheapest? What happens to B and C?

# %% [markdown] tags=["thought"]
# The fewer threads along x, the fewer rows a warp has. 4 × 64 has 4 rows and 8 columns: 4 sectors of A, 1 of
# B, 4 of C. That is 5 sectors per step along k instead of 33, and the kernel is 6.6 times as fast (3.3 TFLOPS
# instead of 0.50). Notebook 02 does better.

# %% [markdown]
# ## What does it cost?

# %%
see.tflops("naive_uncoalesced")

# %% [markdown]
# Half a TFLOPS of 67. **What limits it now?** Every notebook asks this question. The answer does not come
# from opinions, but from NVIDIA's profiler, Nsight Compute, which watched the kernel on an H200:

# %%
see.limits("naive_uncoalesced")

# %% [markdown]
# - An **issue slot** is one clock of a scheduler, in which it can issue one instruction.
# - **Integer units** add and compare whole numbers: addresses, the loop's counter.
#
# The arithmetic is idle, DRAM is too: 99 % of the sectors are found in L1, just as the box above says. What
# works without a pause is **L1**. For each step it serves 33 sectors, to feed 32 multiply-adds, and three
# quarters of the time a warp waits merely for room in the queue to it.
#
# On the roofline of notebook 00, now with the bytes that warps ask for:

# %%
see.roofline("naive_uncoalesced")

# %% [markdown]
# It stands far to the left, under the roof of L1, and reaches a quarter of it. If L1 is busy all the time,
# why does it deliver only a quarter of its bytes?
#
# ## Three times as fast, without touching the kernel
#
# Leave the kernel as it is, and the matrices too. Only let every row be a little longer: some floats of
# **padding** at its end, which nobody reads. Each lane still has a sector and a line of its own. What should
# that change? Guess first, then look for the best length.

# %%
see.row_lengths("naive_uncoalesced")

# %% [markdown] tags=["thought"]
# **One float** more per row, and the kernel is 3.3 times as fast: 1.62 instead of 0.50 TFLOPS. With 16 more
# it is 1.8 times as fast, with 32 more as slow as before. The lower picture shows the pattern: in rows of
# 4096 floats, the 32 floats of a request all lie at the same place in their lines.
#
# L1 delivers 128 bytes per clock, one float from each of the 32 places. That is a **wavefront**. Floats at
# the same place take turns, so each wavefront serves one float of A. The roofline counts its whole sector, 32
# of 128 bytes: the quarter. The profiler counted wavefronts per step, for A and B together, at n = 2048
# (choose that *n* above to compare):
#
# | floats of padding | lanes at one place | wavefronts per step | TFLOPS |
# |---|---|---|---|
# | 0 | 32 | 33.0 | 0.49 |
# | 16 | 16 | 17.0 | 0.91 |
# | 8 | 8 | 9.2 | 1.44 |
# | 4 | 4 | 5.5 | 1.47 |
# | 1 | 1 | 3.0 | 1.62 |
#
# That is about one wavefront for each lane at the same place, and one for B. In the last row this makes 2;
# why L1 takes 3.0 we do not know. Down to 8 lanes, wavefronts decide. From 4 lanes down, L1 is idle more than
# half the time, and a step still takes 10 to 11 clocks: what limits then, we do not know.
# Notebook 03 meets the places again, as the *banks* of shared memory.

# %% [markdown]
# So a factor of three was an accident of the size: multiples of 32 floats are the worst widths for this
# kernel, and 4096 is one. Keep that in mind when somebody shows you one size only. The rest has to be earned:
# even at its best it asks for 33 sectors where 5 would do.
#
# ---
# ## A trap in the types
#
# ### Exercise 01.4 · The hidden float64
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
# Numba gives a literal such as `0.0` the type float64, and float64 with float32 is float64. An H200 does
# float64 at half the speed of float32; many consumer cards at a 64th. Write the kernel again so that no lane
# computes in float64. (Launched as in 01.1.)


# %% id="ex-01-4"
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
# ### Exercise 01.5 · The formulas
# *core · medium · 6 minutes*
#
# How many load **requests** do all warps of `naive_uncoalesced` make for A and B, and how many **sectors** do
# these requests touch? Blocks of 32 × 32; m and n are multiples of 32, rows are aligned to sectors.


# %% id="ex-01-5"
def load_counts(m, n, k):
    ### BEGIN SOLUTION
    return 2 * m * n * k // 32, 33 * m * n * k // 32
    ### STUB
    # return None  # (requests, sectors)
    ### END SOLUTION


check.naive_counts(load_counts)

# %% [markdown]
# The picture sets your formulas beside two other ways of counting. **The emulator** counts what the source
# asks for. **The hardware** has counters of its own, read with Nsight Compute on an H200 and kept in `data/`.
# (*Global* memory is where A, B and C lie: all that is reached by way of L1, L2 and DRAM.)

# %%
size = (1024, 1024, 1024)
requests, sectors = load_counts(*size) or (None, None)
see.counts("naive_uncoalesced", size, global_load_requests=requests, global_load_sectors=sectors)

# %% [markdown]
# Where all three agree, the model in your head is right. It will not always be so: the compiler may change
# the source, and from notebook 03 on it does.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("01")

# %% [markdown]
# ## Recap
#
# - A **request** is one memory instruction of one warp. It moves whole **sectors** of 32 bytes.
# - Lanes down a column: 32 sectors, an eighth of the bytes used. Lanes on one element: 1 sector, a
#   broadcast.
# - v00 asks for **33 sectors per warp and k step** to do 32 multiply-adds, and stands at 1 % of the
#   machine. L1 is its limit, busy 99 % of the time.
# - Where rows begin matters: one float of padding per row makes it three times as fast.
# - `0.` in a kernel is float64.
#
# **Next:** coalescing. It changes which thread takes which element, and nothing else.
