# %% [markdown]
# # 03 · Shared-memory tiles
#
# In v01 the 32 threads of a warp read 32 neighbours of B, and the next warp reads the very same 32 again.
# Threads of a block could fetch each element **once** and share it. This is the idea that everything after
# it is built on.
#
# **After this notebook you can**
# - walk through a tiled kernel, step by step, as any of its threads;
# - place the two barriers, and say what breaks without each;
# - write the kernel for any tile, count what it saves, and find bank conflicts.
#
# *Time: about 45 minutes to read, 70 for the exercises. Comes from document 002 (after Penny Xu) and
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
# its threads multiply with them. Let it play once through, then look at a single thread.

# %%
see.multiply("block_tiled")

# %% [markdown]
# ## What limits it now?
#
# Requests to L1: two loads for every multiply-add. Of 16 elements of A and 16 of B in a 4 × 4 problem, v01
# reads $2 \cdot 4^3 = 128$: each element four times over.
#
# ## A memory that the block shares
#
# A GPU is made of multiprocessors (**SM**s; an H200 has 132). Each has up to 228 KB of **shared memory**
# right beside its arithmetic. A block lives on one SM, and its threads can all read and write the same
# shared arrays. Shared memory is as short-lived as the block: nobody clears it before, and nothing is left
# of it afterwards.
#
# The plan, for every block:
#
# 1. cut the block's strip of A and its strip of B into **tiles**;
# 2. fetch one tile of each into shared memory, every thread one element of either;
# 3. wait until all are done (a **barrier**);
# 4. let every thread add up what it can from these two tiles;
# 5. wait again, and take the next tiles.
#
# ## The walk
#
# Document 002 shows it on 4 × 4 matrices with tiles of 2 × 2. There are 16 elements of C, 16 threads, 4
# blocks of 2 × 2 threads. Below is the whole run of one block, taken from the emulator's trace. Click once
# into the slider *Step* and use the arrow keys. Change who you are in the middle of it.

# %%
see.walk()

# %% [markdown]
# Look at the two counters at the bottom: **4 global loads a thread, instead of 8**. Each element that a
# block fetches is used by two threads. With tiles of T × T it is used by T threads, and the loads shrink to
# $2mnk / T$.
#
# ### Take a barrier away
#
# The walk has two barriers per tile. What if one of them were missing? Think first.

# %%
see.predict("03.second")

# %% [markdown]
# Below are the same four threads over time, as if each were in a warp of its own. Choose which barrier is
# missing, and hold one thread back: whose sum goes wrong, and with which number?

# %%
see.race()

# %% [markdown]
# A barrier, `cuda.syncthreads()`, is for the threads of one block. It has two jobs here:
#
# - the **first** says "the tiles are complete";
# - the **second** says "nobody needs the tiles any more".
#
# And it must be reached by *all* threads of the block. So guard the loads and the store, never the barrier.
# That is why the kernel below puts a zero into the tile where the matrix has ended: the thread outside goes
# on, and its zeros do no harm.

# %%
see.source("penny_xu_tile")

# %% [markdown]
# Three things to notice:
#
# - **T is a closure constant.** How much shared memory a block needs is fixed when the kernel is compiled,
#   so the shape cannot be an argument. A function that takes T and returns the kernel is the way out.
# - `As[ty, tx] = A[row, k0 + tx]`: neighbours in x read neighbours of A. The tile loads are coalesced.
# - Document 002 waits for the second time *inside* the inner loop, T times a tile. Once after it is enough.
#   You will count that.
#
# ## Thirty-two banks
#
# Shared memory is cut into 32 **banks**, word by word: word 0 in bank 0, word 1 in bank 1, ..., word 32 in
# bank 0 again. Each bank hands out one word a clock. If the lanes of a warp want 32 words in 32 banks, or
# all the same word, that is one **wavefront**. If they want two different words of one bank, it takes two:
# a **bank conflict**.

# %%
see.banks()

