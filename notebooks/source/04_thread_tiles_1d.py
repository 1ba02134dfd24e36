# %% [markdown]
# # 04 · A column of results in every thread
#
# v02 reads two elements of shared memory for every multiply-add, and shared memory cannot keep up. The
# fastest memory of all has not been used yet: a thread's own registers. If a thread computes **several**
# elements of C, what it has read once serves all of them.
#
# **After this notebook you can**
# - derive how many shared reads a result costs, for any tile, and hold it against the emulator's count;
# - keep an array in registers, and say what throws it out: local memory and spills;
# - work out how many warps an SM holds, and say from a measurement what more warps bring.
#
# *Time: about 60 minutes to read, 50 for the exercises. Comes from document 004, kernel v03.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import LADDER, check, run
from gemm_course import widgets as see

# %% [markdown]
# ## In one picture
#
# A thread makes several elements of C now, one below the other. Compare the two bars: what it reads in one
# step along `k`, and how many products it adds.

# %%
see.multiply("thread_tiled_1d")

# %% [markdown]
# ## What limits it now?
#
# L1 and shared memory, busy in 91 % of the clocks. An SM can do four warp-wide multiply-adds per clock, but
# serves one wavefront of shared memory in that clock, and v02 asks, in its source, for two reads each time.
#
# ## One column of results
#
# Look at two threads, one below the other. They compute C[0, 5] and C[1, 5], so they need the very same
# column of Bs. Each reads it for itself. Let **one** thread do both, and it reads the column once.
#
# So a thread gets TM results, one below the other. In every step `p` along k it reads
#
# - **one** element of Bs, which all TM results need;
# - **TM** elements of As, one for each result.
#
# Below is one block of v03 with small tiles (16 × 32, 16 deep), drawn from the emulator's trace. Move TM,
# and see the reads drop below two per multiply-add. Then move the thread: what does the rest of its warp
# read?

# %%
see.registers("thread_tiled_1d")

# %% [markdown]
# Where BN is a multiple of 32, as here, all 32 lanes of a warp have the same rows of C, so they read the
# same elements of As: a broadcast, one **wavefront** for all. Of Bs they read 32 neighbours: one wavefront
# as well. What counts from here on is how many of them a multiply-add costs.
#
# ### Exercise 04.1 · Reads per result
# *core · easy · 5 minutes*
#
# A pair of tiles is BK steps long. How many elements of shared memory does a thread read from **one pair of
# tiles**, divided by its TM results? Return the number for any BK and TM. The checker asks the emulator.


# %% id="ex-04-1"
def reads_a_result(BK, TM):
    ### BEGIN SOLUTION
    of_as = BK * TM
    of_bs = BK
    return (of_as + of_bs) / TM
    ### STUB
    # return None
    ### END SOLUTION


check.reads_per_result(reads_a_result)

# %% [markdown]
# ### Counted
#
# The same kernel with TM from 1 to 32, on the emulator: reads of shared memory per multiply-add. Which limit
# do they go to, however large TM is, and which of the two tiles is to blame?

# %% tags=["thought"]
rng = np.random.default_rng(0)
A, B = rng.standard_normal((64, 64), np.float32), rng.standard_normal((64, 64), np.float32)


def reads(TM):
    tiles = {"BM": 32, "BN": 32, "BK": 32, "TM": TM}
    report = run("thread_tiled_1d", A, B, tiles=tiles, backend="emulator").report
    return report.total("lanes", space="shared", op="load") / 64**3


{TM: reads(TM) for TM in (1, 2, 4, 8, 16, 32)}

# %% [markdown] tags=["thought"]
# They go to 1. The reads of Bs can be made as few as you like; those of As stay, one per multiply-add.

