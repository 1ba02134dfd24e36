# %% [markdown]
# # 05 · A tile of results in every thread
#
# A column of results shares what is read from Bs. What is read from As is still used only once. So the
# column becomes a rectangle: TM × TN results per thread. It is an old friend from linear algebra, the
# [outer product](glossary.md#outer-product).
#
# **After this notebook you can**
# - write a kernel whose threads compute rectangles of results, and say why the square reads least;
# - fetch tiles with strided loops, and see in a picture which elements nobody fetched;
# - find bank conflicts in a real kernel, and fix each of them with what helps.
#
# *Time: about 95 minutes to read, 70 for the exercises. Comes from document 004, kernel v04, and from
# documents 000 and 001, "Kernel 5"; the [glossary](glossary.md#document) says what the documents are.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import LADDER, check, run
from gemm_course import widgets as see

# %% [markdown]
# ## In one picture
#
# The column of notebook 04 becomes a rectangle. What does a thread read in a step now, and how many products
# does it make of it?

# %%
see.multiply("thread_tiled_2d")

# %% [markdown]
# ## What limits it now?
#
# Shared memory, still. In the kernel of notebook 04 it is busy in 86 % of the clocks. Warps wait 29 % of
# their time for what they read there, and 13 % for room in the queue to it. However tall the column, every
# multiply-add reads an element of As:

# %%
see.limits("thread_tiled_1d")

# %% [markdown]
# ## The outer product, in NumPy first
#
# Everybody learns the product of two matrices as rows times columns: an element of C is a sum over k. Turn
# the loops around, and let k be the outermost:

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
# 64 sums grow by a product. The sums stay where they are.
#
# A thread does this now, with 64 registers for its accumulators.

# %%
see.predict("05.reads")

# %% [markdown]
# Below is one block with small tiles, from the emulator's trace. A thread's tile is square at first, 4 × 4.
# Make it flat, 2 × 8, the same number of results. What happens to the reads? Then go from thread to thread:
# which of them read the same?

# %% tags=["answer"]
see.registers("thread_tiled_2d")

# %% [markdown]
# ### On paper
#
# A thread reads TM + TN elements per step, for TM · TN multiply-adds. Divide the BK steps of a pair of tiles
# among its results:
#
# $$BK/TM + BK/TN \text{ reads per result,}$$
#
# $$1/TM + 1/TN \text{ reads per multiply-add.}$$
#
# Both terms shrink now. With 8 × 8 it is 1/4, with v02 it was 2.
#
# ### Counted
#
# A square of 16 results, and five rectangles of 64:

# %%
A, B = rng.standard_normal((64, 64), np.float32), rng.standard_normal((64, 64), np.float32)


def reads(TM, TN):
    tiles = {"BM": 64, "BN": 64, "BK": 8, "TM": TM, "TN": TN}
    report = run("kernel5", A, B, tiles=tiles, backend="emulator").report
    return report.total("lanes", space="shared", op="load") / 64**3


{shape: reads(*shape) for shape in ((4, 4), (8, 8), (4, 16), (16, 4), (2, 32), (32, 2))}

# %% [markdown]
# The square has the smallest sum of its sides. (The fewest reads are not yet the fewest wavefronts; you will
# come back to that.) And why not 16 × 16? 256 accumulators need 256 registers, and a thread may have 255.

# %% [markdown]
# ## The kernel
#
# ### Exercise 05.4 · The outer product
# *core · hard · the heart of this notebook · 20 minutes*
#
# The tiles are fetched for you, by threads that are numbered consecutively. (Exercises 05.1 to 05.3, further
# down, are about another way.) Three pieces are missing: TM × TN results, their outer products, their store.
# Where `beta == 0`, do not read C. Blocks of (BN/TN) × (BM/TM) threads, x along the columns; `ceil(n / BN)` ×
# `ceil(m / BM)` blocks.
#
# The checker wants TM + TN reads of shared memory for TM · TN multiply-adds, and the results in registers.


