# %% [markdown]
# # [[welcome.ipynb]] · Who computes what?
#
# **Press Shift+Enter to begin.** It runs the cell that you are in and goes on to the next. Later cells need
# earlier ones, so go from top to bottom, and do so again when you come back another day.
#
# In plain Python the product of two matrices is three loops. Run them for matrices of 64 × 64. The cell then
# works out how long they would take for 4096 × 4096.

# %%
import time

import numpy as np
from numba import cuda, float32

from gemm_course import check, emulate
from gemm_course import widgets as see


def matmul(A, B, C):
    for row in range(C.shape[0]):
        for col in range(C.shape[1]):
            for p in range(A.shape[1]):
                C[row, col] += A[row, p] * B[p, col]


rng = np.random.default_rng(0)
A, B = rng.standard_normal((64, 64), np.float32), rng.standard_normal((64, 64), np.float32)
start = time.perf_counter()
matmul(A, B, np.zeros((64, 64), np.float32))
seconds, steps = time.perf_counter() - start, (4096 // 64) ** 3
print(f"64 × 64: {seconds:.3f} seconds")
print(f"4096 × 4096: {steps:,} times as many steps, so about {seconds * steps / 3600:.1f} hours")

# %% [markdown]
# Now a guess, before you go on:

# %%
see.predict("welcome.gpu")

# %% [markdown]
# In this course you write that product for a GPU, again and again, each time a little faster. You need
# Python, NumPy, and **no GPU**: an emulator runs what you write as a GPU would, and counts every access to
# memory. With a GPU you can run it there as well. Every speed in the text was measured on an NVIDIA H200.
#
# *Time: about 45 minutes to read, 37 for the exercises; a pause is marked. The contents of the course, and
# how far you are, stand at the end of this notebook. The [glossary](glossary.md) has every new word.*
#
# ## Which loops can go?
#
# Here is the product as a picture: A stands left of C, B above it. Leave *look at* on *element*, choose an
# element of C, and let the steps play. What does this element need of A, of B, and of the rest of C?

# %%
see.multiply()

# %% [markdown]
# It needs a row of A, a column of B, and no other element of C. So nothing says that one element must be
# finished before the next begins. A GPU takes that literally. It starts one **thread** for each element, and
# the two outer loops are gone.
#
# A thread is one run of a small function, with variables of its own. The function is called a **kernel**.
#
# **What we now know:** thousands of threads run one small program. How does each know which element is its
# own? That is this notebook, on small kernels. The product itself you write in the next.
#
# ## What do 120 threads do with 100 elements?
#
# No loop hands out indices, so a thread asks for its number. Threads are counted like this:
#
# - they come in **blocks**, of up to 1024 threads;
# - all blocks that are started together are the **grid**.
#
# Here is a kernel that doubles an array. Numba translates Python into machine code, and `@cuda.jit` says: for
# the GPU. (CUDA is NVIDIA's system for programs on its GPUs.)


# %%
@cuda.jit
def double(a, out):
    i = cuda.grid(1)  # this thread's number in the whole grid
    out[i] = float32(2) * a[i]


# %% [markdown]
# A kernel **returns nothing**: it writes into an array that it was given. It may use numbers, indices, `if`,
# `for` and `.shape`, but no lists, and no arithmetic with whole arrays. `float32(2)` is a 2 of 32 bits, as in
# NumPy; a plain `2.0` would have 64.
#
# To start a kernel is to **launch** it. Where there is a GPU, `double[3, 40](a, out)` launches 3 blocks of
# 40 threads. Here the emulator does it: `emulate(kernel, blocks, threads, arguments ...)`.

# %%
a, out = np.arange(120, dtype=np.float32), np.zeros(120, np.float32)
emulate(double, 3, 40, a, out)
out[:8]

# %% [markdown]
# 120 threads, 120 elements. Now give the same launch only 100 elements.

# %%
see.predict("welcome.surplus")

# %% [markdown]
# See for yourself: give the launch in this cell `a[:100]` and `out[:100]`. The emulator returns a report of
# what the threads did. Its `errors` say what was wrong, and in which line of the code.

# %% id="surplus"
### BEGIN SOLUTION
report = emulate(double, 3, 40, a[:100], out[:100])
### STUB
# report = emulate(double, 3, 40, a, out)  # your code: change this line
### END SOLUTION
print(*report.errors, sep="\n")

# %% [markdown]
# Each error names the first of the surplus threads: thread 20 of block 2, which is 2 · 40 + 20 = 100. (A
# block can have three dimensions, so there are three numbers.) Blocks rarely fit exactly, so a kernel has a
# **guard**: an `if` that lets only those threads work that have an element. An array knows its size:
# `out.size`, `len(out)`, or `m, n = out.shape`.
#
# ### Exercise [[blocks_for]] · How many blocks?
# *core · easy · 3 minutes*
#
# `n` elements, blocks of `threads` threads, one thread per element. Write `blocks_for(n, threads)`: the
# smallest number of blocks that has a thread for each element. (No elements need no blocks.)


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
# solution, folded. Who does a notebook does the exercises marked* core; *the few marked* stretch *can wait.*

# %% [markdown]
# ### Exercise [[vector_add]] · Add two vectors
# *core · easy · your first kernel · 8 minutes*
#
# Write the kernel `vector_add(a, b, out)`: `out[i] = a[i] + b[i]`. It is launched with blocks of 128 threads,
# and as many blocks as it takes. The vectors may have any length. Every thread stores one element at most,
# its own, and touches nothing outside the arrays. (Before the launch, `check` fills `out` with NaN, *not a
# number*: where you see NaN, nothing was stored.)


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
# **What we now know:** a thread finds its element by its own number, and a guard sends the surplus threads
# away.
#
# ## Which thread has which element of a matrix?
#
# In two dimensions a block has a width and a height, and so has the grid:
#
# - `cuda.threadIdx.x` and `.y` say where a thread is in its block, and `cuda.blockDim.x` and `.y` how large
#   the block is;
# - `cuda.blockIdx.x` and `.y` say where the block is in the grid.
#
# Two conventions bite everyone once. **`x` counts columns**, to the right, and `y` counts rows, downwards;
# but NumPy writes the row first: `C[y, x]`. And `cuda.grid(2)` gives both, x first. It is short for
# `blockIdx.x * blockDim.x + threadIdx.x`, and the same with `y`.
#
# Here blocks of 8 × 4 threads (x × y) cover a matrix of 10 rows and 18 columns. Move the sliders, and find
# the thread that has element [9, 17]. Hatched threads have no element. Three of the other shapes leave no
# thread hatched: which?

# %%
see.grid()

# %% [markdown] tags=["thought"]
# Block (2, 2), thread (1, 1): 2 · 8 + 1 = 17 and 2 · 4 + 1 = 9.
#
# No thread is left over with 2 × 2, 6 × 5 and 9 × 2: 2, 6 and 9 divide 18 columns, 2 and 5 divide 10 rows.

# %% [markdown]
# The hatched threads exist, and they run the kernel. In two dimensions the guard is
# `if row < m and col < n:`, with the sizes of `C`.
#
# ### Exercise [[broadcast_add]] · Rows and columns
# *core · medium · the step to matrices · 10 minutes*
#
# In NumPy, `down[:, None] + across[None, :]` makes a matrix of two vectors. Write it as a kernel
# `broadcast_add(down, across, out)`: `out[i, j] = down[i] + across[j]`. `down` has as many elements as `out`
# has rows, `across` as many as `out` has columns.
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
# **What we now know:** x is the column and y the row, and a thread computes both from its block and its place
# in the block.
#
# *A good place for a pause. What follows takes about 40 minutes.*
#
# ## Which threads run together?
#
# The hardware does not run a block thread by thread. It numbers the threads of the block, **x first**: that
# is a thread's **linear id**. Then it cuts the ribbon of ids into pieces of 32. Such a piece is a **warp**,
# and a thread's place in it is its **lane**. An instruction, one step of the
# program such as an addition, is started once, for all lanes.
#
# Move the thread, then change the shape of the block, and watch where the thread goes.

# %%
see.block()

# %% [markdown]
# Then without the picture: a block of 40 × 2 threads (x × y). How many warps has it, which of them have
# threads of both rows, and how many lanes have no thread?

# %% [markdown] tags=["thought"]
# 80 threads are three warps. The second has 8 threads of the first row and 24 of the second: warps do not end
# where rows end. 16 lanes of the third have no thread.

# %% [markdown]
# Where do warps run? A GPU has many **multiprocessors**, SM for short; an H200 has 132. Each takes in whole
# blocks, as many as fit, and the other blocks wait until some have ended. An SM has four **schedulers**. In
# every clock, the beat of the machine, a scheduler picks a warp that is ready and **issues**, that is starts,
# its next instruction.
#
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
# **What we now know:** 32 threads with consecutive numbers, counted x first, share their instructions.
#
# ## What if they want different ones?

# %%
see.predict("welcome.branches")

# %% [markdown]
# Step through such a warp. Lane i holds the number `x[i]`. If that is even, the lane halves it; if not, it
# triples it and adds one. A lane that takes no part in a line is **masked**. Then choose other numbers:
# with which is a branch never issued?

# %%
see.branch()

# %% [markdown]
# You can see it in the counts as well. A **request** is one access to memory by one warp, all its lanes
# together. Here 128 threads, four warps, store one number each. Four requests could do it. Run it:
# there are eight. (`line` is the line of code, and `lanes` adds up the lanes that took part.)
#
# **Then change the condition,** so that 64 threads still store a 1 and 64 a 2, but with half as many
# requests.


# %% id="split"
@cuda.jit
def ones_and_twos(out):
    i = cuda.grid(1)
    ### BEGIN SOLUTION
    takes_a_one = i // 32 % 2 == 0  # or i < 64
    ### STUB
    # takes_a_one = i % 2 == 0
    ### END SOLUTION
    if takes_a_one:
        out[i] = float32(1)
    else:
        out[i] = float32(2)


report = emulate(ones_and_twos, 2, 64, np.zeros(128, np.float32))
report.accesses[["line", "requests", "lanes"]]

# %% [markdown]
# **What we now know:** where lanes disagree, the warp issues both branches, and some lanes are masked in
# each. That is called **divergence**. A guard costs next to nothing: only warps at the edge disagree, and
# their other branch is empty.
#
# ## What does one float cost?
#
# Arrays lie in the GPU's large memory, called **DRAM**. It is one long row of bytes.

# %%
see.predict("welcome.one_float")

# %% [markdown]
# Memory never moves a single float. It moves **sectors** of 32 bytes, 8 floats each. Four sectors, 128 bytes,
# are a **line** (of memory, not of code).
#
# A matrix lies in memory row by row. The distance from the start of one row to the start of the next is its
# **leading dimension**, counted in elements. It can be larger than the number of columns; then the rest of
# each row is **padding**, which belongs to nobody. NumPy keeps this distance, and that from column to
# column, in bytes:

# %%
A = np.zeros((5, 16), np.float32)[:, :13]
A.shape, A.strides, A.itemsize

# %% [markdown]
# This is that matrix. Move the element along a row, then down a column. When does the sector change? Then set
# the leading dimension to 13: which rows still begin where a sector begins?

# %%
see.addresses()

# %% [markdown] tags=["thought"]
# Along a row every 8 columns, down a column with every row. With 13 floats per row only row 0 begins where a
# sector begins.

# %% [markdown]
# On the way from DRAM a float passes two **caches**, small and fast memories that keep what was used a short
# time ago: **L2**, which all SMs share, and **L1**, of which each SM has its own. They keep track of lines. A
# kernel cannot tell whether L1, L2 or DRAM has answered: to it they are one memory, **global memory**.
#
# Now a count, for `double` and its 3 blocks of 40 threads. `a` begins where a sector begins. How many
# requests for `a` are there, and how many sectors do they touch, all added up? (In the table, under `op`, a
# *load* reads and a *store* writes; `bytes` are those that the lanes asked for.)

# %%
report = emulate(double, 3, 40, a, out)
see.fold(
    report.accesses[["array", "op", "requests", "lanes", "bytes", "sectors"]],
    first="Count first, then open this.",
)

# %% [markdown] tags=["thought"]
# Six requests and not four: a block of 40 makes two warps, of 32 lanes and of 8. 40 floats are five sectors,
# three times.

# %% [markdown]
# Next, thread i reads `a[2 * i]` instead of `a[i]`. **Forecast the sectors of `a`.** Then write the line, and
# run it.


# %% id="every-second"
@cuda.jit
def double_every_second(a, out):
    i = cuda.grid(1)
    ### BEGIN SOLUTION
    out[i] = float32(2) * a[2 * i]  # 30 sectors: each brings 8 floats, and 4 of them nobody wants.
    ### STUB
    # pass  # your code
    ### END SOLUTION


a = np.arange(240, dtype=np.float32)
report = emulate(double_every_second, 3, 40, a, out)
report.accesses[["array", "op", "requests", "lanes", "bytes", "sectors"]]

# %% [markdown]
# ### Exercise [[sector_and_line]] · Sector and line
# *core · medium · matters from notebook [[naive.ipynb]] on · 8 minutes*
#
# Write `sector_and_line(i, j, A)`: in which sector and in which line does `A[i, j]` start, counted from the
# first byte of `A`? `A` may be any two-dimensional array: a slice like the one above, every second column, or
# transposed. The array `A` itself knows all that you need.


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
# **What we now know:** memory moves in sectors of 32 bytes. Which of them a warp touches depends on which
# elements its lanes ask for at once.
#
# ## What have you made?
#
# Write three lines before you open ours: *I made ... A thread finds its element by ... A request of a warp
# costs ...*

# %% [markdown] tags=["thought"]
# - **I made** kernels in which each thread finds its own element.
# - **A thread finds its element by** the numbers of its block and its own, x for the column. A guard stops
#   threads that have none.
# - **A request of a warp costs** as many sectors of 32 bytes as its lanes touch. How much time that is,
#   notebook [[naive.ipynb]] asks.

# %% [markdown]
# From the next notebook on you build a ladder of kernels that multiply matrices. Its speeds are in
# **TFLOPS**. A multiplication or an addition is a *floating-point operation*, a **FLOP**, and a TFLOPS is
# $10^{12}$ of them per second. The product of two 4096 × 4096 matrices has $2 \cdot 4096^3$. In the 2.7
# milliseconds of cuBLAS, the library that NVIDIA ships, this makes 51 TFLOPS.
#
# Here is your ladder, still empty. Each rung is a kernel that you will write, and before each you bet on its
# speed.

# %%
see.my_ladder()

# %% [markdown] id="side-roofline"
# Side trip, 20 minutes: [how fast can a kernel be at most?](roofline.ipynb) It leads back to this line.

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("welcome")

# %% [markdown]
# **Next:** notebook [[naive.ipynb]], the shortest kernel that multiplies matrices.

# %% [markdown] id="contents"
# ## Contents
#
# <!-- contents -->

# %% [markdown]
# The course remembers which exercises have passed, on the *road* (the first table) and on side trips. Come
# back and run this cell to see how far you are, or ask `python3 course.py progress` in a terminal.

# %% id="progress"
check.progress()

# %% [markdown] id="documents"
# ## For the curious: where the kernels come from
#
# The course started from five texts, which it calls documents, 000 to 004. You need to read none of them.
# Each has kernels, and each kernel is a **stage** of the ladder, with a name that says what it does. The
# words of this table are told in its notebooks:
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