# %% [markdown]
# ## Where the results live
#
# An SM has 65,536 **registers** of 32 bits, and a thread may have 255 of them. They are read in the very
# instruction that computes, at no extra cost. `acc` has been in one all along. Now there are TM results, so
# `acc` becomes an array of the thread's own: `cuda.local.array(TM, float32)`.
#
# But a register has no address. The instruction says *register 17*, and nobody can say "register number i"
# while the program runs. So the compiler must know, for every access, which element is meant.
#
# It writes the loop over `i` out in full (it **unrolls** it): `acc[0] += ...`, `acc[1] += ...`, and each
# element becomes a register. For that let the loop run a constant number of times, like `range(TM)`, where
# TM comes from the factory. Do not count on registers unless every index is known; a short array, or a loop
# that runs once, may get away with it. (`unroll(range(TM))` in the course's kernels asks for it by name, for
# the case that the compiler finds a loop too long.)
#
# ### Exercise 04.2 · The heart
# *core · hard · the heart of this notebook · 25 minutes*
#
# The tiles are fetched for you, with the walk of exercise 03.6. Blocks have BN × (BM / TM) threads, x along
# the columns. Thread `(tx, ty)` has column `tx` of its block's tile, and the TM rows from `ty * TM`. Three
# pieces are missing: the results, their products, their store. Grid: `ceil(n / BN)` × `ceil(m / BM)` blocks.
#
# The checker wants the results in registers, and as few reads as in 04.1. It counts those in your **source**;
# what the compiler merges is for later.


# %% id="ex-04-2"
def make_column(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        ### BEGIN SOLUTION
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        ### STUB
        # # your code: TM results, all zero
        ### END SOLUTION
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            ### BEGIN SOLUTION
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            ### STUB
            # # your code: the products of these tiles
            ### END SOLUTION
            cuda.syncthreads()
        ### BEGIN SOLUTION
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]
        ### STUB
        # # your code: store the results
        ### END SOLUTION

    return column


check.thread_columns(make_column)

# %% [markdown]
# ### What changed since v02
#
# When yours passes, open the course's own, v03. Its fetch loops look different: in one pass the block
# fetches A_ROWS = THREADS / BK whole rows of A's tile, or B_ROWS = THREADS / BN of B's. It is the same
# walk. The first comparison changes these loops alone in v02; from there to v03 it is one idea.

# %% tags=["listing"]
from gemm_course.kernels.variants.block_tiled_in_rows import STAGE as in_rows

see.diff("block_tiled", in_rows)

# %% tags=["listing"]
see.diff(in_rows, "thread_tiled_1d")

# %% [markdown] tags=["listing"]
# - A block still has a tile of BM × BN elements, but only **BM · BN / TM threads**. Tiles can be larger
#   than the 1,024 threads that a block may have.
# - `acc` is an array: one place for each result.
# - One thread has TM results, so one element of Bs serves all of them. The compiler would find `b` itself;
#   we write it out so that the count shows it.
# - `unroll(range(BK))` writes all steps out. Below you see what that is worth.
# - Thread `tid` begins in row `tid // BN * TM`. The rows below its TM rows belong to thread `tid + BN`.

# %%
C = run("thread_tiled_1d", A, B).C
np.abs(C - A @ B).max()

# %% [markdown]
# ## Count it three ways
#
# The tiles are the stage's own:

# %%
t = LADDER["thread_tiled_1d"].tiles
t

# %% [markdown]
# Write the number of requests, for all warps together: loads from global memory, and reads of shared
# memory. (Counts are made at 1024³, times at 4096³: the 64 blocks that 1024³ makes of v03 are too few for 132
# SMs, which does not affect counts.) Use `t["BM"]`, `t["BN"]` and `t["TM"]`.


