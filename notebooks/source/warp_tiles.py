# %% [markdown]
# # [[warp_tiles.ipynb]] · Warp tiles
#
# After this notebook you can say which lane computes which element, and count what a warp's reads cost before
# you run anything. You can write a kernel whose reads waste nothing. And you will have put a good story on
# trial: "warp tiles are fast because a warp then reads few different numbers".
#
# *Time: about 60 minutes to read, 87 for the exercises, six in all: [[owner_map]], [[legal_tiles]],
# [[warp_wavefronts]], [[runs_of_four]], [[stencil]], [[stencil_limit]]. Comes from document 003 and document
# 004, kernel v06. TFLOPS of one kernel differ by up to 1 % from run to run.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, run
from gemm_course import widgets as see
from gemm_course.kernels import LADDER
from lockstep.intrinsics import u32

# %% [markdown]
# ## In one picture
#
# Between the block and the thread comes the warp: 32 threads that read shared memory *together*. Here it gets
# a tile of its own. Look at the warp, then at one of its threads: its results lie in pieces. Why not in one?
# You will choose how many.

# %%
see.multiply("warp_tiled")

# %% [markdown]
# ## What limits it now?
#
# With 16 × 4 results, as in notebook [[vectorized_access.ipynb]], a thread makes five reads of four floats in
# each [k step](glossary.md#k-step). With 8 × 8 it makes four: two of As, two of Bs. No shape with 64 results
# needs fewer. Yet 8 × 8 was slower. Do you remember what limits it?

# %%
square = ("vectorized", {"BK": 16, "TM": 8, "TN": 8, "PAD": 0})
see.fold(lambda: see.limits(square), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# Shared memory. The five reads of 16 × 4 take a warp 12 wavefronts, the four of 8 × 8 take **20**: words of
# different lanes meet in one bank.

# %% [markdown]
# Can you have both, the fewest reads *and* the fewest wavefronts? You can change where the lanes of a warp
# stand, and which elements each lane has. Document 003 changes both, so its kernels come first. The 8 × 8
# results are back at "Which words meet in one bank?".
#
# ## From the block down to one thread
#
# Document 003 cuts the tile of a block three times:
#
# 1. the block's BM × BN into **warp tiles** of WM × WN, one for each warp;
# 2. a warp tile into WMITER × WNITER **sub-tiles** of WSUBM × WSUBN. The 32 lanes cover one at a time, and
#    then come back for the next;
# 3. a sub-tile into 32 **thread tiles** of TM × TN, one for each lane.
#
# Each time the pieces are numbered row by row: 0 and 1 lie side by side.
#
# Here is a smaller block, 64 × 64 with four warps, drawn from what the emulator saw the threads store.

# %%
see.owners()

# %% [markdown]
# **Hide and seek (2 minutes).** With "003: TN 8, WNITER 1", lane 5 stands in row 1, column 1 of the lanes.
# In the other two 003 kernels it stands in row 0 and in row 2. Which is which? Say it, then *look at a*
# sub-tile, *colour by* lane.
#
# <details><summary>Where lane 5 is</summary>
#
# With TN 4 a thread tile is half as wide, so 8 lanes fit side by side: lanes 0 to 7 are row 0. With WNITER 2
# the sub-tile is half as wide, and only 2 fit: lanes 4 and 5 are row 2.
#
# </details>
#
# ### Exercise [[owner_map]] · The owner map
# *core · medium · important · 20 minutes*
#
# Which elements of the block's tile does thread `tid` own? TM is 1, as in document 003: a thread tile is one
# row of TN elements. WNITER says how many sub-tiles lie side by side. How many lie one below the other,
# WMITER, you work out: together they cover the warp tile.
#
# Return a list of `(row, column)`: the sub-tiles from the top down, in each row of them from left to right,
# and in each sub-tile the thread's TN elements. All divisions come out even here. The picture above lets you
# check a thread by hand: its tiles are BN = 64, WM = WN = 32.


# %% id="ex-owner_map"
def elements(tid, BN, WM, WN, TN, WNITER):
    ### BEGIN SOLUTION
    WMITER = WM * WN // (32 * TN * WNITER)
    WSUBM, WSUBN = WM // WMITER, WN // WNITER
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    places = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in places for e in range(TN)]
    ### STUB
    # return None  # [(row, column), ...]
    ### END SOLUTION


