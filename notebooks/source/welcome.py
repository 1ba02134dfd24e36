# %% [markdown]
# # [[welcome.ipynb]] · Welcome: the machine
#
# **Press Shift+Enter to begin.** It runs the cell that you are in and goes on to the next; it skips text
# cells. *Run* → *Run All Cells*, in the menu at the top, runs the whole notebook. Later cells need
# earlier ones, so go from top to bottom, and do so again when you come back another day.
#
# This course writes the same small program, matrix multiplication, over and over, each time a little
# better, until it comes close to cuBLAS, the library that NVIDIA ships. You write the kernel of every step:
# the function that runs on the GPU.
#
# You need Python and NumPy, and **no GPU**: an emulator runs your kernels and counts every memory access that
# they ask for. With a GPU you can run your kernels there as well. Speeds in the text are those of an NVIDIA
# H200, also where a picture can show another GPU.
#
# **After this notebook you can**
# - write, run and check your first kernels;
# - given a thread, name its block, warp, lane, row and column;
# - say where an element of a matrix lies in memory, and which other bytes move along with it;
# - tell how fast a kernel can be at most.
#
# *Time: about 45 minutes to read, 45 for the exercises. Four stations; take a break between any two.*

# %% [markdown] id="contents"
# ## Contents
#
# <!-- contents -->
#
# There will be many new words. The [glossary](glossary.md) explains each in a sentence or two, and names the
# notebook that teaches it.

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, emulate
from gemm_course import widgets as see

# %% [markdown]
# ## What are we going to do?
#
# $C = A \cdot B$, with `A` of `m` rows and `k` columns, `B` of `k` rows and `n` columns. In NumPy it is one
# line. In plain Python it is three loops:


# %%
def matmul(A, B, C):
    for row in range(C.shape[0]):
        for col in range(C.shape[1]):
            C[row, col] = sum(A[row, p] * B[p, col] for p in range(A.shape[1]))


# %% [markdown]
# And as a picture: A stands left of C, B above it. Leave *look at* on *element*, choose an element of C, and
# let the steps along `k` play: a number of its row of A meets one of its column of B, and their product is
# added.

# %%
see.multiply()

# %% [markdown]
# The two outer loops go over the elements of `C`. No element depends on another, so nothing says they
# must be done one after the other. A GPU takes that literally: it starts **one thread for every element** and
# drops these two loops. An NVIDIA H200 works on up to 270 336 threads at a time; further
# ones start as these end. The whole course is about one question: *what do these threads have to wait for?*
#
# Here is where it leads, on one and the same machine, with one and the same result:

# %%
see.tflops("naive_uncoalesced", "naive_coalesced", "block_tiled", "thread_tiled_2d", "warp_tiled")

# %% [markdown]
# A bar is a kernel that you will write, under its name in this course; `A`, `B` and `C` are 4096 × 4096. An
# addition or a multiplication is a *floating-point operation*, a **FLOP**; one TFLOPS is $10^{12}$ per
# second. FP32 means numbers of 32 bits, NumPy's float32. The dashed line is cuBLAS.
#
# Every notebook goes one step further, and its exercises check themselves. The course remembers which have
# passed. Come back here and run this cell to see how far you are, or ask `python3 course.py progress` in a
# terminal. The numbers of exercises are names, not an order: do them as they come.

# %% id="progress"
check.progress()

# %% [markdown]
# ---
# ## Station 1 · Your first kernel
#
# A **kernel** is a function that every thread runs. It gets no loop index; it asks who it is:
#
# - threads come in **blocks** of up to 1024 threads;
# - blocks come in a **grid**: all threads of one launch.
#
# Here is a kernel in four lines. Numba translates Python into machine code; because of `@cuda.jit` it does so
# for the GPU. (CUDA is NVIDIA's system for programs on its GPUs.)


# %%
@cuda.jit
def double(a, out):
    i = cuda.grid(1)  # the thread's number in the whole grid
    out[i] = float32(2) * a[i]


# %% [markdown]
# It **returns nothing**: it writes into an array that it was given. It may use numbers, indices, `if`, `for`
# and `.shape`, but no lists and no arithmetic with whole arrays. `float32(2)` is the number 2 as a float32; a
# plain `2.0` would be a float64, which notebook [[naive.ipynb]] comes back to.
#
# With an NVIDIA GPU, `double[3, 40](a, out)` **launches** it: 3 blocks of 40 threads. (Numba copies the
# arrays there and back. Without a GPU, that line stops with a `CudaSupportError`.) Here the emulator does it:
# `emulate(kernel, blocks, threads, arguments ...)` runs the kernel and returns a report, which we read in
# Station 3.