# %% id="formula"
def global_requests(m, n, k):
    ### BEGIN SOLUTION
    return (m * n * k // t["BN"] + m * n * k // t["BM"]) // 32
    ### STUB
    # return None
    ### END SOLUTION


def shared_requests(m, n, k):
    ### BEGIN SOLUTION
    return (m * n * k + m * n * k // t["TM"]) // 32
    ### STUB
    # return None
    ### END SOLUTION


# %%
size = (1024, 1024, 1024)
counted = {"global_load_requests": global_requests, "shared_load_requests": shared_requests}
see.counts("thread_tiled_1d", size, **counted)

# %%
see.counts("thread_tiled_1d", size, shared_load_wavefronts=shared_requests)

# %% [markdown]
# The hardware counts far fewer reads than v03's source has. `unroll(range(BK))` writes the loop over `p`
# out. Then four reads of a row of As stand side by side, and the compiler makes one of them:
#
# | As, four steps of a row | loads | wavefronts |
# |---|---|---|
# | in the source: `As[y0 + i, p]` to `As[y0 + i, p + 3]` | 4 of 32 bits | 4 |
# | compiled: one `LDS.128` | 1 of 128 bits | **2** |
#
# Each is a broadcast. One of 128 bits takes two wavefronts; that is measured, NVIDIA does not document it
# ([05](05_thread_tiles_2d.ipynb) has the table). So four steps cost 2 TM + 4 wavefronts instead of 4 TM + 4:
#
# $$1/2 + 1/TM \text{ wavefronts per multiply-add,}$$
#
# where the source has $1 + 1/TM$. (In the machine code, 256 multiply-adds have 64 `LDS.128` and 8 `LDS`.)
#
# And yours? With plain `range(BK)` the compiler writes out two steps at a time and merges nothing. Take the
# `#` away, once yours passes. The tiles are the same, but of yours the loop over `p` is drawn, of v03 the
# one over the tiles, with fetch and barriers. So look at one row, *shared load*. (Most of the rest is integer
# arithmetic, for indices.)

# %%
# from gemm_course import compiled
# from gemm_course.intrinsics import unroll
# tiles = {"BM": 64, "BN": 64, "BK": 8, "TM": 8}
# mine = compiled(make_column(**tiles), 64, 64, 64, float32(1), A, B, float32(0), C)
# see.compare_code(mine, ("thread_tiled_1d", tiles))

# %% [markdown]
# Then write `unroll(range(BK))`, and look again: 1,125 reads per 1,000 multiply-adds become 375, as in v03.
# `gemm_course.profiled` tells how fast it is, on a GPU.
#
# The tiles also decide how well the loads of A coalesce.
#
# ### Exercise 04.3 · How deep a tile?
# *core · easy · 6 minutes*
#
# When a block of v03 fetches its tile of A, lane after lane takes element after element of the tile, row
# by row, BK in each. How many **sectors** does one request of a full warp move? BK is a power of two up
# to 32; the rows of A begin at sectors, and so do the tiles' rows where BK is at least 8.


# %% id="ex-04-3"
def sectors(BK):
    ### BEGIN SOLUTION
    return 32 // BK * max(1, BK // 8)
    ### STUB
    # return None
    ### END SOLUTION


check.tile_sectors(sectors)

# %% [markdown]
# ## What is it worth?

# %%
see.predict("04.gain")

# %% tags=["answer"]
see.tflops("naive_coalesced", "block_tiled", "thread_tiled_1d")

# %% tags=["answer"]
see.roofline("naive_coalesced", "block_tiled", "thread_tiled_1d")

# %% [markdown] tags=["answer"]
# The ring is the stage before; the dotted line leads to the one you chose. "5.7 times the FLOP per byte": the
# tiles' loads alone give 6, but C's stores count too.
#
# v03 reaches 69 % of its lowest roof, the wavefronts of shared memory. Is shared memory still the limit then?

# %% tags=["answer"]
see.limits("block_tiled", "thread_tiled_1d")

# %% [markdown] tags=["answer"]
# **Still L1 and shared memory**, busy in 86 % of the clocks. Wavefronts of shared memory take 72 % (69 % of
# the whole launch: for 3 % of it SMs have no work). The other 14 go to loads of A and B, stores of C, and
# registers that do not fit (spills, below).
#
# Issue slots are taken in 60 % of the clocks, and 55 % of the instructions are multiply-adds: 33 % of the
# clocks. (Their units are busy in 37 %, because they also multiply the integers of addresses, `IMAD`.)
#
# Almost all wavefronts that are left are reads of As. No TM gets rid of them: ½ wavefront per multiply-add,
# one wavefront per clock. That allows two multiply-adds per clock, of four.

# %% [markdown]
# ## When an array leaves the registers
#
# An array whose elements the compiler cannot tell apart goes to **local memory**. It is called that because
# every thread has its own, but it lies in device memory. The caches hold some of it; what they do not hold
# is hundreds of clocks away. Here is a small kernel of another kind, a vector times a matrix with R results
# per thread. Which line keeps the compiler from unrolling?

# %%
from gemm_course.checks.kits import make_strip

see.source(make_strip(16))

# %% tags=["thought"]
from gemm_course import launch

given = 500, 8, np.ones(8, np.float32), np.ones((8, 500), np.float32), np.zeros(500, np.float32)
one_block_of_a_warp = make_strip(16)[1, 32]  # [blocks, threads per block]
print(launch(one_block_of_a_warp, *given, backend="emulator").report.advice[0])

# %% [markdown]
# Compiled for an H200, its code has 12 local-memory load instructions and 11 stores; loops run some of them
# again and again.
#
# ### Exercise 04.4 · Back into registers
# *stretch · medium · 14 minutes*
#
# The kernel computes $y_j = \sum_p x_p A_{pj}$, with R columns per thread, 32 apart, so that the warp's loads
# are coalesced. It is right. But `acc` lies in local memory. Fix it: same results, same launch (32 threads
# per block, `ceil(n / (32 R))` blocks), one pass along `k`, all R results in registers.


# %% id="ex-04-4"
def make_strip(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        ### BEGIN SOLUTION
        ### STUB
        # count = min(R, (n - first + 31) // 32)  # this thread's columns: first, first + 32, ... below n
        ### END SOLUTION
        for i in range(R):
            acc[i] = 0
        ### BEGIN SOLUTION
        for p in range(k):
            xp = x[p]
            for i in range(R):
                if first + 32 * i < n:
                    acc[i] += xp * A[p, first + 32 * i]
        for i in range(R):
            if first + 32 * i < n:
                y[first + 32 * i] = acc[i]
        ### STUB
        # for p in range(k):
        #     xp = x[p]
        #     for i in range(count):
        #         acc[i] += xp * A[p, first + 32 * i]
        # for i in range(count):
        #     y[first + 32 * i] = acc[i]
        ### END SOLUTION

    return strip


check.in_registers(make_strip)

# %% [markdown]
# The other way into local memory is a **spill**: there are too many values at a time. What does not fit
# into a thread's registers is stored in local memory, and loaded again.
#
# v03 has a **cap**, so that more blocks fit on an SM: 64 registers per thread, 32 where TM is at most 8.
# With it, v03 spills a little: 24 bytes per thread, 2.6 % of its instructions.
#
# Your 04.2 has no cap. With tiles of 64 × 64 × 8 and TM = 8, this is what it takes:
#
# | | registers |
# |---|---|
# | the solution of 04.2, with 64-bit indices | 122 |
# | `u32(...)` around `threadIdx` and `blockIdx`, as in v03 | 68 |
#
# `@cuda.jit(max_registers=64)` gives yours a cap.
#
# The course's kernels were timed on an H200, each with many choices of tiles. That record is called the
# **sweep**. These are the tiles with which v03 spills most:

# %%
from gemm_course import records

sweep = records.sweep().query("stage == 'thread_tiled_1d' and local_bytes > 0")
sweep.nlargest(5, "local_bytes").set_index("tiles")[["registers", "local_bytes", "tflops"]]

# %% [markdown]
# All five have BK = 64. Why? v03 writes all BK steps out, and the compiler takes up later steps before
# earlier ones are done. Each value on its way needs a register. With BM = 32, BN = 64 and TM = 32:
#
# | BK | 16 | 32 | 64 | 64, but 16 steps written out at a time |
# |---|---|---|---|---|
# | bytes spilled | 656 | 1,024 | 2,512 | 216 |
#
# With 2,512 bytes, 2.55 billion of the 8.1 billion instructions that the warps execute read or write local
# memory. That is far more than L1 can hold: warps wait 73 % of their time for loads.
#
# ## How many warps, and what for?
#
# Threads with more results need more registers, and then fewer of them fit on an SM. How many stay? That
# is **occupancy**, and it can be worked out: blocks fit until threads, registers or shared memory run out.
#
# Here is an SM of an H200, filled with blocks of v03. Take blocks out, put them in one by one, and see which
# tank is full first. Then try a smaller TM.

# %%
see.occupancy("thread_tiled_1d")

# %% [markdown]
# 512 threads × 64 registers = 32,768, and an SM has just twice that: 2 blocks, 32 of 64 possible warps.
#
# What are warps for? A load does not stop a warp; the first instruction that needs its value does. In v03 it
# follows at once: the value goes into the tile, then comes the barrier. Now the whole block waits, and only
# the warps of *other* blocks can compute.
#
# Fewer registers let in more blocks. The compiler can be told how many must fit, and then makes do with the
# registers this leaves (`launch_bounds` in `cuda.jit`; v03's cap is one). But then it makes other code too,
# so such a comparison changes two things. To change one, take the *same* code, and let each block reserve
# some shared memory that it never uses, SPARE in KB: fewer blocks fit. Now with the document's smaller tiles:

# %%
see.predict("04.blocks")

# %% tags=["answer"]
kept_apart = [
    ("thread_tiled_1d_fewer_blocks", {"BM": 64, "BN": 64, "TM": 8, "SPARE": spare})
    for spare in (52, 108, 200)
]
see.waits(*kept_apart, meanings=False)

# %% [markdown] tags=["answer"]
# With 4, 2 and 1 blocks the same code reaches 19.3, 15.2 and 8.5 TFLOPS. The wait that grows most is that for
# loads from global memory: 13, 22 and 31 % of a warp's time. DRAM is busy in at most 5 % of the clocks, so it
# is not a question of bandwidth: with one block nobody computes while its warps wait for their loads.
# ([Dispatch](glossary.md#dispatch) comes in 05. A fixed delay: the instruction before takes some clocks.)
#
# Below, a scheduler fills its time with the blocks that fit. It is computed, for the same tiles, and supposes
# that a load takes 600 clocks. The slider opens at 96 registers: so many the compiler takes for these tiles
# without a cap, because it reads far ahead. **With which register count does the gap close?**

# %% tags=["answer"]
see.strips("thread_tiled_1d")

# %% [markdown] tags=["thought"]
# With 40: three blocks fill each other's waits. With 64, two blocks come to 92 %. That is why v03 has a cap.
#
# Measured, in per cent of cuBLAS. (The picture has per cent of the clocks, and leaves shared memory out: the
# two go the same way, no more.)
#
# | registers per thread | 96 | 64 | 40 | 32 |
# |---|---|---|---|---|
# | blocks per SM | 1 | 2 | 3 | 4 |
# | share of cuBLAS | 17 % | 31 % | 33 % | 38 % |
#
# A cap can be too low: with TM = 16 and BK = 16, 32 registers make the compiler spill 272 bytes per thread,
# and the kernel falls to 8 % of cuBLAS.
#
# Why then do 32 of 64 warps win, 21.2 TFLOPS to 19.3? TM = 32 needs ½ + 1/32 wavefronts per multiply-add,
# TM = 8 needs ½ + 1/8, and L1 is the limit of both. More warps only fill clocks in which nobody issues. And
# they are not the only way to cover a wait: several independent loads per thread do it as well, as in
# notebook 05.

# %% [markdown]
# ## Tune it
#
# Now the sliders. They open with the fastest tiles of the sweep. Hold the block's tile, and move TM: with
# which TM can it not run, and why? Then change one size at a time and watch occupancy, wavefronts (the
# source's; compiled, those of As are half) and TFLOPS. Where a neighbour is several times slower, look for
# spills.

# %%
see.tiles("thread_tiled_1d")

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("04")

# %% [markdown]
# ## Recap
#
# - What a thread reads of Bs serves all its TM results: $BK + BK/TM$ shared reads per result instead of
#   $2 \cdot BK$, or $1 + 1/TM$ per multiply-add instead of 2.
# - Do not count on registers unless every index is known when the kernel is compiled. An array that leaves
#   them, or what is too much for them, goes to local memory, which is part of device memory.
# - Registers, threads and shared memory decide how many warps an SM holds. While one block waits for its
#   tiles, others compute.
# - One read of As per multiply-add is left, however tall the column. L1 and shared memory are still the
#   limit.
#
# **Next:** the column becomes a rectangle. What is read from As serves several results as well.
