# %% [markdown]
# # 00 · Welcome: the machine
#
# **Press Shift+Enter to begin.** It runs the cell that you are in and goes on to the next; a cell of text it
# just passes. *Run* → *Run All Cells*, in the menu at the top, runs the whole notebook. Later cells need
# earlier ones, so go from top to bottom, and do so again when you come back another day.
#
# This course writes the same small program, matrix multiplication, over and over, each time a little
# better, until it comes close to the library that NVIDIA ships. You write the kernel of every step. You need
# Python and NumPy, and **no GPU**: an emulator runs your kernels and counts every memory access as the
# hardware would. With a GPU the same cells run there.
#
# **After this notebook you can**
# - say who you are, if you are a thread: block, warp, lane, row and column;
# - say where an element of a matrix lies in memory, and which other bytes move along with it;
# - write, run and check your first kernels.
#
# *Time: about 45 minutes to read, 30 for the exercises. Four stations; a break between two of them does no
# harm.*

# %% [markdown] id="contents"
# ## Contents
#
# <!-- contents -->
#
# There will be many new words. The [glossary](glossary.md) explains each in a sentence or two, and names the
# notebook that teaches it.

# %% [markdown] id="documents"
# The course started from five texts, and the notebooks call them by number:
#
# | document | what it is | notebook |
# |---|---|---|
# | 000 | *Kernel 5: Blocktiling and 2D Threadtiling*, part of a text that names no author | 05 |
# | 001 | an earlier draft of document 000, with holes in its tiles | 05 |
# | 002 | notes on [Penny Xu's article][xu] *Tiled Matrix Multiplication* | 03 |
# | 003 | notes on the loops of a warp-tiled kernel, after [Simon Boehm's article][boehm] on CUDA | 06, 07 |
# | 004 | [Lei Mao's article][mao] *CUDA Matrix Multiplication Optimization*, in Chinese | 01 to 08 |
#
# The notebooks follow the eight kernels of document 004, which are numbered: **v00** is the naive kernel of
# notebook 01, **v07** the one for Tensor Cores in notebook 08. You need to read none of the texts.
#
# [xu]: https://penny-xu.github.io/blog/tiled-matrix-multiplication
# [boehm]: https://siboehm.com/articles/22/CUDA-MMM
# [mao]: https://leimao.github.io/article/CUDA-Matrix-Multiplication-Optimization/

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
# And as a picture: A stands left of C, B above it. Choose an element of C, and let the steps along `k` play:
# a number of its row of A meets one of its column of B, and their product is added.

# %%
see.multiply()

# %% [markdown]
# The two outer loops go over the elements of `C`. No element needs another one, so nothing says they must
# be done one after the other. A GPU takes that literally: it starts **one thread for every element** and
# drops the loops. An NVIDIA H200 works on up to 270 336 threads at a time. The whole course is about one
# question: *what do these threads have to wait for?*
#
# Here is where it leads, on one and the same machine, with one and the same result:

# %%
see.tflops("naive_uncoalesced", "naive_coalesced", "block_tiled", "thread_tiled_2d", "warp_tiled")

# %% [markdown]
# One TFLOPS is $10^{12}$ additions or multiplications of real numbers a second.
#
# Every notebook goes one step further, and its exercises check themselves. The course remembers which have
# passed. Come back here and run this cell to see how far you are, or ask `python3 course.py progress` in a
# terminal:

# %% id="progress"
check.progress()

# %% [markdown]
# ---
# ## Station 1 · Threads: who am I?
#
# A **kernel** is a function that every thread runs. It gets no loop index; it asks who it is:
#
# - threads come in **blocks**. `cuda.threadIdx.x`, `.y` say where in the block, `cuda.blockDim.x`, `.y` how
#   large it is;
# - blocks come in a **grid**. `cuda.blockIdx.x`, `.y` say where in the grid.
#
# Two conventions bite everyone once:
#
# 1. `x` counts **columns**, to the right, and `y` counts **rows**, downwards. NumPy writes the row first:
#    `C[y, x]`.
# 2. `cuda.grid(2)` is a shorthand that returns `(x, y)`, in that order.
#
# The picture shows a matrix of 10 rows and 18 columns. Move the sliders: which thread takes which element?
# Find a block shape that leaves no thread without work.

