# %% [markdown]
# # [[thread_tiles_1d.ipynb]] · How many results should a thread compute?
#
# In notebook [[shared_memory_tiles.ipynb]] a thread computed one element of C. For each multiply-add it read
# two numbers of shared memory, and the tile kernel reached 8 TFLOPS on an H200. Here a thread computes a
# whole **column**: TM elements of C, one below the other.
#
# First a bet for [your ladder](glossary.md#ladder), before you see a number. How many TFLOPS will a column of
# 32 results per thread reach? Write it in place of the dots.

# %%
from numba import cuda, float32

from gemm_course import check
from gemm_course import widgets as see

see.my_bet("thread_tiles_1d", tflops=...)

# %% [markdown]
# Four sizes shape this kernel. A block computes BM × BN elements of C, from tiles that are BK steps deep, and
# each of its threads computes TM of them. 240 choices of the four were measured. Below is the fastest. **Move
# one slider by one notch, and ruin it.** But bet first:

# %%
see.predict("thread_tiles_1d.notch")

# %% [markdown]
# Now find the notch. Watch the last line, *measured on an H200*. When you have it, go back and forth over the
# notch: which other lines change? (An *FMA* is a multiply-add.)

# %%
see.fold(lambda: see.tiles("thread_tiled_1d"), first="Bet first, then open this.")

# %% [markdown] tags=["thought"]
# BK, from 8 to 16: 21 TFLOPS become 3.7. Besides, only the shared memory per block changes, and that is no
# trouble: an SM still holds two blocks. So **nothing that you can name has changed. What has?** That is the
# case of this notebook.

# %% [markdown]
# *Time: about 50 minutes to read, 39 for the exercises; a pause is marked. The kernel is `thread_tiled_1d`,
# document 004's v03; the [glossary](glossary.md#document) says what the documents are.*
#
# Two questions from memory, without looking back:

# %%
see.recall("thread_tiles_1d")

# %% [markdown]
# ## Who needs the same element?
#
# Two threads, one below the other, compute C[0, 5] and C[1, 5]. Both read the whole column 5 of Bs. Let
# **one** thread compute both, and it reads that column once.
#
# The picture shows one step along k, in a small block. The thread has TM = 2 results. **Get below 1.2 reads
# per multiply-add, with as small a TM as you can.** What does the thread read TM times per step, and what
# only once?

# %%
see.registers("thread_tiled_1d", TM=2)

# %% [markdown] tags=["thought"]
# TM = 8: in a step the thread reads 8 elements of As, one for each result, and one of Bs, which all 8 need.
# These are 9 reads for 8 multiply-adds, 1.125 for each.

# %%
see.predict("thread_tiles_1d.limit")

# %% [markdown]
# **What we now know:** with TM results per thread, a multiply-add costs 1 + 1/TM reads of shared memory. With
# one result it costs 2.
#
# ## Can you write it?
#
# A thread needs a place for TM sums. `cuda.local.array(TM, float32)` declares a **local array**: an array of
# the thread's own, which no other thread can see. Like that of a shared array, its size must be a constant,
# and nobody sets it to zero for you.
#
# ### Exercise [[thread_columns]] · The heart
# *core · hard · the heart of this notebook · 25 minutes*
#
# The tiles are fetched for you, with the walk of exercise [[tile_walk]]. Three pieces are missing: the
# results, their products, their store.
#
# - A block has BN threads along x and BM/TM along y. Thread (tx, ty) has column `tx` of its block's tile, and
#   the TM rows from `ty * TM` on.
# - Store `alpha` times the sum, plus `beta` times what C held. Where `beta == 0`, do not read C.
# - In each step along k, read one element of Bs and TM of As. The checker counts what stands in your source.
#
# (`16` lets a tile begin at a multiple of 16 bytes. If Numba's compiler is installed, as `python3 course.py
# doctor` tells, the checker also says how many registers a thread takes, and how much *local memory*: the
# place for what finds no register.)


# %% id="ex-thread_columns"
def make_column(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        ### BEGIN SOLUTION
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        ### STUB
        # # your code: TM results, all zero
        ### END SOLUTION
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            ### BEGIN SOLUTION
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            ### STUB
            # # your code: the products of these tiles
            ### END SOLUTION
            cuda.syncthreads()
        ### BEGIN SOLUTION
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]
        ### STUB
        # # your code: store the results
        ### END SOLUTION

    return column


check.thread_columns(make_column)

# %% [markdown]
# Compare yours with the course's kernel. Beside it stands a kernel with one result per thread, which fetches
# its tiles in the same way.

# %% tags=["listing"]
from gemm_course.kernels.variants.block_tiled_in_rows import STAGE as one_result

see.fold(see.diff(one_result, "thread_tiled_1d"), first="Write the exercise first, then open this.")

# %% [markdown]
# From here on every figure is for the tiles of the opening: 128 × 128 × 8, and 32 results per thread. So a
# block has 128 × 4 threads.

# %%
columns = {"BM": 128, "BN": 128, "BK": 8, "TM": 32}

