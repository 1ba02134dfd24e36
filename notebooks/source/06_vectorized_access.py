# %% [markdown]
# # 06 · Transposed A, vectorized access
#
# One instruction can move four floats instead of one. Nothing else in this course sounds so simple and
# comes with so much small print: where the four may begin, what happens at the edge of a matrix, which way
# round a tile has to lie, and why it makes some kernels *slower*.
#
# **After this notebook you can**
# - move a tile with 128-bit requests, and say at which addresses they may begin;
# - carry A's tile into shared memory transposed, and choose the padding behind its rows;
# - treat sizes that are no multiple of four, and say when vectorizing helps and when it hurts.
#
# *Time: about 45 minutes to read, 70 for the exercises. Comes from document 003 (how the tiles are loaded)
# and document 004, kernel v05.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, run
from gemm_course import widgets as see
from gemm_course.intrinsics import load4, store4
from gemm_course.kernels import LADDER

# %% [markdown]
# ## In one picture
#
# Who makes what stays as it was. New is how the tiles are copied: see what one thread copies in the first
# step, and with how many loads.

# %%
see.multiply("vectorized")

# %% [markdown]
# ## What limits it now?
#
# With 8 × 8 results a thread, the kernel of notebook 05 does 64 multiply-adds in a k step and reads 16
# floats of shared memory for them. Each of the reads is an instruction, and so is each of the loads and
# stores that fill the tiles. A scheduler issues **one instruction a clock**: while it issues a load, no
# multiply-add begins. As the source has it, 64 of 80 instructions do the work.
#
# If four neighbouring floats came with one instruction, it would be 64 of 68. You have seen the compiler
# merge reads of shared memory by itself. What it leaves as it is are the loads and stores that fill the
# tiles.
#
# ## One request, four floats
#
# A lane may ask for 32, 64 or 128 bits at once. In this course two functions do it, each a single
# instruction on the GPU:
#
# - `load4(A, (row, col))` returns `A[row, col]` and its three right neighbours, as a tuple of four;
# - `store4(A, (row, col), four)` stores such a tuple.
#
# The 32 lanes of a warp then ask for 512 bytes in one request.

# %%
see.predict("06.requests")

# %% tags=["answer"]
tiles = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}  # document 004's
see.compare("thread_tiled_2d", "vectorized", tiles, "global_load_requests", "global_load_sectors")

# %% [markdown] tags=["answer"]
# **Fewer instructions, not fewer bytes.** "4 sectors a request" is no measure of anything here: an ideal
# 128-bit request takes 16. Count the sectors of the whole product instead.

# %% [markdown]
# With the store of C it is different:

# %%
see.compare("thread_tiled_2d", "vectorized", tiles, "global_store_requests", "global_store_sectors")

# %% [markdown]
# Before, a thread stored its 8 neighbouring results in 8 requests. In each of them the lanes are 8 floats
# apart, so every lane touches a sector of its own and uses 4 of its 32 bytes. Now it uses 16 of them.
#
# Here are both kernels with small tiles, one warp per block. Which requests move more at once, and which use
# more of what they move?

# %%
see.warp_and_memory("thread_tiled_2d", "vectorized")

# %% [markdown]
# ## Where four may begin
#
# A 128-bit access must begin at a **multiple of 16 bytes**. Otherwise the GPU stops the kernel:
# *misaligned address*. For `load4(A, (row, col))` three things have to hold:
#
# - the array begins at such an address. Those that `cuda.to_device` makes do. A shared array needs to be
#   told, by a third argument, in bytes: `cuda.shared.array((BK, BM), float32, 16)`;
# - the **leading dimension** is a multiple of 4 floats. Document 004 pads every row to 64 bytes, and so does
#   this course's `run`, at least to what a stage needs;
# - `col` is a multiple of 4.

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 61), np.float32)
result = run("vectorized", A, B)
np.abs(result.C - A @ B).max(), result.leading_dimensions