# %% id="ex-05-4"
def make_outer(BM, BN, BK, TM, TN):
    THREADS = BM * BN // (TM * TN)

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
            for e in range(ty * (BN // TN) + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * (BN // TN) + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
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
# This is document 004's v04, and what changed since v03. Compare it with yours.

# %% tags=["listing"]
see.diff("thread_tiled_1d", "thread_tiled_2d")

# %% [markdown]
# - `a` and `b` are small arrays of the thread's own: first all reads, then all products.
# - Threads are numbered consecutively, and find their place with `//` and `%`: `tid // (BN // TN)` counts
#   thread tiles down, `tid % (BN // TN)` across.
# - `A_ROWS` and `B_ROWS`, `THREADS // BK` and `THREADS // BN`, are the rows of a tile that the block fetches
#   in one pass.
# - All loops run a constant number of times, so every accumulator, and every element of `a` and `b`, has a
#   register of its own.
#
# To run a copy, put it into a factory such as `make_outer`, and begin with
# `from gemm_course.intrinsics import u32, unroll`: [unsigned indices](glossary.md#u32), and loops that are
# [written out in full](glossary.md#unrolling). The 16 in `shared.array` is for notebook 06.

# %%
C = run("thread_tiled_2d", A, B).C
np.abs(C - A @ B).max()

# %% [markdown]
# ## Fetching in slices
#
# Document 000 has the same outer product in its "Kernel 5", and a way of its own to fill the tiles. Threads
# stand in a grid of BM/TM rows and BN/TN columns; thread (x, y) computes TM rows and TN columns of C. From A
# it fetches a **slice** of these TM rows, in column x of the tile; from B a slice of its TN columns, in row
# y.
#
# Step through it: the emulator's trace of one block, store by store, with the line of code below. (`top` is
# the thread's first row of C, `row0 + ty * TM`, and `left` its first column.) First with BK = 8, then with
# BK = 4. What is different?

# %%
see.filling("kernel5")

# %% [markdown]
# With BK = 4 the four threads of a row bring the four columns of As, and that is all. With BK = 8 there are
# eight columns and still four threads. So every thread comes back for another slice, as many columns further
# on as there are threads in its row: a **strided loop**. Bs works the same way, row by row.
#
# ### The draft
#
# Document 001 is the first draft of the same kernel. This is what its block leaves in the tiles. Try all BK.

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
# The author knew. A note below the draft's code says that the threads of a column are BM/TM and the rows of
# Bs BK, "so you'll only load the first BM/TM rows of the BK rows unless BM/TM == BK". Once two typing slips
# are mended (below), the draft is legal C++, and right for one BK. A test with just that BK would have
# found nothing.
#
# ### Exercise 05.2 · Slices for any tile
# *core · medium · 15 minutes*
#
# Fill both tiles as Kernel 5 does, for any BK. Not a kernel this time, but a **device function**: a
# function that kernels call. `cuda.jit(device=True)` makes one; it can return something, and cannot be
# launched.
#
# The block has BN/TN threads along x and BM/TM along y. `As` is (BM, BK), `Bs` is (BK, BN); they begin at
# column and row `k0` of A and B. Store every element **exactly once**, and a zero where a matrix has ended.
# The kernel that calls your function has the barriers. (`row0` and `col0` are the *block's* first row and
# column, as in exercise 05.4.)


# %% id="ex-05-2"
def make_fetch(BM, BN, BK, TM, TN):
    @cuda.jit(device=True)
    def fetch(m, n, k, k0, A, B, As, Bs):
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        ### BEGIN SOLUTION
        for c in range(tx, BK, BN // TN):
            for i in range(TM):
                r = ty * TM + i
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
        for r in range(ty, BK, BM // TM):
            for j in range(TN):
                c = tx * TN + j
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
        ### END SOLUTION

    return fetch


check.slices(make_fetch)

# %% [markdown]
# The picture of yours:

# %%
see.coverage(make_fetch)

# %% [markdown]
# This is what Kernel 5 has and the draft has not:

# %% tags=["listing"]
see.diff(draft, "kernel5")

# %% [markdown]
# Two more slips stand in document 001, and are fixed in both versions:
#
# ```cpp
# for (int c = 0; c < TM; ++r) {      // c is compared, r is counted
# ...
# acc[r][c] += aFrag[r] * bFrag[c];   // the arrays are called aReg and bReg
# ```
#
# A compiler refuses the second at once, and the first as well, because there is no `r`. The missing strided
# loops it cannot see.

# %% [markdown]
# ### What the slices cost
#
# The tiles are complete. But how are they fetched? Sectors per request, for Kernel 5 and for v04, the kernel
# of document 004, whose threads take neighbouring elements:

# %%
document = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
A, B = rng.standard_normal((128, 64), np.float32), rng.standard_normal((64, 128), np.float32)


def sectors(stage):
    report = run(stage, A, B, tiles=document, backend="emulator").report
    return {name: report.sectors_per_request(array=name, op="load") for name in "AB"}


sectors("kernel5"), sectors("thread_tiled_2d")

# %% [markdown]
# A is all right: neighbours in x fetch neighbouring columns. Of B, neighbours in x fetch elements TN = 8
# floats apart, each in a sector of its own: **32 sectors per request**, and 4 bytes used of each. It is v00's
# mistake in new clothes.
#
# ### Exercise 05.3 · From 32 sectors to 4
# *core · medium · 10 minutes*
#
# Fill `Bs` again, and `Bs` alone, so that the load of B is coalesced: 4 sectors per request with the
# document's tiles, and all threads take part. Change nothing else: the same parameters, every element
# exactly once, zeros where B has ended. Numbering the threads, as in 05.4, would do it. Find the way that
# keeps Kernel 5's rows: which columns should a thread take?


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
#
# 64 results need registers. From here on there are three sets of tiles, all 128 × 128 with 64 results. Each
# section says which it means:
#
# | | BK | TM × TN | used for |
# |---|---|---|---|
# | **the document's** | 16 | 8 × 8 | banks, exercise 05.5, counts per step |
# | **tall** | 16 | 16 × 4 | "Tall instead of square?" |
# | **the course's** | 32 | 16 × 4 | the ladder, and what limits v04 |

# %%
see.predict("05.occupancy")

# %% [markdown]
# Here is the SM of the question. Which tank is full, and what is left in the others?

# %% tags=["answer"]
see.occupancy("thread_tiled_2d", tiles={"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8})

# %% tags=["answer"]
see.tflops("block_tiled", "thread_tiled_1d", "thread_tiled_2d")

# %% [markdown]
# Between two waits, a thread has more to do. The picture computes a schedule: the document's tiles, and no
# wait but that for global memory, so a real kernel stays below it. Lower the registers until two blocks fit.

# %%
see.strips("thread_tiled_2d")

# %% [markdown]
# And what do warps wait for, with half as many of them? (The course's tiles.)

# %% tags=["answer"]
see.waits("thread_tiled_1d", "thread_tiled_2d")

# %% [markdown] tags=["answer"]
# The gain is **fewer reads**. A warp of v03 spends 29 % of its time waiting for what it reads from shared
# memory, and 13 % in the queue; here it is 5 % and less than 1 %. Fewer instructions of all kinds go with a
# multiply-add, and schedulers issue more often. The longest wait is now [dispatch](glossary.md#dispatch).

# %% [markdown]
# ### How many warps are enough?
#
# A multiply-add takes about four clocks from start to result. An SM has four
# [schedulers](glossary.md#scheduler), and each issues one instruction per clock. With **one** accumulator per
# thread the next multiply-add needs the last one's result, so a scheduler needs four warps to be never idle:
# 16 warps per SM. These two blocks have just as many.
#
# With **64** accumulators the next instruction does not need the last one's result, and can start at once.
# That is **instruction-level parallelism**: one warp keeps its scheduler busy by itself. Both kernels have
# at least 16 warps, so this is not the reason for the gain. It only means that fewer warps would be enough
# for the arithmetic.
#
# Loads from global memory take far longer than four clocks. The same code with the course's tiles, kept to
# **one** block per SM by shared memory that it does not use:

# %%
see.waits("thread_tiled_2d", ("thread_tiled_2d_fewer_blocks", {"SPARE": 150}), meanings=False)

# %% [markdown]
# 27.4 TFLOPS instead of 33.9, and the wait for global memory grows from 4 to 15 % of a warp's time: when the
# only block waits for its next tiles, nobody computes. Schedulers issue in 59 % of the clocks. (The schedule
# above said 82 % for one block, with the document's tiles and one kind of wait.) A second block is worth 24
# %.
#
# **Yours** may have a single block too. The checker of 05.4 says how many registers it takes: the course's
# solution 165, and 256 threads with more than 128 each fit only once. v04 is told that two blocks must fit.
# Write `@cuda.jit(launch_bounds=(256, 2))` ([notebook 04](04_thread_tiles_1d.ipynb)): the solution then takes
# at most 128, and spills nothing. (So does that of exercise 05.5, with 196 otherwise.)
#
# ## Banks again
#
# Back to Kernel 5, **as written**, with the **document's tiles**. There are 16 reads of shared memory in a
# step. Here is what one warp (16 × 2 threads) reads of either tile. For each tile answer three questions:
#
# 1. Which lanes want different words of the same bank?
# 2. Does a word of **padding** behind every row help? Do four words?
# 3. If not: what else could move?

# %%
see.tile_banks()

# %% [markdown]
# ### Exercise 05.5 · Conflict-free
# *stretch · hard · 17 minutes*
#
# Copy your kernel from exercise 05.4 into the cell below, and fix both conflicts. With tiles of 128 × 128 ×
# 16 and 8 × 8 results, every **read** of As and of Bs should take one wavefront, and a store of C should
# move 4 sectors per request. (Stores into the tiles may take two wavefronts: every element is stored once
# and read 16 times.)
#
# The shape of a shared array must be a constant for the compiler. A variable of the enclosing function counts
# as one; `BK + 1` written inside the kernel does not.


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
# - **As**: the warp has two rows of threads, 8 rows of As apart. A row is 16 words, so that is 128 words:
#   the same bank, **2 wavefronts**. A word of padding makes it 8 · 17 = 136 words, bank 8. With 4 words it
#   is 160, bank 0 again.
# - **Bs**: the 16 lanes of a thread row read words 8 apart, all in one row of the tile. Every fourth wants
#   the same bank, **4 wavefronts**. Padding moves whole rows, so it does nothing. The **order of the
#   columns** has to change: thread x takes x, x + 16, x + 32, ...
#
# The second change also coalesces the load of B and the store of C: in all three, neighbours in x now touch
# neighbouring words.

# %%
from gemm_course.kernels.variants.kernel5_spread import STAGE as spread

sectors(spread)

# %% tags=["listing"]
see.diff("kernel5", spread)

# %% [markdown]
# `BY_X` is how far a thread's columns lie from its neighbour's, `BY_J` how far they lie from each other: 1
# and `BN // TN` here, where Kernel 5 has TN and 1. `A_WIDTH` and `B_WIDTH` are the lengths of the tiles' rows
# with their padding.
#
# Does it pay? All three with the document's tiles, the columns spread and nothing padded:

# %%
see.waits(
    ("kernel5", document), ("kernel5_spread", {"PAD": 0}), ("thread_tiled_2d", document), meanings=False
)

# %% [markdown]
# 25.8, 29.7 and 32.9 TFLOPS. With the columns spread, warps wait 15 % of their time for global memory instead
# of 23 %.
#
# v04 waits 7 %, although it has the conflict in Bs. It has just as many loads, and coalesced too. But its
# program asks for all 16 elements of a thread before it stores the first. Kernel 5's two loops ask for 8,
# wait, store, and ask for 8 more: two waits per pair of tiles. They begin at `tx` and `ty`, so the compiler
# cannot know how often they run. Written as loops of constant length, they ask for all 16 as well. (Kernel 5
# also spills 48 bytes, the spread one 16, v04 none. What each of these is worth was not measured.)
#
# Is v04's conflict worth fixing? First look at what the compiler does.
#
# ## What is the ceiling?

# %%
see.predict("05.ceiling")

# %% [markdown]
# ## Count it three ways
#
# v04 with the **course's tiles**:

# %%
t = LADDER["thread_tiled_2d"].tiles
t

# %% [markdown]
# Requests of all warps together: loads from global memory, and reads of shared memory.


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
# The hardware counts a quarter of the reads. Take v04 with the **document's tiles**. The source reads 16 · 16
# = 256 elements per pair of tiles; the program for an H200 has **64 loads of 128 bits** instead:
#
# - of Bs, a thread's 8 columns of one step are neighbours: 8 / 4 = **2 loads per step**;
# - of As, a thread's 8 rows are not neighbours, but four *steps* of a row are. So it loads 4 steps of 8 rows
#   at once, 8 loads for 4 steps: again **2 per step**.
#
# Together 4 loads per step, and 4 · 16 = 64.
#
# This is v04, with its loop over p unrolled. **Yours is not**: 16 single reads per step, and both conflicts.
# `unroll` it, and your 05.4 has 64 wide loads as well. Your 05.5 has 4 wide loads and 240 single ones: rows
# of 17 words do not begin at 16 bytes, and the columns of Bs lie apart.

# %% [markdown]
# ### Does that cure the conflicts?
#
# A load of 128 bits is served for eight lanes at a time, a quarter of the warp. Where the lanes of each pair
# (0 and 1, 2 and 3, ...) want the same 16 bytes, sixteen lanes are served at once. Measured on an H200, by
# the first word that each lane wants:
#
# | lane 0, 1, 2, ... 7 | | wavefronts |
# |---|---|---|
# | 0 4 8 12 16 20 24 28 | side by side | **4** |
# | 0 0 4 4 8 8 12 12 | pairs | **2** |
# | 0 0 0 0 0 0 0 0 | all the same: pairs as well | **2** |
# | 0 8 16 24 32 40 48 56 | half of the banks asked twice | **8** |
#
# So a broadcast takes two here. Why not one? NVIDIA does not document it. (Notebook 06 has pictures.)

# %% [markdown]
# Wavefronts of a warp per step, for v04's reads:
#
# | | as written | compiled |
# |---|---|---|
# | As | 8 reads · 2 = 16 | 2 loads · 2 = 4 |
# | Bs | 8 reads · 4 = 32 | 2 loads · 8 = 16 |
# | together | 48 | 20 |
#
# - **As**: all lanes of a thread row want the same 16 bytes. No conflict is left, and padding would only
#   split the wide loads.
# - **Bs**: neighbours' 16 bytes lie 32 bytes apart, the last line of the table above.
# - With the columns spread out, a thread's columns are 16 words apart and cannot be merged: 8 reads of 1
#   wavefront each, in four times as many instructions. Together 4 + 8 = 12. Notebook 07 gets both, wide loads
#   and fewer conflicts.
#
# The hardware counts reads and stores together: **25 per step in Kernel 5, 14 with the columns spread**.

# %% [markdown]
# ### Tall instead of square?
#
# 16 × 4 results, the course's choice, are 64 as well. The 128 columns of a block's tile are then the work
# of 32 threads, so a warp is a single row of threads. Count what is **compiled**.

# %%
see.predict("05.tall")

# %% [markdown]
# The square reads fewer elements, the **tall** tiles take fewer wavefronts: of As, lanes share what they
# read, and of Bs, pieces of four columns leave no gaps. Which is faster? A clock says, both with BK = 16:

# %% tags=["answer"]
see.limits(("thread_tiled_2d", {"BK": 16, "TM": 8, "TN": 8}), ("thread_tiled_2d", {"BK": 16}))

# %% [markdown] tags=["answer"]
# Hardly a difference: 32.9 and 33.6 TFLOPS. Fewer wavefronts help only where wavefronts are the limit. With
# 8 × 8 shared memory has just caught up with issuing instructions; with 16 × 4 it has time to spare, and
# issuing is the limit.

# %% [markdown]
# ## What limits it now?
#
# The course's tiles again, BK = 32:

# %%
see.limits("thread_tiled_1d", "thread_tiled_2d")

# %% [markdown]
# With 16 × 4 results shared memory needs 12 clocks where the multiply-adds need 16. Why then 34 of 67
# TFLOPS? Because of **issue slots**: no part of the SM is busier. In 72 % of the clocks a scheduler issues
# an instruction, and 72 % of these are multiply-adds: 0.72 · 0.72 is 52 % of the peak, and for 3 % of the
# launch SMs have no work. (The multiply-add units are busy 57 %: they compute integer products for addresses
# as well.)
#
# And the other 28 % of the clocks? No warp can issue then. A warp spends 17 % of its time in
# [dispatch](glossary.md#dispatch), and 4 or 5 % each on shared memory, a busy unit, a fixed delay, a
# barrier and global memory. The course knows no way to lower dispatch directly. It can lower the number of
# instructions: every element of a tile is a load from global memory and a store of its own, plus the
# address arithmetic. That is for the next notebook.

# %%
see.roofline("block_tiled", "thread_tiled_1d", "thread_tiled_2d")

# %% [markdown]
# Thread tiles lift the point; they do not move it to the right. They save reads of *shared* memory. The
# axis counts what warps ask of L1 by loads and stores of *global* memory, and there the block's tile
# decides. They even cost a little: in a store of C the lanes' elements lie TN apart, so whole sectors move
# for parts of them. Notebook 06 fixes that.
#
# **And your own kernel?** With the extra `compiler` installed, this shows what the compiler made of it, on
# any computer; on one with a GPU `gemm_course.profiled` measures what limits it:
#
# ```python
# from gemm_course import compiled
# kernel = make_outer(128, 128, 16, 8, 8)
# see.compare_code(compiled(kernel, 128, 128, 64, float32(1), A, B, float32(0), C), "thread_tiled_2d")
# ```
#
# The course's solution takes more instructions than v04: its reads are single ones, and it computes more
# addresses. Put `launch_bounds`, `u32` and `unroll` in, one at a time, and look again.
#
# ## Tune it
#
# Five sizes at once. Begin with the explorer: what happens to occupancy and to the wavefronts with TM and
# TN? (It counts the source, as written.)

# %%
see.tiles("thread_tiled_2d")

# %% [markdown]
# A **heat map** shows two sizes at a time, the others held. Only what was measured has a colour. (8 × 8 with
# BK = 32 was not in the search.) Compare 8 × 4 with 4 × 8, which read the same number of elements. One is
# faster. Where do neighbouring lanes' pieces of Bs lie in each, as compiled?

# %%
see.heatmap("thread_tiled_2d", "TM", "TN")

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("05")

# %% [markdown]
# ## Recap
#
# - An outer product per step: TM + TN reads feed TM · TN multiply-adds. $BK/TM + BK/TN$ reads per result.
# - Slices with strided loops cover a tile of any depth. Without the loops there are holes, and only a
#   picture or the emulator shows them: right for one BK, wrong for all others.
# - Padding moves rows, and helps where lanes read different rows. Where they read one row, their columns
#   have to move together. Neighbours next to neighbours: that fixes banks and sectors alike.
# - Unrolled, neighbouring reads become wide ones, and that changes the conflicts. Count what the compiler
#   made before you fix it.
# - Few warps are no fault as long as there is work while some wait: two blocks per SM do, one is 19 % slower.
# - The limit is now the issuing of instructions.
#
# **Next:** four elements in one access, from global memory and from shared memory, by design instead of by
# luck.

# %% [markdown]
# ---
# ## For another day: waves, and what L2 is good for
#
# A launch has more blocks than places. As many as fit run at once, and the others follow as places become
# free: one **wave** after another, roughly. The last wave is seldom full.

# %%
see.predict("05.waves")


# %% tags=["answer"]
def taken(n, tile=128, places=264):
    blocks = (-(-n // tile)) ** 2
    return blocks / (-(-blocks // places) * places)


{n: f"{taken(n):.0%}" for n in (2048, 2176, 4096, 8192)}

# %% [markdown]
# Large matrices have many waves, and it matters little. For small ones it can matter more than anything in
# this notebook; smaller tiles then win, though they read more.
#
# The blocks of a wave also share something: blocks in one row of the grid need the same rows of A, those in
# one column the same columns of B. What one of them has fetched is in the **L2 cache** (60 MB on an H200)
# for the others. 256 blocks in a square of 16 × 16 need 16 strips of A and 16 of B. In one long row of 256
# they would need 1 and 256.
#
# CUDA promises no order of blocks; in practice those with neighbouring numbers run at about the same time,
# and a kernel may number its blocks as it likes.
