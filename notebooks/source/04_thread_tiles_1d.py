# %% [markdown]
# # 04 · A column of results in every thread
#
# v02 reads two elements of shared memory for every multiply-add, and shared memory cannot keep up. The
# fastest memory of all has not been used yet: a thread's own registers. If a thread computes **several**
# elements of C, what it has read once serves all of them.
#
# **After this notebook you can**
# - derive how many shared reads a result costs, for any tile, and hold it against the emulator's count;
# - keep an array in registers, and say what throws it out: local memory and spills;
# - work out how many warps an SM holds, and how many bytes they keep under way.
#
# *Time: about 35 minutes to read, 50 for the exercises. Comes from document 004, kernel v03.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import LADDER, check, run
from gemm_course import widgets as see

# %% [markdown]
# ## In one picture
#
# A thread makes several elements of C now, one below the other. Compare the two bars: what it reads in one
# step along `k`, and how many products it adds.

# %%
see.multiply("thread_tiled_1d")

# %% [markdown]
# ## What limits it now?
#
# Shared memory. An SM can do four warp-wide multiply-adds a clock, but serves one wavefront of shared
# memory in that clock. v02 asks for two reads each time:

# %%
see.tflops("naive_uncoalesced", "naive_coalesced", "block_tiled")

# %% [markdown]
# ## One column, eight results
#
# Look at two threads, one below the other. They compute C[0, 5] and C[1, 5], so they need the very same
# column of Bs. Each reads it for itself. Let **one** thread do both, and it reads the column once.
#
# So a thread gets TM results, one below the other. In every step `p` along k it reads
#
# - **one** element of Bs, which all TM results need;
# - **TM** elements of As, one for each result.
#
# Below is one block of v03 with small tiles (16 × 32, 16 deep), drawn from the emulator's trace. Move TM,
# and see how the reads become fewer than the multiply-adds' two each. Then move the thread: what does the
# rest of its warp read?

# %%
see.registers("thread_tiled_1d")

# %% [markdown]
# All 32 lanes of the warp have the same rows of C, so they read the same elements of As: a broadcast, one
# **wavefront** for all. Of Bs they read 32 neighbours: one wavefront as well. What counts from here on is
# how many of them a multiply-add costs.
#
# ### On paper
#
# A pair of tiles is BK steps long. Without thread tiles, one result takes BK reads of As and BK of Bs:
# $2 \cdot BK$. A thread with TM results takes $BK \cdot TM$ reads of As and only $BK$ of Bs. Shared out
# among its results:
#
# $$BK + BK/TM \text{ reads a result, or } 1 + 1/TM \text{ a multiply-add.}$$
#
# The reads of Bs can be made as few as you like; those of As stay. However large TM is, one read a
# multiply-add is left.
#
# ### Counted
#
# The same kernel with TM from 1 to 32, on the emulator. How many reads of shared memory for each
# multiply-add?

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((64, 64), np.float32), rng.standard_normal((64, 64), np.float32)


def reads(TM):
    tiles = {"BM": 32, "BN": 32, "BK": 32, "TM": TM}
    report = run("thread_tiled_1d", A, B, tiles=tiles, backend="emulator").report
    return report.total("lanes", space="shared", op="load") / 64**3


{TM: reads(TM) for TM in (1, 2, 4, 8, 16, 32)}

# %% [markdown]
# ## The kernel
#
# What changed since v02:

# %%
see.diff("block_tiled", "thread_tiled_1d")

# %% [markdown]
# - A block still has a tile of BM × BN elements, but only **BM · BN / TM threads**. Tiles can be larger
#   than the 1,024 threads that a block may have.
# - `acc` is an array of the thread's own, `cuda.local.array`: one place for each result.
# - `b = Bs[p, x0]` stands **before** the inner loop. That line is the whole idea.
# - Thread `tid` begins in row `tid // BN * TM`: its TM rows are followed by the next thread's.
#
# ## Where an array goes
#
# "Local array" is an unlucky name. What you want are **registers**: an SM has 65,536 of them, 32 bits
# each, and a thread may have 255. They are read in the very instruction that computes, at no extra cost.
# But a register has no address. The instruction says *register 17*, and nobody can say "register number
# i" while the program runs.
#
# So the compiler has to know, for every access to `acc`, which element is meant. It writes the loop out
# in full (it **unrolls** it): `acc[0] += ...`, `acc[1] += ...`, and each becomes a register of its own.
# For that the loop must turn a constant number of times, like `range(TM)`, where TM comes from the
# function around the kernel. `unroll(range(TM))` in the course's kernels asks for it by name, where the
# compiler might find the loop too long. To the emulator it means nothing.
#
# Otherwise the array goes to **local memory**. It is called that because every thread has its own, but it
# lies in device memory, behind the caches, hundreds of clocks away. The emulator tells you:

# %%
from gemm_course.checks.kits import make_strip

see.source(make_strip(16))

# %%
from gemm_course import launch

given = 500, 8, np.ones(8, np.float32), np.ones((8, 500), np.float32), np.zeros(500, np.float32)
print(launch(make_strip(16)[1, 32], *given, backend="emulator").report.advice[0])

# %% [markdown]
# Compiled for an H200, this kernel has 12 loads from and 11 stores to local memory in it. You will mend
# it in the exercises; then it has none.
#
# The other way into local memory is a **spill**: there are simply too many values at a time. The compiler
# was told, or had to assume, that a thread may have so many registers; what does not fit is put aside
# into local memory, and fetched again. Here are the tiles of the recorded sweep in which it did that
# most:

# %%
from gemm_course import records

sweep = records.sweep().query("stage == 'thread_tiled_1d' and local_bytes > 0")
sweep.nlargest(5, "local_bytes").set_index("tiles")[["registers", "local_bytes", "tflops"]]

# %% [markdown]
# ## Run it

# %%
C = run("thread_tiled_1d", A, B).C
np.abs(C - A @ B).max()

# %% [markdown]
# ## Count it three ways
#
# The tiles are the stage's own:

# %%
t = LADDER["thread_tiled_1d"].tiles
t

# %% [markdown]
# Write the number of requests, for all warps together: loads from global memory, and reads of shared
# memory. Use `t["BM"]`, `t["BN"]` and `t["TM"]`.


