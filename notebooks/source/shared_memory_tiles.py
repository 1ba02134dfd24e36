# %% [markdown]
# # [[shared_memory_tiles.ipynb]] · How can threads share what they fetch?
#
# In the kernel of notebook [[coalesced.ipynb]], `naive_coalesced`, every thread loads by itself all that it
# needs. How often does a whole launch load one and the same element of A? Count it for matrices of three
# sizes:

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, run
from gemm_course import widgets as see


def loads_of_one_element(n):
    A, B = np.ones((n, n), np.float32), np.ones((n, n), np.float32)
    report = run("naive_coalesced", A, B, tiles={"BM": 32, "BN": 32}, backend="emulator").report
    return report.total("lanes", array="A", op="load") / A.size


{n: loads_of_one_element(n) for n in (32, 64, 128)}

# %% [markdown]
# So for 4096 × 4096 every element is loaded 4,096 times. Now suppose that a block of 32 × 32 threads could
# fetch an element **once**, for all of them to use. How often would the launch still load it? Say a number
# before you open this.

# %% [markdown] tags=["thought"]
# 128 times. An element of A is needed for a whole row of C. The row belongs to 4096 / 32 = 128 blocks, and
# each fetches the element once. **A 32nd of the loads is left.** For B it is the same.

# %% [markdown]
# *Time: about 65 minutes to read, 66 for the exercises; a pause is marked. Comes from document 002 (after
# Penny Xu) and from document 004, kernel v02; the [glossary](glossary.md#document) says what the documents
# are.*
#
# First two questions from memory, without looking back:

# %%
see.recall("shared_memory_tiles")

# %% [markdown]
# And a bet for [your ladder](glossary.md#ladder). In blocks of 32 × 32 threads, the kernel of notebook
# [[coalesced.ipynb]] reached 5.2 TFLOPS on an H200. How many does a kernel reach that loads a 32nd of the
# elements? Write a number in place of the dots.

# %%
see.my_bet("shared_memory_tiles", tflops=...)

# %% [markdown]
# ## Who brings what?
#
# The threads of a block can share arrays, in the **shared memory** of their SM. Such an array ends with its
# block, and nobody clears it when a block begins.
#
# A block's rows of A and columns of B are too large for shared memory. So they are cut into **tiles**, and
# the block takes one pair of tiles after the other. Every thread brings one element of each.
#
# Document 002 shows it with matrices of 4 × 4 and tiles of 2 × 2, so with 4 blocks of 2 × 2 threads. Step
# through one block. Then go back to the first step, and be another thread. `As` and `Bs` are the tiles, s for
# shared. `tx` and `ty` are the thread's column and row in its block. `k0` is where the tiles begin along k.
# `acc` is a [register](glossary.md#register): a place for one number of this thread alone.

# %%
see.walk()

# %% [markdown]
# ### Exercise [[first_loads]] · Four loads
# *core · easy · 6 minutes*
#
# Which elements of A and B does thread (x = 1, y = 0) of block (x = 1, y = 0) load, in which order? Think
# first, then check with the walk. Write `("A", row, column)` or `("B", row, column)` four times.

# %% id="ex-first_loads"
### BEGIN SOLUTION
loads = [("A", 0, 1), ("B", 0, 3), ("A", 0, 3), ("B", 2, 3)]
### STUB
# loads = []
### END SOLUTION

check.first_loads(loads)

# %% [markdown]
# **What we now know:** a thread brings one element of each tile, and multiplies what others have brought.
# With tiles of T × T each element serves T threads.
#
# ## When may a thread read what another one brings?
#
# When it has been stored, and not before. For this there is the [barrier](glossary.md#barrier),
# `cuda.syncthreads()`: no thread of the block goes on before all have reached it. What they stored before it
# can be read after it.
#
# `cuda.shared.array(shape, dtype)` declares a shared array; a block may have 48 KB of them. The shape must be
# known when the compiler translates the kernel. Numba refuses this one, for T comes only with the launch:
#
# ```python
# @cuda.jit
# def reverse(a, out, T):
#     tile = cuda.shared.array(T, float32)
# ```
#
# The way out is a **factory**: a function that takes T and returns a kernel, in which T is a constant.
#
# ### Exercise [[reverse]] · Backwards through shared memory
# *core · medium · 10 minutes*
#
# Every block writes its T elements of `a` to `out` in reverse order: `out[b*T + i] = a[b*T + T-1 - i]` for
# block `b`. Each thread stores one element into a shared array, waits, and reads another one. A block has T
# threads, and the length of `a` is a multiple of T.


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
# **What we now know:** between a store by one thread and a read by another there must be a barrier.
#
# ## Why does the walk have two barriers per tile?
#
# The first is that of your `reverse`. But there is another one, after the products.

