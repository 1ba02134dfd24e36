# %% [markdown]
# # 07 · Warp tiles
#
# A block has its tile of C, a thread has its results. Between the two stands the warp: 32 threads that read
# shared memory *together*. So far nobody chose which 32 results of C are computed side by side; they came
# out of the numbering of the threads. Now you choose.
#
# **After this notebook you can**
# - say for every element of a block's tile which warp, which lane and which register computes it;
# - work out WMITER, WSUBM and WSUBN, and tell tiles that work from tiles that do not;
# - count the wavefronts of a warp's reads for any layout of its lanes, and write the kernel's heart.
#
# *Time: about 50 minutes to read, 70 for the exercises. Comes from document 003 and document 004, kernel
# v06.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, records, run
from gemm_course import widgets as see
from gemm_course.kernels import LADDER

# %% [markdown]
# ## In one picture
#
# Between the block and the thread comes the warp: it gets a tile of its own, nearly square. Look at the warp,
# then at one of its threads: which elements of C are its own?

# %%
see.multiply("warp_tiled")

# %% [markdown]
# ## What limits it now?
#
# Notebook 06 ended with a count: with 8 × 8 results a thread, a warp takes **20 wavefronts** in a step along
# k to read As and Bs, and they serve 64 warp-wide multiply-adds, which take 16 clocks. Shared memory is the
# limit, by a little. With 16 × 4 results it is 12 wavefronts, for five wide reads a step instead of four. Can
# you have both, few wavefronts and few reads?
#
# Look at what such a warp covers. The block's tile is 128 × 128, a thread owns 8 × 8 of it, so 16 threads
# fill a row of the tile and a warp is **two rows of 16 threads**: 16 rows of C, 128 columns. (With 16 × 4 it
# is one row of 32 threads, and covers the same.)

# %%
see.predict("07.words")

# %% [markdown]
# ## From the block down to one thread
#
# Document 003 cuts the tile of a block three times:
#
# 1. the block's BM × BN into **warp tiles** of WM × WN, one for each warp;
# 2. a warp tile into WMITER × WNITER **steps** of WSUBM × WSUBN (the document's sub-tiles). The 32 lanes
#    cover one step at a time, and then come back for the next;
# 3. a step into 32 **thread tiles** of TM × TN, side by side first, one for each lane.
#
# Here is a small block, 64 × 64, with four warps. The picture is drawn from what the emulator saw the threads
# store. Click once into a slider and use the arrow keys.

# %%
see.owners()

# %% [markdown]
# Try, one after the other:
#
# 1. *look at a* warp, *colour by* lane. Where does lane 5 own elements? How far apart are its rows?
# 2. *look at a* sub-tile: one step. How many lanes lie side by side, how many below each other?
# 3. *look at a* thread: these are its registers, numbered as the kernel stores them.
# 4. kernel "003: TN 8, WNITER 2", again as a warp. What became narrower, what higher?
# 5. *colour by* owner, and walk through the lanes. Then change the warp.
#
# ### The same in formulas
#
# Document 003 has TM = 1: a thread tile is one row. `tid` is `threadIdx.x`, and all divisions are of whole
# numbers.
#
# | | formula |
# |---|---|
# | where the block's tile of C begins | row `blockIdx.y * BM`, column `blockIdx.x * BN` |
# | steps down | `WMITER = WM * WN // (32 * TM * TN * WNITER)` |
# | the size of a step | `WSUBM = WM // WMITER`, `WSUBN = WN // WNITER` |
# | which warp tile | `warp = tid // 32`, row `warp // (BN // WN)`, column `warp % (BN // WN)` |
# | which lane | `lane = tid % 32`, row `lane // (WSUBN // TN)`, column `lane % (WSUBN // TN)` |
# | row of the tile, step i | `warp_row * WM + i * WSUBM + lane_row * TM` |
# | column of the tile, step j, place e | `warp_col * WN + j * WSUBN + lane_col * TN + e` |
# | which result | number `i * (WNITER * TN) + j * TN + e` of threadResults, if TM = 1 |
#
# Do not learn them by heart. Each answers a question that you have just asked of the picture, and in the
# exercises you will write every one of them.
#
# ## The kernel