# %%
a, out = np.arange(120, dtype=np.float32), np.zeros(120, np.float32)
report = emulate(double, 3, 40, a, out)
out[:8]

# %% [markdown]
# 120 threads for 120 elements. Now the same launch with 100: what will the last 20 threads do? (Threads are
# named (x, y, z); z is always 0 in this course.)

# %%
for finding in emulate(double, 3, 40, a[:100], out[:100]).findings:
    print(f"line {finding.line}: {finding.message}")

# %% [markdown]
# So do all 20 of them; the report names the first. A GPU would have read and written whatever lies behind the
# arrays, usually silently. Blocks rarely fit exactly. So the surplus threads must be told to keep their hands
# off: that is the **guard**, an `if`. A kernel asks an array for its size: `out.size`, `len(out)`, or `m, n =
# out.shape`.
#
# ### Exercise [[blocks_for]] · How many blocks?
# *core · easy · 3 minutes*
#
# `n` elements, blocks of `threads` threads, one thread per element. Write `blocks_for(n, threads)`: the
# smallest number of blocks that covers all of them.


# %% id="ex-blocks_for"
def blocks_for(n, threads):
    ### BEGIN SOLUTION
    return (n + threads - 1) // threads
    ### STUB
    # return None
    ### END SOLUTION


check.blocks_for(blocks_for)

# %% [markdown] tags=["stub"]
# *Every exercise has these three: a verdict when its cell has run, hints that open one by one, and the
# solution, folded.*

# %% [markdown]
# ### Exercise [[vector_add]] · Add two vectors
# *core · easy · 8 minutes*
#
# Write the kernel `vector_add(a, b, out)`: `out[i] = a[i] + b[i]`. It is launched with blocks of 128
# threads, in one dimension, and as many blocks as it takes. The vectors may have any length. Every thread
# stores one element at most, its own, and nothing outside the arrays is touched. (The checker fills `out`
# with NaN, *not a number*, before the launch: where you see NaN, nothing was stored.)


# %% id="ex-vector_add"
@cuda.jit
def vector_add(a, b, out):
    ### BEGIN SOLUTION
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]
    ### END SOLUTION


check.vector_add(vector_add)

# %% [markdown]
# ### Rows and columns
#
# In two dimensions, blocks and threads are pairs:
#
# - `cuda.threadIdx.x`, `.y` say where in the block a thread is, `cuda.blockDim.x`, `.y` how large the block
#   is;
# - `cuda.blockIdx.x`, `.y` say where in the grid the block is.
#
# Two conventions bite everyone once:
#
# 1. `x` counts **columns**, to the right, and `y` counts **rows**, downwards. NumPy writes the row first:
#    `C[y, x]`.
# 2. `cuda.grid(2)` returns both, as `(x, y)`. It is short for `cuda.blockIdx.x * cuda.blockDim.x +
#    cuda.threadIdx.x`, and the same with `y`. After 3 blocks of 8 threads, thread 2 has x = 26.
#
# The picture shows a matrix of 10 rows and 18 columns, and the launch `kernel[(3, 3), (8, 4)](...)`. Move the
# sliders: which thread takes which element? Then try the other shapes. Three of them leave no thread without
# an element: which?

# %%
see.grid()

# %% [markdown] tags=["thought"]
# 2 × 2, 6 × 5 and 9 × 2: 2, 6 and 9 divide 18 columns, 2 and 5 divide 10 rows.

# %% [markdown]
# The hatched threads exist and run the kernel: the guard keeps them out. In two dimensions it is
# `if row < m and col < n:`, with the sizes of `C`.
#
# ### Exercise [[broadcast_add]] · Broadcasting
# *core · medium · the step to matrices · 10 minutes*
#
# In NumPy, `down[:, None] + across[None, :]` makes a matrix out of two vectors. Write it as a kernel
# `broadcast_add(down, across, out)`: `out[i, j] = down[i] + across[j]`. `down` has as many elements as
# `out` has rows, `across` as many as `out` has columns.
#
# It is launched with blocks of (16, 8) threads, 16 along x, and `x` runs over the **columns** of `out`.
# Again, every thread stores one element, its own.


# %% id="ex-broadcast_add"
@cuda.jit
def broadcast_add(down, across, out):
    ### BEGIN SOLUTION
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = down[y] + across[x]
    ### END SOLUTION


check.broadcast_add(broadcast_add)

