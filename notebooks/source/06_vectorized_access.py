# %% [markdown]
# # 06 · Transposed A, vectorized access
#
# One instruction can move four floats instead of one. Nothing else in this course sounds so simple and
# comes with so much small print: where the four may begin, what happens at the edge of a matrix, which way
# round a tile has to lie, and which part of it pays.
#
# **After this notebook you can**
# - move a tile with 128-bit requests, and say at which addresses they may begin;
# - carry A's tile into shared memory transposed, and choose the padding behind its rows;
# - treat sizes that are no multiple of four, and take a change apart to find out which part of it pays.
#
# *Time: about 50 minutes to read, 66 for the exercises. Comes from document 003 (how the tiles are loaded)
# and document 004, kernel v05; the [glossary](glossary.md#document) says what the documents are.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, profiled, run
from gemm_course import widgets as see
from gemm_course.intrinsics import load4, store4
from gemm_course.kernels import LADDER

# %% [markdown]
# ## In one picture
#
# Who computes what stays as it was. New is how the tiles are copied: see what one thread copies in the first
# step, and with how many loads.

# %%
see.multiply("vectorized")

# %% [markdown]
# ## What limits it now?
#
# Issue slots. A [scheduler](glossary.md#scheduler) issues **one instruction per clock**: while it issues
# something else, no multiply-add begins. In notebook 05's kernel schedulers issue in 72 % of the clocks, and
# 72 % of what they issue are multiply-adds. Which are the others? The main loop, as compiled:

# %%
from gemm_course import compiled

{kind: count for kind, count in compiled("thread_tiled_2d").loop.by_kind.items() if count}

# %% [markdown]
# The compiler merged the reads of shared memory by itself: 160 loads of 128 bits. It did not merge the 32
# loads and 32 stores that fill the tiles, an element each. And each of these needs an address: most of the
# integer arithmetic and of the moves, 475 instructions, is for that. (`see.machine_code("thread_tiled_2d")`
# shows which line of the source each of them comes from.)
#
# If one instruction moved four neighbouring floats, there would be a quarter of the loads, and a quarter of
# the addresses.
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

# %% tags=["answer"]
see.compare("thread_tiled_2d", "vectorized", tiles, "global_store_requests", "global_store_sectors")

# %% [markdown] tags=["answer"]
# Loads: **fewer instructions, not fewer bytes.** "4 sectors per request" is no measure of anything here: an
# ideal 128-bit request takes 16. Count the sectors of the whole product instead.
#
# Stores: before, a thread stored its 8 neighbouring results in 8 requests. In each of them the lanes are 8
# floats apart, so every lane touches a sector of its own and uses 4 of its 32 bytes. Now it uses 16 of them.

# %% [markdown]
# See it with small tiles, one warp per block: loads move more at once, stores use more of what they move.

# %%
see.warp_and_memory("thread_tiled_2d", "vectorized")

# %% [markdown]
# ## Where four may begin
#
# A 128-bit access must begin at a **multiple of 16 bytes**. Otherwise the GPU stops the kernel:
# *misaligned address*. `load4(A, (row, col))` is safe in every row if three things hold:
#
# - the array begins at such an address. Those that `cuda.to_device` makes do. A shared array needs to be
#   told, by a third argument, in bytes: `cuda.shared.array((BK, BM), float32, 16)`. You have seen it in
#   listings since notebook 03;
# - the **leading dimension** is a multiple of 4 floats. Document 004 pads every row to 64 bytes. This
#   course's `run` pads only to what the stage needs: four floats here;
# - `col` is a multiple of 4.

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 61), np.float32)
result = run("vectorized", A, B)
np.abs(result.C - A @ B).max(), result.leading_dimensions

# %% [markdown]
# Each is the next multiple of four: 50 columns of A became rows of 52 floats, 61 of B and C rows of 64.
#
# ### Exercise 06.1 · Four at once
# *core · easy · 10 minutes*
#
# One block of THREADS threads, `tid = cuda.threadIdx.x`, copies a tile from `A` to `out`, both BM rows by BK
# columns. (The rows of `A` go on behind the tile; ignore that.) Write `make_copy(BM, BK, THREADS)`, which
# returns the kernel `(A, out)`. Use `load4` and `store4`. THREADS is a multiple of BK // 4, and BM a multiple
# of the rows that the block covers at a time.
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
# ## A on its side
#
# The documents' argument is this. Keep your doubts until the end.
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
# Why not transpose B as well? A thread's eight columns of Bs are neighbours already. Transposed, they would
# lie BK floats apart.
#
# Document 003 gives three formulas for the scatter. `BK // 4` threads share a row of the tile:
#
# | | | |
# |---|---|---|
# | innerRowA | `tid // (BK // 4)` | which row of the tile is mine |
# | innerColA | `tid % (BK // 4)` | which four of this row: column `4 * innerColA` |
# | rowStrideA | `THREADS // (BK // 4)` | how many rows the block covers in a pass |
#
# Below is one warp with a small tile. Choose another thread, then step. With BK = 8 two threads share a row.

