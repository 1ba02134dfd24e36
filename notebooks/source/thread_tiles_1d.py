# %% [markdown]
# # [[thread_tiles_1d.ipynb]] · A column of results in every thread
#
# v02 asks shared memory for two numbers per multiply-add, and shared memory cannot keep up. Here one thread
# computes a **column** of results, so that what it has read once serves them all. They live in the fastest
# memory there is, the thread's own registers.
#
# **After this notebook you can**
# - say what a result costs in shared reads before the kernel runs;
# - keep an array in registers, and find the line that throws it out;
# - work out how many warps an SM holds, and what they are good for.
#
# *Time: about 75 minutes to read, 50 for the exercises. Comes from document 004, kernel v03.*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32

from gemm_course import LADDER, check, run
from gemm_course import widgets as see

# %% [markdown]
# ## In one picture
#
# One thread, several elements of C. Compare the two bars: what it reads in one step along `k`, and how many
# products it adds.

# %%
see.multiply("thread_tiled_1d")

# %% [markdown]
# ## What limits it now?
#
# L1 and shared memory, busy in 91 % of the clocks. An SM can do four warp-wide multiply-adds per clock, but
# serves one wavefront of shared memory in that clock, and v02's source asks for two reads each time.
#
# ## One column of results
#
# Two threads, one below the other, compute C[0, 5] and C[1, 5]. Both read the same column of Bs. Let **one**
# thread do both, and the column is read once.
#
# So a thread gets TM results, one below the other. In every step `p` along k it reads
#
# - **one** element of Bs, which all TM results need;
# - **TM** elements of As, one for each result.
#
# Two choices of tiles have names in this notebook. Both have blocks of 512 threads:
#
# | | BM × BN × BK | TM | |
# |---|---|---|---|
# | **large** | 128 × 128 × 8 | 32 | v03's own, the fastest that was measured |
# | **small** | 64 × 64 × 8 | 8 | document 004's |
#
# Both are too large to draw. The picture shows a block of 16 × 32 results. **Your goal: at most 1.2 reads per
# multiply-add, with as small a TM as you can** (a power of two). With that TM, how many wavefronts do a
# *warp's* reads take in one step, as they stand in the source?

# %%
see.registers("thread_tiled_1d")

# %% [markdown] tags=["thought"]
# TM = 8: 9 reads, 8 multiply-adds. And 9 wavefronts: in each of the 8 reads of As all lanes read the same
# element, a broadcast, which is one **wavefront**. Of Bs they read 32 neighbours: one wavefront as well. (The
# block in the first picture is half as wide as a warp, so there a warp reads two elements of As.)

# %% [markdown]
# ### Exercise [[reads_per_result]] · Reads per result
# *core · easy · 5 minutes*
#
# A pair of tiles is BK steps long. How many elements of shared memory does a thread read from **one pair of
# tiles**, divided by its TM results? Return the number for any BK and TM. The checker asks the emulator.


# %% id="ex-reads_per_result"
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
# From TM = 1 to 8 the reads per multiply-add fall from 2 to 1.125. What does going from 8 to 32
# save: another half, a tenth, or nothing? Bet, then let the emulator count.

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((64, 64), np.float32), rng.standard_normal((64, 64), np.float32)


def reads(TM):
    tiles = {"BM": 32, "BN": 32, "BK": 32, "TM": TM}
    report = run("thread_tiled_1d", A, B, tiles=tiles, backend="emulator").report
    elements_read = report.total("lanes", space="shared", op="load")  # each active lane reads one
    return elements_read / 64**3


