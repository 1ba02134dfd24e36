# %% [markdown]
# # 05 · A tile of results in every thread
#
# A column of results shares what it reads from Bs. What it reads from As is used once and thrown away. So the
# column grows sideways, into a rectangle: TM × TN results per thread.
#
# **After this notebook you can**
# - write a kernel whose threads compute rectangles of results, and choose their shape;
# - find the holes that a kernel leaves in its tiles;
# - tell a bank conflict that costs time from one that the compiler has long removed.
#
# *Time: about 80 minutes to read, 70 for the exercises. Comes from document 004, kernel v04, and from
# documents 000 and 001, "Kernel 5"; the [glossary](glossary.md#document) says what the documents are.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import LADDER, check, run
from gemm_course import widgets as see

# %% [markdown]
# One step of one thread. Choose another: what does it read, and how many products does it make of that?

# %%
see.multiply("thread_tiled_2d")

# %% [markdown]
# ## The outer product, in NumPy first
#
# Notebook 04 ended with shared memory busy in 86 % of the clocks. Fewer reads are needed, and there is an old
# trick. Until now k was the innermost loop. Make it the outermost:

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((8, 50), np.float32), rng.standard_normal((50, 8), np.float32)

# %%
C = np.zeros((8, 8), np.float32)
for p in range(50):
    C += np.outer(A[:, p], B[p])
np.abs(C - A @ B).max()

# %% [markdown]
# In every step a **column of A** and a **row of B** come in. Each element of one meets each of the other, and
# 64 sums grow by a product: an [outer product](glossary.md#outer-product). The sums stay where they are.
#
# A thread does this now, with 64 registers for its sums. But in which shape?

# %%
see.predict("05.reads")

# %% [markdown]
# Try it on one block with small tiles. Make 4 × 4 results 2 × 8: how many reads? Then go from thread to
# thread: which of them read the same?

# %% tags=["answer"]
see.registers("thread_tiled_2d")

# %% [markdown] tags=["answer"]
# A thread reads TM + TN elements per step, for TM · TN multiply-adds:
#
# $$1/TM + 1/TN \text{ reads per multiply-add.}$$
#
# (Threads in one row of the block read the same of As, those in one column the same of Bs.)
#
# With one result per thread it was 2. The emulator counts your four shapes, in a kernel from further below:

# %% tags=["answer"]
A, B = rng.standard_normal((64, 64), np.float32), rng.standard_normal((64, 64), np.float32)


def reads(TM, TN):
    tiles = {"BM": 64, "BN": 64, "BK": 8, "TM": TM, "TN": TN}
    report = run("kernel5", A, B, tiles=tiles, backend="emulator").report
    return report.total("lanes", space="shared", op="load") / 64**3


{shape: reads(*shape) for shape in ((64, 1), (2, 32), (4, 16), (8, 8))}

# %% [markdown] tags=["answer"]
# Why not 16 × 16? That would be 256 accumulators, and a thread may have 255 registers. 16 × 8 takes all 255,
# so 8 warps fit on an SM instead of 16. With BK = 32 it was measured, and is 13 % slower than 16 × 4.

# %% [markdown]
# ## The kernel
#
# The exercises come in the order 05.4, 05.1, 05.2, 05.3, 05.5. You have missed none.
#
# ### Exercise 05.4 · The outer product
# *core · hard · the heart of this notebook · 20 minutes*
#
# The tiles are fetched for you by `fetch`, a **device function**: a function that a kernel's threads call.
# Three pieces are missing: TM × TN results, their outer products, their store. Where `beta == 0`, do not
# read C. Blocks of (BN/TN) × (BM/TM) threads, x along the columns; `ceil(n / BN)` × `ceil(m / BM)` blocks.
#
# The checker wants TM + TN reads of shared memory for TM · TN multiply-adds, and the results in registers.
# The shape of an array must be a constant for the compiler: a variable of the enclosing function, such as
# `TM`. `TM * TN` written inside the kernel does not count as one.


# %%
from gemm_course.checks.kits import make_fetch


# %% id="ex-05-4"
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
# ### The course's version
#
# This is document 004's v04, beside v03. Compare it with yours.

