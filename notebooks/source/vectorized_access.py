# %% [markdown]
# # [[vectorized_access.ipynb]] · Transposed A, vectorized access
#
# One instruction can move four floats instead of one: the kernel goes from 33.9 to 41.4 TFLOPS. After this
# notebook you can write such a kernel's copies, for any size of matrix and without a crash. And you can tell
# which part of a change paid, even if a document says otherwise.
#
# *Time: about 50 minutes to read, 87 for the exercises. Comes from document 003 (how the tiles are loaded)
# and document 004, kernel v05; the [glossary](glossary.md#document) says what the documents are.*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32

from gemm_course import check, compiled, emulate, run
from gemm_course import widgets as see
from gemm_course.kernels import LADDER
from lockstep.intrinsics import load4, store4

# %% [markdown]
# ## In one picture
#
# Each thread computes the same results as before. New is how the tiles are copied. Step through it.

# %%
see.multiply("vectorized")

# %% [markdown]
# ## The tiles of this notebook
#
# | | BM × BN | BK | TM × TN |
# |---|---|---|---|
# | `vectorized`, `thread_tiled_2d` | 128 × 128 | 32 | 16 × 4 |
#
# Every measured figure is for these, unless it says otherwise. (`vectorized` also pads As; by how much, you
# find out in [[scatter_padding]].) Pictures of single elements use smaller tiles.
#
# ## What limits notebook [[thread_tiles_2d.ipynb]]'s kernel?
#
# Issue slots. A [scheduler](glossary.md#scheduler) issues **one instruction per clock**: while it issues
# something else, no multiply-add begins. Of all the instructions it issues, 72 % are multiply-adds. Guess
# what most of the others do. Then look at the main loop, as compiled:

# %%
see.fold(
    pd.Series(compiled("thread_tiled_2d").loop.by_kind).to_frame("instructions"),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# Integer arithmetic and moves: 475 instructions, far more than the 160 shared loads or the 71 compares and
# selects. Filling the tiles takes 32 loads and 32 stores, an element each, and each needs its address.

# %% [markdown]
# ## One request, four floats
#
# In this course two functions move 128 bits. Each is a single instruction on the GPU:
#
# - `load4(A, (row, col))` returns `A[row, col]` and its three right neighbours, as a tuple of four;
# - `store4(A, (row, col), four)` stores such a tuple.
#
# Four neighbouring floats, moved by one instruction, we call a *four*. The 32 lanes of a warp then ask for
# 512 bytes in one request.

# %%
see.predict("vectorized_access.requests")

# %%
tiles = LADDER["vectorized"].tiles
counted = "global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors"
see.fold(lambda: see.compare("thread_tiled_2d", "vectorized", tiles, *counted))

# %% [markdown] tags=["answer"]
# Loads: **fewer instructions, not fewer bytes.** The sectors were used whole before.
#
# Stores: before, a thread stored its four neighbours in four requests. In each of them the lanes are four
# floats apart, and use 8 of a sector's 32 bytes. Now they use them all.

# %% [markdown]
# See it with small tiles, one warp per block. **Find the waste.** Two kernels with three requests each make
# six choices. Two of these move more bytes than they use. Which? A thread has *eight* neighbours of a row
# of C here. Guess, then step to their ends.

# %%
see.warp_and_memory("thread_tiled_2d", "vectorized")

# %% [markdown] tags=["thought"]
# Both stores of C. A thread's eight results fill a whole sector: a store used to bring an eighth of it, and
# now half.

# %% [markdown]
# ## Where four may begin
#
# A 128-bit access must begin at a **multiple of 16 bytes**. Otherwise the GPU stops the kernel:
# *misaligned address*. `load4(A, (row, col))` is safe in every row if three things hold:
#
# - the array begins at such an address. Those that `cuda.to_device` makes do. A shared array needs a third
#   argument, in bytes: `cuda.shared.array((BK, BM), float32, 16)`;
# - the **leading dimension** is a multiple of 4 floats. This course's `run` pads rows so;
# - `col` is a multiple of 4.

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 61), np.float32)
result = run("vectorized", A, B)
np.abs(result.C - A @ B).max(), result.leading_dimensions

# %% [markdown]
# Each is the next multiple of four: 50 columns of A became rows of 52 floats, 61 of B and C rows of 64.
#
# **Break it.** Below A has 50 columns and no padding. Change the place until the emulator complains of a
# *misaligned* access, though the column is a multiple of four. Then find a place that it allows, though the
# column is no multiple of four.


# %%
@cuda.jit
def peek(row, col, A, out):
    store4(out, (0, 0), load4(A, (row, col)))


