# %% [markdown]
# # [[shared_memory_tiles.ipynb]] · Shared-memory tiles
#
# In v01 the 32 threads of a warp read 32 neighbours of B, and the warp for the next row of C reads the very
# same 32 again. Threads of a block could fetch each element **once** and share it. All that follows is built
# on this idea.
#
# **After this notebook you can**
# - walk through a tiled kernel, step by step, as any of its threads;
# - place the two barriers, and say what breaks without each;
# - write the kernel for any tile, count what it saves, and tell which reads have a bank conflict.
#
# *Time: about 55 minutes to read, 82 for the exercises. Comes from document 002 (after Penny Xu) and
# document 004, kernel v02.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, run
from gemm_course import widgets as see

# %% [markdown]
# ## In one picture
#
# Now a block works in two kinds of steps: it copies a tile of A and a tile of B into shared memory, and then
# its threads multiply with them. Go back to step 1, a copy, and let it play once through. Then look at a
# single thread.

# %%
see.multiply("block_tiled")

# %% [markdown]
# ## What limits it now?
#
# On an H200: L1, which is busy in 78 % of the clocks. v01 asks L1 twice for every multiply-add. A 4 × 4
# problem has 16 elements of A and 16 of B, and v01 makes $2 \cdot 4^3 = 128$ loads: each element is loaded
# four times.

# %%
see.limits("naive_coalesced")

# %% [markdown]
# Issue slots come next, 76 % on an H200, as you saw in notebook [[coalesced.ipynb]].
#
# ## A memory that the block shares
#
# An SM of an H200 has up to 228 KB of **shared memory** right beside its arithmetic. A block lives on one SM,
# and its threads can all read and write the same shared arrays. These end with the block. Nobody clears them
# when it begins: whatever another block left may lie there.
#
# The plan, for every block:
#
# 1. cut the block's strip of A and its strip of B into **tiles**;
# 2. fetch one tile of each into shared memory, every thread one element of each;
# 3. wait until all are done (a **barrier**);
# 4. let every thread add up what it can from these two tiles;
# 5. wait again, and take the next tiles.
#
# ## The walk
#
# Document 002 shows it on 4 × 4 matrices with tiles of 2 × 2: 4 blocks of 2 × 2 threads. Below is the whole
# run of one block, as the emulator recorded it. Click once into the slider *step* and use the arrow keys.
# Change who you are in the middle of it.
#
# The kernel's names: `As` and `Bs` are the tiles, s for shared. `tx` and `ty` are the thread's column and row
# in its block, `threadIdx.x` and `.y`; `k0` is where the tiles begin along k. `acc` is a
# [register](glossary.md#register): a place for one number, which only its own thread can see.

# %%
see.walk()

# %% [markdown]
# Look at the two counters at the bottom: **4 global loads per thread, instead of 8**. Each element that a
# block fetches is used by two threads. With tiles of T × T it is used by T threads, and the loads shrink to
# $2mnk / T$.
#
# ### Exercise [[first_loads]] · Four loads
# *core · easy · 6 minutes*
#
# Thread (x = 1, y = 0) of block (x = 1, y = 0) loads four elements from global memory. Which, in which
# order? Think first, and use the walk to check yourself. Write `("A", row, column)` or `("B", row, column)`
# four times.

# %% id="ex-first_loads"
### BEGIN SOLUTION
loads = [("A", 0, 1), ("B", 0, 3), ("A", 0, 3), ("B", 2, 3)]
### STUB
# loads = []
### END SOLUTION

check.first_loads(loads)

# %% [markdown]
# ## Two barriers per tile
#
# A barrier, `cuda.syncthreads()`, is for the threads of one block: none goes on before all have arrived.
# The walk has two of them per tile. What if the second were missing? Think first.

# %%
see.predict("shared_memory_tiles.second")

# %% [markdown]
# Below are the same four threads over time, with both barriers. Take one barrier away, then hold another
# thread back: whose sum goes wrong, and with which number?

# %%
see.race("none")