# %% tags=["listing"]
see.diff("thread_tiled_1d", "thread_tiled_2d")

# %% [markdown]
# Threads are numbered consecutively: `tid // (BN // TN)` counts thread tiles down, `tid % (BN // TN)` across.
# `A_ROWS` and `B_ROWS` are the rows of a tile that the block fetches in one pass.
#
# From here on all code and all figures are for **the square**, unless the same sentence names other tiles.
# (Pictures that show every element have smaller ones.)
#
# | tiles, for 256 threads | BM | BN | BK | TM | TN |
# |---|---|---|---|---|---|
# | **the square**, of document 004 | 128 | 128 | 16 | 8 | 8 |
# | **the tall tile** | 128 | 128 | 16 | 16 | 4 |
# | **the [ladder's](glossary.md#ladder) tiles** | 128 | 128 | 32 | 16 | 4 |
#
# | kernel | its stage | how it fills its tiles |
# |---|---|---|
# | **v04**, of document 004 | `thread_tiled_2d` | threads are numbered consecutively |
# | **Kernel 5**, of document 000 | `kernel5` | in slices: the next section |
# | its **draft**, document 001 | `kernel5_draft` | one slice per thread |
#
# To run a copy, put it into a factory such as `make_outer`, and begin with
# `from lockstep.intrinsics import u32, unroll`: [unsigned indices](glossary.md#u32), and loops that are
# [written out in full](glossary.md#unrolling). The 16 in `shared.array` is for notebook 06.

# %% [markdown]
# ## Fetching in slices: a case of missing elements
#
# Document 000 has the same outer product, and another way to fill the tiles. It calls the kernel "Kernel 5".
# Threads stand in a grid of BM/TM rows and BN/TN columns; thread (x, y) computes TM rows and TN columns of C.
# From A it fetches a **slice** of these TM rows, in column x of the tile; from B a slice of its TN columns,
# in row y.
#
# Step through the stores of one block. (`top` is the thread's first row of C, `row0 + ty * TM`, and `left`
# its first column.) First with BK = 8, then with BK = 4. What is different?

# %%
see.filling("kernel5")

# %% [markdown] tags=["thought"]
# With BK = 8 there are eight columns of As and still four threads in a row. So every thread comes back for
# another slice, as many columns further on as there are threads in its row: a **strided loop**. Bs works the
# same way, row by row.

# %% [markdown]
# ### The draft
#
# Document 001 is the first draft of the same kernel. This is how it fetches, for each `k0`:
#
# ```python
# for i in unroll(range(TM)):  # column tx of A's tile, ...
#     As[ty * TM + i, tx] = A[top + i, k0 + tx] if top + i < m and k0 + tx < k else float32(0)
# for j in unroll(range(TN)):  # ... and row ty of B's
#     Bs[ty, tx * TN + j] = B[k0 + ty, left + j] if k0 + ty < k and left + j < n else float32(0)
# ```
#
# And this is what its block leaves in the tiles. Try all BK.

# %%
from gemm_course.kernels.variants.kernel5_draft import STAGE as draft

see.coverage("kernel5_draft")

# %%
see.predict("05.draft")

# %% [markdown]
# ### Exercise 05.1 · When is the draft right?
# *core · easy · 8 minutes*
#
# Among the tiles of the picture are some where nothing is hatched and nobody writes beside them. For which
# BK is the draft right? Write a function of all five tile sizes that returns True or False. (BM and BN are
# multiples of TM and TN.) The checker asks the emulator.


# %% id="ex-05-1"
def right(BM, BN, BK, TM, TN):
    ### BEGIN SOLUTION
    return BK == BN // TN and BK == BM // TM
    ### STUB
    # return None
    ### END SOLUTION


check.draft_is_right(right)