# %% [markdown]
# ### And if k is 50?
#
# Then the last four of a row of A are elements 48 and 49 and two floats of padding. Reading them is allowed,
# they belong to the row. But there may be anything in them, and in this course's tests there is NaN.
#
# | what ends | what is read beyond | what to do |
# |---|---|---|
# | k, in a row of A | up to three floats of padding, in **every** sum of that row | a zero for each of them |
# | m | rows of A that do not exist | do not load at all, take four zeros |
# | n, in a row of B | up to three floats of padding | nothing: they end up in columns that C does not have |
# | n, in a row of C | up to three floats of padding | not ours to write: store the last ones singly |
#
# "Bs is zero for these k, so the product is zero" is what everyone thinks first. But **0 · NaN is NaN**.
#
# ## A on its side
#
# Filling the tiles is one half. The other is reading them. In a k step p a thread with 8 × 8 results needs
#
# - `Bs[p, x0]` to `Bs[p, x0 + 7]`: neighbours, two requests of 128 bits;
# - `As[y0, p]` to `As[y0 + 7, p]`: one below the other, BK floats apart. No two of these are neighbours.
#
# So A's tile is **transposed** on its way into shared memory: `As[p, y0]` to `As[p, y0 + 7]` are neighbours.
# This is the price: the four floats of one load lie along k, and now they must go into four different
# *rows* of As. After `v = load4(A, (r, c))` it takes `As[c + e, r] = v[e]` for e from 0 to 3. (r and c count
# from the corner of the tile.) Four loads became one; the four stores remain.
#
# Document 003 gives three formulas for it. `BK // 4` threads share a row of the tile:
#
# | | | |
# |---|---|---|
# | innerRowA | `tid // (BK // 4)` | which row of the tile is mine |
# | innerColA | `tid % (BK // 4)` | which four of this row: column `4 * innerColA` |
# | rowStrideA | `THREADS // (BK // 4)` | how many rows the block covers in a round |
#
# Below is one warp with a small tile. Be another thread, and step on. Then choose BK = 8: now two threads
# share a row.

# %%
see.scatter()

# %% [markdown]
# In every store the 32 lanes put 32 floats into a few rows of As. Look at the last line of the picture while
# you move *padding of As* from 4 to 0. Which banks are these?
#
# ## Thirty-two banks again
#
# You know from notebook 03 that a bank gives one word a clock. Two things are new.
#
# **Wide accesses are served in groups.** 32 banks give 128 bytes a wavefront, and a warp that asks for 512
# cannot have them in one. With 64 bits a lane, half a warp is served at a time; with 128 bits a *quarter*,
# eight lanes. Four wavefronts are the least then, and no conflict. (One exception, for loads: where all lanes
# want what their neighbour wants, two groups are served together.)
#
# **Padding may not break alignment.** Choose, one after the other:
#
# 1. `As[c + e, r] = v[e]` without padding, BK = 8, 16 and 32. Why do the wavefronts double?
# 2. `load4(As, (p, y0))` with padding 0, 1, 2 and 4. What happens?
# 3. `load4(Bs, (p, x0))`. A thread has 8 × 8 results here, so lanes are 8 words apart.

# %%
see.wavefronts()

# %% [markdown]
# 1. BK // 4 lanes share a row of A, and their floats go down a column of As, four rows apart. Rows that are
#    128 words long all begin in the same bank, so these lanes meet in one: 2, 4, 8 wavefronts. Padding moves
#    each row on by a few banks. What that is worth, you will work out in exercise 06.3.
# 2. With 1 or 2 words of padding, the rows of As no longer begin at multiples of 16 bytes, and cannot be read
#    by fours. (Some published kernels pad by other amounts; ask of each whether its reads are still aligned.)
# 3. Half of the banks stand idle while the other half gives two words for every group: **8** wavefronts,
#    where 4 would do. Keep that in mind.
#
# ## The kernel

# %%
see.diff("thread_tiled_2d", "vectorized")