# %%
see.grid()

# %% [markdown]
# Blocks rarely fit exactly. The hatched threads exist, run the kernel, and must be told to keep their hands
# off: that is the **guard**, `if row < m and col < n:`.
#
# ### Warps
#
# The hardware does not run threads one by one, and not block by block either. It numbers a block's threads,
# **x first**, and cuts that ribbon into pieces of 32: **warps**. The 32 threads of a warp run the same
# instruction at the same time. A thread's place in its warp is its **lane**.

# %%
see.block()

# %% [markdown]
# Try the shapes 4 × 1, 5 × 7 and 48 × 2. Where are the hatched lanes? And in which shape do threads of *two
# rows* share a warp?
#
# If the lanes of a warp disagree at an `if`, the warp walks both ways one after the other, each time with
# some lanes **masked**. That is called *divergence*. A guard at the edge of the matrix costs next to
# nothing; an `if` that splits every warp doubles the work.

# %% [markdown]
# ### Exercise 00.1 · Who am I?
# *core · easy · matters in every notebook · 8 minutes*
#
# Write `where(block, thread, block_dim)`. All three are tuples `(x, y)`: `blockIdx`, `threadIdx` and
# `blockDim`. Return `(row, col, warp, lane)`: row and column of the element in the whole matrix, warp and
# lane within the block.