# %% [markdown]
# So the barrier has two jobs here:
#
# - the **first**, after loading, says "the tiles are complete". Without it, those suffer who read what the
#   late thread has not stored yet.
# - the **second**, after computing, says "nobody needs the tiles any more". Without it, the late thread
#   itself suffers: it reads what the others have stored since.
#
# Two threads use one element, at least one of them stores it, and nothing fixes who comes first: that is a
# **race**, even on a day when the numbers are right.
#
# With two pairs of tiles, used in turn, **one** barrier per tile is enough. Which of the two is left, and
# why?

# %% [markdown] tags=["thought"]
# The first. A fast thread may fill the next tiles at once: they are the *other* pair, and nobody reads it any
# more. It cannot be two tiles ahead: to fill this pair again it must pass the next barrier, and there it
# waits until all have finished with this pair. The price is twice the shared memory. The stage
# `double_buffered` does it, and you may in [[tile_kernel]].

# %% [markdown]
# These four threads are in one warp. Can one of them be late at all? Yes: in NVIDIA's GPUs since 2017 every
# thread has its own place in the program, and CUDA does not promise that the lanes of a warp stay together.
# The compiler, too, may reorder what a thread reads and stores, as long as no barrier stands between. So a
# missing barrier is a race within one warp as well, and the emulator reports it.
#
# ### Where a shared array gets its shape
#
# `cuda.shared.array(shape, dtype)` declares the array. Its shape must be known when the kernel is compiled,
# so Numba refuses this kernel:
#
# ```python
# @cuda.jit
# def reverse(a, out, T):
#     tile = cuda.shared.array(T, float32)   # T is an argument: refused
# ```
#
# The way out is a **factory**: a function that takes T and returns a kernel made for it. In the kernel T is
# then a constant. Such arrays may take 48 KB (49,152 bytes) per block. (A launch can also request shared
# memory, and more of it; this course's last kernels do so.)
#
# ### Exercise [[reverse]] · Backwards through shared memory
# *core · medium · 10 minutes*
#
# A small kernel to begin with. Every block takes its T elements of `a` and writes them to `out` in reverse
# order: `out[b*T + i] = a[b*T + T-1 - i]` for block `b`. Do it through shared memory: store, wait, read. It
# is launched with T threads per block; the length of `a` is a multiple of T. Complete the factory.


