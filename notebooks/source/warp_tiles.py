# %% [markdown]
# # [[warp_tiles.ipynb]] · Where should a warp's lanes stand?
#
# A thread with 8 × 8 results reads four times four floats in a step along k: two fours of As, two of Bs. No
# other shape of 64 results needs fewer. And still shared memory is the busiest part of the SM: these four
# reads take a warp **20 wavefronts**.
#
# Here is such a warp: 2 rows of 16 lanes. Drawn is one of its reads; the title counts all four. Choose
# another **layout**: place the lanes otherwise, or let a lane have its 8 rows, and its 8 columns, as two
# **runs** of four. Other lanes' runs then lie between the two. **Get from 20 wavefronts to 12.**

# %%
from numba import cuda, float32

import lockstep
from gemm_course import check
from gemm_course import widgets as see
from lockstep.intrinsics import u32

see.warp_reads(step=True)

# %% [markdown]
# Go back to 2 × 16 lanes, in one piece. Lane 4 shares its banks with lane 0, while half of the banks stand
# idle. Why does lane 4 not take four of the idle ones? Say it before you open this.

# %% [markdown] tags=["thought"]
# It cannot choose. The bank of a word is its number modulo 32. Lane 4 wants words 32 to 35, and those are in
# banks 0 to 3, where lane 0 has its words 0 to 3. To change the banks, **give the lanes other words**: other
# columns of C.

# %% [markdown]
# *Time: about 70 minutes to read, 65 for the exercises, in four sittings: pauses are marked. Comes from
# document 004, kernel v06, and from document 003; the [glossary](glossary.md#document) says what the
# documents are.*
#
# First two questions from memory, without looking back:

# %%
see.recall("warp_tiles")

# %% [markdown]
# And a bet for [your ladder](glossary.md#ladder). With 20 wavefronts, `vectorized` of notebook
# [[vectorized_access.ipynb]] reached 38 TFLOPS on an H200. How many will 12 wavefronts bring, with as many
# instructions? Write a number in place of the dots.

# %%
see.my_bet("warp_tiles", tflops=...)

# %% [markdown]
# ## When do turns join?
#
# In notebook [[thread_tiles_2d.ipynb]] a warp's read of four floats came in turns of eight lanes, and two
# turns joined where neighbours asked for the same. That was half of the rule. Pair the lanes of a warp in one
# of two ways, the same letter for the same pair:
#
# | lane | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | ... |
# |---|---|---|---|---|---|---|---|---|---|
# | neighbours | a | a | b | b | c | c | d | d | |
# | two apart | a | b | a | b | c | d | c | d | |
#
# Take one line of the table. If in **all** its pairs both lanes ask for the same 16 bytes, turns join: the
# first with the second, and the third with the fourth. (Why? 128 bytes come back per clock, [says an engineer
# of NVIDIA](https://forums.developer.nvidia.com/t/unexpected-shared-memory-bank-conflict/77228/2). Eight
# lanes with words of their own fill them; sixteen lanes in equal pairs need no more.)
#
# In the picture `4: 32` is lane 4, which reads from word 32 on. Dark boxes are served in this turn, and a
# bracket joins two lanes that ask for the same. Below, a line is a wavefront; the number in it is the lane.
#
# Lanes are numbered row by row. With 2 × 16 lanes in one piece the turns of Bs do not join. **Find all
# layouts in which they do.** Then look at As in these.

# %%
see.turns()

# %% [markdown]
# Now put the rule into code. `first` lists the word at which each lane's read begins. In Python `lane ^ 1` is
# the neighbour's number, and `lane ^ 2` that of the lane two apart.


# %% id="joins"
def joins(first):
    ### BEGIN SOLUTION
    return any(all(first[lane] == first[lane ^ apart] for lane in range(32)) for apart in (1, 2))
    ### STUB
    # return None  # do the turns of this read join?
    ### END SOLUTION