# %% id="ex-00-1"
def where(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    ### BEGIN SOLUTION
    linear = ty * dx + tx
    return by * dy + ty, bx * dx + tx, linear // 32, linear % 32
    ### STUB
    # return None  # (row, col, warp, lane)
    ### END SOLUTION


check.where(where)

# %% [markdown] tags=["stub"]
# *Every exercise has these three: a verdict when its cell has run, hints that open one by one, and the
# solution, folded.*

# %% [markdown]
# ### Exercise 00.2 · How many blocks?
# *core · easy · 3 minutes*
#
# `n` elements, blocks of `threads` threads, a thread an element. Write `blocks_for(n, threads)`: the
# smallest number of blocks that covers all of them.


# %% id="ex-00-2"
def blocks_for(n, threads):
    ### BEGIN SOLUTION
    return (n + threads - 1) // threads
    ### STUB
    # return None
    ### END SOLUTION


check.blocks_for(blocks_for)

# %% [markdown]
# ### Exercise 00.3 · Idle lanes
# *core · easy · 2 minutes*
#
# You launch a kernel with blocks of 4 threads. How many lanes of each warp have nothing to do?

# %% id="ex-00-3"
### BEGIN SOLUTION
check.idle_lanes(28)
### STUB
# check.idle_lanes(None)
### END SOLUTION

# %% [markdown]
# ---
# ## Station 2 · Memory: where is it?
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
# sectors make a **line** of 128 bytes, which is what the caches keep track of. Ask for one float, and seven
# others travel with it, wanted or not.
#
# Move the element along a row, then down a column. When does the sector change?

# %%
see.addresses()

# %% [markdown]
# Now set the leading dimension to 13. Rows begin in the middle of a sector, and the elements of one column
# have no order in their sectors any more. Notebook 02 will come back to that.
#
# ### Exercise 00.4 · Sector and line
# *core · medium · matters from 01 on · 8 minutes*
#
# Write `sector_and_line(i, j, A)`: in which sector and in which line does `A[i, j]` start, counted from the
# first byte of `A`? `A` may be any two-dimensional array, also a slice like the one above. It knows all you
# need.


# %% id="ex-00-4"
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
# ## Station 3 · Arithmetic: what limits it?
#
# A GPU has two speeds: how fast it calculates, and how fast it gets at its numbers. For an H200 that is 67
# TFLOPS, and 4.8 TB/s from its memory. In the time one float takes to arrive, it could have done about 56
# operations. So the first question about any kernel is: **how many operations does it do for every byte it
# moves?** That is its *arithmetic intensity*, and the picture of it is called the **roofline**.
#
# A multiplication and an addition count as two operations (FLOP), even though the hardware does both in one
# instruction, the *fused multiply-add* (FMA). To multiply two n × n matrices takes $2n^3$ FLOP. If each
# element were moved just once, that would be $12n^2$ bytes, and the intensity $n/6$: it grows with n.
# Matrix multiplication *could* keep the arithmetic busy. Move the slider.

# %%
see.roofline()

# %% [markdown]
# The left, slanted part is memory's: moving less is what helps. The flat part is arithmetic's. The naive
# kernel of the next notebook moves far more than once each, which puts it far to the left.
#
# ### Hiding the wait
#
# A float from memory takes 500 clocks and more to come. A CPU would try to foresee it. A GPU does something
# else in the meantime: each multiprocessor holds up to 64 warps and always issues one that is ready.

# %%
see.predict("00.latency")

# %% tags=["answer"]
see.latency()

# %% [markdown]
# ---
# ## Station 4 · Your first kernel
#
# A kernel is a Python function with `@cuda.jit` in front. It **returns nothing**: it writes into an array
# it was given.


# %%
@cuda.jit
def double(a, out):
    i = cuda.grid(1)  # blockIdx.x * blockDim.x + threadIdx.x
    if i < a.size:
        out[i] = float32(2) * a[i]


# %% [markdown]
# On a GPU it is launched as `double[blocks, threads](a, out)`. Here the emulator does it, with the same
# numbers:

# %%
a, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
report = emulate(double, 4, 32, a, out)
out[:8]

# %% [markdown]
# And it kept the books. Four blocks of one warp each; three full warps and one with four lanes inside the
# array. How many sectors is that? Count, then look:

# %%
report.accesses[["array", "op", "requests", "lanes", "bytes", "sectors"]]

# %% [markdown]
# 100 floats are 400 bytes, 12.5 sectors; the last warp's four floats need one of their own: 3 · 4 + 1 = 13.
#
# What if the guard is missing?


# %%
@cuda.jit
def careless(a, out):
    i = cuda.grid(1)
    out[i] = float32(2) * a[i]


# %%
for finding in emulate(careless, 4, 32, a, out).findings:
    print(f"line {finding.line}: {finding.message}")

# %% [markdown]
# A GPU would have read and written whatever lies behind the arrays, most days without a word.
#
# ### Exercise 00.5 · Add two vectors
# *core · easy · 8 minutes*
#
# Write the kernel `vector_add(a, b, out)`: `out[i] = a[i] + b[i]`. It is launched with blocks of 128
# threads, in one dimension, and as many blocks as it takes. The vectors may have any length. Every element
# is to be written exactly once, and nothing outside the arrays touched.


# %% id="ex-00-5"
@cuda.jit
def vector_add(a, b, out):
    ### BEGIN SOLUTION
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]
    ### END SOLUTION


check.vector_add(vector_add)

# %% [markdown]
# ### Exercise 00.6 · Broadcasting
# *core · medium · the step to matrices · 10 minutes*
#
# In NumPy, `column[:, None] + row[None, :]` makes a matrix out of two vectors. Write it as a kernel
# `broadcast_add(column, row, out)`: `out[i, j] = column[i] + row[j]`. `column` has as many elements as
# `out` has rows, `row` as many as `out` has columns.
#
# It is launched with blocks of (16, 8) threads, 16 along x, and `x` runs over the **columns** of `out`.


# %% id="ex-00-6"
@cuda.jit
def broadcast_add(column, row, out):
    ### BEGIN SOLUTION
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = column[y] + row[x]
    ### END SOLUTION


check.broadcast_add(broadcast_add)

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("00")

# %% [markdown]
# ## Recap
#
# | word | meaning |
# |---|---|
# | thread, block, grid | who runs the kernel; x is the column, y the row |
# | warp, lane | 32 threads with consecutive linear ids, x first; the place in it |
# | guard | the `if` that keeps surplus threads out of the arrays |
# | leading dimension | elements from one row's start to the next |
# | sector, line | 32 bytes: what moves; 128 bytes: what caches keep track of |
# | intensity, roofline | FLOP per byte; the most a kernel can reach with it |
#
# **Next:** the naive kernel. It is right, short, and uses one percent of the machine.