# %% [markdown]
# Notice:
#
# - `A_ROWS` and `B_ROWS` are document 003's rowStrideA and rowStrideB; `tid // (BK // 4)` is innerRowA.
#   Threads are numbered straight through, `tid`, and each tile is shared out anew. (`u32` and `unroll` are
#   for the compiler: unsigned indices, and loops written out in full.)
# - `load4` is only called where the four *begin* inside the matrix. When they are stored, each is asked again
#   whether it lies before k.
# - Nobody wrote `load4(As, ...)`. The loops that fill `a` and `b` read neighbours, the arrays are aligned to
#   16 bytes, and the compiler sees it.
# - In the last lines the row of C is stored as four, or, at its end, singly.
#
# ## Count it three ways
#
# How many load requests do all warps together make to global memory, and how many sectors do they move?
# Whatever the tiles are: write it with `t["BM"]` and `t["BN"]`, for sizes that are multiples of the tiles.
# Each block column needs all of A once, each block row all of B.

# %%
t = LADDER["vectorized"].tiles


# %% id="formula"
def global_requests(m, n, k):
    ### BEGIN SOLUTION
    floats = m * k * (n // t["BN"]) + k * n * (m // t["BM"])
    return floats // 4 // 32
    ### STUB
    # return None
    ### END SOLUTION


def global_sectors(m, n, k):
    ### BEGIN SOLUTION
    floats = m * k * (n // t["BN"]) + k * n * (m // t["BM"])
    return floats // 8
    ### STUB
    # return None
    ### END SOLUTION


# %%
size = (1024, 1024, 1024)
see.counts("vectorized", size, global_load_requests=global_requests, global_load_sectors=global_sectors)


# %% [markdown]
# And the reads of shared memory? The source reads TM + TN floats for TM · TN multiply-adds.


# %%
def shared_reads(stage):
    (m, n, k), t = size, LADDER[stage].tiles
    return m * n * k * (t["TM"] + t["TN"]) // (t["TM"] * t["TN"]) // 32


see.counts("vectorized", size, shared_load_requests=shared_reads("vectorized"))

# %% [markdown]
# The counter says a quarter: the compiler made one 128-bit read of every four. That is what the transposing
# was for.
#
# Was it necessary? You know the answer from notebook 05. Here it is again:

# %%
see.counts("thread_tiled_2d", size, shared_load_requests=shared_reads("thread_tiled_2d"))

# %% [markdown]
# The stage before has its quarter *too*, without transposing anything. The loop over p is written out in
# full, so the compiler sees `As[y0 + i, p]` to `As[y0 + i, p + 3]`, neighbours along k, and reads those by
# four. It then has to keep four k steps of As in registers, where the transposed tile needs one. The
# document's argument is right for the source, and the compiler found a way round it. What is left as the
# gain of this stage are the loads and stores of global memory, and the registers. A count keeps us from
# telling a tidier story than the true one.
#
# ## Which vectorizing helps, and which hurts
#
# Document 004's author has more kernels in his repository than in the article: v02 to v05, each with scalar
# loads of the tiles and with loads by fours. They were compiled and measured for this course.

# %%
see.predict("06.v02")

# %% tags=["answer"]
see.vectorized_peers("v02", "v03", "v04", "v05")

# %% [markdown]
# How many fours does a thread have to fetch from one tile of A? His tiles are written in the sources:

# %%
for name, threads, floats in (("v02", 32 * 32, 32 * 32), ("v03", 512, 64 * 8), ("v04", 256, 128 * 16)):
    print(name, floats / 4 / threads, "fours a thread")

# %% [markdown] tags=["answer"]
# - **v02, v03: slower.** A quarter of a four a thread means that one thread in four fetches, and three wait
#   at the barrier. Fewer warps have loads on the way, and nothing else has become less.
# - **v04: hardly any gain.** Every thread has two fours, none is idle, but reading the tiles costs what it
#   did.
# - **v05 without fours is slower than v04** (20.7 against 25.5). There, 16 lanes hold one row of A, and
#   without padding their 16 stores meet in one bank. **With fours it is the fastest** (33.3). Each half of
#   the idea is of little use by itself.
#
# So: fours help where every thread still has something to do, and where the tile lies the way it is read.
#
# ## What is the ceiling now?

# %%
see.predict("06.ceiling")

# %% tags=["answer"]
see.tflops("block_tiled", "thread_tiled_1d", "thread_tiled_2d", "vectorized")

# %% tags=["answer"]
see.roofline("thread_tiled_1d", "thread_tiled_2d", "vectorized")

# %% [markdown]
# (The question was about 8 × 8 results, the chart is about the stage's default tiles.)
#
# The answer to *what limits it now?*: of the peak's four warp-FMAs a clock, issuing everything else takes a
# part. With 8 × 8 results a thread the **conflict in the reads of Bs** takes another: 20 wavefronts a k step
# where 12 would do. There are two ways out.
#
# - **Another thread tile.** You know 16 × 4 from notebook 05. With four columns a thread, the lanes' pieces
#   of Bs lie side by side, and 12 wavefronts it is. The price: five 128-bit reads a k step instead of four.
# - **Another place for the lanes.** They lie in a row now. If they lay in a rectangle, and each had its
#   columns in two places, the square could keep its four reads... but that is the next notebook.
#
# ## Tune it

# %%
see.tiles("vectorized")

# %% [markdown]
# Is the padding worth it? Move PAD and see what was measured, first with BK = 32, then with 8 × 8 results
# and BK = 16. Without padding a store of As takes BK / 4 wavefronts. A tile is stored once and read many
# times, so a conflict in the stores costs less than one in the reads; but with a deep tile it costs
# something. (Where it says *not measured*, nobody knows: the sweep took a part of all tiles.)
#
# And which thread tile was fastest?

# %%
see.heatmap("vectorized", "TM", "TN", others="best")

# %% [markdown]
# Tall tiles do well, wide ones badly: compare 16 × 4 with 4 × 16, the same 20 elements a k step. Tall ones
# read more of As, where the lanes of a row share every word. Wide ones read more of Bs, where the lanes'
# pieces lie TN floats apart and meet in the same banks.
#
# ---
# ## Exercises
#
# ### Exercise 06.1 · Four at once
# *core · easy · 10 minutes*
#
# One block of THREADS threads, `tid = cuda.threadIdx.x`, copies a tile from `A` to `out`, both BM rows by BK
# columns. (The rows of `A` go on behind the tile; what is there is none of your business.) Write
# `make_copy(BM, BK, THREADS)`, which returns the kernel `(A, out)`. Use `load4` and `store4`. THREADS is a
# multiple of BK // 4, and BM a multiple of the rows that the block covers at a time.
#
# The checker wants a quarter of the requests, and every byte of every sector used.


# %% id="ex-06-1"
def make_copy(BM, BK, THREADS):
    ### BEGIN SOLUTION
    ROWS = THREADS // (BK // 4)

    ### STUB
    ### END SOLUTION
    @cuda.jit
    def copy(A, out):
        ### BEGIN SOLUTION
        tid = cuda.threadIdx.x
        for i in range(0, BM, ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            store4(out, (r, c), load4(A, (r, c)))
        ### END SOLUTION

    return copy


check.four_at_once(make_copy)

# %% [markdown]
# ### Exercise 06.2 · The transposing scatter
# *core · hard · the heart of this notebook · 20 minutes*
#
# Now through shared memory. Write `make_transpose(BM, BK, PAD, THREADS)`, which returns a kernel `(A, out)`.
# Its one block
#
# 1. fetches A's tile, BM × BK, by fours,
# 2. stores it transposed into a shared array, whose rows are BM + PAD floats long,
# 3. and, when all is there, writes it to `out` (BK rows by BM columns): read by fours, stored by fours, as a
#    thread of the GEMM kernel reads its row of As.
#
# THREADS is a multiple of BK // 4 and of BM // 4 here.


# %% id="ex-06-2"
def make_transpose(BM, BK, PAD, THREADS):
    ### BEGIN SOLUTION
    A_ROWS, OUT_ROWS = THREADS // (BK // 4), THREADS // (BM // 4)
    WIDTH = BM + PAD

    ### STUB
    ### END SOLUTION
    @cuda.jit
    def transpose(A, out):
        ### BEGIN SOLUTION
        As = cuda.shared.array((BK, WIDTH), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, A_ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[e]
        cuda.syncthreads()
        for i in range(0, BK, OUT_ROWS):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, (p, j)))
        ### END SOLUTION

    return transpose


check.transposing_scatter(make_transpose)

# %% [markdown] tags=["stub"]
# When it passes, look at your own kernel at work: `see.scatter(make_transpose)`.

# %% tags=["solution"] id="own-scatter"
see.scatter(make_transpose)

# %% [markdown]
# ### Exercise 06.3 · Padding
# *core · medium · 8 minutes*
#
# As for BM = 128 and BK = 16. How many wavefronts does a warp's store `As[c + e, r] = v[e]` take when 0, 2 or
# 4 floats lie behind each row? And which of the three do you take, if As is to be read by fours? Work it out
# on paper; the picture above will tell you if you must.

# %% id="ex-06-3"
### BEGIN SOLUTION
check.scatter_padding(wavefronts=[4, 1, 2], take=4)
### STUB
# check.scatter_padding(wavefronts=[None, None, None], take=None)
### END SOLUTION

# %% [markdown]
# ### Exercise 06.4 · Where the matrix ends
# *core · hard · 20 minutes*
#
# Here is a whole GEMM kernel with one gap: it calls `fetch`, and `fetch` is yours.

# %%
from gemm_course.checks.kits import around

see.source(around(None, 32, 32, 16, 4, 4))

# %% [markdown]
# Write `make_fetch(BM, BK, THREADS)`. It returns a *device function*, one that the threads of a kernel call,
# under `@cuda.jit(device=True)`. It brings the tile of A that begins at `A[row0, k0]` into As, transposed,
# for **any** m and k. A's rows are multiples of four floats long; behind column k there is NaN.


# %% id="ex-06-4"
def make_fetch(BM, BK, THREADS):
    ### BEGIN SOLUTION
    ROWS = THREADS // (BK // 4)

    ### STUB
    ### END SOLUTION
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        ### BEGIN SOLUTION
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(0, BM, ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
            for e in range(4):
                As[c + e, r] = v[e] if k0 + c + e < k else float32(0)
        ### END SOLUTION

    return fetch


check.ragged_fours(make_fetch)

# %% [markdown]
# ### Exercise 06.5 · A read that nobody notices
# *stretch · medium · 12 minutes*
#
# This is document 004's v05, with small tiles: 32 × 32 × 8, and 4 × 4 results a thread. For any m, n and k
# its results are those of NumPy. (It stores whole fours, into the padding too, and takes in the old C even if
# beta is 0. The document allows the one and does not speak of the other.) Yet one of its accesses to global
# memory leaves its array.

# %%
from gemm_course.checks.kits import document_v05

see.source(document_v05())

# %% [markdown]
# Which access is it, and what is the smallest C, by m · n, for which it happens? Answer with the array and
# what is done to it, such as `("A", "load")`, and with `(m, n)`.

# %% id="ex-06-5"
### BEGIN SOLUTION
check.stray_read(access=("C", "load"), shape=(1, 1))
### STUB
# check.stray_read(access=(None, None), shape=(None, None))
### END SOLUTION

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("06")

# %% [markdown]
# ## Recap
#
# - A 128-bit request moves four floats with one instruction: a quarter of the requests, the same sectors.
# - It must begin at a multiple of 16 bytes: start, leading dimension, column, and the padding in shared
#   memory.
# - A transposed tile lets a thread read its column by fours. The price is a scatter with bank conflicts: with
#   BK = 16, padding 4 leaves two wavefronts, padding 2 would leave one and break the alignment.
# - Past k, zeros one by one: 0 · NaN is NaN.
# - Vectorizing by itself made v02 and v03 slower. Count how many fours a thread has.
#
# **Next:** the 32 lanes of a warp get a tile of their own, and a square of results reads Bs without a
# conflict.