# %%
see.diff("vectorized", "warp_tiled_tm1")

# %% [markdown]
# Fetching is as in notebook 06. Document 003 writes it with flat indices, and with innerRowB and innerColB
# for B's tile, which has `BN // 4` fours in a row:
#
# | | from, counted from the tile's first element | to |
# |---|---|---|
# | A | `(innerRowA + offset) * K + innerColA * 4` | `As[(innerColA * 4 + e) * BM + innerRowA + offset]` |
# | B | `(innerRowB + offset) * N + innerColB * 4` | `Bs[(innerRowB + offset) * BN + innerColB * 4]` |
#
# New are:
#
# - `warp` and `lane`, and with them `y0` and `x0`: the thread's first row and column;
# - `a[i] = As[p, y0 + i * WSUBM]`: WMITER rows, WSUBM apart;
# - `b[j, e] = Bs[p, x0 + j * WSUBN + e]`: WNITER runs of TN columns, WSUBN apart;
# - the store of C, which goes to the same rows and columns.
#
# No barrier was added. The lanes of a warp own different elements and never exchange anything.

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((150, 70), np.float32), rng.standard_normal((70, 140), np.float32)
np.abs(run("warp_tiled_tm1", A, B).C - A @ B).max()

# %% [markdown]
# ## Count it three ways
#
# How many requests do all warps make to read As and Bs? In one step along k a thread reads WMITER elements of
# As and WNITER · TN of Bs, and does WMITER · WNITER · TN multiply-adds. Write it with the tiles in `t`.

# %%
t = LADDER["warp_tiled_tm1"].tiles


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
# By the source, every read is one wavefront: no conflict is left. The compiler makes fewer requests of
# them: the TN columns of Bs are neighbours and are read by fours. But the rows of As are **WSUBM apart**,
# so each is a request of its own. That is the price of TM = 1.
#
# ## Which words do 32 lanes want?
#
# Whether a read has conflicts depends on two things you can choose: how the lanes lie, and how a lane's
# rows and columns lie. Take 8 × 8 results a lane. Document 004's v06 has 8 rows of 4 lanes, and a lane's 8
# rows (and its 8 columns) side by side. Or 4 rows of 8 lanes. Or a lane has *two times four* rows, with
# those of the other lanes between.
#
# The formulas of v06 know all of this: $m_t \times n_t = 32$ lanes, thread tiles of $d_{tm} \times d_{tn}$,
# and each lane computes $(d_{wm}/m_t)/d_{tm}$ of them down and $(d_{wn}/n_t)/d_{tn}$ across. Thread tile
# $(t_m, t_n)$ of the warp belongs to lane $(t_m \bmod m_t, \; t_n \bmod n_t)$. (Counted from 0.)

# %%
see.warp_reads()

# %% [markdown]
# 1. As, one float, 8 × 4 lanes. 8 rows of lanes, so 8 different words; 4 lanes share each of them, and
#    sharing costs nothing. But the words are 8 apart, and word 32 is in bank 0 again.
# 2. The same with "4 and 4, apart". Now the words are 4 apart.
# 3. Bs with 4 × 8 lanes, four floats. Where do 8 wavefronts come from, and what brings them down to 4?

# %%
see.predict("07.fours")

# %% [markdown]
# The course's v06 takes thread tiles of 4 × 4 and lets the lanes repeat them. Whatever the layout, a warp
# then reads one stretch without gaps. The first picture of this notebook shows it too: choose the kernel
# "004 v06: 8 × 4 lanes", look at a *warp*, colour by *owner*, and walk through the lanes. In the kernel,
# `LANE_ROWS` × `LANE_COLS` is how the lanes lie, the document's $m_t \times n_t$. In exercise 07.7 you write
# it.
#
# Now count, with document 004's tiles: its warp tile is 64 × 32, with 8 × 4 lanes.

