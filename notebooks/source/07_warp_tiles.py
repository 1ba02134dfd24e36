# %% [markdown]
# # 07 · Warp tiles
#
# A block has its tile of C, a thread has its results. Between the two stands the warp: 32 threads that read
# shared memory *together*. Which part of C they compute came out of the numbering of the threads: in notebook
# 06 with 8 × 8 results, two long rows of threads. Now you choose it, and measure what the choice is worth.
#
# **After this notebook you can**
# - say for every element of a block's tile which warp and which lane computes it;
# - tell tiles that work from tiles that do not;
# - count the wavefronts of a warp's reads for any layout of its lanes;
# - write the kernel whose layout has neither conflicts nor single reads;
# - say which of two changes brought the gain.
#
# *Time: about 60 minutes to read, 90 for the exercises. Comes from document 003 and document 004, kernel
# v06. TFLOPS of one kernel differ by up to 1 % from run to run.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, records, run
from gemm_course import widgets as see
from gemm_course.intrinsics import u32
from gemm_course.kernels import LADDER

# %% [markdown]
# ## In one picture
#
# Between the block and the thread comes the warp, with a tile of its own. Look at the warp, then at one of
# its threads: its results come in two pieces. Why two? You will choose it, below.

# %%
see.multiply("warp_tiled")

# %% [markdown]
# ## What limits it now?
#
# In notebook 06 a thread had 16 × 4 results. In each [k step](glossary.md#k-step) it made five reads of four
# floats: four of As, one of Bs. With 8 × 8 results it makes only four: two of As, two of Bs. No shape with 64
# results needs fewer. Yet 8 × 8 was slower. What limits each of them?

# %%
square = ("vectorized", {"BK": 16, "TM": 8, "TN": 8, "PAD": 0})
see.limits("vectorized", square)

# %% [markdown]
# With 8 × 8, shared memory. The five reads of 16 × 4 take 12 wavefronts for a warp, the four of 8 × 8 take
# **20**: words of different lanes meet in one bank. Can you have both, four reads *and* 12 wavefronts?
#
# Look at what a warp covers in that kernel. The block's tile is 128 × 128 and a thread has 8 × 8 of it. So 16
# threads fill a row, and a warp is **two rows of 16 threads**: 16 rows of C, 128 columns. Two things can be
# changed: the rectangle that the lanes form, and which elements of it each lane has.
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
# Here is a small block, 64 × 64, with four warps. The picture is drawn from what the emulator saw the threads
# store. Click once into a slider and use the arrow keys.

# %%
see.owners()

# %% [markdown]
# Try, one after the other:
#
# 1. *look at a* warp, *colour by* lane. Where does lane 5 own elements? How far apart are its rows?
# 2. *look at a* sub-tile. How many lanes lie side by side, how many below each other?
# 3. *look at a* thread: these are its registers, numbered as the kernel stores them.
# 4. kernel "003: TN 8, WNITER 2", again as a warp. What became narrower, what higher?
# 5. *colour by* owner, and walk through the lanes. Then change the warp.
#
# ### Exercise 07.2 · The owner map
# *core · medium · important · 20 minutes*
#
# Which elements of the block's tile does thread `tid` own? TM is 1, as in document 003: a thread tile is one
# row of TN elements. WNITER says how many sub-tiles lie side by side. How many lie one below the other,
# WMITER, you work out: together they cover the warp tile.
#
# Return a list of `(row, column)`: the sub-tiles from the top down, in each row of them from left to right,
# and in each sub-tile the thread's TN elements. All divisions come out even here. The picture above lets you
# check a thread by hand: its tiles are BN = 64, WM = WN = 32.


# %% id="ex-07-2"
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
# hatched.

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
# Its shared tiles are flat, as in notebook 06. innerRowA and innerColA say which four of A's tile a thread
# fetches, innerRowB and innerColB which four of B's tile, which has `BN // 4` fours in a row:
#
# | | from, counted from the tile's first element | to |
# |---|---|---|
# | A | `(innerRowA + offset) * K + innerColA * 4` | `As[(innerColA * 4 + e) * BM + innerRowA + offset]` |
# | B | `(innerRowB + offset) * N + innerColB * 4` | `Bs[(innerRowB + offset) * BN + innerColB * 4]` |
#
# </details>
#
# ### Exercise 07.3 · Legal, or not?
# *core · medium · 12 minutes*
#
# Which tiles can work at all? Return the number of threads of a block, or 0 where they cannot: where the 32
# lanes of a warp do not reach each element of its tile exactly once, where warp tiles do not fill the
# block's, or where a block would have more than 1,024 threads (1,024 is allowed). TM may be larger than 1
# here. (128-bit loads add further conditions; ignore them.)
#
# The checker tries 3,891 combinations. One of the rules is easily forgotten.