# %% [markdown]
# ---
# ## Station 2 · Warps: who am I?
#
# The hardware does not step through a block thread by thread; it works on warps. It numbers a block's
# threads, **x first**: that number is a thread's **linear id**. Then it cuts the ribbon of ids into pieces of
# 32, the **warps**. A warp's threads share its instructions. Each is begun, or *issued*, once for all threads
# that have reached it, and usually that is all 32. A thread's place in its warp is its **lane**.

# %%
see.block()

# %% [markdown]
# Move the thread, change the shape, and watch where it goes. Then without the picture: blocks of 6 × 7
# (x × y), 40 × 2 and 96 × 2. In which do threads of *more than one row* share a warp, and how many lanes are
# **idle**, that is have no thread?

# %% [markdown] tags=["thought"]
# In 6 × 7 and in 40 × 2: warps do not end where rows end. 40 × 2 are 80 threads in three warps: the second
# has 8 threads of the first row and 24 of the second, and 16 lanes of the third are idle. 6 × 7 are 42
# threads in two warps, with 22 idle lanes. In 96 × 2 each row fills three warps.

# %% [markdown]
# If the lanes of a warp disagree at an `if`, the warp runs both branches, each with some lanes **masked**:
# they do nothing. That is called *divergence*. A guard costs next to nothing: only warps at the edge
# disagree, and their other branch is empty. An `if` that splits every warp costs the time of both branches.

# %% [markdown]
# ### Exercise [[where]] · Who am I?
# *core · easy · matters in every notebook · 8 minutes*
#
# Write `where(block, thread, block_dim)`. All three are tuples `(x, y)`: `blockIdx`, `threadIdx` and
# `blockDim`. Return `(row, col, warp, lane)`: row and column of the element in the whole matrix, warp and
# lane within the block.