# %% [markdown]
# Above lies the tile, the paler the lower the bank; below stand the banks, and each word that the warp wants
# falls into its own. `As[tx, p]` walks down a column of the tile, and all 32 words lie in one bank: 32
# wavefronts. One wrong index, and shared memory is 32 times slower, with the right result. `As[ty, p]` is a
# broadcast in a 32 × 32 block, `Bs[p, tx]` a row: one wavefront each.
#
# Now give each row one word of **padding**. Every row begins a bank further on, and the column is spread
# over all banks. (With 2, or 8?)
#
# ## Any shape of tile: v02
#
# Tiles need not be square. A block of BM × BN threads takes a BM × BK tile of A and a BK × BN tile of B.
# Then tile and block no longer have the same shape, and "each thread fetches the element at its own place"
# no longer works. So v02 launches its threads in one dimension, and each is known by a single number, `tid`,
# from 0 to THREADS - 1. By that number it fetches its share, as the exercise shows.
#
# ### Exercise 03.6 · A walk over the tile
# *core · medium · 10 minutes*
#
# Number the elements of the tile too, row by row: in a row of BK elements, element BK is the first of row 1.
# A block of THREADS threads fetches them in passes: in the first, thread `tid` fetches element `tid`; in each
# further pass it moves on by THREADS elements, and stops when it is past the end of the tile. In pass i that
# is element `tid + i * THREADS`. Here 8 threads walk over a tile of 3 × 6; each entry is the `tid` of the
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


# %% id="ex-03-6"
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
# In one pass a warp reads 32 elements of a tile of A. How many sectors does it move at BK = 8, and how many
# at BK = 4? The rows of A are 1,024 elements long.

# %%
for columns in (8, 4):
    addresses = [4 * (lane // columns * 1024 + lane % columns) for lane in range(32)]
    print(f"BK = {columns}: {len({address // 32 for address in addresses})} sectors")

# %% [markdown]
# At BK = 8 each row of the tile is a whole sector. At BK = 4 it is half of one, and this pass has no use for
# the other half.
#
# Now find your walk in the kernel, once for each tile. Each thread computes one element of C, so THREADS is
# BM × BN. The tile of A takes A_LOADS passes and the tile of B takes B_LOADS. In this kernel THREADS must
# divide the number of elements in each tile, so no thread is ever idle. Your walk also works without that.
# `unroll` and `u32` do not change what is computed: they help the compiler.

# %%
see.source("block_tiled")

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 60), np.float32)
np.abs(run("block_tiled", A, B).C - A @ B).max()

# %% [markdown]
# ## Count it three ways
#
# The square tile kernel with tiles of 32 × 32. How many requests do all warps make for loads from global
# memory, and how many for loads from shared memory? Write the formulas:


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
# - The loop is unrolled. The compiler sees that `As[ty, p]` to `As[ty, p + 3]` lie side by side, and makes
#   **one 128-bit load** of the four: 8.4 million requests are left for A. B's neighbours lie in other rows,
#   so nothing is merged there: 33.6 million. Together 41.9 million, which is what the counter says.
# - A 128-bit broadcast takes two wavefronts, not one: $2 \cdot 8.4 + 33.6 = 50.3$ million.
#
# The emulator counts **the source you wrote**, the counter **the program that came out**. Whenever they
# differ, the compiler did something, and it is worth knowing what.
#
# ## What is the ceiling?

# %%
see.predict("03.ceiling")

# %% tags=["answer"]
see.tflops("naive_uncoalesced", "naive_coalesced", "block_tiled")

# %% tags=["answer"]
see.roofline("naive_uncoalesced", "naive_coalesced", "block_tiled")

# %% [markdown]
# Choose a *stage*, and the point goes there from the one before it. Its lowest roof is now shared memory. Two
# wavefronts per multiply-add, as the source has it, would allow 8.4 TFLOPS; the one and a half that the
# compiler left would allow 11.2. With the stores of the tiles, it is the 10.5 of the picture.
#
# The answer to *what limits it now?*: **shared memory.** We traded two global loads per multiply-add for
# two shared reads. These are faster, but an SM could do four warp-wide multiply-adds in the time of one
# such read.
#
# ## Tune it
#
# Move the tile sizes. Is the choice legal, and if not, why? How much shared memory does it take, how many
# blocks fit on an SM, how many accesses are left?

# %%
see.tiles("block_tiled")

# %% [markdown]
# ---
# ## Exercises
#
# ### Exercise 03.1 · Four loads
# *core · easy · 6 minutes*
#
# Document 002's example again: 4 × 4 matrices, tiles of 2 × 2. Thread (x = 1, y = 0) of block (x = 1, y =
# 0) loads four elements from global memory. Which, in which order? Think first, and use the walk to check
# yourself. Write `("A", row, column)` or `("B", row, column)` four times.