# %%
see.scatter()

# %% [markdown]
# In every store the 32 lanes put 32 floats into a few rows of As. Step to a store, and look at the last line
# of the picture while you move *padding of As* from 4 to 0: 2 wavefronts become 4. Exercise 06.3 asks why.
#
# ### Exercise 06.2 · The transposing scatter
# *core · hard · the heart of this notebook · 20 minutes*
#
# Write `make_transpose(BM, BK, PAD, THREADS)`, which returns a kernel `(A, out)`. Its one block
#
# 1. fetches A's tile, BM × BK, by fours,
# 2. stores it transposed into a shared array, whose rows are BM + PAD floats long,
# 3. and, when all is there, writes it to `out` (BK rows by BM columns): read by fours, stored by fours. Here
#    you write `load4(As, ...)` by hand; the kernel leaves it to the compiler.
#
# THREADS is a multiple of BK // 4 and of BM // 4 here, and PAD a multiple of 4.


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
# ## Thirty-two banks again
#
# You know from notebook 03 that a bank gives one word per clock, and from 05 how wide requests are served.
# Now as pictures, and with one thing that is new.
#
# **Wide accesses are served in groups.** 32 banks give 128 bytes per wavefront, and a warp that asks for 512
# cannot have them in one. With 64 bits per lane, half a warp is served at a time; with 128 bits a *quarter*,
# eight lanes. Four wavefronts are the least then, and no conflict. (One exception, for loads: if lanes 2i and
# 2i + 1 always want the same 16 bytes, two groups are served together.)
#
# **New: padding may not break alignment.** A row of As that is to be read by fours begins at a multiple of 16
# bytes.
#
# ### Exercise 06.3 · Padding
# *core · medium · 8 minutes*
#
# As for BM = 128 and **BK = 32**. How many wavefronts does a warp's store `As[c + e, r] = v[e]` take when
# 0, 2 or 4 floats lie behind each row? And which of the three do you take, if As is to be read by fours? Work
# it out on paper; the picture below will tell you if you must.

# %% id="ex-06-3"
### BEGIN SOLUTION
check.scatter_padding(wavefronts=[8, 2, 4], take=4)
### STUB
# check.scatter_padding(wavefronts=[None, None, None], take=None)
### END SOLUTION

# %% [markdown]
# Now the picture. Choose, one after the other:
#
# 1. `As[c + e, r] = v[e]` without padding, BK = 8, 16 and 32. Why do the wavefronts double?
# 2. `load4(As, (p, y0))` with padding 0, 1, 2 and 4. What happens?
# 3. `load4(Bs, (p, x0))`. A thread has 8 × 8 results here, so lanes are 8 words apart.

# %%
see.wavefronts()

# %% [markdown] tags=["listing"]
# 1. BK // 4 lanes share a row of A, and their floats go down a column of As, four rows apart. Rows that are
#    128 words long all begin in the same bank, so these lanes meet in one: 2, 4, 8 wavefronts. Padding moves
#    each row on by a few banks.
# 2. With 1 or 2 words of padding, the rows of As no longer begin at multiples of 16 bytes, and cannot be read
#    by fours. (Some published kernels pad by other amounts; ask of each whether its reads are still aligned.)
# 3. Half of the banks stand idle while the other half gives two words for every group: **8** wavefronts,
#    where 4 would do. Keep that in mind.

# %% [markdown]
# ## And if k is 50?
#
# Then the last four of a row of A are elements 48 and 49 and two floats of padding. Reading them is allowed,
# they belong to the row. But there may be anything in them, and in this course's tests there is NaN.
#
# | what ends | what is read beyond | what to do |
# |---|---|---|
# | k, inside a four of A | up to three floats of padding, in **every** sum of the row | a zero for each |
# | k, before a four of A | all of it: three fours per row here, with BK = 16 | do not load, take four zeros |
# | k, in B | rows of B that do not exist | the same (`fetch_b` does it) |
# | m | rows of A that do not exist | the same |
# | n, in a row of B | up to three floats of padding | nothing: they end up in columns that C does not have |
# | n, in a row of C | up to three floats of padding | not ours to write: store the last ones singly |
#
# "Bs is zero for these k, so the product is zero" is what everyone thinks first. But **0 · NaN is NaN**.
#
# ### Exercise 06.4 · Where the matrix ends
# *core · hard · 20 minutes*
#
# Here is a whole GEMM kernel with one gap: it calls `fetch`, and `fetch` is yours. (`fetch_b` brings the tile
# of B.)