row, col = 0, 4
print(
    [finding.message for finding in emulate(peek, 1, 1, row, col, A, np.zeros((1, 4), np.float32)).findings]
)

# %% [markdown] tags=["thought"]
# (1, 0): row 1 begins at byte 200, which is no multiple of 16. (1, 2) is two floats further on, at byte 208.
# So the address decides. Padded rows make the column alone decide.

# %% [markdown]
# ### Exercise [[four_at_once]] · Four at once
# *core · easy · 12 minutes*
#
# One block of THREADS threads, `tid = cuda.threadIdx.x`, copies a tile from `A` to `out`, both BM rows by BK
# columns. (The rows of `A` go on behind the tile; ignore that.) Write `make_copy(BM, BK, THREADS)`, which
# returns the kernel `(A, out)`. Use `load4` and `store4`. THREADS is a multiple of BK // 4, and BM a multiple
# of the rows that the block covers at a time.
#
# The checker wants a quarter of the requests, and every byte of every sector used.


# %% id="ex-four_at_once"
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
# Filling the tiles is one half. The other is reading them. In a k step p a thread with 16 × 4 results needs
#
# - `Bs[p, x0]` to `Bs[p, x0 + 3]`: neighbours, one request of 128 bits;
# - `As[y0, p]` to `As[y0 + 15, p]`: one below the other, BK floats apart. No two of these are neighbours.
#
# So A's tile is **transposed** on its way into shared memory: `As[p, y0]` to `As[p, y0 + 15]` are neighbours.
# B's tile stays as it is: what a thread reads of it are neighbours already.
#
# This is the price: the four floats of one load lie along k, and now they must go into four different
# *rows* of As. After `v = load4(A, (r, c))` it takes `As[c + e, r] = v[e]` for e from 0 to 3. (r and c count
# from the corner of the tile.) Four loads became one; the four stores remain.
#
# What a thread loads is as in [[four_at_once]]: `BK // 4` threads share a row of the tile. The picture has
# document 003's names: innerRowA is a thread's row, innerColA says which four of this row, and rowStrideA is
# the number of rows that the block covers in a pass.
#
# Below is one warp with a small tile. Be thread 13, with BK = 16: which row is yours, and which four? Where
# do your floats land in As? Say it, then choose the thread and step. (With BK = 8 two threads share a row.)

# %%
see.scatter()

# %% [markdown]
# ### Exercise [[transposing_scatter]] · The transposing scatter
# *core · hard · the heart of this notebook · 25 minutes*
#
# Write `make_transpose(BM, BK, PAD, THREADS)`, which returns a kernel `(A, out)`. Its one block
#
# 1. fetches A's tile, BM × BK, by fours,
# 2. stores it transposed into a shared array, whose rows are BM + PAD floats long,
# 3. and, when all is there, writes it to `out` (BK rows by BM columns): read by fours, stored by fours. Here
#    you write `load4(As, ...)` by hand; the course's kernel, below, leaves it to the compiler.
#
# THREADS is a multiple of BK // 4 and of BM // 4 here, and PAD a multiple of 4.


# %% id="ex-transposing_scatter"
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
# A bank gives one word per clock (notebook [[shared_memory_tiles.ipynb]]). 32 banks give 128 bytes per
# wavefront, so 512 different bytes take at least four: with 128 bits per lane, eight lanes are served at a
# time (notebook [[thread_tiles_2d.ipynb]]).
#
# **New: padding may not break alignment.** A row of As that is to be read by fours begins at a multiple of 16
# bytes.
#
# ### Exercise [[scatter_padding]] · Padding
# *core · medium · 10 minutes*
#
# As for BM = 128 and **BK = 32**. How many wavefronts does a warp's store `As[c + e, r] = v[e]` take when
# 0, 2 or 4 floats lie behind each row? And which of the three do you take, if As is to be read by fours? Work
# it out on paper; the picture below will tell you if you must.

# %% id="ex-scatter_padding"
### BEGIN SOLUTION
check.scatter_padding(wavefronts=[8, 2, 4], take=4)
### STUB
# check.scatter_padding(wavefronts=[None, None, None], take=None)
### END SOLUTION

# %% [markdown]
# **The hunt.** The picture has three depths BK and five paddings: fifteen ways to store `As[c + e, r] =
# v[e]`. Some take a single wavefront. Find them all, and the rule behind them. Then switch to `load4(As, (p,
# y0))`: in which of them can As still be read by fours?
#
# (The picture's threads have 8 × 8 results, not 16 × 4. Stores into As are the same for both. What a warp
# reads is not; leave Bs for later.)