# %%
see.predict("shared_memory_tiles.second")

# %% [markdown]
# Here are four threads over time, with both barriers. **Make the sum of thread (1, 1) wrong in two different
# ways.** In which of them is it late itself?

# %%
see.race(missing="none")

# %% [markdown]
# Without the first barrier the others suffer: they read what the late thread has not stored yet. Without the
# second the late thread suffers: it reads what the others have stored since.
#
# Two threads access one element, at least one of them stores, and nothing fixes who comes first: that is a
# **race**, even on a day when the numbers are right. Within one warp as well, for nobody promises that its
# lanes stay together.
#
# Document 002 has its second barrier one line further in:
#
# ```python
# for p in range(T):
#     acc += As[ty, p] * Bs[p, tx]
#     cuda.syncthreads()
# ```

# %%
see.predict("shared_memory_tiles.document")

# %% [markdown]
# **What we now know:** two barriers per tile are enough: one when the tiles are complete, one when nobody
# needs them any more.
#
# ## How long does a read of a tile take?
#
# Shared memory is cut into 32 **banks**, float by float: float 0 lies in bank 0, float 31 in bank 31, float
# 32 in bank 0 again. In a clock each bank hands out one float, to all lanes that want it. That is the rule of
# the 32 places in exercise [[l1_queue]]: a read takes as many **wavefronts** as the fullest bank has
# different floats to give. More than one is a **bank conflict**.
#
# In blocks of 32 × 32 threads a warp has one `ty`, and `tx` from 0 to 31. The cell has a right answer to
# [[l1_queue]]. Write the addresses of two more reads, for tiles whose rows are P floats long. How many
# wavefronts do you expect of each?