# %% id="formula"
def global_requests(m, n, k):
    ### BEGIN SOLUTION
    return (m * n * k // t["BN"] + m * n * k // t["BM"]) // 32
    ### STUB
    # return None
    ### END SOLUTION


def shared_requests(m, n, k):
    ### BEGIN SOLUTION
    return (m * n * k + m * n * k // t["TM"]) // 32
    ### STUB
    # return None
    ### END SOLUTION


# %%
size = (1024, 1024, 1024)
counted = {"global_load_requests": global_requests, "shared_load_requests": shared_requests}
see.counts("thread_tiled_1d", size, **counted)

# %%
see.counts("thread_tiled_1d", size, shared_load_wavefronts=shared_requests)

# %% [markdown]
# The hardware counts far fewer reads than the source has. The loop over `p` is unrolled as well, and then
# `As[y, p]` to `As[y, p + 3]` stand side by side: the compiler makes **one 128-bit load** of the four. A
# broadcast of 128 bits takes two wavefronts (why two, notebook 05 will say). So four steps cost 2 TM + 4
# wavefronts instead of 4 TM + 4:
#
# $$1/2 + 1/TM \text{ wavefronts a multiply-add,}$$
#
# where the source has $1 + 1/TM$. You wrote a kernel with fewer reads, and the compiler took half of what
# was left. It can do so because the reads are neighbours in k; notebook 06 takes that up and does it by
# design.
#
# ## How many warps, and what for?
#
# Threads with more results need more registers, and then fewer of them fit on an SM. How many stay? That
# is **occupancy**, and it can be worked out: blocks fit until threads, registers or shared memory run out.
#
# Here is an SM of an H200, filled with blocks of v03. Take blocks out, put them in one by one, and see which
# tank is full first. Then try a smaller TM.

# %%
see.occupancy("thread_tiled_1d")

# %% [markdown]
# 512 threads × 64 registers = 32,768, twice of which is all an SM has: 2 blocks, 32 of 64 possible warps.
#
# Document 004's v03 has tiles of 64 × 64 × 8 and TM = 8, also in blocks of 512 threads. With 96 registers per
# thread 1 block would fit, with 64 it is 2, with 40 it is 3, and with 32 all 4.
# The compiler can be told how many blocks must fit on an SM, and then has to manage with the registers
# that leaves (`launch_bounds` in `cuda.jit`). Left alone, it takes 96 here: it reads far ahead into
# registers that it finds free.

# %%
see.predict("04.registers")

# %% [markdown]
# What a scheduler does all that time, if a block computes with its tiles, asks for the next ones, and waits:

# %%
see.strips("thread_tiled_1d")

# %% [markdown]
# Why more warps help: they keep more **bytes under way**. Suppose that device memory answers after 600
# clocks. It can give each of the 132 SMs 18 bytes a clock; so that it never has to wait for a question,
# 18 × 600 bytes must be under way for each SM at any time:

# %%
bytes_a_clock = 4.8e12 / 132 / 1.98e9
round(bytes_a_clock * 600)

# %% [markdown]
# A warp that fetches one float a lane has 128 bytes under way. In v03 with the document's tiles each
# thread fetches one element of A and one of B before it waits: 256 bytes a warp. So 16 warps have 4 KB
# under way, 32 have 8 KB, 48 have 12 KB, and all 64 have 16 KB. It takes 48 to have the 11 KB. (That is an
# estimate from above: much is answered by the L2 cache, and sooner.)
#
# But more is not better at any price. With TM = 16 and BK = 16 the cap of 32 registers makes the compiler
# put 272 bytes a thread aside, and the kernel falls to 8 % of cuBLAS. And there is another way to have
# bytes under way: several loads a thread. With larger thread tiles a few warps are enough; you will see
# that in notebook 05.
#
# ## What is it worth?

# %%
see.predict("04.gain")

# %% tags=["answer"]
see.tflops("naive_coalesced", "block_tiled", "thread_tiled_1d")

# %% tags=["answer"]
see.tflops("naive_coalesced", "block_tiled", "thread_tiled_1d", on="RTX 3090")

# %% tags=["answer"]
see.roofline("naive_coalesced", "block_tiled", "thread_tiled_1d")

# %% [markdown]
# The answer to *what limits it now?* is **still shared memory**, only later. Between a half (as compiled)
# and one (as written) wavefronts a multiply-add are left, and almost all of them are reads of As. No TM
# gets rid of them: at best half of the peak can be reached this way.
#
# ## Tune it
#
# Move TM with the block's tile held. With which TM can it not run, and why? Then go to the tiles with the
# most TFLOPS, which the picture names: what do their occupancy and their wavefronts look like? And if a
# neighbour is several times slower, you know what to suspect: values put aside in local memory.

# %%
see.tiles("thread_tiled_1d")

# %% [markdown]
# ---
# ## Exercises
#
# ### Exercise 04.1 · Reads a result
# *core · easy · 5 minutes*
#
# How many elements of shared memory does a thread read from **one pair of tiles**, for each of its TM
# results? Return the number for any BK and TM. The checker asks the emulator.


# %% id="ex-04-1"
def reads_a_result(BK, TM):
    ### BEGIN SOLUTION
    of_as = BK * TM
    of_bs = BK
    return (of_as + of_bs) / TM
    ### STUB
    # return None
    ### END SOLUTION


check.reads_per_result(reads_a_result)

# %% [markdown]
# ### Exercise 04.2 · The heart
# *core · hard · the heart of this notebook · 25 minutes*
#
# The tiles are fetched for you: blocks have BN × (BM / TM) threads, x along the columns, and all of them
# share the fetching, whatever the tile. Three pieces are missing: the results, their products, their
# store. Grid: `ceil(n / BN)` × `ceil(m / BM)` blocks.
#
# The checker wants 1 + 1/TM reads of shared memory a multiply-add, and the results in registers.


# %% id="ex-04-2"
def make_column(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
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
# ### Exercise 04.3 · How deep a tile?
# *core · easy · 6 minutes*
#
# When a block of v03 fetches its tile of A, lane after lane takes element after element of the tile, row
# by row, BK in each. How many **sectors** does one request of a full warp move? BK is a power of two up
# to 32; the rows of A begin at sectors, and so do the tiles' rows where BK is at least 8.


# %% id="ex-04-3"
def sectors(BK):
    ### BEGIN SOLUTION
    return 32 // BK * max(1, BK // 8)
    ### STUB
    # return None
    ### END SOLUTION


check.tile_sectors(sectors)

# %% [markdown]
# ### Exercise 04.4 · Back into registers
# *stretch · medium · 14 minutes*
#
# This is the kernel from above: a vector times a matrix, $y_j = \sum_p x_p A_{pj}$, with R columns a
# thread, 32 apart, so that the warp's loads are coalesced. It is right. But `acc` lies in local memory.
# Mend it: same results, same launch (32 threads a block, `ceil(n / (32 R))` blocks), all R of them in
# registers.


# %% id="ex-04-4"
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
# ---
# ## Quiz

# %%
see.quiz("04")

# %% [markdown]
# ## Recap
#
# - A thread with TM results reads each element of Bs once for all of them: $BK + BK/TM$ shared reads a
#   result instead of $2 \cdot BK$.
# - Arrays stay in registers only if every index is known when the kernel is compiled. Otherwise, or if
#   there are too many values, they go to local memory, which is device memory.
# - Registers, threads and shared memory decide how many warps an SM holds; warps × bytes each has under
#   way must cover the wait.
# - One read of As for every multiply-add is left, however tall the column.
#
# **Next:** the column becomes a rectangle. What is read from As serves several results as well.