# %% id="hunt"
see.wavefronts()

# %% [markdown] tags=["thought"]
# Three: BK = 8 with 4 floats, 16 with 2, 32 with 1. The rule: BK · padding is an odd multiple of 32; here
# only 32 itself. Take BK = 16 with 2 floats:
#
# - A warp holds eight rows of A: eight neighbouring banks.
# - Four lanes share a row. They store into rows 0, 4, 8 and 12 of As, and a row has 130 words. So they begin
#   in banks 0, 8, 16 and 24. Each brings its eight neighbours, and all 32 banks have one word.
# - Unpadded, all four begin in bank 0.
#
# Only BK = 8 can also be read by fours: 1 and 2 floats of padding break the alignment. Then why BK = 32, with
# 4 floats and four wavefronts? Because BK = 8 was measured too: 36.3 TFLOPS, not 41.4. It waits at four times
# as many barriers. How much of the loss these are, nobody measured.

# %% [markdown]
# ## And if k is 50?
#
# Then the last group of a row of A, from column 48, holds elements 48 and 49 and two floats of padding.
# Reading it is allowed. But in the padding there may be anything; in this course's tests there is NaN.
#
# | what ends | what is read beyond | what to do |
# |---|---|---|
# | k, inside a four of A | up to three floats of padding, in **every** sum of the row | a zero for each |
# | k, before a four of A | whole fours: A ends at 52, the tile (BK = 32) at 64 | four zeros, no load |
# | k, in B | rows of B that do not exist | the same (`fetch_b` does it) |
# | m | rows of A that do not exist | the same |
# | n, in a row of B | up to three floats of padding | nothing: they end up in columns that C does not have |
# | n, in a row of C | up to three floats of padding | never write it: store the last ones singly |
#
# "Bs is zero for these k, so the product is zero" is what everyone thinks first. But **0 · NaN is NaN**.
#
# ### Exercise [[ragged_fours]] · Where the matrix ends
# *core · hard · 30 minutes*
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
# `tid` numbers all threads of the block, which is two-dimensional. THREADS is as in [[four_at_once]].
#
# A load may stand in a condition: `v = load4(...) if ... else zeros`. `zeros` is then a tuple of four as
# well, each written `float32(0)`: a bare 0 beside them would make them float64.


# %% id="ex-ragged_fours"
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
# What changed since notebook [[thread_tiles_2d.ipynb]]:

# %% tags=["listing"]
see.fold(see.diff("thread_tiled_2d", "vectorized"), first="Write the exercise first, then open this.")

# %% [markdown]
# - Each tile is now divided among the threads by fours, not by elements.
# - Nobody wrote `load4(As, ...)`. The loops that fill `a` and `b` read neighbours, and the compiler sees it.
# - `store_four` stores a row of C as four or, at its end, singly. You see it after [[stray_read]].
#
# To run a copy, put it into a factory, and begin with `from lockstep.intrinsics import load4, store4, u32,
# unroll` and `from gemm_course.kernels.parts.results import store_four`. (`u32` and `unroll` are for the
# compiler: unsigned indices, and loops written out in full.)
#
# ### Exercise [[stray_read]] · A read that nobody notices
# *stretch · medium · 10 minutes*
#
# This is a kernel after document 004's v05, with the clearing of [[ragged_fours]] and small tiles: 32 × 32 ×
# 8, and 4 × 4 results per thread. Its results are those of NumPy, for any m, n and k. (But it has no test of
# `beta`, and 0 · infinity is NaN: C must be finite. It stores whole fours, into the padding too, as the
# document allows.) Yet one of its accesses to global memory leaves its array. The listing contains
# [[ragged_fours]]'s solution: write that first.

# %% tags=["listing"]
from gemm_course.checks.kits import document_v05

see.fold(see.source(document_v05()), first="Write the exercise first, then open this.")

# %% [markdown]
# Which access is it? C of 1 × 1 shows it. What is the smallest C, by m · n, for which it does **not**
# happen? The document's rows are padded to multiples of 16 floats, and the padding belongs to the array.
# Answer with the array and what is done to it, such as `("A", "load")`, and with `(m, n)`.

# %% id="ex-stray_read"
### BEGIN SOLUTION
check.stray_read(access=("C", "load"), shape=(32, 17))
### STUB
# check.stray_read(access=(None, None), shape=(None, None))
### END SOLUTION

# %% [markdown]
# The course's kernel asks first:

# %% tags=["listing"]
from gemm_course.kernels.parts.results import store_four