# %% id="ex-07-3"
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
# The explorer below applies these rules, and the alignment rules. Choose tiles that cannot work: it says why.

# %%
see.tiles("warp_tiled_tm1")

# %% [markdown]
# ## The kernel of document 003

# %% tags=["listing"]
see.diff("vectorized", "warp_tiled_tm1")

# %% [markdown]
# Fetching is as in notebook 06. New are `y0` and `x0`, the thread's first row and column; the reads, WMITER
# rows that lie WSUBM apart and WNITER runs of TN columns that lie WSUBN apart; and the store of C, which goes
# to the same rows and columns. No barrier was added: lanes of a warp own different elements and exchange
# nothing.

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((150, 70), np.float32), rng.standard_normal((70, 140), np.float32)
np.abs(run("warp_tiled_tm1", A, B).C - A @ B).max()

# %% [markdown]
# How many requests do all warps make to read As and Bs? In one k step a thread reads WMITER elements of As
# and WNITER · TN of Bs, and does WMITER · WNITER · TN multiply-adds. Write it with the tiles in `t`; WMITER
# is yours to work out.

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

# %% [markdown]
# By the source a warp makes 16 requests per k step, 8 of As and 8 of Bs, a wavefront each: no conflict is
# left. The compiler makes 10. The TN columns of Bs are neighbours and are read by fours: two requests instead
# of eight. But these take four wavefronts each, so the wavefronts remain 16. And the rows of As are **WSUBM
# apart**, each a request of its own: the price of TM = 1.
#
# ## Which words meet in one bank?
#
# Take 8 × 8 results per thread again. You choose two things:
#
# - how the lanes lie: 8 rows of 4 lanes ("8 × 4"), 4 rows of 8, ...;
# - how a lane's 8 rows (and its 8 columns) lie: *side by side*, or in shorter **runs** with those of the
#   other lanes between.
#
# An example. 8 × 4 lanes, rows side by side, a lane reads one float of As. The first lane of each row of
# lanes asks for word 0, 8, 16, ..., 56; the other three ask for the same and share it. But word 32 is in bank
# 0, as word 0 is. So it takes **2** wavefronts.

# %% [markdown]
# With wider reads the rule is that of [notebook 06](06_vectorized_access.ipynb), now whole:
#
# | a lane reads | served one after the other |
# |---|---|
# | one float | all 32 lanes |
# | two floats | 2 groups: lanes 0–15, 16–31 |
# | four floats | 4 groups: lanes 0–7, 8–15, 16–23, 24–31 |
#
# Groups 0 and 1 are served together, and 2 and 3, if *every* lane wants what the lane beside it wants (0 with
# 1, 2 with 3, ...), or if every lane wants what the lane two further wants (0 with 2, 1 with 3, 4 with 6,
# ...).

# %%
see.predict("07.four")

# %% [markdown] tags=["answer"]
# | runs of | reads per k step | wavefronts |
# |---|---|---|
# | 1 | 16 | 16 |
# | 2 | 8 | 12 |
# | 4 | 4 | 12 |
# | 8 | 4 | 20 |
#
# So `warp_tiled` has **runs of four**: 8 rows are two runs. Those are the two pieces of the first picture.

# %% [markdown]
# ### Exercise 07.4 · Wavefronts
# *core · medium · 10 minutes*
#
# A warp reads one row of As and one of Bs, 8 × 8 results per lane. How many wavefronts does each take? Fill
# in `(A, B)` for one float per lane, then `(A, B)` for four. Do it on paper: the picture comes after it.

# %% id="ex-07-4"
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
# 1. As, one float, 8 × 4 lanes: the example above. Then "runs of four": the words are 4 apart, in 8 different
#    banks.
# 2. Bs with 4 × 8 lanes, four floats. Where do 8 wavefronts come from, and what brings them down to 4?
#
# Lanes that share words of As are neighbours, so with four floats its groups are joined. Lanes that share
# words of Bs are no neighbours with 8 × 4 or 4 × 8 lanes: no two groups are joined, and Bs takes at least one
# wavefront per group, 4.
#
# A k step is two such reads of As and two of Bs, four floats each. How many wavefronts is that, with 2 × 16
# lanes (notebook 06) and with 16 × 2, side by side and in runs of four? Four numbers; the picture has both.

# %% [markdown] tags=["thought"]
# | lanes | side by side | runs of four |
# |---|---|---|
# | 2 × 16 (notebook 06) | 20 | 12 |
# | 4 × 8 | 20 | 12 |
# | 8 × 4 | 12 | 12 |
# | 16 × 2 | 12 | 8 |
#
# With 16 × 2, lanes 0 and 2 want the same words of Bs, 1 and 3 too: now its groups are joined as well.
#
# Two ways lead from 20 to 12: lanes 8 × 4, as in document 004's v06, or runs of four. `warp_tiled` has 4 × 8,
# so it needs the runs. And the runs need no warp tile: with 2 × 16 lanes it is 12 as well.