# %%
from gemm_course.checks.kits import around

see.source(around(None, 32, 32, 16, 4, 4))

# %% [markdown]
# Write `make_fetch(BM, BK, THREADS)`. It returns a *device function*, one that the threads of a kernel call,
# under `@cuda.jit(device=True)`. It brings the tile of A that begins at `A[row0, k0]` into As, transposed,
# for **any** m and k. A's rows are multiples of four floats long; behind column k there may be anything.
# `tid` numbers all threads of the block, which is two-dimensional.


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
# ## The kernel
#
# This is the course's version, and what changed since notebook 05:

# %% tags=["listing"]
see.diff("thread_tiled_2d", "vectorized")

# %% [markdown]
# - `A_ROWS` and `B_ROWS` are document 003's rowStrideA and rowStrideB; `tid // (BK // 4)` is innerRowA.
#   Threads are numbered consecutively, `tid`, and each tile is divided among them anew.
# - `load4` is only called where the four *begin* inside the matrix. When they are stored, each is asked again
#   whether it lies before k.
# - Nobody wrote `load4(As, ...)`. The loops that fill `a` and `b` read neighbours, the arrays are aligned to
#   16 bytes, and the compiler sees it.
# - In the last lines `store_four` stores a row of C as four or, at its end, singly. You see it after 06.5.
#
# To run a copy, put it into a factory, and begin with `from gemm_course.intrinsics import load4, store4, u32,
# unroll` and `from gemm_course.kernels.parts.results import store_four`. (`u32` and `unroll` are for the
# compiler: unsigned indices, and loops written out in full.)
#
# ### Exercise 06.5 · A read that nobody notices
# *stretch · medium · 8 minutes*
#
# This is a kernel after document 004's v05, with the clearing of 06.4 and small tiles: 32 × 32 × 8, and 4 × 4
# results per thread. With a finite C its results are those of NumPy, for any m, n and k. (It stores whole
# fours, into the padding too, as the document allows.) Yet one of its accesses to global memory leaves its
# array. The listing contains 06.4's solution: write that first.

# %% tags=["listing"]
from gemm_course.checks.kits import document_v05

see.source(document_v05())

# %% [markdown]
# Which access is it? C of 1 × 1 shows it. What is the smallest C, by m · n, for which it does **not** happen?
# The document's rows are padded to multiples of 16 floats, and the padding belongs to the array. Answer with
# the array and what is done to it, such as `("A", "load")`, and with `(m, n)`.

# %% id="ex-06-5"
### BEGIN SOLUTION
check.stray_read(access=("C", "load"), shape=(32, 17))
### STUB
# check.stray_read(access=(None, None), shape=(None, None))
### END SOLUTION

# %% [markdown]
# The course's kernel asks first:

# %% tags=["listing"]
from gemm_course.kernels.parts.results import store_four

see.source(store_four)

# %% [markdown]
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
# And the reads of shared memory? The source reads TM + TN floats for TM · TN multiply-adds. Here and in the
# stage before:


# %%
def shared_reads(stage):
    (m, n, k), t = size, LADDER[stage].tiles
    return m * n * k * (t["TM"] + t["TN"]) // (t["TM"] * t["TN"]) // 32


see.counts("vectorized", size, shared_load_requests=shared_reads("vectorized"))

# %%
see.counts("thread_tiled_2d", size, shared_load_requests=shared_reads("thread_tiled_2d"))

# %% [markdown]
# The counter says a quarter: the compiler made one 128-bit read of every four. That is what the transposing
# was for. But the stage before has its quarter *too*. There the compiler sees `As[y0 + i, p]` to
# `As[y0 + i, p + 3]`, neighbours along k, and reads four steps at once. The document's argument is right for
# the source, and the compiler found a workaround. So where does the gain of this stage come from?
#
# ## Take it apart
#
# Two things changed: accesses of four, and A transposed, with the padding that it needs. A kernel with a
# switch for each tells them apart. All four forms have the same tiles, 128 registers and two blocks per SM.
# With neither it is 33.9 TFLOPS, with both 41.4.

# %%
see.predict("06.halves")

# %% tags=["answer"]
fours = profiled("vectorized_apart", tiles={"FOURS": 1, "TRANSPOSED": 0})
transposed = profiled("vectorized_apart", tiles={"FOURS": 0, "TRANSPOSED": 1, "PAD": 4})
see.waits("thread_tiled_2d", transposed, fours, "vectorized")