see.fold(see.source(store_four), first="Write the exercise first, then open this.")

# %% [markdown]
# ## Count it three ways
#
# How many load requests do all warps make to global memory, and how many sectors do they move? Use `t["BM"]`
# and `t["BN"]`; sizes are multiples of the tiles. Each block column needs all of A once, each block row all
# of B.

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
# A quarter: the compiler made one 128-bit read of every four. That is what the transposing was for. But the
# stage before has its quarter *too*. There the compiler reads `As[y0 + i, p]` to `As[y0 + i, p + 3]`,
# neighbours along k, for four steps at once. So where does the gain come from?
#
# ## Take it apart
#
# Two things changed: accesses of four, and A transposed, with the padding that it needs. A kernel with a
# switch for each tells them apart: same tiles, 128 registers and two blocks per SM in all four forms.

# %%
see.predict("vectorized_access.halves")

# %% [markdown] tags=["answer"]
# | | TFLOPS | instructions, billions |
# |---|---|---|
# | neither | 33.9 | 2.97 |
# | transposed only | 34.6 | 2.94 |
# | fours only | 38.1 | 2.58 |
# | both | 41.4 | 2.50 |
#
# Fours alone bring 4.2 of the 7.5 TFLOPS, transposing alone 0.7, and the two together 2.6 more.

# %% [markdown]
# **Three loops without a name.** *Neither*, notebook [[thread_tiles_2d.ipynb]]'s, is the first. The others
# are *fours only*, *transposed only* and *both*. Which is which, and how do you know?
#
# | main loop of | global loads | shared stores | integer arithmetic and moves |
# |---|---|---|---|
# | neither | 32 | 32 | 475 |
# | loop 1 | 8 | 20 | 93 |
# | loop 2 | 32 | 32 | 448 |
# | loop 3 | 8 | 8 | 179 |

# %% [markdown] tags=["thought"]
# Loop 2 still loads singly: *transposed only*. Loop 3 stores all by fours: *fours only*. Loop 1 loads by
# fours, but 16 of its stores are the scatter into As, and 4 are Bs by fours: *both*. Most of what the fours
# save are addresses.

# %% [markdown] tags=["thought"]
# Why do they need each other? From *fours only* to *both* the speed rises by 8 %. There are 3 % fewer
# instructions, mostly moves. (Untransposed, a thread reads four steps of As at once, and holds them in
# registers.) The rest: issue slots are taken in 74 instead of 71 % of the clocks. Why they are, is open.

# %% [markdown]
# ## A case
#
# Document 004's author wrote each of his kernels twice, in C++: with single loads of the tiles, and by fours.
# His v02 has a block of 32 × 32 threads, and tiles of 32 × 32.

# %%
see.predict("vectorized_access.v02")

# %%
see.fold(lambda: see.vectorized_peers("v02", "v04"))

# %% [markdown] tags=["answer"]
# Slower! There are two suspects:
#
# 1. **Idle threads.** A tile of A has 256 fours, and a block 1024 threads. Three in four wait at the barrier.
#    "We waste a lot of threads", says a comment in the source.
# 2. **The clearing** of what lies past k, your [[ragged_fours]]. He counts how many of the four lie past k,
#    and clears so many in a loop, from `v[3]` down. How often the loop runs is known only at run time.
#    Registers have no addresses, so in C++ the four go to [local memory](glossary.md#local-memory).
#
# NVIDIA's compiler for C++, nvcc, gave the slow kernel 32 registers per thread. With more, fewer of these
# large blocks fit on an SM. So that nothing else differs, all forms below are held to 32. Single loads had 32
# by themselves; holding them to it changes their code, and they reach 8.1 TFLOPS instead of 9.2. So 8.1 is
# what to compare with.
#
# You may change one thing in the kernel and measure again. Which change tells the two apart, and which of
# them do you accuse?

# %% [markdown] tags=["thought"]
# Leave the clearing out: as many threads are idle as before. (Results stay right, as 4096 is a multiple of
# 32.)
#
# | v02, TFLOPS | single loads | fours, as written | clearing unrolled | no clearing |
# |---|---|---|---|---|
# | 32 registers in all four | 8.1 | 5.8 | 6.9 | 7.8 |
#
# The clearing explains 2.0 of the 2.3 TFLOPS lost; the last 0.3 may be the idle threads. Unrolled, it has
# constant indices and needs no local memory, but it still costs instructions.
#
# His v04 gained 3 %, and not a per cent more without the clearing: there the four stayed in registers. Why
# fours bring it less than they bring the course's kernel, nobody has measured.
#
# So do not ask whether fours help. Look at the instructions, and at local memory.