# %% id="own-banks"
def wavefronts(addresses):
    floats = {address // 4 for address in addresses}
    banks = [each % 32 for each in floats]
    return max(banks.count(bank) for bank in banks)


def addresses_of(P, ty=3, p=5):
    ### BEGIN SOLUTION
    return {
        "As[ty, p]": [4 * (ty * P + p) for tx in range(32)],
        "Bs[p, tx]": [4 * (p * P + tx) for tx in range(32)],
        "As[tx, p]": [4 * (tx * P + p) for tx in range(32)],
    }
    ### STUB
    # return {
    #     "As[ty, p]": [4 * (ty * P + p) for tx in range(32)],
    #     # your code: "Bs[p, tx]" and "As[tx, p]"
    # }
    ### END SOLUTION


{read: wavefronts(addresses) for read, addresses in addresses_of(32).items()}

# %% [markdown]
# Now make the rows longer: `addresses_of(33)`, then 34, then 40. Nobody uses the floats at the end of a row;
# they are [padding](glossary.md#padding). What do they change, and why is 33 better than 40? The picture
# shows in which bank each float lies. (A *word* is 4 bytes, one float.)

# %%
see.banks()

# %% [markdown] tags=["thought"]
# Only the column changes. With P = 32 all its floats lie in one bank: 32 wavefronts. With 33 each row begins
# one bank further on: 1 wavefront. With 34 the column hits 16 banks: 2. With 40 every fourth row begins in
# the same bank again. It hits 4 banks: 8.

# %% [markdown]
# (Inside a kernel `T + 1` is no constant for Numba. Compute `P = T + 1` in the factory, and declare `(T,
# P)`.)
#
# **What we now know:** lanes along a row, or all at one element, take one wavefront; lanes down a column of a
# 32 × 32 tile take 32, unless its rows are padded.
#
# *A good place for a pause. The second half begins with the kernel.*
#
# ## Can you build it for any size?
#
# One rule is left: **all** threads of the block must reach a barrier. At the edge of a matrix some have no
# element to fetch, and some have none to store.

# %% [markdown]
# ### Exercise [[tile_kernel]] · The tile kernel
# *core · hard · the heart of this notebook · 25 minutes*
#
# Write `make_tiled(T)`, which returns the kernel `(m, n, k, alpha, A, B, beta, C)`. Blocks have T × T
# threads, x along the columns; there are `ceil(n / T)` × `ceil(m / T)` of them. Any m, n, k; any T from 2
# to 32.
#
# - A thread that has nothing to fetch stores a zero into the tile instead. A zero adds nothing.
# - Guard each load by itself: a thread outside C may have an element to fetch that its neighbours need.
# - Neighbours in x fetch neighbours in a row, so that a request needs few sectors.
# - The checker also counts $2mnk/T$ loads, at most two barriers per tile, no race and no bank conflict.


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
# The course's kernel is called `penny_xu_tile`. Compare it with yours. (`u32` gives an index 32 bits instead
# of 64. Like `while` in place of `for`, it helps the compiler and changes no result.)

# %% tags=["listing"]
see.fold(see.source("penny_xu_tile"), first="Write the exercise first, then open this.")

# %% [markdown]
# Now break your own. The picture runs it with T = 2. In its menu, take your second barrier away, and hold one
# thread after the other back. Then delete one barrier in your code, and run its cell and this one again.
# What does the checker say, and what does the picture? (Put it back afterwards.)

# %%
see.race(make_tiled)

# %% [markdown]
# **What we now know:** guard the loads and the store, never the barrier.
#
# ## Where did the time go?
#
# `penny_xu_tile` with tiles of 32 × 32 reaches **8.2 TFLOPS** on an H200. So a 32nd of the loads makes it 1.6
# times as fast. How far was your bet?
#
# Count once more: the requests of all warps for loads from global memory, and for reads of shared memory. Put
# the call in place of `None`. Then yours stands behind the kernel of notebook [[coalesced.ipynb]].

# %% id="own-count"
A, B = np.ones((128, 128), np.float32), np.ones((128, 128), np.float32)
before = run("naive_coalesced", A, B, tiles={"BM": 32, "BN": 32}, backend="emulator").report
### BEGIN SOLUTION
mine = run(make_tiled(32)[(4, 4), (32, 32)], A, B, backend="emulator").report
### STUB
# mine = None  # your code: run(make_tiled(32)[(4, 4), (32, 32)], A, B, backend="emulator").report
### END SOLUTION
{
    space: [report.total("requests", space=space, op="load") for report in (before, mine) if report]
    for space in ("global", "shared")
}

# %%
see.predict("shared_memory_tiles.waits")

# %% [markdown]
# The picture shows what a warp spends its time on. Waits below 10 % have only a name there: a *busy unit* is
# still at work on earlier instructions, and a *fixed delay* is the few clocks that a result takes.

# %%
see.fold(
    lambda: see.waits(("naive_coalesced", {"BM": 32, "BN": 32}), "penny_xu_tile"),
    first="Choose your answer first, then open this.",
)

# %% [markdown]
# The reads have only moved, and not even far. **Shared memory and L1 are the same memory**: each SM of an
# H200 has 256 KB of it, and a part serves as L1. Together they serve one wavefront per clock. So the roof is
# again 16.7 TFLOPS / wavefronts per step.
#
# How many wavefronts are in a step of yours? A warp has two reads in it. Besides, every 32 steps it fills its
# places in two tiles, by two loads and two stores. Each of these takes one wavefront.

# %% id="own-roof"
### BEGIN SOLUTION
per_step = 2 + 4 / 32
### STUB
# per_step = None  # your code: the reads of a step, and its part of the loads and stores
### END SOLUTION
16.7 / per_step if per_step else None

# %% [markdown]
# Compare your roof with the 8.2 TFLOPS that were measured. What must have happened?

# %% [markdown] tags=["thought"]
# With 2 + 4/32 = 2.125 wavefronts the roof is 7.9 TFLOPS, and the kernel is above it. No kernel beats a roof.
# **So fewer wavefronts ran than you wrote.** The hardware counted 1.5 per step for the reads, not 2.
#
# A second way to see it: 1.5 + 4/32 wavefronts at 8.2 TFLOPS make 1.63 · 8.2 / 16.7 = 80 %. And in the
# picture above, L1 and shared memory are busy in 80 % of the clocks.

# %% [markdown]
# **What we now know:** tiles save loads from global memory. As you write it, they do not save a single read
# by a thread.
#
# ## Must a tile be square?
#
# A block may compute BM × BN elements of C, from a BM × BK tile of A and a BK × BN tile of B. Then a tile
# has another shape than the block of threads, and thread (x, y) cannot simply fetch element (y, x). So
# number the threads, `tid` from 0 on, and the elements of the tile row by row. In the first pass thread
# `tid` fetches element `tid`. In each further pass it moves on by the number of threads, as you did along a
# row in exercise [[partial_sums]].
#
# Here 8 threads walk over a tile of 3 × 6. Each entry is the `tid` of the thread that fetches the element.
#
# ```
#             column
#             0  1  2  3  4  5
#     row 0   0  1  2  3  4  5
#     row 1   6  7  0  1  2  3
#     row 2   4  5  6  7  0  1
# ```
#
# ### Exercise [[tile_walk]] · A walk over the tile
# *core · medium · 10 minutes*
#
# A tile has BM rows and BK columns. Return the places `(row, column)` of the elements that thread `tid`
# fetches, in order: here `[(0, 1), (1, 3), (2, 5)]` for thread 1. For a thread with nothing to do return an
# empty list. THREADS, the number of threads, may be anything: less than BK, more than BM × BK, a divisor of
# neither.


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
# The course's kernel for any tile is `block_tiled`, document 004's v02. Find your walk in it, twice.
# (`unroll` asks the compiler to write a loop out, one iteration after the other.)

# %% tags=["listing"]
see.fold(see.source("block_tiled"), first="Write the exercise first, then open this.")

# %% [markdown]
# Now the tile is yours. `block_tiled` has BM × BN threads, and takes only tiles that they share evenly: BK
# / BN and BK / BM must be whole numbers. (Your walk can do any.) With 32 × 32 × 32 it reaches 8.5 TFLOPS.
# Of 181 tiles that were measured, two reach 9. **Find one of them.** Does it load less from global memory?
# And watch *shared loads per multiply-add*, as they are written: which tile makes them fewer? (A *warp-wide
# FMA* is a multiply-add of 32 lanes. Registers, what an SM holds, and FLOP per byte are for later.)

# %%
see.tiles("block_tiled", tiles={"BM": 32, "BN": 32, "BK": 32}, tells_best=False)

# %% [markdown] tags=["thought"]
# 16 × 32 × 64 reaches 9.0 TFLOPS, and 32 × 16 × 128 reaches 9.1. Both load *more* from global memory than
# 32 × 32 × 32. Shared loads are written **twice per multiply-add, whatever you choose**: one element of As
# and one of Bs. (Two wavefronts would allow 8.4 TFLOPS. With 32 × 16 × 128 the picture even has three: a warp
# has two rows of C, and its two floats of As lie in one bank. That would allow 5.6. Fewer ran than were
# written.)

# %% [markdown]
# **What we now know:** a block can fetch tiles of many shapes. But with any of them you write two reads for
# one multiply-add.

# %% [markdown] id="side-kernels_on_trial"
# Side trip, 25 minutes: four kernels with one fault each, and a riddle about L2. [Which shape gives a wrong
# kernel away?](kernels_on_trial.ipynb) It leads back to this line.

# %% [markdown]
# ## What else is a tile good for?
#
# Transpose a matrix without a tile, and either its loads or its stores go down a column: 32 sectors per
# request. A tile can turn the elements round.
#
# ### Exercise [[transpose]] · Transpose
# *core · medium · 15 minutes*
#
# Write `make_transpose(T)`, which returns the kernel `(A, out)` that stores A transposed: `out[j, i] = A[i,
# j]`. A has m rows and n columns, any m and n. Blocks have T × T threads, x along the columns of A; there are
# `ceil(n / T)` × `ceil(m / T)` of them. T is 4, 8, 16 or 32.
#
# Load along rows of A, and store along rows of `out`, each element once. With T = 32 the checker wants no
# bank conflict, and, where m and n are multiples of 8, no sector in vain. (Other rows do not all begin where
# a sector begins.)


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
# **What we now know:** what is loaded along rows can be stored along rows, in another order, if it goes
# through a tile.
#
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a kernel whose blocks fetch each element once, into shared memory, for 32 threads to use.
# - **It reached** 8.2 TFLOPS on an H200, in the form of `penny_xu_tile`. Without tiles it was 5.2.
# - **What stops it now:** the busiest part is L1 and shared memory, 80 % of the clocks. You wrote two reads
#   for every multiply-add. Notebook [[thread_tiles_1d.ipynb]] takes reads away, and looks whether it pays.

# %% [markdown]
# In your ladder, look at the wavefronts. As you wrote it, a multiply-add reads 2. Measured were 1.5. How does
# the compiler save the rest? Notebook [[thread_tiles_1d.ipynb]] shows it.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("shared_memory_tiles")

# %% [markdown]
# ## If you stop here
#
# This is a good place to stop. You have three rules for kernels of any kind:
#
# 1. Neighbouring threads access neighbouring elements.
# 2. What several threads of a block need, the block fetches once: store, barrier, read, barrier.
# 3. In shared memory the lanes of a warp go to 32 banks, or to one element.
#
# **The way back:** `python3 course.py lab` opens the course again, and `python3 course.py progress` says what
# comes next. Each notebook begins with two questions from the ones before.
#
# **What waits for you:** in the next two notebooks each thread computes more than one element of C, and 8
# TFLOPS are soon far behind.