# %%
tiles = {"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 32, "TM": 8, "TN": 8, "PAD": 0}
see.compare("vectorized", "warp_tiled", tiles, "shared_load_requests", "shared_load_wavefronts")

# %% [markdown]
# The same requests: a thread still reads 8 + 8 elements for 64 multiply-adds. What became less are the
# **wavefronts**: two fifths. Read by fours, as the compiler does it, it is 12 wavefronts a step instead of
# 20, in four reads.
#
# ## How much is it worth?

# %%
see.predict("07.gain")

# %% tags=["answer"]
see.tflops("vectorized", "warp_tiled", on="RTX 3090")

# %% tags=["answer"]
see.tflops("thread_tiled_2d", "vectorized", "warp_tiled_tm1", "warp_tiled")

# %% [markdown]
# Every stage stands here with its default tiles, those that were fastest for it, or nearly. Document 003's
# kernel and document 004's cut C in the same way, but one of them is slower than the kernel of notebook 06,
# which has no warp tiles at all. Why? The hardware's counters know what the compiled kernels ask of shared
# memory. Each of the four has 64 results a thread, so here it is for one warp in one step along k:

# %%
stages = ["thread_tiled_2d", "vectorized", "warp_tiled_tm1", "warp_tiled"]
counted = records.counters("ladder").set_index("case").loc[[f"{stage} 1024x1024x1024" for stage in stages]]
counted[["shared_load_requests", "shared_load_wavefronts"]] / (1024**3 / (32 * 64))

# %% [markdown]
# A lane of `warp_tiled_tm1` reads single rows of As, WSUBM apart. No two of its lanes are in each other's
# way, and still it makes the most requests, and they take the most wavefronts. In notebook 06 a thread
# has its rows side by side and reads them by fours. Document 004's way has both, and is ahead of all. So
# it is not the warp tile as such that pays: it pays because it lets you choose **what 32 lanes read
# together**.
#
# (`thread_tiled_2d` reads the same from shared memory as `vectorized`. What it lacks is the way there: it
# fetches its tiles float by float.)

# %%
see.roofline("thread_tiled_2d", "vectorized", "warp_tiled")

# %% [markdown]
# The answer to *what limits it now?* is no longer shared memory: as written and as compiled, its ceiling lies
# on the peak, and bytes are no limit either. The kernel waits. At each barrier all warps stop, the next tile
# is asked for only then, and it takes hundreds of clocks to come. Hiding that is a later matter. Before, we
# look at arithmetic that is much faster.
#
# ## Tune it
#
# Which tiles are legal? With warp tiles many are not, and the explorer says why. You will write these rules
# yourself in an exercise.

# %%
see.tiles("warp_tiled_tm1")

# %%
see.tiles("warp_tiled")

# %% [markdown]
# Warp tiles of the same size may be square or long: 32 × 128, 64 × 64 and 128 × 32 lie on one diagonal of
# this map, 32 × 64 and 64 × 32 on another. How much does the shape matter once the block's tile is in its
# best place?

# %%
see.heatmap("warp_tiled", "WM", "WN", others="best")

# %% [markdown]
# ---
# ## Exercises
#
# ### Exercise 07.1 · The size of a step
# *core · easy · 5 minutes*
#
# Return `(WMITER, WSUBM, WSUBN)` for a warp tile of WM × WN, thread tiles of TM × TN, and WNITER steps side
# by side. All divisions come out even here.


# %% id="ex-07-1"
def steps(WM, WN, TM, TN, WNITER):
    ### BEGIN SOLUTION
    WMITER = WM * WN // (32 * TM * TN * WNITER)
    return WMITER, WM // WMITER, WN // WNITER
    ### STUB
    # return None  # (WMITER, WSUBM, WSUBN)
    ### END SOLUTION


check.warp_steps(steps)

# %% [markdown]
# ### Exercise 07.2 · The owner map
# *core · medium · important · 15 minutes*
#
# Which elements of the block's tile does thread `tid` own? Return them as a list of `(row, column)`, in the
# order in which the kernel keeps them: step by step down, in each of these step by step across, in each of
# these TN columns. TM is 1. The picture at the top lets you check a thread by hand.


# %% id="ex-07-2"
def elements(tid, BN, WM, WN, TN, WNITER):
    ### BEGIN SOLUTION
    WMITER = WM * WN // (32 * TN * WNITER)
    WSUBM, WSUBN = WM // WMITER, WN // WNITER
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in steps for e in range(TN)]
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
# ### Exercise 07.3 · Legal, or not?
# *core · medium · 12 minutes*
#
# Return the number of threads of a block, or 0 where these tiles cannot work: where the 32 lanes of a warp
# do not reach each element of its tile exactly once, where warp tiles do not fill the block's, or where a
# block would have more than 1,024 threads. TM may be larger than 1 here. (That everything moves by fours
# asks for more; leave it out.)
#
# The checker tries 3,888 combinations. One of the rules is easily forgotten: a public repository has an issue
# about it.