# %% [markdown]
# ## What is the ceiling now?

# %%
see.predict("vectorized_access.ceiling")

# %%
see.fold(lambda: see.roofline("thread_tiled_1d", "thread_tiled_2d", "vectorized"))

# %% [markdown] tags=["answer"]
# Bytes are no limit. Issue slots are: their ceiling rose from 48.6 to 57.6 TFLOPS. The kernel reaches 72 % of
# it. (The picture counts the bytes of 1024³, where storing C weighs more: 1.2 times the FLOP per byte. At
# 4096³ it is 1.05 times.)

# %% [markdown]
# ## What limits it now?
#
# In notebook [[thread_tiles_2d.ipynb]]'s kernel issue slots were the limit, taken in 72 % of the clocks. Now
# one in six instructions of the loop is gone. Are the slots taken more often, or less? And what is the
# runner-up?

# %%
see.fold(lambda: see.limits("thread_tiled_2d", "vectorized"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# Still issue slots, a little more often: 74 %. But 86 % of what is issued are multiply-adds now. Both are
# counted, not inferred. In the other clocks none of a scheduler's four warps can issue; what they wait
# for longest is [dispatch](glossary.md#dispatch).
#
# Check it for notebook [[thread_tiles_2d.ipynb]]'s kernel: something is issued in 72 % of the clocks, and 72
# % of that are multiply-adds. That makes 52 % of the clocks, but its multiply-add units are busy in 57 %.
# They also take the integer multiply-adds (IMAD) of the addresses: 113 in its loop, 5 now.
#
# Multiply-add units and shared memory follow close together, so next time the traffic of shared memory must
# shrink as well.

# %% [markdown]
# ## Five reads, or four?
#
# Per k step a thread with 16 × 4 results reads five fours: four of As, one of Bs. With 8 × 8 it would be
# four. Fewer reads for as many results! What could be wrong with it? Go back to [the
# hunt](vectorized_access.ipynb#cell-id=hunt), whose threads have 8 × 8 results, and choose `load4(Bs, (p,
# x0))`.

# %% [markdown] tags=["thought"]
# Eight wavefronts, where four would do. The lanes are eight words apart, so half of the banks stand idle
# while the other half gives two words for every group. With 16 × 4 the lanes' fours lie side by side. All
# reads of a k step together take a warp 20 wavefronts with 8 × 8, and 12 with 16 × 4.
# Notebook [[warp_tiles.ipynb]] has the four reads *without* the conflict.

# %% [markdown]
# ## Tune it
#
# **Beat 41.4.** First take the padding away: what does it bring, with all else as it is? Then go on from
# there. A slider that is moved alone leads nowhere: look at *measured around*, which shows what was measured
# one or two moves away. (Where it says *not measured*, nobody knows.)

# %%
see.tiles("vectorized", tells_best=False)

# %% [markdown] tags=["thought"]
# Padding: 39.0 without, 41.4 with it. But the best measured, 42.0, has none: 128 × 256 × 32, with 16 × 8 per
# thread. Its tiles fill the 48 KB of a block, and padding would not fit.
#
# What speaks for it: per k step a thread reads six fours for 128 results, instead of five for 64. So 91 %
# of its loop are multiply-adds, instead of 86 %.

# %% [markdown]
# ## Tall or wide?
#
# 16 × 4 and 4 × 16 both read 20 elements per k step. Which is faster, or are they equal? Think of the
# lanes of a row in the block: which of them share what they read?

# %%
see.fold(lambda: see.heatmap("vectorized", "TM", "TN", others="best"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# Tall wins. It reads more of As, where the lanes of a row share every word. Wide ones read more of Bs, where
# the lanes' pieces lie TN floats apart and meet in the same banks. The map is kind to them: each cell has its
# own best block, and for 4 × 16 that is one in which only two lanes lie side by side.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("vectorized_access")

# %% [markdown]
# ## Recap
#
# You have
#
# - moved a tile by fours, and broken the rule of 16 bytes on purpose;
# - transposed A on its way into shared memory, and found the paddings that store in one wavefront;
# - kept NaN out of a sum whose end is no multiple of four, and found a read that nobody notices;
# - told three loops apart by what they load and store: fours pay most, and transposing pays with them;
# - found what slows v02 down most, by changing one thing;
# - found the next obstacle: four reads per k step, if Bs had no conflict.
#
# **Next:** the 32 lanes of a warp get a tile of their own, and a square of results reads Bs without a
# conflict.

# %%
see.my_ladder()