# %% [markdown]
# Now build it.
#
# ### Exercise 07.7 · Runs of four
# *core · hard · the heart of this notebook · 25 minutes*
#
# Write the kernel with TM by TN results per thread (both multiples of 4), in runs of four.
#
# Blocks have one dimension, with 32 threads per warp; `BN // WN` warps lie side by side. The lanes of a warp
# form `LANE_ROWS` by `LANE_COLS`, that is `WM // TM` rows of `WN // TN`. Warps and lanes are numbered row by
# row.
#
# Going down one column of lanes, each lane takes four rows of the warp tile; after the last lane, the first
# takes the next four. Across one row of lanes, the columns are taken in the same way.
#
# With WM = 32 and TM = 8 the first runs of the four lanes in a column are rows 0–3, 4–7, 8–11 and 12–15; the
# first lane's second run is 16–19. (`see.owners()` above draws it: "warp_tiled: 4 × 8 lanes", *thread*.)
#
# `fetch` and `put` are given. You write `y0` and `x0`, the reads, and the calls of `put`.

# %%
from gemm_course.checks.kits import thread_tile_parts

help(thread_tile_parts)


# %% id="ex-07-7"
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
        tid = u32(cuda.threadIdx.x)  # unsigned: with signed indices the compiler merges no reads
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
# Right or wrong, you can look at the layout of your kernel: `see.owners(make_runs_of_four)` shows where block
# (0, 0) stores. When you have passed, compare it with the course's: `see.diff("vectorized", "warp_tiled")`.
# Only the places of a thread's rows and columns differ from notebook 06's kernel.

# %% tags=["solution"] id="own-layout"
see.owners(make_runs_of_four)

# %% [markdown] tags=["solution"]
# **Compare it with the course's.** Only the places of a thread's rows and columns differ from notebook 06's
# kernel.

# %% tags=["solution"] id="own-diff"
see.diff("vectorized", "warp_tiled")

# %% [markdown]
# ## What are 8 wavefronts worth?
#
# Compare `vectorized` and `warp_tiled` with the same tiles and 8 × 8 results per thread. Their source first,
# as written: float by float.

# %%
tiles = LADDER["warp_tiled"].tiles
see.compare("vectorized", "warp_tiled", tiles, "shared_load_requests", "shared_load_wavefronts")

# %% [markdown]
# As many requests; but 40 wavefronts of a warp per k step have become 16. The compiler reads by fours, and
# then 20 have become 12. The instructions are the same, 1,181 in the main loop:

# %%
see.compare_code(square, "warp_tiled")

# %% [markdown]
# So are the registers, two blocks per SM in both. What differs is how long a warp waits for shared memory:

# %%
see.waits(square, "warp_tiled")

# %% [markdown]
# 34 % of its time became 5 %, and 38.1 TFLOPS became 43.0. But two things have changed, the rectangle of the
# lanes and the runs. Which of them was it? And would going from 12 to 8 bring as much
# again?

# %%
see.predict("07.eight")

# %% tags=["answer"]
lanes_2_16 = ("warp_tiled", {"WM": 16, "WN": 128})
lanes_16_2 = ("warp_tiled", {"WM": 128, "WN": 16})
see.limits(square, lanes_2_16, "warp_tiled", lanes_16_2)

# %% [markdown] tags=["answer"]
# | lanes | | wavefronts per k step | shared memory busy | TFLOPS |
# |---|---|---|---|---|
# | 2 × 16 | side by side | 20 | 89 % | 38.1 |
# | 2 × 16 | runs of four | 12 | 68 % | 43.6 |
# | 4 × 8 | runs of four | 12 | 67 % | 43.0 |
# | 16 × 2 | runs of four | 8 | 50 % | 43.0 |
#
# **Here the runs did it.** With them no warp tile beats notebook 06's two rows: 43.6 is 1.2 % above 43.0,
# more than one kernel varies. (The tuner's sweep begins at WM = 32, so it never tried 2 × 16.) 8 × 4 lanes
# side by side have 12 wavefronts too, without runs; that was not measured on the H200.
#
# From 12 wavefronts on the issue slots are the limit, so 8 are no faster. Then why warp tiles? For these
# kernels they are one way to say who reads what. In notebook 08 the warp computes as a whole, and there is no
# other.

# %% [markdown]
# ## With the best tiles of each

# %%
see.tflops("thread_tiled_2d", "vectorized", "warp_tiled_tm1", "warp_tiled")