# %% id="ex-07-3"
def legal(BM, BN, WM, WN, TM, TN, WNITER):
    ### BEGIN SOLUTION
    step = 32 * TM * TN * WNITER
    if BM % WM or BN % WN or WM * WN % step or WN % (WNITER * TN):
        return 0
    WMITER = WM * WN // step
    if WM % WMITER or WM // WMITER % TM:
        return 0
    threads = BM * BN // (WM * WN) * 32
    return threads if threads <= 1024 else 0
    ### STUB
    # return None  # threads of a block, or 0
    ### END SOLUTION


check.legal_tiles(legal)

# %% [markdown]
# ### Exercise 07.4 · Wavefronts
# *core · medium · 8 minutes*
#
# A warp reads one row of As and one of Bs, 8 × 8 results a lane. How many wavefronts does each take? Fill
# in `(A, B)` for one float a lane, then `(A, B)` for four. "In fours": a lane's 8 rows are four and four,
# and those of the other lanes lie between; its columns likewise. Do it on paper first.

# %% id="ex-07-4"
wavefronts = {
    ### BEGIN SOLUTION
    "8 × 4": ((2, 1), (2, 4)),
    "4 × 8": ((1, 2), (2, 8)),
    "8 × 4, in fours": ((1, 1), (2, 4)),
    "4 × 8, in fours": ((1, 1), (2, 4)),
    ### STUB
    # "8 × 4": ((None, None), (None, None)),
    # "4 × 8": ((None, None), (None, None)),
    # "8 × 4, in fours": ((None, None), (None, None)),
    # "4 × 8, in fours": ((None, None), (None, None)),
    ### END SOLUTION
}

check.warp_wavefronts(wavefronts)

# %% [markdown]
# ### Exercise 07.5 · What goes into the registers
# *core · medium · 10 minutes*
#
# In document 003 the shared tiles are flat: element (p, row) of transposed As is `As[p * BM + row]`,
# element (p, column) of Bs is `Bs[p * BN + column]`. Which elements does thread `tid` read in step p along
# k? Return two lists of indices, those into As (regM) and those into Bs (regN), in order. TM is 1.


# %% id="ex-07-5"
def loads(tid, p, BM, BN, WM, WN, TN, WNITER):
    ### BEGIN SOLUTION
    WMITER = WM * WN // (32 * TN * WNITER)
    WSUBM, WSUBN = WM // WMITER, WN // WNITER
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    a = [p * BM + row + i * WSUBM for i in range(WMITER)]
    b = [p * BN + col + j * WSUBN + e for j in range(WNITER) for e in range(TN)]
    return a, b
    ### STUB
    # a, b = None, None  # lists of indices
    # return None  # (a, b)
    ### END SOLUTION


check.register_loads(loads)

# %% [markdown]
# ### Exercise 07.6 · The heart
# *core · hard · the heart of this notebook · 20 minutes*
#
# Now the kernel. Fetching the tiles and storing the results you know from notebook 06; they are given as
# functions to call. Yours are `y0` and `x0`, the thread's first row and column of the tile, and all that
# happens between the two barriers.

# %%
from gemm_course.checks.kits import parts

help(parts)