# %% [markdown]
# The author knew, and says so in the draft: "you'll only load the first BM/TM rows of the BK rows unless
# BM/TM == BK". That is the half of your condition that B's tile needs. Of the other half, BN/TN, he says
# "similar for As". A test with a BK that fits both would have found nothing.
#
# ### Exercise 05.2 · Slices for any tile
# *core · hard · 15 minutes*
#
# Copy your kernel from exercise 05.4 into the cell below and take the call of `fetch` out. Fill both tiles in
# its place, by loops of your own, for **any** BK. From now on no line of the kernel is a gift. (But leave the
# two barriers where they are.)
#
# Kernel 5's slices are one way; any way that shares the work among the threads passes. Store every element
# of As and Bs **exactly once**, and a zero where a matrix has ended.


# %% id="ex-05-2"
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
# make_kernel = None  # your code: begin with a copy of make_outer
### END SOLUTION

check.slices(make_kernel)

# %% [markdown]
# The picture of yours:

# %%
see.coverage(make_kernel)

# %% [markdown]
# What Kernel 5 has and the draft has not. (Two slips of the draft that a compiler refuses are fixed.)

# %% tags=["listing"]
see.diff(draft, "kernel5")

# %% [markdown]
# ### What the slices cost
#
# The tiles are complete. But at what price? Sectors per request, for Kernel 5 and for v04:

# %%
square = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
A, B = rng.standard_normal((128, 64), np.float32), rng.standard_normal((64, 128), np.float32)


def sectors(stage):
    report = run(stage, A, B, tiles=square, backend="emulator").report
    return {name: report.sectors_per_request(array=name, op="load") for name in "AB"}


sectors("kernel5"), sectors("thread_tiled_2d")

# %% [markdown]
# Of B, neighbours in x fetch elements TN = 8 floats apart, each in a sector of its own. It is v00's mistake
# in new clothes.
#
# ### Exercise 05.3 · From 32 sectors to 4
# *core · medium · 10 minutes*
#
# Fill `Bs` again, and `Bs` alone, so that the load of B is coalesced: 4 sectors per request, and all threads
# take part. Change nothing else: the same parameters, every element exactly once, zeros where B has ended.
# Numbering the threads, as in 05.4, would do it, and passes. Better: find the way that keeps Kernel 5's rows.
# Which columns should a thread take?


# %% id="ex-05-3"
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
# ## Registers and warps

# %%
see.predict("05.occupancy")

# %% [markdown]
# Here is the SM of the question. Which tank is full, and what is left in the others?

# %% tags=["answer"]
see.occupancy("thread_tiled_2d", tiles={"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8})

# %% [markdown]
# ### How many warps are enough?
#
# A multiply-add takes about four clocks from start to result. With **one** accumulator per thread the next
# multiply-add waits for the last, so each [scheduler](glossary.md#scheduler) needs four warps to be never
# idle. With **64** the next one belongs to another accumulator, and starts at once. That is
# **instruction-level parallelism**: one warp keeps its scheduler busy by itself, as long as it only computes.
#
# When it waits for global memory, somebody else must compute. As compiled, a warp issues 1388 instructions
# per pair of tiles. A scheduler has two warps of a block, so these compute for 2776 clocks. Suppose that they
# then wait for 600.
#
# **A bet:** with more than 128 registers per thread only one block fits. How many per cent of its speed does
# the kernel lose? Guess, then move the slider. (The schedule is computed, with no other wait.)

# %% tags=["thought"]
see.strips("thread_tiled_2d")

# %% [markdown] tags=["thought"]
# The picture says 18 %: 600 of 3376 clocks. And 128 is the edge: 2 · 256 · 128 is 65,536, to the last
# register.
#
# Measured, with the ladder's tiles, one block is 19 % slower than two. With their BK the same sum says only
# 10 %: twice as many steps stand between two waits. So a lone block loses more than these 600 clocks.

# %% [markdown]
# Of **your** kernel, perhaps only one block fits on an SM. The checker of 05.4 says how many registers it
# takes: the course's solution 165 (with the checker's 64 × 64 × 8, and the same with the square).
# `@cuda.jit(launch_bounds=(256, 2))` tells the compiler: 256 threads per block, and at least 2 blocks per SM.
# It then takes at most 128, and spills nothing. (Whether that pays was not measured.)
#
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
# words, and that must not be a multiple of 32. With 4 or 8 words it is one again. Nothing cures Bs: its
# words lie all in one row, and padding moves whole rows.

# %% [markdown]
# ### Exercise 05.5 · Conflict-free
# *stretch · hard · 17 minutes*
#
# Copy your kernel from exercise 05.4 into the cell below, and fix both conflicts. What padding cannot do must
# be done by something else that can move. Every **read** of As and of Bs should take one wavefront, and a
# store of C should move 4 sectors per request. (Stores into the tiles may take two wavefronts: every element
# is stored once and read 16 times.)
#
# Compute new shapes beside `fetch`, outside the kernel: `BK + 1` written inside the kernel is no constant.


# %% id="ex-05-5"
### BEGIN SOLUTION
def make_fixed(BM, BN, BK, TM, TN):
    THREADS, WIDTH, APART = BM * BN // (TM * TN), BK + 1, BN // TN

    @cuda.jit
    def fixed(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, WIDTH), float32)
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
                    b[j] = Bs[p, tx + j * APART]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                row, col = row0 + ty * TM + i, col0 + tx + j * APART
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]

    return fixed