for rows, columns in ((2, 16), (4, 8), (8, 4), (16, 2)):
    of_a = [lane // columns * 8 for lane in range(32)]
    of_b = [lane % columns * 8 for lane in range(32)]
    print(rows, "×", columns, "lanes: As", joins(of_a), "Bs", joins(of_b))

# %% [markdown] tags=["thought"]
# For As all four are true: the lanes of a row ask for the same rows of C. For Bs only 16 × 2 is: there lanes
# 0, 2, 4, ... stand in one column, and lanes 1, 3, 5, ... in the other. The price: a turn of As has eight
# rows then. In one piece they meet in the banks, and As takes 4 wavefronts instead of 2.

# %% [markdown]
# **What we now know:** it is not enough that lanes want the same words. They must be neighbours, or two
# apart.
#
# ## Can you count it on paper?
#
# Two worked examples first, both in one piece.
#
# - **8 × 4 lanes, one float of As per lane.** The eight rows of lanes ask for the words 0, 8, ..., 56; the
#   lanes of a row share a word. Words 0 and 32 are both in bank 0. That takes **2** wavefronts. (A read of
#   one float serves all 32 lanes in one turn.)
# - **4 × 8 lanes, four floats of Bs per lane.** Nothing joins, so there are four turns. Each has the words
#   from 0, 8, ..., 56 on: half of the banks are asked twice. That takes 4 · 2 = **8** wavefronts.
#
# ### Exercise [[warp_wavefronts]] · Wavefronts
# *core · medium · 10 minutes*
#
# A warp reads As, then Bs, with 8 × 8 results per lane. How many wavefronts does each read take? Fill in `(A,
# B)` for one float per lane, then `(A, B)` for four. (Where no runs are named, the 8 lie in one piece.) Do it
# on paper; the picture comes after it.

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

# %% [markdown]
# Here you can look your numbers up, word by word:

# %%
see.warp_reads()

# %% [markdown]
# **The hunt (10 minutes).** Now let the emulator count. `lockstep.wavefronts` takes the word at which each
# lane's read begins, the bits per lane, and `"load"`. Complete `step`, which counts a whole step along k.


# %% id="step"
def step(rows, columns, run):
    a = [lane // columns * run for lane in range(32)]
    ### BEGIN SOLUTION
    b = [lane % columns * run for lane in range(32)]
    ### STUB
    # b = None  # your code: where do the lanes' reads of Bs begin?
    # if b is None:
    #     return None
    ### END SOLUTION
    return 2 * lockstep.wavefronts(a, 128, "load") + 2 * lockstep.wavefronts(b, 128, "load")


step(2, 16, 8)  # in one piece: must be 20; runs of four: step(2, 16, 4)

# %% [markdown]
# In the opening one layout needed only 8 wavefronts. **Bet: does any layout need fewer, and why?** Then write
# a loop over the eight layouts of the opening, and go beyond them: to 32 × 1 lanes, and to runs of two.
# (With runs of two a read brings two floats, 64 bits, to 16 lanes at a time. So the 8 rows take four reads,
# and so do the 8 columns.)

# %%
# your loop

# %% [markdown] tags=["thought"]
# | lanes | in one piece | runs of four |
# |---|---|---|
# | 2 × 16 | 20 | 12 |
# | 4 × 8 | 20 | 12 |
# | 8 × 4 | 12 | 12 |
# | 16 × 2 | 12 | 8 |
#
# No. A read of four floats takes two turns, even where turns join. So four reads take at least 8 wavefronts.
# With 16 × 2 lanes in runs of four it is 8, for those of Bs join too. 32 × 1 lanes need 20 in one piece, and
# 12 in runs of four. Runs of two take 12 with 4 × 8 lanes, and 8 with 16 × 2: as many wavefronts as runs of
# four, but 8 reads instead of 4. So the course's kernel has **runs of four**.

# %% [markdown]
# **What we now know:** two roads lead from 20 to 12: another rectangle of lanes, or runs of four. Together
# they lead to 8.
#
# *A good place for a pause.*
#
# ## Which rows and columns are whose?
#
# Now write it. Each warp gets a rectangle of C, its **warp tile** of WM × WN results. Here is a small block:
# 64 × 64 results for four warps, with 4 × 8 lanes in each. A thread has 8 × 4 results: two runs of four rows,
# one run of four columns.

# %%
see.owners(stage="warp_tiled")

# %% [markdown]
# Thread 5 is lane 5 of warp 0. Its first row is 0. Its first column is 20, for five lanes with four columns
# each come before it. Where do threads 45 and 75 begin? Work it out. If the sum is not right, set the picture
# to their warp and lane, and *look at a* thread.

# %%
first_place = {5: (0, 20), 45: (..., ...), 75: (..., ...)}  # thread: (first row, first column)
worked_out = [place for place in first_place.values() if ... not in place]
sum(64 * row + column for row, column in worked_out)  # all three: must be 2644

# %% [markdown]
# ### Exercise [[runs_of_four]] · Runs of four
# *core · hard · the heart of this notebook · 25 minutes*
#
# Write the kernel for TM × TN results per thread, both multiples of 4, in runs of four. Blocks have one
# dimension, with 32 threads for each warp tile.
#
# | | lie | in the order |
# |---|---|---|
# | warps of a block | `BN // WN` side by side | row by row |
# | lanes of a warp | `LANE_ROWS` rows of `LANE_COLS` | row by row |
# | runs of four rows | down a column of lanes | each lane's first run, then each lane's second, ... |
# | runs of four columns | across a row of lanes | likewise |
#
# So with 4 rows of lanes, their first runs are rows 0–3, 4–7, 8–11 and 12–15, and the second run of the first
# lane is 16–19.
#
# `fetch`, `clear` and `put` are given. You write `y0` and `x0`, the reads, and the calls of `put`. As is
# transposed, as in notebook [[vectorized_access.ipynb]]: `As[p, row]`. The checker wants `a`, `b` and `acc`
# in registers. So index them with the loops' variables alone (notebook [[thread_tiles_1d.ipynb]]).

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
        tid = u32(cuda.threadIdx.x)  # never negative: else the compiler keeps reads of four apart
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
# Right or wrong, `see.owners(make_runs_of_four)` shows what your kernel stores.

# %% tags=["solution"] id="own-layout"
see.owners(make_runs_of_four)

# %% [markdown]
# The course's kernel of this notebook is `warp_tiled`, document 004's v06. Here it is beside `vectorized`,
# for you to compare with yours.

# %% tags=["listing"]
see.fold(see.diff("vectorized", "warp_tiled"), first="Write the exercise first, then open this.")

# %% [markdown]
# You wrote 16 reads of one float per step. What runs has four reads of four, and 12 wavefronts. You can see
# it in your own kernel:

# %%
# (This compiles: `python3 course.py doctor` says whether the compiler is here. It needs no GPU.)
# tiles = {"BM": 128, "BN": 128, "BK": 16, "WM": 32, "WN": 64, "TM": 8, "TN": 8, "PAD": 0}
# see.as_compiled("warp_tiled", make_runs_of_four, tiles=tiles, block=(256, 1))

# %% [markdown]
# **What we now know:** two formulas with `//` and `%` say where a lane stands, and so which words it reads.
#
# *A good place for a pause.*
#
# ## What are eight wavefronts worth?
#
# From here on every figure is for the square of notebook [[thread_tiles_2d.ipynb]]: a block computes 128 ×
# 128 results, 16 steps at a time, and a thread 8 × 8. The lanes of `warp_tiled` stand 4 × 8, in runs of four.
#
# With 20 wavefronts a warp of `vectorized` spends 34 % of its time waiting for shared memory. With 12, how
# much of that is left? Write a number down, remember your bet, and open this.

# %%
square = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8, "PAD": 0}
see.fold(
    lambda: see.waits(("vectorized", square), "warp_tiled", meanings=False),
    first="Write a number down, then open this.",
)

# %% [markdown] tags=["thought"]
# The wait falls from 34 to 5 %, and 38 TFLOPS become **43**: 13 % more. Both kernels issue as many
# instructions, and have as many registers. Why only 13 %? Look at what grew instead. In *another warp's turn*
# a warp is ready, and its scheduler issues for another one. (That is no turn of eight lanes.)

# %% [markdown]
# ## Is this story true?
#
# Here is a good story why warp tiles are fast: "A warp whose tile is nearly square reads **few different
# numbers**, as its lanes share what they read." It sounds right. Put it on trial: how many different elements
# of As and Bs does a warp read in a step along k? Complete the line, and compare with the wavefronts.


# %% id="different"
def different(rows, columns):
    ### BEGIN SOLUTION
    return 8 * rows + 8 * columns
    ### STUB
    # return None  # rows × columns lanes, 8 rows and 8 columns for each
    ### END SOLUTION


def step(rows, columns, run):  # as in the hunt
    a = [lane // columns * run for lane in range(32)]
    b = [lane % columns * run for lane in range(32)]
    return 2 * lockstep.wavefronts(a, 128, "load") + 2 * lockstep.wavefronts(b, 128, "load")


for rows, columns in ((2, 16), (4, 8), (8, 4), (16, 2)):
    print(f"{rows} × {columns} lanes:", different(rows, columns), "different elements;", end=" ")
    print(step(rows, columns, 8), "wavefronts in one piece,", step(rows, columns, 4), "in runs of four")

# %% [markdown]
# The story and your count disagree. By the story, 4 × 8 lanes in one piece must be fast, and 2 × 16 in runs
# of four slow. All eight were run on one H200, with the same tiles
# and the same store.

# %%
see.predict("warp_tiles.eight")

# %% [markdown] tags=["answer"]
# | lanes | in one piece | runs of four |
# |---|---|---|
# | 2 × 16 | 20 wavefronts: 3.59 ms | 12 wavefronts: 3.15 ms |
# | 4 × 8 | 20 wavefronts: 3.59 ms | 12 wavefronts: 3.19 ms |
# | 8 × 4 | 12 wavefronts: 3.19 ms | 12 wavefronts: 3.24 ms |
# | 16 × 2 | 12 wavefronts: 3.21 ms | 8 wavefronts: 3.19 ms |
#
# 4 × 8 lanes read 96 different elements, 2 × 16 read 144, and in one piece both take 3.59 ms. The story is
# refuted. **With the same instructions, the wavefronts decide, not the way there.**

# %% [markdown]
# **What we now know:** from 20 to 12 wavefronts the kernel gained, from 12 to 8 nothing. A limit shows when
# you take its work away: shared memory was the limit, and is no
# longer.
#
# ## Does a kernel without conflicts win?
#
# Document 003 has warp tiles as well. In its kernel, `warp_tiled_tm1`, 8 × 4 lanes stand in a warp tile of 64
# × 32. A lane has 8 columns in one piece, but its 8 rows lie one by one, 8 apart: row 0, row 8, row 16, ...
# So it reads As one float at a time, in eight reads.
#
# Count its step as well. Does any of its reads have a conflict?


# %% id="rival"
of_a = 8 * lockstep.wavefronts([lane // 4 for lane in range(32)], 32, "load")
### BEGIN SOLUTION
of_b = 2 * lockstep.wavefronts([lane % 4 * 8 for lane in range(32)], 128, "load")
### STUB
# of_b = ...  # your code: two reads of Bs, four floats each
### END SOLUTION
of_a, of_b

# %% [markdown]
# Eight reads of one wavefront, and two of four turns with one each: no conflict anywhere. Here is what the
# H200 counted per warp and step in three kernels, with the same block and 64 results per thread. Y is
# `warp_tiled_tm1`. Which are X and Z?
#
# | | reads | wavefronts |
# |---|---|---|
# | X | 4 | 12 |
# | Y | 10 | 16 |
# | Z | 4 | 20 |

# %%
see.predict("warp_tiles.rival")

# %% tags=["listing"]
see.fold(
    lambda: see.limits(("vectorized", square), "warp_tiled_tm1"),
    see.source("warp_tiled_tm1"),
    first="Choose your answer first, then open this: Z and Y, and the listing of Y in document 003's names.",
)

# %% [markdown] tags=["thought"]
# Clocks per warp and step. A scheduler issues one instruction per clock, and an SM has four.
#
# | | Z | Y | X |
# |---|---|---|---|
# | wavefronts of the reads | 20 | 16 | 12 |
# | filling the tiles: 40 wavefronts in 16 steps | 2.5 | 2.5 | 2.5 |
# | **all wavefronts** | 22.5 | 18.5 | 14.5 |
# | **instructions, four per clock** | 18.5 | 20 | 18.5 |
#
# By the larger of the two Y would be a little faster than Z. The clock says that they are alike.

# %% [markdown]
# Now cure the rival: cut its rows into runs of four, and its columns too. Which line of the table of eight is
# that? How many TFLOPS does it bring? (A product of 4096³ has `2 * 4096**3` operations. It should come to
# 42.)

# %%
# your line: TFLOPS from the milliseconds of that layout

# %% [markdown]
# **What we now know:** a kernel with warp tiles and without a conflict may be no faster than one with
# conflicts and without warp tiles. Count wavefronts, and count instructions.

# %% [markdown] id="side-warp_loops"
# Side trip, 55 minutes: document 003 cuts a block's tile three times, and gives every piece a name. [Who owns
# which element there?](warp_loops.ipynb) It leads back to this line.

# %% [markdown]
# ## What stops it now?
#
# Not shared memory: you have seen its work taken away. Below is the kernel with 12 wavefronts and with 8.
# Which part is busiest in each? And how busy is shared memory with 8? Write it down first.

# %%
see.fold(
    lambda: see.limits("warp_tiled", ("warp_tiled", {"WM": 128, "WN": 16})),
    first="Write it down, then open this.",
)

# %% [markdown]
# So would a larger block help? Set BM and BN to 256. No count per multiply-add gets worse, and half of the
# global loads go. Yet the speed falls from 43 to 3.8 TFLOPS. Which line of the picture tells why? (An *FMA*
# is a multiply-add. Its wavefronts here are those of the source, where every read is of one float.)

# %%
see.tiles("warp_tiled", tells_best=False)

# %% [markdown] tags=["thought"]
# *Registers, 64 per thread.* A block of 256 × 256 has 1,024 threads, and an SM's 65,536 registers must do
# for all of them. But a thread has 64 results, and needs registers for `a`, `b` and its indices too. So it
# spills, as in notebook [[thread_tiles_1d.ipynb]]: 688 bytes of each thread are in local memory.
# (`as_compiled` would say 2,724: it counts every store.)

# %% [markdown]
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a kernel whose lanes have their rows and columns in runs of four, so that no read of a tile has
#   a conflict.
# - **It reached** 43 TFLOPS on an H200; with 20 wavefronts it was 38.
# - **What stops it now** is not shared memory. Busiest are the issue slots: an instruction in 77 % of the
#   clocks, 87 % of them multiply-adds. So look at the other 23 %: when does nobody issue? Notebook
#   [[overlap.ipynb]] fetches the next tile while this one is multiplied.

# %%
see.my_ladder()

# %% [markdown]
# The ladder of these seven kernels is complete. With what you know now you can also build one of your own:
# notebook [[[own_kernel.ipynb]]](own_kernel.ipynb) says how, and needs nothing that comes before it but these
# eight.
#
# ## Three questions about other kernels

# %%
see.quiz("warp_tiles")

# %% [markdown]
# *A good place for a pause. What follows takes some 35 minutes, another day perhaps.*
#
# ## Can you still write the first tile?
#
# Write the kernel of [[tile_kernel]] again, `make_tiled(T)`, without a look at your first one. Ten minutes
# are a good time.

# %% id="tile_kernel-again"
make_tiled = None  # your factory, in place of this line

check.tile_kernel(make_tiled)

# %% [markdown]
# ## Does it work where nothing is multiplied by a matrix?
#
# Blur a picture, or let heat flow through a plate: every element becomes a weighted sum of itself and its
# eight neighbours. Such a kernel is a **stencil**. With weights `w` of 3 × 3,
#
# $$\mathrm{out}_{i,j} = \sum_{a=0}^{2} \sum_{b=0}^{2} w_{a,b} \, A_{i+a-1,\ j+b-1}$$
#
# What lies outside A counts as 0.
#
# ### Exercise [[stencil]] · A tile with a halo
# *core · medium · 15 minutes*
#
# Write `make_stencil(T)`, which returns the kernel `(A, w, out)`. A and `out` have m rows and n columns, any
# m and n; T is 4, 8, 16 or 32. Blocks have T × T threads, x along the columns, and there are `ceil(n / T)` ×
# `ceil(m / T)` blocks. Each thread computes one result.
#
# A block's T × T results need the elements around them too, its **halo**. So its tile has (T + 2) × (T + 2)
# elements, more than the block has threads. Load each of them once, and none from outside A. The
# checker counts: inside A, every border between two blocks costs two more rows or columns. `w` needs no tile.


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
# Forecast the limit from counts. A stencil adds up side × side neighbours. For each multiply-add a warp's
# reads take `wavefronts` wavefronts of L1 and shared memory, which are one memory. Yours has side 3, and the
# checker's message above says how many wavefronts. Three parts of an H200 put a roof above it:
#
# - DRAM, the GPU's large memory, moves 4.55 TB per second;
# - L1 allows 16.7 TFLOPS / wavefronts, as in notebook [[naive.ipynb]];
# - the units that multiply and add, FP32, do 64.8 TFLOPS.
#
# (The 4.55 and 64.8 were measured. The data sheet's 4.8 and 67 need every clock.)
#
# Return four things: the bytes that must pass DRAM for one result, if each element of A is fetched from there
# once; the FLOP per byte (a multiply-add is two FLOP); the lowest of the three roofs in TFLOPS; and its name,
# `"DRAM"`, `"L1"` or `"FP32"`.


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
# **What we now know:** tiles, barriers, banks and roofs are not about matrices. Ask of any kernel what its
# lanes read at the same time, and which part of the SM that keeps busy.