check.owner_map(elements)

# %% [markdown] tags=["stub"]
# Right or wrong, you can look at your own map: `see.owners(elements)`. What nobody owns, or several do, is
# hatched. One owner each may still be the wrong one.

# %% tags=["solution"] id="own-map"
see.owners(elements)

# %% [markdown]
# <details><summary>The formulas of document 003: open this when you have passed.</summary>
#
# `tid` is `threadIdx.x`, and all divisions are of whole numbers.
#
# | | formula |
# |---|---|
# | where the block's tile of C begins | row `blockIdx.y * BM`, column `blockIdx.x * BN` |
# | sub-tiles down | `WMITER = WM * WN // (32 * TM * TN * WNITER)` |
# | the size of a sub-tile | `WSUBM = WM // WMITER`, `WSUBN = WN // WNITER` |
# | which warp tile | `warp = tid // 32`, row `warp // (BN // WN)`, column `warp % (BN // WN)` |
# | which lane | `lane = tid % 32`, row `lane // (WSUBN // TN)`, column `lane % (WSUBN // TN)` |
# | row of the tile, sub-tile i | `warp_row * WM + i * WSUBM + lane_row * TM` |
# | column of the tile, sub-tile j, place e | `warp_col * WN + j * WSUBN + lane_col * TN + e` |
# | which result | number `i * (WNITER * TN) + j * TN + e` of threadResults, if TM = 1 |
#
# </details>
#
# ### Exercise [[legal_tiles]] · Legal, or not?
# *core · medium · 12 minutes*
#
# Which tiles can work at all? Return the number of threads of a block, or 0 where they cannot: where the 32
# lanes of a warp do not reach each element of its tile exactly once, where warp tiles do not fill the
# block's, or where a block would have more than 1,024 threads (1,024 is allowed). TM and TN are still the
# size of *one* thread tile; TM may be larger than 1. (128-bit loads add further conditions; ignore them.)
#
# The checker tries 3,895 combinations. One of the rules is easily forgotten.


# %% id="ex-legal_tiles"
def legal(BM, BN, WM, WN, TM, TN, WNITER):
    ### BEGIN SOLUTION
    sub_tile = 32 * TM * TN * WNITER
    if BM % WM or BN % WN or WM * WN % sub_tile or WN % (WNITER * TN):
        return 0
    WMITER = WM * WN // sub_tile
    if WM % WMITER or WM // WMITER % TM:
        return 0
    threads = BM * BN // (WM * WN) * 32
    return threads if threads <= 1024 else 0
    ### STUB
    # return None  # threads of a block, or 0
    ### END SOLUTION


check.legal_tiles(legal)

# %% [markdown]
# The explorer below applies these rules, and a few more. **Break it (2 minutes):** move one slider,
# as far as you like. Exactly one position of one slider cannot run. Find it; the explorer says why. Your
# `legal` lets it pass: what does it not know?

# %%
see.tiles("warp_tiled_tm1")

# %% [markdown]
# <details><summary>What does it not know?</summary>
#
# Registers. With WN = 128 a thread has 32 · 8 = 256 results; with 32 elements of As and 8 of Bs it would keep
# 296 numbers. A thread has at most 255 registers. The course leaves 32 of them for addresses and counters:
# 223, a rule of thumb.
#
# </details>
#
# ## The kernel of document 003
#
# Here the formulas of [[owner_map]] become a kernel. Which lines of notebook [[vectorized_access.ipynb]]'s
# must change?