# %% [markdown] tags=["answer"]
# | | TFLOPS | instructions, billions | issue slots |
# |---|---|---|---|
# | neither | 33.9 | 2.97 | 72 % |
# | transposed only | 34.6 | 2.94 | 73 % |
# | fours only | 38.1 | 2.58 | 71 % |
# | both | 41.4 | 2.50 | 74 % |
#
# Fours alone bring 4.2 of the 7.5 TFLOPS, transposing alone 0.7, and the two together 2.6 more. The fours
# save 13 % of all instructions, the transposing 1 %. This is what the fours did to the loop:

# %% tags=["answer"]
see.compare_code("thread_tiled_2d", fours)

# %% [markdown] tags=["answer"]
# The larger part of what is saved are not the loads themselves but their addresses: integer arithmetic and
# moves. There are as many reads of shared memory as before, transposed or not.
#
# And transposing, once there are fours? Both together are 8 % faster than fours only. 3 % are instructions,
# mostly moves: one step of As has to be in registers at a time, where the compiler's workaround takes four,
# and spills 4 bytes. The rest: a scheduler issues in 74 instead of 71 % of the clocks. Dispatch takes 14
# instead of 19 % of a warp's time, but whether that is the cause is not settled.

# %% [markdown]
# ## Other kernels by fours
#
# Document 004's author has more kernels in his repository than in the article: v02 to v05, each with scalar
# loads of the tiles and with loads by fours. They were compiled and measured for this course.

# %%
see.predict("06.v02")

# %% tags=["answer"]
see.vectorized_peers("v02", "v03", "v04", "v05")

# %% [markdown]
# ### A suspect
#
# How many fours does a thread have to fetch from one tile of A? His tiles are written in the sources:

# %%
for name, threads, floats in (("v02", 32 * 32, 32 * 32), ("v03", 512, 64 * 8), ("v04", 256, 128 * 16)):
    print(name, floats / 4 / threads, "fours per thread")

# %% [markdown]
# ¼ four per thread: one thread in four fetches, and three wait for it at the barrier. "We waste a lot of
# threads", says a comment in the source. It sounds right. Is it the reason? Change one thing at a time:

# %% [markdown] tags=["answer"]
# All forms of v02 take 32 registers here, so that two blocks fit. nvcc was told to, also for the scalar one:
# that makes it 8.1, where the chart has 9.2.
#
# | TFLOPS | scalar | fours, as written | loop unrolled | no clearing |
# |---|---|---|---|---|
# | v02 | 8.1 | 5.8 | 6.9 | 7.8 |
# | v03 | 17.1 | 10.5 | 13.6 | 14.1 |
#
# The loop is the one that **clears** what lies past k, your exercise 06.4. The author writes `v[3 - i] = 0`
# for i below a number that is known only at run time. A dynamic index: registers have no addresses, so the
# four go to [local memory](glossary.md#local-memory), 32 bytes of it per thread (a *stack frame*). In v02
# warps make 134 million loads and as many stores there. Unroll this one loop, and there are none.
#
# Without any clearing v02 is 4 % slower than with scalar loads, and as many threads are idle as before. So it
# is not mainly they. The clearing costs instructions as well: with fours and the loop unrolled, v02 executes
# 41 % more than with scalar loads, v03 32 %. (v03's loss without clearing has not been taken apart.)

# %% [markdown]
# ### And v05, which transposes?
#
# In the chart v05 is slower than v04 without fours, and the fastest of all with them. But two things differ:
# v05 takes 130 registers, so that one block fits on an SM, and v05_vectorized 121, so that two fit. (v04 has
# 183.) All of them compiled for 128 registers, two blocks each:

# %% [markdown] tags=["answer"]
# | TFLOPS, two blocks per SM | scalar | fours |
# |---|---|---|
# | v04 | 29.2 | 30.3 |
# | v05, transposed | 28.9 | 33.0 |
#
# Transposing alone costs nothing and brings nothing, fours alone a little, and both together 13 %: the same
# order as in the course's kernel. (With 128 registers v04 spills some 100 bytes, v05 eight or none.)
#
# So: do not ask whether fours help. Look at the instructions, at local memory, and at the blocks per SM.

# %% [markdown]
# ## What is the ceiling now?

# %%
see.predict("06.ceiling")

# %% tags=["answer"]
see.roofline("thread_tiled_1d", "thread_tiled_2d", "vectorized")

# %% tags=["answer"]
see.tflops("block_tiled", "thread_tiled_1d", "thread_tiled_2d", "vectorized")