### STUB
# make_fixed = None  # your code: begin with a copy of make_outer
### END SOLUTION

check.no_conflicts(make_fixed)

# %% [markdown]
# ### What helped

# %% [markdown] tags=["listing"]
# - **As**: a word of **padding**.
# - **Bs**: the **order of the columns**. Thread x takes x, x + 16, x + 32, ... Now neighbours in x touch
#   neighbouring words, in Bs, in B and in C. So this also coalesces the load of B and the store of C.
# - Or, instead of padding, the **order of the rows**: thread y takes y, y + 16, ... The two rows of a warp
#   are neighbours then, 16 words apart.
#
# (The course's solution takes 196 registers, so only one block fits on an SM.)

# %% tags=["listing"]
see.tile_banks(spread=True)

# %% [markdown] tags=["listing"]
# Below, `A_WIDTH` and `B_WIDTH` are the lengths of a tile's rows with padding. `BY_X` is how far a thread's
# columns lie from its neighbour's, `BY_J` how far from each other.

# %%
from gemm_course.kernels.variants.kernel5_spread import STAGE as spread

sectors(spread)

# %% tags=["listing"]
see.diff("kernel5", spread)

# %% [markdown]
# **Does it pay?** Put three kernels in order, slowest first:
#
# - **v04**: a conflict in As, one in Bs, all loads coalesced;
# - **Kernel 5, columns spread** (`kernel5_spread`): the conflict in As only, all loads coalesced;
# - **Kernel 5**: both conflicts, loads of B not coalesced.
#
# (With padding as well, as in 05.5, it was not measured.)

# %% tags=["thought"]
see.waits(("kernel5", square), ("kernel5_spread", {"PAD": 0}), ("thread_tiled_2d", square), meanings=False)

# %% [markdown] tags=["thought"]
# Kernel 5, columns spread, v04: 25.8, 29.7 and 32.9 TFLOPS. Spreading pays. But v04, conflicts and all, beats
# both.
#
# It is not fewer instructions: the faster kernels issue *more* per multiply-add: 1.26, 1.35, 1.36. Nor is it
# shared memory alone. That is busy in 77, 47 and 72 % of the clocks. From 70 % on the picture calls it the
# limit, and yet v04, at 72 %, beats the kernel at 47 %. What falls all the way is the **waiting** for global
# memory (c): 23, 15 and 7 % of a warp's time.
#
# A thread of v04 asks for all 16 elements before it stores the first. The other two ask for 8, wait, store,
# and ask for 8 more: their loops begin at `tx` and `ty`, so the compiler cannot know how often they run.
#
# ([Dispatch](glossary.md#dispatch), n: an instruction was chosen, but is held up on its way to its unit. Why
# it does not fall, no measurement says.)

# %% [markdown]
# *A good place for a pause. Until here you wrote kernels. From here on you bet, count and explain: about
# 40 minutes.*
#
# ## What is the ceiling?

# %%
see.predict("05.ceiling")