# %% id="ex-07-6"
def make_warp_tiled(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER = WM * WN // (32 * TN * WNITER)
    WSUBM, WSUBN = WM // WMITER, WN // WNITER
    part = parts(BM, BN, BK, WM, WN, TN, WNITER)
    fetch, clear, store = part.fetch, part.clear, part.store

    @cuda.jit
    def warp_tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(WMITER, float32)
        b = cuda.local.array((WNITER, TN), float32)
        acc = cuda.local.array((WMITER, WNITER, TN), float32)
        clear(acc)
        ### BEGIN SOLUTION
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        y0 = warp // (BN // WN) * WM + lane // (WSUBN // TN)
        x0 = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
        ### STUB
        # y0, x0 = 0, 0  # your code: this thread's first row and column
        ### END SOLUTION
        for k0 in range(0, k, BK):
            fetch(m, n, k, A, B, k0, As, Bs)
            cuda.syncthreads()
            ### BEGIN SOLUTION
            for p in range(BK):
                for i in range(WMITER):
                    a[i] = As[p, y0 + i * WSUBM]
                for j in range(WNITER):
                    for e in range(TN):
                        b[j, e] = Bs[p, x0 + j * WSUBN + e]
                for i in range(WMITER):
                    for j in range(WNITER):
                        for e in range(TN):
                            acc[i, j, e] += a[i] * b[j, e]
            ### STUB
            # pass  # your code: fill a and b for each p, and add their products to acc
            ### END SOLUTION
            cuda.syncthreads()
        store(m, n, alpha, acc, beta, C, y0, x0)

    return warp_tiled


check.warp_kernel(make_warp_tiled)

# %% [markdown]
# ### Exercise 07.7 · Runs of four
# *core · hard · 20 minutes*
#
# In 07.4, with one float per lane, only the layouts "in fours" had no conflict. Now write the kernel for such
# a layout, with TM by TN results per thread (both multiples of 4): TM = 8 now means two runs of four rows.
# Single rows dealt out in turn would have no conflict either: lane 0 takes row 0, the next lane in its column
# row 1, and after the last lane, lane 0 takes the next row. So why *four*, and not one, two or eight? Guess
# before you start; the checker answers when you have passed.
#
# Blocks have one dimension, with 32 threads per warp. The warps of a block are numbered row by row, with
# `BN // WN` warps in a row. The 32 lanes of a warp form a grid of `LANE_ROWS` by `LANE_COLS`, that is
# `WM // TM` rows and `WN // TN` columns. They are numbered row by row: lanes 0 and 1 lie side by side.
#
# Going down one column of lanes, each lane takes four rows of the warp tile; after the last lane, the first
# takes the next four. With WM = 32 and TM = 8 there are four lanes in a column. Their first runs are rows
# 0–3, 4–7, 8–11 and 12–15. Then the first lane has rows 16–19 as well, the next 20–23, and so on. Going
# across one row of lanes, the columns are taken in the same way. (`see.owners()` above draws this layout:
# choose "004 v06: 4 × 8 lanes", look at a *thread*.)
#
# `fetch` and `put` are given. You write `y0` and `x0`, the reads, and the calls of `put`. (The checker also
# takes warps and lanes that are numbered down the columns.)

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
        ### BEGIN SOLUTION
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
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
# (0, 0) stores. When you have
# passed, compare it with the course's: `see.diff("vectorized", "warp_tiled")`. Beside the kernel of notebook
# 06 there is not much to change, only where a thread's rows and columns lie.

# %% tags=["solution"] id="own-layout"
see.owners(make_runs_of_four)

# %% [markdown] tags=["solution"]
# **Compare it with the course's.** Beside the kernel of notebook 06 there is not much to change: only where a
# thread's rows and columns lie.

# %% tags=["solution"] id="own-diff"
see.diff("vectorized", "warp_tiled")

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("07")

# %% [markdown]
# ## Recap
#
# - Block tile, warp tile, step, thread tile: each level is cut by `//` and `%`, columns first.
# - WMITER · WNITER · 32 · TM · TN = WM · WN, and every division must come out even. Else elements are owned
#   twice, or by nobody.
# - Lanes that want the same word share it; lanes that want different words of one bank wait. A warp tile that
#   is nearly square wants the fewest words, and runs of four leave no gaps between them.
# - With one float a lane and with four, the count is another: ask for the width before you say "conflict".
#
# **Next:** a warp is also what NVIDIA's Tensor Cores speak to. In notebook 08 it multiplies 16 × 16 tiles
# in a single call.