# %% [markdown]
# **What we now know:** 512 threads compute 16,384 results. So a tile can have far more elements than a
# block has threads.
#
# *A good place for a pause. About 45 minutes are left.*
#
# ## Which register is `acc[i]`?
#
# Until now `acc` was one number, in a **register**. An SM has 65,536 of them, of 32 bits each, and a thread
# can have up to 255. But a register has no address. An instruction names it: *add to register 17*. None can
# say *add to register number i*.
#
# So how can an array lie in registers? The compiler writes the loop over `i` out: `acc[0] += ...`, `acc[1] +=
# ...`, and so on. That is called [unrolling](glossary.md#unrolling). Now every element has a name, and gets a
# register. The compiler does so where a loop is short and its number of iterations is known. To ask for it,
# write `unroll(range(TM))`.
#
# What finds no register goes to **local memory**. Each thread has its own, hence the name. But it lies in
# DRAM, hundreds of clocks away, unless a cache holds it.
#
# **Break yours.** Copy your kernel into the cell below. Let each thread begin with another row: in the
# innermost loop, put `j = (i + tx) % TM`, and use `j` in place of `i`, in `acc` and in As. These are the same
# products, in another order. What will the checker say? Decide, then run it.

# %%
# Your copy, under another name, so that `make_column` stays whole:
# check.thread_columns(make_broken)

# %% [markdown] tags=["thought"]
# The result is right, and the checker refuses it: `acc` lies in local memory. Each lane wants another element
# at the same time, and which one is known only while the kernel runs. So the elements need addresses.

# %% [markdown]
# **What we now know:** a local array lies in registers only if the compiler knows every index.
#
# ## How fast can it be?
#
# Count one step of one warp, as you wrote it. The 32 lanes have the same rows, and columns side by side. In a
# read of As all lanes ask for the same element: one wavefront. In the read of Bs they ask for 32 neighbours:
# one wavefront.

# %%
see.predict("thread_tiles_1d.ceiling")

# %% [markdown]
# 16 is the roof of *your* kernel. `thread_tiled_1d` asks for its loop over `p` to be written out,
# `unroll(range(BK))`. Then these four reads stand side by side:
#
# ```python
# As[y, 0], As[y, 1], As[y, 2], As[y, 3]
# ```
#
# What could the compiler make of them? Say it, then look.

# %%
see.fold(
    lambda: see.as_compiled("thread_tiled_1d", tiles=columns, reads_only=True),
    first="Say it first, then open this.",
)

# %% [markdown] tags=["thought"]
# One read of four floats, 16 bytes: 8 reads of As instead of 32. All lanes ask for the same 16 bytes, and
# that takes 2 wavefronts, where four single reads take 4. (By the rule of notebook
# [[shared_memory_tiles.ipynb]] it would be 1. That holds for single floats; notebook
# [[thread_tiles_2d.ipynb]] has the rule for fours.) A step takes 16 + 1 wavefronts, and shared memory
# allows 67 · 8 / 17 = 32 TFLOPS.

# %% [markdown]
# **Do it in your kernel.** Import `unroll`, as below, write `unroll(range(BK))` for the loop over `p`, and
# check it again. Until now the solution took 125 registers per thread. How many will it be?

# %%
from lockstep.intrinsics import unroll  # noqa: F401

# check.thread_columns(make_column)

# %%
# The reads of yours, if the compiler is installed:
# see.as_compiled("thread_tiled_1d", make_column, tiles=columns, reads_only=True)

# %% [markdown]
# **What we now know:** where loops are written out, the compiler merges reads. A multiply-add then costs ½ +
# 1/TM wavefronts instead of 1 + 1/TM.
#
# ## What happens at 16?
#
# Writing out has a price. The compiler starts many reads early, and each value on its way needs a register.
# Compiled, the solution takes 125 registers. With 8 steps written out it takes 255, the most that a thread
# can have. 512 threads would need 130,560 of them. The SM has 65,536: a GPU refuses to launch that.
#
# `thread_tiled_1d` has a **cap**: at most 64 registers per thread, so that two blocks fit on an SM. Now back
# to the notch: with BK = 16 there are 16 steps to write out, under the same cap.
#
# To find out what they do, change one thing only: how many of the 16 steps are written out **at a time**. Do
# it in your kernel. Put `STEPS = min(BK, 2)` beside `THREADS`, and make two loops of the one over `p`:
#
# ```python
# for q in range(0, BK, STEPS):
#     for s in unroll(range(STEPS)):
#         p = ...
# ```
#
# What is `p`? Write it, and check your kernel once more.

# %%
# check.thread_columns(make_column)

# %% [markdown]
# `thread_tiled_1d` was changed in the same way and measured, with BK = 16. All 16 steps at a time are the
# kernel that you know: 3.7 TFLOPS.

# %%
see.predict("thread_tiles_1d.steps")

# %% [markdown]
# Here is the evidence. Move the slider up to 16.

# %%
see.fold(lambda: see.unrolled(), first="Choose your answer first, then open this.")