# %% [markdown]
# Every stage has its default tiles here, those that were fastest for it, or nearly. So the gain over
# `vectorized` is smaller, 4 %: that one has 16 × 4 results. And document 003's kernel, which has warp tiles,
# is slower than notebook 06's, which has none. Ask the hardware's counters, per warp and k step (a warp has
# 32 lanes with 64 results each):

# %%
stages = ["thread_tiled_2d", "vectorized", "warp_tiled_tm1", "warp_tiled"]
counted = records.counters("ladder").set_index("case").loc[[f"{stage} 1024x1024x1024" for stage in stages]]
counted.index = stages
warps, k_steps = 1024**2 / (32 * 64), 1024
counted[["shared_load_requests", "shared_load_wavefronts"]] / (warps * k_steps)

# %% [markdown]
# `vectorized` and `warp_tiled` take 12 wavefronts both; with 8 × 8 results there is one request fewer, four
# instead of five. `warp_tiled_tm1` has no bank conflict, and still it makes ten requests, which take 16
# wavefronts: it reads the rows of As one by one.
#
# (`thread_tiled_2d` reads as few words as `vectorized`. But it fills its tiles float by float.)

# %% [markdown]
# ## What limits it now?
#
# Bytes are no limit, as the roofline of notebook 06 showed. Shared memory? The 64 multiply-adds of a lane's k
# step take an SM 16 clocks per warp. 16 wavefronts, as written, would just fit; the 12 as compiled allow 89
# TFLOPS, more than the peak. What is it then? A profile tells:

# %%
see.limits("warp_tiled_tm1", "warp_tiled")

# %% [markdown]
# Instructions. In 77 % of the clocks a scheduler issues one, and 87 % of these are multiply-adds: the product
# is the part of the peak that the kernel reaches while it runs. A scheduler issues one instruction per clock,
# so each one that is no multiply-add costs a multiply-add. (That holds for GPUs with 128 FP32 units per SM,
# such as the H200 and the RTX 3090; V100 and A100 have 64.)
#
# In the other 23 % none of a scheduler's four warps is ready. Of its time a warp spends 9 % in *dispatch*
# (its instruction is chosen, but held up on the way to its unit), 7 % waiting for global memory, 5 % at
# barriers and 5 % for shared memory. Which of these meet in one clock, a profile does not say.
#
# How does cuBLAS reach 51? One step towards it: fetch the next tile *while* this one is multiplied. These two
# kernels have the same tiles, 128 × 256, and one block per SM:

# %%
one_block = ("warp_tiled", {"BM": 128, "BN": 256, "BK": 8, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "PAD": 4})
see.waits(one_block, "double_buffered")

# %% [markdown]
# 32.9 TFLOPS became 45.7: 20 % of a warp's time were waits for global memory, and now none are. With two
# blocks per SM, as in `warp_tiled`'s default tiles, the other block works meanwhile. The ladder goes on with
# `async_copy`, and with `read_ahead` 52.2. 67 TFLOPS, the peak of the FP32 units, is the end of this road.
# The next notebook takes another.
#
# ## Tune it

# %%
see.tiles("warp_tiled")

# %% [markdown]
# Warp tiles of the same size may be square or long: 32 × 128, 64 × 64 and 128 × 32 lie on one diagonal of
# this map, 32 × 64 and 64 × 32 on another. How much does the shape matter, once the other tile sizes are
# tuned? And the size?

# %%
see.heatmap("warp_tiled", "WM", "WN", others="best")

# %% [markdown]
# Along a diagonal nearly nothing: 43.6 and 43.8 TFLOPS for the smaller tiles, 42.5 to 42.6 for the larger
# ones. 64 × 32 reads fewer different floats than 16 × 128, 96 against 144; but in runs of four both take 12
# wavefronts. The size matters a little more, and 32 × 32 is worst, with 41.1: its lanes have 32 results, and
# make 6 reads for 64 multiply-adds instead of 4. The fastest has 4 × 16 results: wide is no fault any more,
# since the runs leave no conflict.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("07")

# %% [markdown]
# ## Recap
#
# - Block tile, warp tile, sub-tile, thread tile: each level is cut by `//` and `%`, columns first.
# - WMITER · WNITER · 32 · TM · TN = WM · WN, and every division must come out even. Else elements are owned
#   twice, or by nobody.
# - Lanes of one group that want the same word share it; lanes that want different words of one bank wait.
#   Runs of four leave no gaps, and one instruction reads each run.
# - With the same instructions, 12 wavefronts per k step instead of 20 bring 13 %: from 38.1 to 43.0 TFLOPS.
#   The runs of four bring it, with any warp tile. Then issue slots are the limit, and 8 wavefronts bring no
#   more.
# - With one float per lane and with four, the count is another: ask for the width before you say "conflict".
#
# **Next:** a warp is also what NVIDIA's Tensor Cores speak to. In notebook 08 it multiplies 16 × 16 tiles
# in a single call.