# %% id="ex-reverse"
def make_reverse(T):
    @cuda.jit
    def reverse(a, out):
        ### BEGIN SOLUTION
        tile = cuda.shared.array(T, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        tile[t] = a[first + t]
        cuda.syncthreads()
        out[first + t] = tile[T - 1 - t]
        ### END SOLUTION

    return reverse


check.reverse(make_reverse)

# %% [markdown]
# ## Thirty-two banks
#
# Shared memory is cut into 32 **banks**, word by word (4 bytes, one float32): word 0 in bank 0, word 1 in
# bank 1, ..., word 32 in bank 0 again. Each bank hands out one word per clock. If the lanes of a warp want 32
# words in 32 banks, or all the same word, that is one **wavefront**. If they want two different words of one
# bank, it takes two: a **bank conflict**. The 32 places of notebook [[naive.ipynb]] were these banks.

# %%
see.banks()

# %% [markdown]
# Above lies the tile, the paler the lower the bank; below stand the banks, and each word that the warp wants
# falls into its own. In a 32 × 32 block a warp has one `ty` and 32 values of `tx`. So `As[ty, p]` is one word
# for all lanes, and `Bs[p, tx]` a row: one wavefront each. `As[tx, p]` walks down a column, and all 32 words
# lie in one bank: 32 wavefronts.
#
# If a kernel stores its tile of B transposed, `Bs[tx, p]` is the element it needs. The result is right, but
# every read takes 32 wavefronts.
#
# Now give each row one word of **padding**. Every row begins a bank further on, and the column is spread
# over all banks. In code the tile's shape is `(T, P)`, and `P = T + 1` goes into the factory, outside the
# kernel: in a shape, Numba refuses the sum. With 2 words of padding a column takes 2 wavefronts, with 8 it
# takes 8. Why?

# %% [markdown] tags=["thought"]
# With 8 words of padding each row begins 8 banks further on, and every fourth row in the same bank again. The
# column hits only 4 banks, with 8 words in each. With 2 it hits 16 banks, with 2 words in each.

# %% [markdown]
# ## The tile kernel
#
# You have all the parts. One rule is left: a barrier must be reached by **all** threads of the block. At the
# edge of a matrix some threads have no element to fetch and none to store. Guard their loads and their
# store, never the barrier: a thread outside puts a zero into the tile and goes on. Zeros add nothing.
#
# Which thread fetches what? Let neighbours in x fetch neighbours in a row, so that the loads coalesce.
#
# ### Exercise [[tile_kernel]] · The tile kernel
# *core · hard · the heart of this notebook · 20 minutes*
#
# Write `make_tiled(T)`, which returns the kernel `(m, n, k, alpha, A, B, beta, C)`. Blocks of T × T
# threads, x along the columns: `ceil(n / T)` × `ceil(m / T)` blocks. Any m, n, k; any T from 2 to 32.
#
# The checker looks at more than numbers: $2mnk/T$ loads from A and B, one store per element of C, at most two
# barriers per tile, no float64, no race, no bank conflict.


# %% id="ex-tile_kernel"
def make_tiled(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        ### BEGIN SOLUTION
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc
        ### END SOLUTION

    return tiled


check.tile_kernel(make_tiled)

# %% [markdown]
# When yours passes, compare it with the course's own. (`while` and `u32` help the
# compiler; more below.)

# %% tags=["listing"]
see.fold(see.source("penny_xu_tile"), first="Write the exercise first, then open this.")

# %% [markdown]
# ### Exercise [[barriers]] · Too many barriers
# *core · easy · 6 minutes*
#
# This is document 002's kernel, written for any T. It is folded, for most of [[tile_kernel]] stands in it.

# %% tags=["listing"]
from gemm_course.checks.kits import document_002

see.fold(see.source(document_002(2)), first="Write the exercise first, then open this.")

# %% [markdown]
# n × n matrices, n a multiple of T. How many barriers does **one block** execute in this kernel, and how
# many are enough? Return both.


# %% id="ex-barriers"
def barriers(n, T):
    ### BEGIN SOLUTION
    return (n // T) * (T + 1), 2 * (n // T)
    ### STUB
    # return None  # (document, enough)
    ### END SOLUTION


check.barriers(barriers)

# %% [markdown]
# ## Kernels on trial
#
# ### Exercise [[smallest_failing_shape]] · Four suspects
# *stretch · hard · 15 minutes*
#
# Each of these kernels gives the right result for many sizes, and each has one fault. Find, for every one
# of them, a shape `(m, n, k)` that shows it, with $m \cdot n \cdot k$ as small as possible. T is 4, and beta
# is 0. A test that only tries square matrices whose size is a multiple of T finds none of the faults.
# (`cuda.gridDim.x` is the number of blocks along x. These listings, too, are folded because of
# [[tile_kernel]].)

# %% tags=["listing"]
from gemm_course.checks.kits import SUSPECTS

see.fold(see.source(SUSPECTS["a"](4)), first="Write the exercise first, then open this.")

# %% tags=["listing"]
see.fold(see.diff(SUSPECTS["a"](4), SUSPECTS["b"](4)), first="Write the exercise first, then open this.")

# %% tags=["listing"]
see.fold(see.diff(SUSPECTS["b"](4), SUSPECTS["c"](4)), first="Write the exercise first, then open this.")

# %% tags=["listing"]
see.fold(see.diff(SUSPECTS["c"](4), SUSPECTS["d"](4)), first="Write the exercise first, then open this.")

# %% id="ex-smallest_failing_shape"
### BEGIN SOLUTION
check.smallest_failing_shape(a=(1, 1, 1), b=(1, 1, 5), c=(2, 1, 1), d=(1, 1, 5))
### STUB
# check.smallest_failing_shape(a=None, b=None, c=None, d=None)
### END SOLUTION

# %% [markdown]
# ## Any shape of tile: v02
#
# Tiles need not be square. A block of BM × BN threads takes a BM × BK tile of A and a BK × BN tile of B.
# Then tile and block no longer have the same shape, and "each thread fetches the element at its own place"
# no longer works. So v02 launches its threads in one dimension, and each is known by a single number, `tid`,
# from 0 to THREADS - 1. By that number it fetches its share, as the exercise shows.
#
# ### Exercise [[tile_walk]] · A walk over the tile
# *core · medium · 10 minutes*
#
# Number the elements of the tile too, row by row: in a row of BK elements, element BK is the first of row 1.
# A block of THREADS threads fetches them in passes: in the first, thread `tid` fetches element `tid`; in each
# further pass it moves on by THREADS elements, and stops when it is past the end of the tile.
#
# Here 8 threads walk over a tile of 3 × 6; each entry is the `tid` of the
# thread that fetches the element there:
#
# ```
#             column
#             0  1  2  3  4  5
#     row 0   0  1  2  3  4  5
#     row 1   6  7  0  1  2  3
#     row 2   4  5  6  7  0  1
# ```
#
# Thread 1 fetches (0, 1), (1, 3) and (2, 5); thread 2 only (0, 2) and (1, 4). In every pass neighbouring
# threads fetch neighbouring elements, except where a row ends. Whole stretches of a row are read at once, so
# the loads coalesce.
#
# The tile has BM rows and BK columns. Return the positions `(row, column)` of the elements that thread `tid`
# fetches, in order. A thread with nothing to do returns an empty list. THREADS may be smaller than BK, need
# not be a multiple of it, and may even exceed BM × BK.


# %% id="ex-tile_walk"
def walk(tid, THREADS, BM, BK):
    ### BEGIN SOLUTION
    places = []
    for e in range(tid, BM * BK, THREADS):
        places.append((e // BK, e % BK))
    return places
    ### STUB
    # return None  # [(row, column), ...]
    ### END SOLUTION


check.tile_walk(walk)

# %% [markdown]
# Now find your walk in the kernel, once for each tile. Each thread computes one element of C, so THREADS is
# BM × BN. The tile of A takes A_LOADS passes and the tile of B takes B_LOADS. In this kernel THREADS must
# divide the number of elements in each tile, so no thread is ever idle. Your walk also works without that.
#
# Three things are for the compiler, and change no result. `u32(...)` makes an index an unsigned integer of
# 32 bits, which is quick to compute with. `unroll(range(...))` asks for the loop to be written out, one
# iteration after the other. The `16` in `shared.array` lets the array begin at a multiple of 16 bytes, as a
# load of 16 bytes needs. To run a copy of this listing, begin with
# `from lockstep.intrinsics import u32, unroll`.

# %% tags=["listing"]
see.fold(see.source("block_tiled"), first="Write the exercise first, then open this.")

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 60), np.float32)
np.abs(run("block_tiled", A, B).C - A @ B).max()

# %% [markdown]
# ## Count it three ways
#
# The square tile kernel with tiles of 32 × 32; m, n and k fit. How many requests do all warps make for loads
# from global memory, and how many for loads from shared memory? Begin with one warp: what does it ask of each
# per tile, and how many tiles are there? Write the formulas:


# %% id="formula"
def global_requests(m, n, k):
    ### BEGIN SOLUTION
    return 2 * m * n * k // 32 // 32
    ### STUB
    # return None
    ### END SOLUTION


def shared_requests(m, n, k):
    ### BEGIN SOLUTION
    return 2 * m * n * k // 32
    ### STUB
    # return None
    ### END SOLUTION


# %%
size = (1024, 1024, 1024)
see.counts("penny_xu_tile", size, global_load_requests=global_requests, shared_load_requests=shared_requests)

# %%
see.counts("penny_xu_tile", size, shared_load_wavefronts=shared_requests)

# %% [markdown]
# Here, for the first time, the hardware counts something else, and both are right. Take the difference
# apart:
#
# - The source reads `As[ty, p]` and `Bs[p, tx]` for every multiply-add: $mnk/32$ requests each, 33.6
#   million.
# - The compiler unrolls the loop, as T is a constant. It sees that `As[ty, p]` to `As[ty, p + 3]` lie side by
#   side, and makes **one 128-bit load** of the four: 8.4 million requests are left for A. B's neighbours lie
#   in other rows, so nothing is merged there: 33.6 million. Together 41.9 million, which is what the counter
#   says.
#   The machine code has, for the 32 steps of a tile, 8 `LDS.128` and 32 `LDS`. (`LDS` is the instruction
#   "load from shared memory", `LDS.128` its form for 128 bits, 16 bytes.)
# - A bank still gives 4 bytes per clock. So 32 lanes that want 16 bytes each take four wavefronts. Measured:
#   when all lanes want the *same* 16 bytes, the load takes two. $2 \cdot 8.4 + 33.6 = 50.3$ million.
#
# Per warp-wide multiply-add that is 1.25 requests and 1.5 wavefronts, where the source has 2 of both.
#
# The emulator counts **the source you wrote**, the counter **the program that came out**. Whenever they
# differ, the compiler did something, and it is worth knowing what.
#
# ## What is the ceiling?

# %%
see.predict("shared_memory_tiles.ceiling")

# %%
see.fold(lambda: see.tflops("naive_uncoalesced", "naive_coalesced", "block_tiled"))

# %%
see.fold(lambda: see.roofline("naive_uncoalesced", "naive_coalesced", "block_tiled"))

# %% [markdown] tags=["answer"]
# Choose a *stage*, and the point goes there from the one before it. v02's lowest roof on an H200 is shared
# memory. Two wavefronts per multiply-add, as the source has it, would allow 8.4 TFLOPS, v01's own roof; the
# 1.5 that the compiler left would allow 11.2. With the stores of the tiles, it is 10.5.

# %% [markdown]
# ## 21 times fewer loads: where is the gain?
#
# v02, with its tiles of 16 × 32, makes 21 times fewer global loads than v01. (In bytes, as in the roofline,
# it is 13 times fewer: v01 moves 2.5 sectors per request, v02 4.) On an H200 it is only 1.37 times as fast.
# The profile says where the time goes.
#
# First v01 and the square kernel of [[tile_kernel]] with equal blocks, 32 × 32 threads: the tiles in shared
# memory are new. (So is the order of the blocks, along rows instead of down columns, which costs a little.)
# In such blocks v01 is slower, and waiting limits it. Compare purple, *global memory*, with orange, *queue to
# shared memory*, and pink, *barrier*. (Each wait has the same letter in all pictures, so some letters are
# missing. *Local memory* comes in notebook [[thread_tiles_1d.ipynb]].)

# %%
see.waits(("naive_coalesced", {"BM": 32, "BN": 32}), "penny_xu_tile")

# %% [markdown]
# On an H200 the warps waited for loads from global memory in 68 % of their time, now in 14 %. Instead they
# wait 36 % for room in the queue to **shared memory**, and 18 % at barriers: 1.62 times as fast, no more.
#
# The reads have only moved, for **shared memory and L1 are the same memory**. An SM of an H200 has 256 KB of
# it, and a part serves as L1: the driver chooses how much, by what the kernel's blocks need.
#
# Now v01 and v02 with their own blocks, 2 × 128 and 16 × 32:

# %%
see.limits("naive_coalesced", "block_tiled")

# %% [markdown]
# What limits it now? On an H200 **L1 and shared memory**, busy in 91 % of the clocks where v01 had 78 %. Two
# loads per multiply-add have become two shared reads. As compiled, they are 1.25 requests and 1.5 wavefronts,
# as in the square kernel. In the time of one wavefront an SM could do four warp-wide multiply-adds. The way
# on is fewer reads per multiply-add.
#
# One bar may surprise you. On an H200 DRAM is busier after fewer loads, 2 → 23 %. What could be the reason?
# Blocks start in the order of `blockIdx.x`, more or less: nothing promises it. You turned threads and grid in
# [[coalesced]]; the stage that was measured, v01, has only its threads turned. Its blocks are still numbered
# down C, v02's along C. Which blocks run at the same time, and what do they share?

# %% [markdown] tags=["thought"]
# **DRAM** delivers what L2 no longer holds, so it matters what blocks share that run together. v01's blocks
# go down a strip of 128 columns of C, then down the next, 32 in all. They read 2.2 GB, as much as B once and
# A 32 times. v02's go along a strip of 16 rows, 256 in all. They read 16.6 GB, as much as A once and B 247
# times. Each matrix has 67 MB; an H200's L2 has room for 60.

# %% [markdown]
# ## Tune it
#
# Move the tile sizes. Is the choice legal, and if not, why? How many blocks fit on an SM? On an H200 they fit
# until its 2048 threads, its 65,536 registers or its shared memory are used up. *measured around* compares
# your choice with its neighbours.
#
# v02 has 16 × 32 × 64. What does BK = 128 change: the number of global loads, of barriers, the bytes of
# shared memory, the TFLOPS? Guess each, then move BK.

# %%
see.tiles("block_tiled", tells_best=False)

# %% [markdown] tags=["thought"]
# Global loads do not change at all. There are half as many barriers, and twice the shared memory: 24,576
# bytes. TFLOPS hardly change: on an H200, with 16 × 32 it is 8.76, 9.00, 8.90 and 8.71 TFLOPS for BK = 32,
# 64, 128 and 256. (9.00 here and 8.99 above are separate runs.) A square block is no better: 32 × 32 × 64 has
# fewer loads, and reaches 8.77. The best of 181 measured choices is 1 % faster than v02.

# %% [markdown]
# ### Exercise [[transpose]] · Transpose
# *core · medium · 15 minutes*
#
# A kernel that multiplies nothing. Write `make_transpose(T)`, which returns the kernel `(A, out)` that stores
# A transposed: `out[j, i] = A[i, j]`. A has m rows and n columns, any m and n. Blocks of T × T threads, x
# along the columns of A: `ceil(n / T)` × `ceil(m / T)` blocks. T is 4, 8, 16 or 32.
#
# Read along rows of A and store along rows of `out`; between the two lies a tile in shared memory, and a
# barrier. Each element is loaded once and stored once. The checker also counts, with T = 32: no bank
# conflict; and, where m and n are multiples of 8 floats, no sector in vain, neither in nor out. (Other rows
# do not begin where a sector begins.)


# %% id="ex-transpose"
def make_transpose(T):
    ### BEGIN SOLUTION
    P = T + 1
    ### STUB
    # # your code: what the tile's shape needs besides T
    ### END SOLUTION

    @cuda.jit
    def transpose(A, out):
        ### BEGIN SOLUTION
        m, n = A.shape
        tile = cuda.shared.array((T, P), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * T, cuda.blockIdx.x * T
        if row0 + ty < m and col0 + tx < n:
            tile[ty, tx] = A[row0 + ty, col0 + tx]
        cuda.syncthreads()
        if col0 + ty < n and row0 + tx < m:
            out[col0 + ty, row0 + tx] = tile[tx, ty]
        ### END SOLUTION

    return transpose


check.transpose(make_transpose)

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("shared_memory_tiles")

# %% [markdown]
# ## Recap
#
# - A block fetches a tile of A and of B **once** and uses every element T times: $2mnk/T$ global loads.
# - A block of any size fetches a tile of any shape: thread `tid` takes elements `tid + i * THREADS`, and
#   neighbours take neighbours.
# - Two barriers per tile: *complete*, and *no longer needed*. A missing one is a race, whatever the numbers
#   say.
# - 32 banks: a row or one word is one wavefront, a column of a 32-wide tile is 32.
# - Shared memory and L1 are one memory. Every multiply-add still costs two reads from it, as written, and it
#   is the limit.
#
# **Next:** each thread computes *several* elements of C, and what it reads from shared memory is used
# several times.

# %%
see.my_ladder()

# %% [markdown] tags=["stub"]
# Is a word of this notebook still unclear? The [glossary](glossary.md) explains each in a sentence or two.