# %% [markdown] tags=["thought"]
# The case is solved. With all 16 steps written out, more values are on their way than there are registers.
# What does not fit is stored in local memory and loaded again: 672 bytes per thread. With 8 at a time it is
# 24, and 21 TFLOPS are back, at the same BK. With 2 at a time it is even 22. That was not among the 240
# choices: in each of them, all steps of a tile are written out.

# %% [markdown]
# A value that waits in local memory because no register is left is **spilled**. A few bytes cost little.
#
# See it in your own kernel, if the compiler is installed. Give it the cap, `@cuda.jit(max_registers=64)`.
# How do the *bytes spilled* grow from `STEPS = min(BK, 2)` to `min(BK, 16)`? (They count each store, so
# compare the growth, not the size. And your kernel spills a little even with 2.)
#
# So two doors lead out of the registers: too many values, or an index that nobody knows.

# %%
# see.as_compiled(make_column, tiles=columns | {"BK": 16})

# %% [markdown]
# How many results should a thread compute, then? Here is the fastest of the 240 choices for each TM:
#
# | TM | 1 | 2 | 4 | 8 | 16 | 32 |
# |---|---|---|---|---|---|---|
# | TFLOPS | 9.1 | 14 | 18 | 20 | 20 | 21 |
#
# **32, but 8 are nearly as good.** With 32 results a multiply-add costs ½ + 1/32 wavefronts. With 64 it would
# cost ½ + 1/64, hardly less, and the results alone would fill the cap of 64 registers.
#
# ### Exercise [[in_registers]] · Back into registers
# *core · medium · 14 minutes*
#
# Another kernel, a vector times a matrix: $y_j = \sum_p x_p A_{pj}$. A thread has R columns, 32 apart, so
# that neighbours load neighbours. It is right, but its `acc` lies in local memory. It takes 38 registers.
# Which of the two doors was it, and which line opened it?
#
# Fix it: the same results, the same launch (32 threads per block, `ceil(n / (32 R))` blocks), one pass along
# k, all R results in registers.


# %% id="ex-in_registers"
def make_strip(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        ### BEGIN SOLUTION
        ### STUB
        # count = min(R, (n - first + 31) // 32)  # this thread's columns: first, first + 32, ... below n
        ### END SOLUTION
        for i in range(R):
            acc[i] = 0
        ### BEGIN SOLUTION
        for p in range(k):
            xp = x[p]
            for i in range(R):
                if first + 32 * i < n:
                    acc[i] += xp * A[p, first + 32 * i]
        for i in range(R):
            if first + 32 * i < n:
                y[first + 32 * i] = acc[i]
        ### STUB
        # for p in range(k):
        #     xp = x[p]
        #     for i in range(count):
        #         acc[i] += xp * A[p, first + 32 * i]
        # for i in range(count):
        #     y[first + 32 * i] = acc[i]
        ### END SOLUTION

    return strip


check.in_registers(make_strip)

# %% [markdown]
# **What we now know:** a few steps at a time let the compiler merge reads, and too many spill. Results and
# steps share the same registers.

# %% [markdown] id="side-warps_in_waiting"
# Side trip, 25 minutes: the cap lets two blocks onto an SM, and a lower one would let four. [What are warps
# for?](warps_in_waiting.ipynb) It leads back to this line.

# %% [markdown]
# ## Which profile is which?
#
# Three kernels on an H200, and how busy the parts of the GPU were, in per cent of the clocks. One is the tile
# kernel of notebook [[shared_memory_tiles.ipynb]]. One is `thread_tiled_1d` with the tiles of this notebook.
# One is `thread_tiled_1d` with BK = 64 and smaller blocks, and all 64 steps are written out.
#
# | | X | Y | Z |
# |---|---|---|---|
# | L1 and shared memory | 86 | 49 | 80 |
# | multiply-add units | 37 | 6 | 15 |
# | L2 | 28 | 93 | 15 |
# | DRAM | 2 | 54 | 10 |
#
# Name them, each with a reason.

# %% [markdown] tags=["thought"]
# Y keeps L2 and DRAM busy, though tiles are there to spare them that. It spills, and local memory lies behind
# L2. Z and X both keep shared memory busy. But X gets more than twice as many multiply-adds out of it:
# `thread_tiled_1d`. Z is the tile kernel.
#
# (At 21 TFLOPS below a roof of 32, the reads of X keep shared memory busy in 66 % of the clocks, by the
# rule of notebook [[coalesced.ipynb]]. Filling the tiles and spilled registers bring it up to 86.)

# %% [markdown]
# ## What have you made?
#
# What is X's busiest part, and which reads keep it busy? Write three lines before you open ours: *I made ...
# It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a kernel whose threads compute 32 results each, in registers, from 33 reads per step.
# - **It reached** 21 TFLOPS on an H200, with 8 steps written out and a cap of 64 registers. The tile kernel
#   of notebook [[shared_memory_tiles.ipynb]] reached 8.
# - **What stops it now:** shared memory is still the busiest part. Nearly all of its wavefronts are reads of
#   As, half a wavefront for each multiply-add, and no TM gets rid of them. In notebook
#   [[thread_tiles_2d.ipynb]] such a read serves several results, too.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("thread_tiles_1d")