# %% [markdown] tags=["answer"]
# **A mystery.** The square was measured at 32.9 TFLOPS, half as much again as this ceiling allows. Who is
# wrong: your count, the clock, or the program that was run?

# %% [markdown]
# ### Count it three ways
#
# Requests of all warps together: loads from global memory, and reads of shared memory. The counters were read
# with the ladder's tiles, so take every size from `t`: with 8 for `t["TM"]` the counts differ.

# %%
t = LADDER["thread_tiled_2d"].tiles
t


# %% id="formula"
def global_requests(m, n, k):
    ### BEGIN SOLUTION
    return (m * n * k // t["BN"] + m * n * k // t["BM"]) // 32
    ### STUB
    # return None
    ### END SOLUTION


def shared_requests(m, n, k):
    ### BEGIN SOLUTION
    return (m * n * k // t["TM"] + m * n * k // t["TN"]) // 32
    ### STUB
    # return None
    ### END SOLUTION


# %%
size = (1024, 1024, 1024)
counted = {"global_load_requests": global_requests, "shared_load_requests": shared_requests}
see.counts("thread_tiled_2d", size, **counted)

# %% [markdown]
# ### What the compiler makes of it
#
# The hardware counts a quarter of the reads. It was the compiler. With the square the source reads 16 · 16 =
# 256 elements per pair of tiles; the program for an H200 has **64 loads of 128 bits** instead:
#
# - of Bs, a thread's 8 columns of one step are neighbours: 8 / 4 = **2 loads per step**;
# - of As, a thread's 8 rows are not neighbours, but four *steps* of a row are. It loads 4 steps of 8 rows at
#   once, 8 loads for 4 steps: again **2 per step**.

# %% [markdown]
# ### Does that cure the conflicts?
#
# A load of 128 bits asks for 512 bytes, and a wavefront brings 128 at most. So a warp is served in **turns**,
# normally four, of 8 lanes each. Where lanes 0 and 1, 2 and 3, ... want the same 16 bytes, there are two, of
# 16 lanes each. A turn takes one wavefront, or more if its lanes want different words of one bank. (NVIDIA
# does not document this; it was measured on an H200.)
#
# Here is one load from each tile. Every lane wants four words, and this is the number of the first:
#
# | lanes | from As | from Bs |
# |---|---|---|
# | 0 to 7 | 0 0 0 0 0 0 0 0 | 0 8 16 24 32 40 48 56 |
# | 8 to 15 | 0 0 0 0 0 0 0 0 | 64 72 80 88 96 104 112 120 |
# | 16 to 23 | 128 128 128 128 128 128 128 128 | 0 8 16 24 32 40 48 56 |
# | 24 to 31 | 128 128 128 128 128 128 128 128 | 64 72 80 88 96 104 112 120 |
#
# **Solve it:** how many turns does each load take, of how many wavefronts? So how many wavefronts does a step
# take as compiled, where the source had 48? And where is the ceiling now?

# %% [markdown] tags=["thought"]
# - **As**: neighbours want the same, so there are 2 turns. In a turn all want the same words: 1 wavefront,
#   and **2** in all. The warp's two rows of threads still want the same banks, but each has a turn of its
#   own. No conflict is left. Two turns are the least for 128 bits, so padding would bring nothing, and would
#   split the wide loads.
# - **Bs**: neighbours want different words, so there are 4 turns. In each, lanes 0 and 4 want the same banks,
#   1 and 5, ...: 2 wavefronts, and **8** in all. This conflict is left.
#
# A step has 2 loads of each: 2 · 2 + 2 · 8 = 20 wavefronts, as the hardware counts. The ceiling is
# 67 · 16 / 20 = 54 TFLOPS, well above 32.9.
#
# Spread columns would remove the conflict in Bs, but cannot be merged: 32 wide loads become 128 single ones.
# That is where the spread kernel's instructions came from. Notebook 07 gets both.

# %% [markdown]
# ### A tall tile
#
# In the tall tile a thread has 16 × 4 results, so a warp is a single row of threads.

# %%
see.predict("05.tall")

# %% [markdown]
# ## What limits it now?
#
# Is the tall tile worth anything, then? The square's profile says how much of the clocks each part is busy.
# **Predict the other column.** Shared memory first: add to the wavefronts of the reads one per step, with
# either tile, for the stores into As and Bs. Then the speed: if shared memory cost no time, issuing would
# still take 69 % of the clocks. How many times as fast can it get at most?
#
# | busy, in % of the clocks | the square | the tall tile |
# |---|---|---|
# | shared memory | 72 | ? |
# | issue slots | 69 | ? |
# | multiply-adds | 54 | ? |
# | TFLOPS | 32.9 | ? |

# %% tags=["thought"]
see.limits(
    "thread_tiled_1d",
    ("thread_tiled_2d", {"BK": 16, "TM": 8, "TN": 8}),
    ("thread_tiled_2d", {"BK": 16}),
)

# %% [markdown] tags=["thought"]
# 21 wavefronts become 13: 72 · 13/21 is 45, and 47 were measured. At most it could be 100/69 = 1.45 times as
# fast. It is 1.02 times as fast: the others hardly move, 71, 55 and 33.6 TFLOPS. With the square, shared
# memory (72 %) was barely busier than **issue slots** (69 %), and these stay. So the limit now is probably
# how many instructions there are.
#
# How sure is that? Fewer wavefronts brought almost nothing. Fewer instructions *without* more waiting is the
# next experiment: every element of a tile still comes by a load and a store of its own. Notebook 06 begins
# there, with the ladder's tiles: 33.9 TFLOPS.
#
# (Why 54 % for the multiply-adds, and not 32.9 / 67 = 49 %? The clocks here are those in which an SM has
# work: 51 %. And the same units multiply the integers of addresses.)

# %% [markdown]
# ## Your own kernel
#
# What did the compiler make of yours? Once 05.4 has passed, take the `#` away. (This needs the extra
# `compiler`, but no GPU.) v04 has its loop over p unrolled. The course's solution has not: 16 single reads
# per step, and both conflicts. Put `unroll` in: do your shared loads become as few as v04's? Does it help
# your 05.5 as well? (The picture counts per 1,000 multiply-adds. A thread has 16 · 64 = 1024 per pair of
# tiles, so 64 loads are 62.5.)

# %%
# from gemm_course import compiled
# from lockstep.intrinsics import unroll
# A, B, C = (np.zeros((128, 128), np.float32) for _ in range(3))
# mine = compiled(make_outer(**square), 128, 128, 128, float32(1), A, B, float32(0), C)
# see.compare_code(mine, ("thread_tiled_2d", square))

# %% [markdown] tags=["thought"]
# Yes, 05.4 has the 64 wide loads per pair of tiles then. The course's 05.5 has 4 wide loads and 240 single
# ones (238 in the picture): rows of 17 words do not begin at 16 bytes, and the columns of Bs lie apart. With
# rows y, y + 16, ... instead of padding it has 32 wide ones and 128 single (156). What cures a conflict as
# written may prevent a merge.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("05")

# %% [markdown]
# ## Recap
#
# - You computed outer products: TM + TN reads feed TM · TN multiply-adds.
# - You found the holes in a draft that is right for one BK, and closed them with strided loops.
# - You moved rows by padding, and columns by their order, and know which helps where.
# - You saw a kernel beat its ceiling: unrolled, neighbouring reads become wide ones. Count what is compiled.
# - You predicted a profile. Issue slots are busiest now. Notebook 06 tries fewer instructions.
#
# **Next:** four elements in one access, by design instead of by luck.

# %% [markdown]
# ---
# ## For the curious
#
# A launch has more blocks than places. As many as fit run at once, then the next: one **wave** after another,
# roughly.

# %%
see.predict("05.waves")

# %% [markdown]
# <details><summary>More: what waves share.</summary>
#
# Blocks in one row of the grid need the same rows of A, those in one column the same columns of B. What one
# of a wave has fetched is in the **L2 cache** (60 MB on an H200) for the others. 256 blocks in a square need
# 16 strips of A and 16 of B; in one long row, 1 and 256. CUDA promises no order of blocks, but a kernel may
# number its blocks as it likes.
#
# </details>