# %%
see.fold(see.diff("vectorized", "warp_tiled_tm1"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# Fetching is as in notebook [[vectorized_access.ipynb]]. New are `y0` and `x0`, the thread's first row and
# column; and the gaps: a thread's rows lie WSUBM apart, its runs of TN columns WSUBN apart, in the reads and
# in the store of C. The store does what it did: it is written out instead of called.

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((150, 70), np.float32), rng.standard_normal((70, 140), np.float32)
np.abs(run("warp_tiled_tm1", A, B).C - A @ B).max()

# %% [markdown]
# How many requests do all warps make to read As and Bs? In one k step a thread reads WMITER elements of As
# and WNITER · TN of Bs, and does WMITER · WNITER · TN multiply-adds. The tiles of document 003 are in `t`;
# WMITER is yours to work out.

# %%
t = LADDER["warp_tiled_tm1"].tiles
t


# %% id="formula"
def shared_reads(m, n, k):
    ### BEGIN SOLUTION
    WMITER = t["WM"] * t["WN"] // (32 * t["TN"] * t["WNITER"])
    columns = t["WNITER"] * t["TN"]
    return m * n * k * (WMITER + columns) // (WMITER * columns) // 32
    ### STUB
    # return None
    ### END SOLUTION


# %%
size = (1024, 1024, 1024)
see.counts("warp_tiled_tm1", size, shared_load_requests=shared_reads, shared_load_wavefronts=shared_reads)

# %% [markdown] tags=["thought"]
# By the source a warp makes 16 requests per k step, a wavefront each: no conflict is left. The compiler makes
# 10: it reads the neighbouring columns of Bs by fours. But the rows of As are WSUBM apart, so each remains a
# request: the price of TM = 1. The wavefronts remain 16, because a wider read takes more of them.

# %% [markdown]
# ## Which words meet in one bank?
#
# Back to `vectorized` with 8 × 8 results. From here on its tiles are the **example**:
#
# | block's tile | BK | results of a thread | threads of a block | a warp |
# |---|---|---|---|---|
# | 128 × 128 | 16 | 8 × 8 | 16 × 16, 8 warps | 2 rows of 16 threads |
#
# You choose two things:
#
# - how the lanes lie: 8 rows of 4 lanes ("8 × 4"), 4 rows of 8, ...;
# - how a lane's 8 rows (and its 8 columns) lie: in one piece, called *side by side* below, or in shorter
#   **runs** with those of the other lanes between.
#
# Try 8 × 4 lanes, each lane's 8 rows in one piece, a lane reads one float of As. The first lane of
# each row of lanes asks for word 0, 8, 16, ..., 56; the other three ask for the same and share it. But word
# 32 is in bank 0, as word 0 is. So it takes **2** wavefronts.

# %% [markdown]
# With wider reads the lanes are served group by group, as in [notebook
# [[thread_tiles_2d.ipynb]]](thread_tiles_2d.ipynb):
#
# | a lane reads | lanes served together |
# |---|---|
# | one float | all 32 |
# | two floats | 2 groups: 0–15, 16–31 |
# | four floats | 4 groups: 0–7, 8–15, 16–23, 24–31 |
#
# Two groups can **join** and be served as one: 0 with 1, and 2 with 3; with two floats the only two. New here
# is when. Pair the lanes of the warp in one of two ways, the same letter for the same pair:
#
# | lane | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | ... |
# |---|---|---|---|---|---|---|---|---|---|
# | neighbours | a | a | b | b | c | c | d | d | |
# | two apart | a | b | a | b | c | d | c | d | |
#
# If one way fits, so that in *every* pair both lanes ask for the same, the groups join. The rule is measured
# here, and an engineer of NVIDIA [tells it and its
# reason](https://forums.developer.nvidia.com/t/unexpected-shared-memory-bank-conflict/77228/2): a register of
# 128 bytes comes back per clock, and where pairs are alike, two fit into one.
#
# Now 4 × 8 lanes, side by side, four floats:
#
# - As: all 8 lanes of a row want the same, so neighbours do. The groups join: **2** wavefronts.
# - Bs: lanes 0 to 7 begin at words 0, 8, ..., 56, all different, so nothing joins. They ask half of the banks
#   twice: 2 per group, **8** in all.
#
# For Bs the second way fits 16 × 2 lanes. Their rows have two lanes: 0, 2, 4, ... stand in one column and
# want the same of Bs, and so do 1, 3, 5, ...

# %%
see.predict("warp_tiles.four")

# %% [markdown] tags=["answer"]
# | runs of | reads per k step | wavefronts |
# |---|---|---|
# | 1 | 16 | 16 |
# | 2 | 8 | 12 |
# | 4 | 4 | 12 |
# | 8 | 4 | 20 |
#
# So the course's `warp_tiled` has **runs of four**.

# %% [markdown]
# **Runs are sub-tiles.** 8 × 8 results in runs of four are document 003's cut with thread tiles of 4 × 4 and
# 2 × 2 sub-tiles: four pieces. (In the first picture a thread has 8 × 4 results: two pieces.) Mind the names:
# in `warp_tiled`, as in notebook [[thread_tiles_2d.ipynb]], TM and TN count **all** results of a thread, 8
# and 8. In document 003's kernel, `warp_tiled_tm1`, they are the size of one thread tile.
#
# ### Exercise [[warp_wavefronts]] · Wavefronts
# *core · medium · 10 minutes*
#
# A warp reads one row of As and one of Bs, 8 × 8 results per lane. How many wavefronts does each take? Fill
# in `(A, B)` for one float per lane, then `(A, B)` for four. Five of the 16 numbers you know already. Do it
# on paper: the picture comes after it.

# %% id="ex-warp_wavefronts"
wavefronts = {  # lanes: ((A, B) for one float per lane, (A, B) for four floats per lane)
    ### BEGIN SOLUTION
    "8 × 4": ((2, 1), (2, 4)),
    "4 × 8": ((1, 2), (2, 8)),
    "4 × 8, runs of four": ((1, 1), (2, 4)),
    "16 × 2, runs of four": ((2, 1), (2, 2)),
    ### STUB
    # "8 × 4": ((None, None), (None, None)),
    # "4 × 8": ((None, None), (None, None)),
    # "4 × 8, runs of four": ((None, None), (None, None)),
    # "16 × 2, runs of four": ((None, None), (None, None)),
    ### END SOLUTION
}

check.warp_wavefronts(wavefronts)

# %%
see.warp_reads()

# %% [markdown]
# **The hunt (5 minutes).** A k step is two such reads of As and two of Bs, four floats each. With 2 × 16
# lanes side by side that is 20 wavefronts. The picture has eight layouts. How many of them need at most 12?
# And does any need fewer? Bet first, then hunt.

# %% [markdown] tags=["thought"]
# | lanes | side by side | runs of four |
# |---|---|---|
# | 2 × 16 (notebook [[vectorized_access.ipynb]]) | 20 | 12 |
# | 4 × 8 | 20 | 12 |
# | 8 × 4 | 12 | 12 |
# | 16 × 2 | 12 | 8 |
#
# Six of eight, and one needs 8. With 16 × 2, lanes 0 and 2 want the same words of Bs, 1 and 3 too: its groups
# are joined. With 8 × 4 or 4 × 8 lanes those that share words of Bs are no neighbours: each of the 4 groups
# takes a wavefront of its own, or more.

# %% [markdown]
# ### Exercise [[runs_of_four]] · Runs of four
# *core · hard · the heart of this notebook · 25 minutes*
#
# Write the kernel with TM by TN results per thread (both multiples of 4), in runs of four. Blocks have one
# dimension, with 32 threads per warp.
#
# | | lie | in the order |
# |---|---|---|
# | warps of a block | `BN // WN` side by side | row by row |
# | lanes of a warp | `LANE_ROWS` (`WM // TM`) rows of `LANE_COLS` (`WN // TN`) | row by row |
# | runs of four rows | down one column of lanes | each lane's first run, then each lane's second, ... |
# | runs of four columns | across one row of lanes | likewise |
#
# With WM = 32 and TM = 8 the first runs of the four lanes in a column are rows 0–3, 4–7, 8–11 and 12–15; the
# first lane's second run is 16–19. (`see.owners()` above draws it: "warp_tiled: 4 × 8 lanes", *thread*.)
#
# `fetch` and `put` are given. You write `y0` and `x0`, the reads, and the calls of `put`.
#
# Why is `tid` [unsigned](glossary.md#u32)? A negative index counts from the end. If an index could be
# negative, the program tests it each time, and four reads are no longer merged. `i` and `p` count up from 0
# and need no `u32`.

# %%
from gemm_course.checks.kits import thread_tile_parts

help(thread_tile_parts)


# %% id="ex-runs_of_four"
def make_runs_of_four(BM, BN, BK, WM, WN, TM, TN):
    LANE_ROWS, LANE_COLS = WM // TM, WN // TN
    part = thread_tile_parts(BM, BN, BK, WM, WN, TM, TN)
    fetch, clear, put = part.fetch, part.clear, part.put

    @cuda.jit
    def runs_of_four(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        clear(acc)
        tid = u32(cuda.threadIdx.x)  # unsigned: else the compiler merges no reads
        ### BEGIN SOLUTION
        warp, lane = tid // 32, tid % 32
        y0 = warp // (BN // WN) * WM + lane // LANE_COLS * 4
        x0 = warp % (BN // WN) * WN + lane % LANE_COLS * 4
        ### STUB
        # y0, x0 = 0, 0  # your code: this thread's first row and column in the block's tile
        ### END SOLUTION
        for k0 in range(0, k, BK):
            fetch(m, n, k, A, B, k0, As, Bs)
            cuda.syncthreads()
            for p in range(BK):
                ### BEGIN SOLUTION
                for i in range(TM):
                    a[i] = As[p, y0 + i // 4 * (4 * LANE_ROWS) + i % 4]
                for j in range(TN):
                    b[j] = Bs[p, x0 + j // 4 * (4 * LANE_COLS) + j % 4]
                ### STUB
                # pass  # your code: fill a and b
                ### END SOLUTION
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
        ### BEGIN SOLUTION
        for i in range(TM):
            for j in range(TN):
                row = y0 + i // 4 * (4 * LANE_ROWS) + i % 4
                col = x0 + j // 4 * (4 * LANE_COLS) + j % 4
                put(m, n, alpha, acc[i, j], beta, C, row, col)
        ### STUB
        # # your code: put each result at its row and column
        ### END SOLUTION

    return runs_of_four


check.runs_of_four(make_runs_of_four)

# %% [markdown] tags=["stub"]
# Right or wrong, `see.owners(make_runs_of_four)` shows where block (0, 0) of your kernel stores. When you
# have passed, look at `see.diff("vectorized", "warp_tiled")`. It finds three things.

# %% tags=["solution"] id="own-layout"
see.owners(make_runs_of_four)

# %% [markdown] tags=["solution"]
# **Compare it with the course's.**

# %% tags=["solution"] id="own-diff"
see.diff("vectorized", "warp_tiled")

# %% [markdown]
# ## What are the conflicts worth?
#
# `warp_tiled` against `vectorized`, both with the example's tiles: 12 wavefronts against 20. A warp of
# `vectorized` spends a third of its time waiting for shared memory. How much of that will be left? Guess.

# %%
square = ("vectorized", {"BK": 16, "TM": 8, "TN": 8, "PAD": 0})
see.fold(lambda: see.waits(square, "warp_tiled"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# 34 % of its time became 5 %, and 38.1 TFLOPS became 43.0, 13 % more. The instructions are the same, 1.16 per
# multiply-add, and so are the registers. Why only 13 %? A warp that no longer waits for memory mostly waits
# for its turn, 46 % of its time and not 18.

# %% [markdown]
# ## Which change paid?
#
# Three things have changed: the rectangle of the lanes, the runs, and the store, which is written out. So
# take them apart: the eight layouts of your hunt were run in turn on one H200, with the same tiles and the
# same store, written out.

# %%
see.predict("warp_tiles.eight")

# %% [markdown] tags=["answer"]
# | lanes | side by side | runs of four |
# |---|---|---|
# | 2 × 16 | 20 wavefronts: 3.59 ms | 12 wavefronts: 3.15 ms |
# | 4 × 8 | 20 wavefronts: 3.59 ms | 12 wavefronts: 3.19 ms |
# | 8 × 4 | 12 wavefronts: 3.19 ms | 12 wavefronts: 3.24 ms |
# | 16 × 2 | 12 wavefronts: 3.21 ms | 8 wavefronts: 3.19 ms |
#
# **With the same instructions, the wavefronts decide, not the way there.** The right rectangle alone does it,
# the runs alone do it, and 4 × 8 alone does nothing at all. Few different numbers? 4 × 8 lanes read 96 per k
# step, 2 × 16 read 144, and side by side both take 3.59 ms. The story is refuted. And from 12 wavefronts to 8
# nothing is gained.
#
# The new store alone brings nothing: 2 × 16 side by side has it, and takes as long as `vectorized`, which
# calls `store_four`.

# %% [markdown]
# ## What limits it now?
#
# What must be the limit with 12 wavefronts? And with 8?

# %%
see.fold(
    lambda: see.limits("warp_tiled", ("warp_tiled", {"WM": 128, "WN": 16})),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# Issue slots, in both. With 8 wavefronts shared memory is idle more often, but a scheduler issues one
# instruction per clock, and each one that is no multiply-add takes the place of one. To be faster, issue
# fewer instructions, or leave fewer clocks without any.

# %% [markdown]
# Then why warp tiles? Here a warp tile is one way to choose which lane reads what; 2 × 16 lanes in runs of
# four do as well. In notebook [[tensor_cores.ipynb]] the warp computes as a whole, and there is no other way.
#
# ## Three kernels, no names
#
# Here is what the H200 counted per warp and k step in three kernels, each with its own default tiles and 64
# results per thread: `vectorized` (16 × 4), `warp_tiled_tm1` (8 rows, one by one, of 8 columns) and
# `warp_tiled`.
#
# | | requests | wavefronts |
# |---|---|---|
# | X | 4 | 12 |
# | Y | 10 | 16 |
# | Z | 5 | 12 |
#
# Y you have met. Which are X and Z? X issues 1.16 instructions per multiply-add. A warp makes 64
# multiply-adds per k step: how many instructions per multiply-add does Y issue, if only its reads differ?

# %%
see.fold(lambda: see.waits("warp_tiled_tm1", "warp_tiled"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# X is `warp_tiled`, Y `warp_tiled_tm1`, Z `vectorized`, which issues 1.16 as well. Y makes 6 more requests
# than X: 1.16 + 6 / 64 = 1.25 instructions, as measured. And it issues in 72 % of the clocks, not 77. With 16
# wavefronts its shared memory (73 %) and its issue slots (72 %) are about equally busy. So document 003's
# kernel has warp tiles and no bank conflict, and is the slowest of the three. A nearly square warp tile
# brings nothing by itself.

# %% [markdown]
# ## Tune it
#
# **A challenge (3 minutes).** More warps fill clocks in which nobody issues, says notebook
# [[thread_tiles_1d.ipynb]]. With the example's tiles an SM holds 16 warps. Get 32 onto it. It takes three
# sliders: two for half as many results per lane (one alone cannot run), and a third for tiles that were
# measured. And bet first: is that faster? (The explorer says 0.25 wavefronts per multiply-add, 16 per k step,
# as the source reads. The compiled kernel needs 12.)

# %%
see.tiles("warp_tiled", tells_best=False)

# %% [markdown]
# <details><summary>Was it worth it?</summary>
#
# No. Each of 32 warps gets half of the registers, so a lane has room for 32 results, and makes 6 reads for 64
# multiply-adds instead of 4. (BM = BN = 256 keeps 64 results in those registers: 3.8 TFLOPS.) Of all tiles
# that the tuner tried, the fastest with 32 warps reach 41.1 TFLOPS, with 16 warps 43.8. Waiting is not the
# limit here.
#
# </details>

# %% [markdown]
# <details><summary>For the curious: can you beat cuBLAS, 51 TFLOPS?</summary>
#
# How cuBLAS does it was not profiled here. The ladder's first step: fetch the next tile *while* this one is
# multiplied. With one large block per SM, `warp_tiled` does 32.9 TFLOPS, `double_buffered` 45.7.
#
# Two steps on, `read_ahead` does 52.2 and **beats cuBLAS** by 2 %. The FP32 units' peak, 67, is the end of
# this road. The next notebook takes another.
#
# </details>

# %% [markdown]
# ## From an empty cell
#
# Write the kernel of [[tile_kernel]] again, `make_tiled(T)`, without a look at your first one. Ten minutes
# are a good time.

# %% id="tile_kernel-again"
make_tiled = None  # your factory, in place of this line

check.tile_kernel(make_tiled)

# %% [markdown]
# ## A kernel that is no GEMM
#
# Blur a picture, or let heat flow through a plate: every element is replaced by a weighted sum of itself and
# its eight neighbours. Such a kernel is a **stencil**. With weights `w` of 3 × 3,
#
# $$\mathrm{out}_{i,j} = \sum_{a=0}^{2} \sum_{b=0}^{2} w_{a,b} \, A_{i+a-1,\ j+b-1}$$
#
# What lies outside A counts as 0.
#
# ### Exercise [[stencil]] · A tile with a halo
# *core · medium · 15 minutes*
#
# Write `make_stencil(T)`, which returns the kernel `(A, w, out)`. A and `out` have m rows and n columns, any
# m and n; T is 4, 8, 16 or 32. Blocks of T × T threads, x along the columns: `ceil(n / T)` × `ceil(m / T)`
# blocks; each thread computes one result.
#
# A block's T × T results need the elements around them too, its **halo**. So its tile has (T + 2) × (T + 2)
# elements, more than the block has threads. Each of them is loaded once: with `down` × `across` blocks that
# makes (m + 2 · (down - 1)) · (n + 2 · (across - 1)) loads from A in all. You may read `w` where it is.


# %% id="ex-stencil"
def make_stencil(T):
    ### BEGIN SOLUTION
    S = T + 2
    ### STUB
    # # your code: what the tile's shape needs besides T
    ### END SOLUTION

    @cuda.jit
    def stencil(A, w, out):
        ### BEGIN SOLUTION
        m, n = A.shape
        tile = cuda.shared.array((S, S), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * T, cuda.blockIdx.x * T
        for e in range(ty * T + tx, S * S, T * T):
            r, c = row0 - 1 + e // S, col0 - 1 + e % S
            tile[e // S, e % S] = A[r, c] if 0 <= r and r < m and 0 <= c and c < n else float32(0)
        cuda.syncthreads()
        acc = float32(0)
        for i in range(3):
            for j in range(3):
                acc += w[i, j] * tile[ty + i, tx + j]
        if row0 + ty < m and col0 + tx < n:
            out[row0 + ty, col0 + tx] = acc
        ### END SOLUTION

    return stencil


check.stencil(make_stencil)

# %% [markdown]
# ### Exercise [[stencil_limit]] · What stands above it?
# *core · easy · 5 minutes*
#
# Forecast it from counts. A stencil adds up side × side neighbours; for each multiply-add a warp's reads take
# `wavefronts` wavefronts of L1 and shared memory, which are one memory. Yours has side 3, and the verdict
# above says how many wavefronts. Three parts of an H200 put a roof above it:
#
# - DRAM moves 4.55 TB per second, as measured;
# - L1 allows 16.7 TFLOPS / wavefronts, as in notebook [[naive.ipynb]];
# - the FP32 units do 64.8 TFLOPS, as measured.
#
# Return the bytes that must pass DRAM for one result, if each element of A is fetched from there once; the
# FLOP per byte, a multiply-add being two; the lowest of the three roofs in TFLOPS; and its name, `"DRAM"`,
# `"L1"` or `"FP32"`. (A roof is what no kernel with these counts can pass. It does not promise that one
# comes near: what else a thread computes is not counted here.)


# %% id="ex-stencil_limit"
def stencil_limit(side, wavefronts):
    ### BEGIN SOLUTION
    bytes = 4 + 4
    intensity = 2 * side**2 / bytes
    roofs = {"DRAM": 4.55 * intensity, "L1": 16.7 / wavefronts, "FP32": 64.8}
    limit = min(roofs, key=roofs.get)
    return bytes, intensity, roofs[limit], limit
    ### STUB
    # return None  # (bytes, FLOP per byte, TFLOPS, limit)
    ### END SOLUTION


check.stencil_limit(stencil_limit)

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("warp_tiles")

# %% [markdown]
# ## Recap
#
# - You found the owner of every element with `//` and `%`.
# - You wrote the rules for tiles that work. If one division is not even, elements have two owners or none.
# - You counted wavefronts on paper. Ask how wide a read is before you say "conflict".
# - You wrote a kernel in runs of four: one instruction per run, no conflict.
# - You took a story apart: fewer wavefronts brought the 13 %; that a warp tile is nearly square brings
#   nothing by itself.
# - You saw the limit move to issue slots, where 8 wavefronts are no better than 12.
#
# **Next:** a warp is also what NVIDIA's Tensor Cores speak to. In notebook [[tensor_cores.ipynb]] it
# multiplies 16 × 16 tiles in a single call.

# %%
see.my_ladder()