# %% id="ex-where"
def where(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    ### BEGIN SOLUTION
    linear = ty * dx + tx
    return by * dy + ty, bx * dx + tx, linear // 32, linear % 32
    ### STUB
    # return None  # (row, col, warp, lane)
    ### END SOLUTION


check.where(where)

# %% [markdown]
# ### Exercise [[idle_lanes]] · Idle lanes
# *core · medium · 3 minutes*
#
# Back to the picture of Station 1: 10 rows, 18 columns. Blocks of 2 × 2 leave no thread without an element.
# Even so, how many lanes are idle, over all warps?

# %% id="ex-idle_lanes"
### BEGIN SOLUTION
check.idle_lanes(1260)
### STUB
# check.idle_lanes(None)
### END SOLUTION

# %% [markdown]
# ---
# ## Station 3 · Memory: where is it?
#
# Memory is one long row of bytes. A matrix has to be laid into it, and NumPy (like C) does it **row by
# row**. To find `A[row, col]` one needs to know how far it is from the start of one row to the start of the
# next. That distance, in elements, is the **leading dimension**. Often it is simply the number of columns;
# often it is a little more, and the rest of each row is **padding** that belongs to nobody.
#
# NumPy keeps the distance in bytes, as `A.strides`:

# %%
A = np.zeros((5, 16), np.float32)[:, :13]
A.shape, A.strides, A.itemsize

# %% [markdown]
# The memory system never moves a single float. It moves **sectors** of 32 bytes, 8 floats each. Four
# sectors make a **line** of 128 bytes, which is what the caches keep track of. (A cache is a small, fast
# memory that keeps copies of what was used a short time ago.) Ask for one float, and seven others travel with
# it, whether you want them or not.
#
# Move the element along a row, then down a column. When does the sector change, when the line?

# %%
see.addresses()

# %% [markdown]
# Now set the leading dimension to 13. Most rows begin in the middle of a sector, and each element of a column
# sits at a different place in its sector. Notebook [[coalesced.ipynb]] will come back to that.

# %% [markdown]
# ### Who asks for which bytes?
#
# Back to `double`, with 3 blocks of 40 threads: the emulator kept the books. A **request** is one access by
# one warp, all its lanes together. How many requests for `a` do the three blocks make, and how many sectors
# does each touch? Add them up. (`a` begins where a sector begins.)

# %% [markdown] tags=["thought"]
# Each block has two warps: 32 floats in four sectors, and 8 floats in one. Three blocks make 6 requests and
# touch 15 sectors.

# %% [markdown]
# Look it up: a row per array, with `op` (load: read; store: write), the `lanes` that took part and the
# `bytes` that they asked for.

# %%
see.fold(
    report.accesses[["array", "op", "requests", "lanes", "bytes", "sectors"]],
    first="Answer first, then open this.",
)

# %% [markdown]
# ### Exercise [[sector_and_line]] · Sector and line
# *core · medium · matters from [[naive.ipynb]] on · 8 minutes*
#
# Write `sector_and_line(i, j, A)`: in which sector and in which line does `A[i, j]` start, counted from the
# first byte of `A`? `A` may be any two-dimensional array: a slice like the one above, every second column, or
# transposed. It knows all you need.


# %% id="ex-sector_and_line"
def sector_and_line(i, j, A):
    ### BEGIN SOLUTION
    address = i * A.strides[0] + j * A.strides[1]
    return address // 32, address // 128
    ### STUB
    # return None  # (sector, line)
    ### END SOLUTION


check.sector_and_line(sector_and_line)

# %% [markdown]
# ---
# ## Station 4 · The machine: what limits it?
#
# You know who asks, and where the numbers lie. Here is who does the work, and the path that a number takes.
# (Some of its figures are for later notebooks.)

# %%
see.machine()

# %% [markdown]
# - A **multiprocessor**, SM for short, takes in whole blocks, as many as fit: up to 2048 threads. On 132
#   SMs these are the 270 336 above. The other blocks start when some have ended.
# - A **scheduler** looks after some of the warps. In each clock it picks one that is ready and **issues**,
#   that is starts, its next instruction. A clock is the machine's beat.
#
# How fast can it compute? Each SM has four schedulers, and each of these starts an instruction for 32 lanes
# in every clock. That instruction can be a *fused multiply-add* (FMA): a multiplication and an addition, two
# FLOP. With 132 SMs and $1.98 \cdot 10^9$ clocks per second this makes
# 132 · 4 · 32 · 2 · 1.98 · 10⁹ = 67 · 10¹² FLOP per second: **67 TFLOPS**.
#
# Another GPU, the A100, has 108 SMs of four schedulers and $1.41 \cdot 10^9$ clocks per second, but each of
# its schedulers starts an FMA for only 16 lanes per clock, so a warp's FMA takes two clocks there. How many
# TFLOPS is that?

# %% [markdown] tags=["thought"]
# 108 · 4 · 16 · 2 · 1.41 · 10⁹ = 19.5 · 10¹²: 19.5 TFLOPS.

# %% [markdown]
# Then the memories:
#
# - **Registers** hold the threads' own variables, such as `row`.
# - **L1** is the SM's cache, **L2** the cache for all SMs, **DRAM** the large memory behind them, where the
#   arrays lie. To a kernel all three are one: **global memory**. The hardware decides which of them answers.
# - **Shared memory** comes in notebook [[shared_memory_tiles.ipynb]].
#
# ### Two speeds
#
# A GPU has two speeds: how fast it computes, and how fast it gets its numbers. An H200 computes at 67 TFLOPS,
# and its DRAM delivers 4.8 TB per second. So while one byte comes in, there is time for 67 / 4.8 = 14
# operations; while a float of 4 bytes comes in, for 56. A kernel that does fewer than 14 per byte leaves the
# arithmetic units idle.
#
# ### FLOP per byte
#
# So the first question about any kernel is: **how many operations does it do per byte that it moves?** That
# is its *arithmetic intensity*. Multiply it by a memory's bytes per second: that is the most FLOP per second
# this memory allows.

# %%
see.predict("welcome.intensity")

# %% [markdown]
# The product of two n × n matrices has $n^2$ elements, each with n multiplications and n additions: $2n^3$
# FLOP. If each element of the three matrices moved just once, that would be $3 \cdot n^2 \cdot 4 = 12n^2$
# bytes, and the intensity $n/6$: it grows with n. So matrix multiplication *could* keep the arithmetic busy.
#
# The plot is called a **roofline**; both axes are logarithmic. Its slanted part is DRAM's limit: there,
# moving less helps. Its flat part is arithmetic's. From which n on is arithmetic the limit? The slider
# doubles n: find between which two the answer lies, then compute it.

# %%
see.roofline()

# %% [markdown] tags=["thought"]
# The roofs meet at 67 / 4.8, some 14 FLOP per byte: n / 6 = 14, so from n = 84 on.

# %% [markdown]
# ### Exercise [[roof]] · The roof
# *core · easy · the question of every notebook · 4 minutes*
#
# Write `roof(flop, bytes)`: the most TFLOPS that an H200 can reach with a kernel that does `flop` operations
# and moves `bytes` bytes from and to DRAM. Take 67 TFLOPS (the plot's 66.9, rounded) and 4.8 TB per second.


# %% id="ex-roof"
def roof(flop, bytes):
    ### BEGIN SOLUTION
    dram = 4.8 * flop / bytes
    return min(67, dram)
    ### STUB
    # return None  # TFLOPS
    ### END SOLUTION


check.roof(roof)

# %% [markdown]
# **A roof is a limit, not a forecast.** The naive kernel of notebook [[naive.ipynb]], with n = 4096, does 16
# FLOP per byte that it moves from and to DRAM, by the hardware's own count. (If each element moved once, it
# would be n / 6, or 683.) The roofs meet at 14, and 16 is to the right of that: its roof is 67 TFLOPS. It
# reaches less than one percent of that. DRAM's bandwidth is not its limit: DRAM is busy 1 % of the time, L1
# 99 %. The slanted roof above is DRAM's alone. L1 has its own, and the next two notebooks are about it.
#
# ### Hiding the wait
#
# A float from DRAM takes 500 clocks and more to come, however few floats you ask for. The 56 was about
# *bandwidth*: floats per second. This is *latency*: how long one takes. More bandwidth does not shorten it.
#
# An instruction that reads memory is a **load**; one that writes, a **store**. A warp goes on after a load
# until an instruction needs the float; then it waits.
#
# A CPU would try to foresee what you need. A GPU does something else in the meantime: each scheduler of an
# H200 holds up to 16 warps, and issues for one that is ready. Other GPUs have room for 8 or 12.

# %%
see.predict("welcome.latency")

# %%
see.fold(lambda: see.latency())

# %% [markdown]
# Raise the warps until nothing is hatched. Then lengthen the wait.
#
# Against a real wait even 16 warps are few: with 4 clocks each they cover 64 of 504. So each warp must also
# compute more per wait, or have several loads on their way at once. Later notebooks do both.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("welcome")

# %% [markdown]
# ## Recap
#
# | word | meaning |
# |---|---|
# | thread, block, grid | who runs the kernel; x is the column, y the row |
# | guard | the `if` that keeps surplus threads out of the arrays |
# | warp, lane | 32 threads with consecutive linear ids, x first; the place in it |
# | divergence | a warp's lanes disagree at an `if`: both branches run |
# | leading dimension | elements from one row's start to the next |
# | request | one access by one warp, all its lanes together |
# | sector, line | 32 bytes: what moves; 128 bytes: what caches keep track of |
# | SM, scheduler | runs blocks; picks a warp that is ready, in each clock |
# | L1, L2, DRAM | the cache of an SM, the cache of all, the memory behind them |
# | bandwidth, latency | bytes per second; how long one access takes |
# | intensity, roofline | FLOP per byte; the most that a memory allows with it |
#
# **Next:** the naive kernel. It is right, short, and uses less than one percent of the machine.

# %%
see.my_ladder()

# %% [markdown] id="documents"
# ## For the curious: where the kernels come from
#
# The course started from five texts, which it calls documents. You need to read none of them. Each has
# kernels, and each kernel is a **stage** of our ladder, with a name that says what it does:
#
# | notebook | stage | what is new | document and kernel |
# |---|---|---|---|
# | [[naive.ipynb]] | `naive_uncoalesced` | one thread per element of C | 004, v00 |
# | [[coalesced.ipynb]] | `naive_coalesced` | neighbours read neighbours | 004, v01 |
# | [[shared_memory_tiles.ipynb]] | `penny_xu_tile`; `block_tiled` | tiles in shared memory | 002; 004, v02 |
# | [[thread_tiles_1d.ipynb]] | `thread_tiled_1d` | a thread computes a column | 004, v03 |
# | [[thread_tiles_2d.ipynb]] | `thread_tiled_2d`; `kernel5` | a rectangle | 004, v04; 000 (001: its draft) |
# | [[vectorized_access.ipynb]] | `vectorized` | four floats at a time | 004, v05 |
# | [[warp_tiles.ipynb]] | `warp_tiled_tm1`; `warp_tiled` | tiles for warps | 003; 004, v06 |
# | [[tensor_cores.ipynb]] | `wmma`; `wmma_fp16_acc` | Tensor Cores | 004, v07 |
#
# Documents 000 and 001 name no author; 002 is notes on [Penny Xu's article][xu], 003 on the warp tiles of
# [Simon Boehm's][boehm]; 004 is [Lei Mao's article][mao].
#
# [xu]: https://penny-xu.github.io/blog/tiled-matrix-multiplication
# [boehm]: https://siboehm.com/articles/22/CUDA-MMM
# [mao]: https://leimao.github.io/article/CUDA-Matrix-Multiplication-Optimization/