# %% id="ex-03-1"
### BEGIN SOLUTION
loads = [("A", 0, 1), ("B", 0, 3), ("A", 0, 3), ("B", 2, 3)]
### STUB
# loads = []
### END SOLUTION

check.first_loads(loads)

# %% [markdown]
# ### Exercise 03.2 · Backwards through shared memory
# *core · medium · 10 minutes*
#
# A small kernel to begin with. Every block takes its T elements of `a` and writes them to `out` in reverse
# order: `out[b*T + i] = a[b*T + T-1 - i]` for block `b`. Do it through shared memory: store, wait, read. It
# is launched with T threads a block; the length of `a` is a multiple of T.
#
# This attempt is refused by Numba, because the shape of a shared array has to be known before anything
# runs:
#
# ```python
# @cuda.jit
# def reverse(a, out, T):
#     tile = cuda.shared.array(T, float32)   # T is an argument: refused
# ```
#
# Write it as a factory: a function that takes T and returns the kernel `(a, out)`.


# %% id="ex-03-2"
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
# ### Exercise 03.3 · The tile kernel
# *core · hard · the heart of this notebook · 20 minutes*
#
# Write `make_tiled(T)`, which returns the kernel `(m, n, k, alpha, A, B, beta, C)`. Blocks of T × T
# threads, x along the columns: `ceil(n / T)` × `ceil(m / T)` blocks. Any m, n, k; any T from 2 to 32.
#
# The checker looks at more than numbers: $2mnk/T$ loads from A and B, two barriers a tile, no race, no bank
# conflict.


# %% id="ex-03-3"
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
# ### Exercise 03.4 · Too many barriers
# *core · easy · 6 minutes*
#
# Here is document 002's kernel, written for any T:

# %%
from gemm_course.checks.kits import SUSPECTS, document_002

see.source(document_002(2))

# %% [markdown]
# n × n matrices, n a multiple of T. How many barriers does **one block** execute in this kernel, and how
# many are enough? Return both.


# %% id="ex-03-4"
def barriers(n, T):
    ### BEGIN SOLUTION
    return (n // T) * (T + 1), 2 * (n // T)
    ### STUB
    # return None  # (document, enough)
    ### END SOLUTION


check.barriers(barriers)

# %% [markdown]
# ### Exercise 03.5 · Four suspects
# *stretch · hard · 15 minutes*
#
# Each of these kernels gives the right result for many sizes, and each has one fault. Find, for every one
# of them, a shape `(m, n, k)` that shows it, with $m \cdot n \cdot k$ as small as possible. T is 4. A test
# that only tries multiples of the tile, or only square matrices, finds none of them.

# %%
see.source(SUSPECTS["a"](4))

# %%
see.diff(SUSPECTS["a"](4), SUSPECTS["b"](4))

# %%
see.diff(SUSPECTS["b"](4), SUSPECTS["c"](4))

# %%
see.diff(SUSPECTS["c"](4), SUSPECTS["d"](4))

# %% id="ex-03-5"
### BEGIN SOLUTION
check.smallest_failing_shape(a=(1, 1, 1), b=(1, 1, 5), c=(2, 1, 1), d=(1, 1, 5))
### STUB
# check.smallest_failing_shape(a=None, b=None, c=None, d=None)
### END SOLUTION

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("03")

# %% [markdown]
# ## Recap
#
# - A block fetches a tile of A and of B **once** and uses every element T times: $2mnk/T$ global loads.
# - A block of any size fetches a tile of any shape: thread `tid` takes elements `tid + i * THREADS`, and
#   neighbours take neighbours.
# - Two barriers a tile: *complete*, and *no longer needed*. A missing one is a race, whatever the numbers
#   say.
# - 32 banks: a row or one word is one wavefront, a column of a 32-wide tile is 32.
# - Now every multiply-add costs two shared reads, and they set a ceiling of about 8.4 TFLOPS.
#
# **Next:** each thread computes *several* elements of C, and what it reads from shared memory is used
# several times.

# %% [markdown] tags=["stub"]
# Is a word of this notebook still unclear? The [glossary](glossary.md) explains each in a sentence or two.