sizes = 1, 2, 4, 8, 16, 32
see.fold(
    pd.DataFrame({"TM": sizes, "reads per multiply-add": [reads(TM) for TM in sizes]}),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# A tenth, about: 1.03. Let TM grow without end, and they go to 1. The reads of Bs can be made as few as you
# like; those of As stay, one per multiply-add.

# %% [markdown]
# ## Where the results live
#
# An SM has 65,536 **registers** of 32 bits, and a thread may have 255 of them. Reading one takes no wait of
# its own. `acc` has been in one all along. Now it becomes an array of the thread's own: `cuda.local.array(TM,
# float32)`.
#
# But a register has no address. The instruction says *register 17*, and nobody can say "register number i"
# while the program runs. So the compiler **unrolls** the loop over `i`: it writes `acc[0] += ...`, `acc[1] +=
# ...` in full, and each element is a register. It does so for a short loop with a constant number of
# iterations, like `range(TM)`, where TM comes from the factory; a loop of 128 it keeps. The course's kernels
# ask for it by name, `unroll(range(TM))`, and then it always does.
#
# ### Exercise [[thread_columns]] · The heart
# *core · hard · the heart of this notebook · 25 minutes*
#
# The tiles are fetched for you, with the walk of exercise [[tile_walk]]. Blocks have BN × (BM / TM) threads,
# x along the columns. Thread `(tx, ty)` has column `tx` of its block's tile, and the TM rows from `ty * TM`.
# Three pieces are missing: the results, their products, their store. Grid: `ceil(n / BN)` × `ceil(m / BM)`
# blocks.
#
# The checker wants the results in registers, and as few reads as in [[reads_per_result]]. It counts those in
# your **source**; what the compiler merges is for later.


# %% id="ex-thread_columns"
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
# When yours passes, open the course's own. The first comparison changes only the walk through a tile that is
# fetched. v02's would still be right; v03 fetches whole rows at a time, `A_ROWS` or `B_ROWS` of them, so that
# a thread's column `c` stays the same. From there to v03 it is one idea.

# %% tags=["listing"]
from gemm_course.kernels.variants.block_tiled_in_rows import STAGE as in_rows

see.fold(see.diff("block_tiled", in_rows), first="Write the exercise first, then open this.")

# %% tags=["listing"]
see.fold(see.diff(in_rows, "thread_tiled_1d"), first="Write the exercise first, then open this.")

# %% [markdown] tags=["listing"]
# - A block has only **BM · BN / TM threads** for its BM × BN elements. So tiles can be larger than the 1,024
#   threads that a block may have.
# - One element of Bs serves all TM results. The compiler would find `b` itself; we write it out so that the
#   count shows it.
# - `unroll(range(BK))` writes all steps out. You will see what that is worth.

# %%
C = run("thread_tiled_1d", A, B).C
np.abs(C - A @ B).max()

# %% [markdown]
# ## Count it three ways
#
# The tiles are the large ones:

# %%
t = LADDER["thread_tiled_1d"].tiles
t

# %% [markdown]
# Write the number of requests, for all warps together: loads from global memory, and reads of shared memory.
# A request is a whole warp's. Use `t["BM"]`, `t["BN"]` and `t["TM"]`. (Counts are made at 1024³, times at
# 4096³.)


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

# %% [markdown]
# The hardware counts far fewer reads of shared memory than your formula. As many fewer wavefronts? Hold the
# same formula against them, one wavefront for each read in the source:

# %%
see.counts("thread_tiled_1d", size, shared_load_wavefronts=shared_requests)

# %% [markdown] tags=["thought"]
# Fewer, but not by as much. `unroll(range(BK))` writes the loop over `p` out, four reads of a row of As stand
# side by side, and the compiler makes one of them:
#
# | As, four steps of a row | loads | wavefronts |
# |---|---|---|
# | in the source: `As[y0 + i, p]` to `As[y0 + i, p + 3]` | 4 of 32 bits | 4 |
# | compiled: one `LDS.128` | 1 of 128 bits | **2** (measured) |
#
# So a multiply-add costs
#
# $$1/2 + 1/TM \text{ wavefronts, where the source has } 1 + 1/TM.$$

# %% [markdown]
# **And your kernel?** With plain `range(BK)` the compiler merges nothing. Once yours passes, take the `#`
# away: `compare_code` counts the machine instructions of the main loop, of your kernel and of v03, both with
# the small tiles. Look at the row *shared load*. Then write `unroll(range(BK))` in yours, and look again.
# (*Registers* will count later.)

# %%
# from gemm_course import compiled
# from lockstep.intrinsics import unroll
# tiles = {"BM": 64, "BN": 64, "BK": 8, "TM": 8}
# mine = compiled(make_column(**tiles), 64, 64, 64, float32(1), A, B, float32(0), C)
# see.compare_code(mine, ("thread_tiled_1d", tiles))

# %% [markdown] tags=["thought"]
# 1,125 reads per 1,000 multiply-adds become 375, as in v03: one word cuts the reads to a third.
#
# And the total has grown? Totals of these two cannot be compared. At first the main loop was the one over
# `p`. Once that is written out, it is the loop over `k0`, and all the fetching counts as well.

# %% [markdown]
# ### Exercise [[tile_sectors]] · How deep a tile?
# *core · easy · 6 minutes*
#
# BK is also how wide a row of As is. What does a narrow row cost in *global* memory? When a block of v03
# fetches its tile of A, lane after lane takes element after element of the tile, row by row, BK in each. How
# many **sectors** does one request of a full warp move? BK is a power of two up to 32; the rows of A begin
# at sectors, and so do the tiles' rows where BK is at least 8.


# %% id="ex-tile_sectors"
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
see.predict("thread_tiles_1d.gain")

# %%
see.fold(lambda: see.tflops("naive_coalesced", "block_tiled", "thread_tiled_1d"))

# %% [markdown]
# ## Which profile is which?
#
# One is v02's, one is v03's with the large tiles, one is v03's with badly chosen tiles. Busy, in per
# cent of the clocks:
#
# | | X | Y | Z |
# |---|---|---|---|
# | L1 and shared memory | 86 | 49 | 91 |
# | multiply-add units | 37 | 6 | 20 |
# | L2 | 28 | 93 | 31 |
# | DRAM | 2 | 54 | 23 |
#
# Name them. Then: is shared memory still v03's limit, and what is its ceiling in TFLOPS, worked out as in
# notebook [[shared_memory_tiles.ipynb]]?

# %%
see.fold(lambda: see.limits("block_tiled", "thread_tiled_1d"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# Z is v02: you know its 91 % from the top. X is v03. Y keeps L2 busy in 93 % of the clocks, though tiles are
# there to spare it that. What does it fetch? You will make such a kernel yourself, under *Break it*.
#
# **Still L1 and shared memory**, busy in 86 % of the clocks; issue slots, the next, in 60 %. Almost all
# wavefronts left are reads of As, ½ per multiply-add, and no TM gets rid of them. So the next step must make
# reads of As serve several results, too.
#
# The ceiling: 67 / 4 over ½ + 1/32 wavefronts, 31.5 TFLOPS. v03 reaches 21.2, 67 % of it. What else keeps L1
# busy? Counted, with one wavefront per request of global and local memory, in the clocks in which SMs have
# work (97 % of the launch, so the 67 % are 70 here):
#
# | reads of the tiles | stores of the tiles | global loads | spilled registers | not explained |
# |---|---|---|---|---|
# | 70 % | 2 % | 2 % | 6 % | 6 % |
#
# What the last 6 % are is not known. A request for A touches four rows, and may take more than one wavefront.
# *Break it* explains the spilled registers.
#
# (Multiply-adds alone are 33 % of these clocks, where the profile has 37: their units also run integer
# arithmetic.)

# %% [markdown]
# ## When an array leaves the registers
#
# An array whose elements the compiler cannot tell apart goes to **local memory**. Every thread has its own,
# hence the name, but it lies in device memory, the DRAM that holds global memory as well: hundreds of clocks
# away unless a cache holds it.
#
# Here is another kernel, a vector times a matrix with R results per thread. It is right, and slow. **Which
# line** keeps the compiler from unrolling? Three have to do with `count`. Decide before the emulator does.
# (Its *advice* is what it finds about speed, where nothing is wrong.)

# %%
from gemm_course.checks.kits import make_strip

see.source(make_strip(16))

# %%
# Say your line, then take the # away:
# from gemm_course import launch
# given = 500, 8, np.ones(8, np.float32), np.ones((8, 500), np.float32), np.zeros(500, np.float32)
# one_block_of_a_warp = make_strip(16)[1, 32]  # [blocks, threads per block]
# print(launch(one_block_of_a_warp, *given, backend="emulator").report.advice[0])

# %% [markdown] tags=["thought"]
# Line 23: its loop is the one around line 24. The loop of line 25 runs as often, but only reads `acc`; with
# line 23 alone changed, `acc` is in registers already (compiled).

# %% [markdown]
# ### Exercise [[in_registers]] · Back into registers
# *stretch · medium · 14 minutes*
#
# The kernel computes $y_j = \sum_p x_p A_{pj}$, with R columns per thread, 32 apart, so that the warp's loads
# are coalesced. It is right. But `acc` lies in local memory. Fix it: same results, same launch (32 threads
# per block, `ceil(n / (32 R))` blocks), one pass along `k`, all R results in registers.


# %% id="ex-in_registers"
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
# ## Break it
#
# The course's kernels were timed on an H200 with many choices of tiles: the **sweep**. Of 240 choices for v03
# the large tiles are the fastest. **Move one slider by one notch, and ruin it.** How slow can you get? Bet
# first which of the four sizes hurts most. *Measured around* shows all notches at once. (*Sectors per load
# request* is the mean of A and B: 6 with BK = 4, from 8 and 4.)

# %%
see.tiles("thread_tiled_1d")

# %% [markdown] tags=["thought"]
# BK, from 8 to 16: 21.2 TFLOPS become 3.7. The reads, the warps and the registers are the same. What the
# picture leaves out stands in the sweep, *local_bytes*:

# %%
from gemm_course import records

sweep = records.sweep().query("stage == 'thread_tiled_1d'").set_index("tiles")
large = [f"BM=128 BN=128 BK={BK} TM=32" for BK in (4, 8, 16, 32)]
see.fold(sweep.loc[large, ["registers", "local_bytes", "tflops"]], first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# That is a **spill**: more values at a time than registers. What does not fit is stored in local memory, and
# loaded again. A few bytes cost little: the 24 of the fastest tiles are the 6 % of L1's clocks in the table
# above. 672 cost most of the speed.
#
# v03 has a **cap** of 64 registers per thread (32 where TM is at most 8), so that more blocks fit on an SM.
# It writes all BK steps out, and the compiler begins later steps before earlier ones are done. Each value on
# its way needs a register. The proof: write 8 of the 16 steps out at a time, and 672 bytes become 24 again
# (compiled, not timed).
#
# Profile Y was such a kernel, with BM = 32, BN = 64, BK = 64, TM = 32. Of its instructions 32 % read or write
# local memory.

# %% [markdown]
# ## How many warps, and what for?
#
# More results need more registers, and then fewer threads fit on an SM. How many stay is the **occupancy**:
# blocks fit until threads, registers or shared memory run out.
#
# Work it out before you look. An SM has 65,536 registers and 64 warp slots. With the **small** tiles a block
# of v03 has 512 threads, with 32 registers each. How many blocks fit, and what is full first? And with one
# register more, 33?

# %%
see.fold(
    lambda: see.occupancy("thread_tiled_1d", tiles={"BM": 64, "BN": 64, "BK": 8, "TM": 8}),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# 4 blocks, and two tanks are full at once. With 33 registers 3 blocks: one register more, a quarter fewer
# warps. (A warp takes registers in multiples of 256, so 33 per thread cost as much as 40.)
#
# Now set the sliders to the **large** tiles. They take 64 registers: 2 blocks, 32 of 64 warps. (*Blocks left
# out* is for later: an SM that is not full.)

# %% [markdown]
# And your own kernel? It has no cap. With the small tiles the solution of [[thread_columns]] takes 122
# registers. **How many blocks fit?**

# %% [markdown] tags=["thought"]
# 122 × 512 is 62,464, of 65,536: **one**. v03 has its cap, and it computes indices in 32 bits, where yours
# have 64 and take two registers each. With `u32(...)` around `threadIdx` and `blockIdx`, as in v03, the
# solution takes 68: still one block. Only the cap lets four in.

# %%
# Give yours the cap, @cuda.jit(max_registers=32), run it and the cell of compare_code, and take the # away:
# see.occupancy(mine, block=512)

# %% [markdown] tags=["thought"]
# Four blocks. But the solution now spills, 152 bytes of local memory, with `u32` 40 (compiled). v03 needs
# none.

# %% [markdown]
# One block or four, what is it worth? What are warps *for*?
#
# Each tile of v03 begins with loads from global memory. A thread stores what it has loaded into the tile, and
# goes to the barrier. Until the last value has come the whole block waits, and only the warps of *other*
# blocks can compute.
#
# To measure that, take the *same* code, and let each block reserve some shared memory that it never uses:
# fewer blocks fit, and nothing else has changed.

# %%
see.predict("thread_tiles_1d.blocks")

# %% [markdown] tags=["answer"]
# | blocks per SM | 4 | 2 | 1 |
# |---|---|---|---|
# | TFLOPS | 19.3 | 15.2 | 8.5 |
# | clocks in which an instruction is issued, % | 59 | 46 | 26 |
# | a warp waits for loads from global memory, % of its time | 13 | 22 | 31 |
#
# The TFLOPS follow the clocks in which something is issued. A warp waits longer, but that is not all: with
# one block nobody else computes while it waits. (DRAM is busy in at most 5 % of the clocks: bandwidth is not
# short.)

# %% [markdown]
# Now the other way round: fewer registers per thread let more blocks in. A **model** of the small tiles:
#
# - a tile takes 600 clocks to come, as supposed here, and shared memory takes none;
# - a scheduler has 4 warps of a block, with 127 instructions each per tile, as compiled: so a block then
#   computes for 508 clocks;
# - while one block waits, others compute.
#
# Of 96, 64, 40 and 32 registers per thread, **which is the first that leaves no clock idle in the model?**
# Work it out, then move the slider.

# %%
see.fold(lambda: see.strips("thread_tiled_1d"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# 40. In the 600 + 508 clocks of one block there is room for 1,108 / 508 = 2.2 that compute. So it takes three
# blocks, and with 40 registers three fit. That is what v03's cap is for.
#
# Then why is the cap 32? The model takes shared memory for free. In it one block is busy 46 % of the time,
# measured are 26 %; even four blocks issued in 59 % of the clocks only. Measured: 33 % of cuBLAS with 40
# registers, **38 %** with 32 (the 19.3 TFLOPS of above).

# %% [markdown]
# **The last riddle.** The small tiles fill the SM with 64 warps, the large ones leave it at 32. And yet the
# large ones win, 21.2 TFLOPS to 19.3. Why?

# %% [markdown] tags=["thought"]
# TM = 32 needs ½ + 1/32 wavefronts per multiply-add, TM = 8 needs ½ + 1/8, 1.18 times as many, and L1 is the
# limit of both: busy in 86 and 87 % of the clocks. (The speeds differ by 1.10 only: other things take clocks
# as well.) More warps only fill clocks in which nobody issues. Several independent loads per thread do that
# as well: notebook [[thread_tiles_2d.ipynb]].

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("thread_tiles_1d")

# %% [markdown]
# ## For the curious
#
# <details><summary>How low can a cap go?</summary>
#
# In place of `max_registers`, `launch_bounds` says how many blocks must fit, and the compiler finds the cap.
# Too low a cap: with TM = 16 and BK = 16, 32 registers spill 272 bytes, and 8 % of cuBLAS is left.
#
# The whole profile of 4, 2 and 1 blocks; SPARE is what a block reserves, in KB:
#
# ```python
# tiles = {"BM": 64, "BN": 64, "TM": 8}
# see.waits(*[("thread_tiled_1d_fewer_blocks", tiles | {"SPARE": spare}) for spare in (52, 108, 200)])
# ```
#
# </details>
#
# ## Recap
#
# - You counted $1 + 1/TM$ shared reads per multiply-add instead of 2, and fewer as compiled.
# - You kept TM results in registers, with indices that are known when the kernel is compiled.
# - You found the line that sends an array to local memory.
# - You broke the fastest tiles with one notch of one slider: registers spilled.
# - You filled an SM: while one block waits, others compute. More warps do not always win.
# - You named the limit: still L1 and shared memory, one read of As per multiply-add.
#
# **Next:** the column becomes a rectangle. What is read from As serves several results as well.

# %%
see.my_ladder()