# %% [markdown]
# ## What limits it now?

# %%
see.limits("thread_tiled_2d", "vectorized")

# %% [markdown]
# Still issue slots, but better used: in 74 % of the clocks a scheduler issues, and 86 % of that are
# multiply-adds. In the other 26 % none of its four warps is ready: each spends 14 % of its time in dispatch,
# and 5 % each at barriers and on fixed delays.
#
# The multiply-add units follow at 64 %, shared memory at 62 %. That is with 16 × 4 results. With 8 × 8 shared
# memory was the limit before, and now it is more so. Both kernels below have the same tiles, and 20
# wavefronts per k step:

# %%
see.limits(
    ("thread_tiled_2d", {"BK": 16, "TM": 8, "TN": 8}), ("vectorized", {"BK": 16, "TM": 8, "TN": 8, "PAD": 0})
)

# %% [markdown]
# The **conflict in the reads of Bs** makes 20 wavefronts of what could be 12. With fewer instructions shared
# memory is busy in 89 instead of 72 % of the clocks, and warps wait 34 instead of 10 % of their time for what
# they read. There are two ways out.
#
# - **Another thread tile.** With 16 × 4 the lanes' pieces of Bs lie side by side, and 12 wavefronts it is.
#   The price: five 128-bit reads per k step instead of four. With BK = 32 and no padding the sweep has both:
#   39.0 TFLOPS, and 38.5 with 8 × 8.
# - **Another place for the lanes.** They lie in a row now. If they lay in a rectangle, and each had its
#   columns in two places, the square could keep its four reads... but that is the next notebook.
#
# ## Tune it

# %%
see.tiles("vectorized")

# %% [markdown]
# Is the padding worth it? Move PAD and see what was measured, first with BK = 32, then with 8 × 8 results
# and BK = 16. (Where it says *not measured*, nobody knows: the sweep took a part of all tiles. *Wavefronts*
# counts the source, float by float: 0.5 per multiply-add of a warp. As compiled it is 12 / 64.)
#
# Without padding a store of As takes BK / 4 wavefronts. With BK = 32:
#
# | | TFLOPS | waits for shared memory and its queue |
# |---|---|---|
# | PAD = 0 | 39.0 | 17 % |
# | PAD = 4 | 41.4 | 5 % |
#
# The best measured, 42.0, has PAD = 0: its tiles fill the 48 KB of a block, and padding would not fit.
#
# And BK? Double it until it no longer pays. With 8 × 8 and no padding:
#
# | BK | 8 | 16 | 32 |
# |---|---|---|---|
# | TFLOPS | 33.9 | 38.3 | 38.5 |
#
# (The picture above has 38.1 for BK = 16: the profile's run, not the sweep's.)
#
# And which thread tile was fastest?

# %%
see.heatmap("vectorized", "TM", "TN", others="best")

# %% [markdown]
# Each cell has its own best block tile. With the same block, tall tiles do well and wide ones badly:
#
# | block | 16 × 4 | 4 × 16 |
# |---|---|---|
# | 128 × 128 × 8 | 36.3 TFLOPS | 14.5 TFLOPS |
# | 256 × 32, the map's | | 32.7 TFLOPS |
#
# Both read 20 elements per k step. Tall ones read more of As, where the lanes of a row share every word. Wide
# ones read more of Bs, where the lanes' pieces lie TN floats apart and meet in the same banks. With
# 128 × 128 × 16 and 4 × 16, L1 and shared memory are busy in 98 % of the clocks. In a block of 256 × 32 only
# two lanes lie side by side.
#
# ---
# ## Quiz

# %%
see.quiz("06")

# %% [markdown]
# ## Recap
#
# - A 128-bit request moves four floats with one instruction: a quarter of the requests and of their
#   addresses. Loads move the same sectors, stores of C down to a quarter.
# - It must begin at a multiple of 16 bytes: start, leading dimension, column, and the padding in shared
#   memory.
# - The source needs A transposed to read a column by fours; the compiler does not. Fours bring 4.2 TFLOPS,
#   transposing 0.7, and both together 2.6 more: why, we do not know.
# - The price is a scatter with bank conflicts: with BK = 16, padding 4 leaves two wavefronts, padding 2 would
#   leave one and break the alignment.
# - Past k, zeros one by one, with constant indices: 0 · NaN is NaN, and a dynamic index costs local memory in
#   C++ and a chain of branches in Numba.
# - To know which part of a change pays, change one thing, and keep registers and blocks per SM equal.
#
# **Next:** the 32 lanes of a warp get a tile of their own, and a square of results reads Bs without a
# conflict.
