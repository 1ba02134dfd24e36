# %% [markdown]
# # [[own_kernel.ipynb]] · What will you build?
#
# cuBLAS multiplies about as fast as anybody can. But it only multiplies: whatever comes after the product
# takes another kernel, which somebody writes. So far the frame was the course's, and the gaps were yours.
# Here is a kernel without gaps. It lies in a file, and every tool that measured the ladder takes that file.
#
# Make it now. In a terminal (JupyterLab has one: *File*, *New*, *Terminal*), in the course's folder, the one
# with `course.py`:
#
# ```
# python3 course.py new mine
# ```
#
# This writes `mine.py` beside the notebooks. It holds `thread_tiled_2d`, the kernel of notebook
# [[thread_tiles_2d.ipynb]], and comments that say what may be changed: everything. The next cell reads it.
# (As long as there is no such file, the cell takes what it would hold.)

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32

from gemm_course import LADDER, check, own, records
from gemm_course import widgets as see
from gemm_course.compiler import recorded

mine = own("mine.py", otherwise="thread_tiled_2d")
mine.check()

# %% [markdown]
# `check` ran it on the emulator with odd shapes and compared every result. **Break it:** open `mine.py`, put
# a `#` before the first `cuda.syncthreads()`, and save. What will `check` say? Say it, then run the cell
# above again: it reads the file anew.

# %% [markdown] tags=["thought"]
# It names a race: the line that reads a tile, the line that stores it, and two threads. On a GPU the result
# may be right all the same, today. Take the `#` away again, and run the cell again.

# %% [markdown]
# *Time: about 43 minutes to read, 52 for the exercises, in two sittings; the pause is marked. You need
# notebooks [[welcome.ipynb]] to [[warp_tiles.ipynb]], and nothing that comes later.*
#
# First two questions from memory:

# %%
see.recall("own_kernel")

# %% [markdown]
# ## What do the tools say of it?
#
# This is its **card**. It puts your kernel beside the ladder's, and at the end of this notebook you can show
# it to others. Find three things on it: the speed of the kernel that yours began as, the lowest roof of
# yours, and the part of the GPU that this roof belongs to. (Names that you do not know are kernels of later
# notebooks.)

# %%
see.card(mine)

# %% [markdown] tags=["thought"]
# `thread_tiled_2d` was measured at 34 TFLOPS, with the tiles that it begins with here. (The square reached
# 33.) Yours has the same code, so it has the same roof: 49 TFLOPS, by its issue slots. Without NVIDIA's
# compiler the card knows no issue slots, and shows a higher roof.

# %% [markdown]
# Without a GPU your kernel's bar stays empty. A count is no speed, and a roof is none: it only says what
# cannot be exceeded. These tools take your file:
#
# | in a notebook | in a terminal | needs |
# |---|---|---|
# | `mine.check()` | `python3 course.py check mine.py` | nothing |
# | `see.card(mine)`, `see.tiles(mine)` | `python3 course.py card mine.py` | nothing |
# | `see.as_compiled(mine)` | `python3 course.py compile mine.py` | the compiler |
# | `run(mine, A, B).tflops` | `python3 course.py bench mine.py` | a GPU |
#
# The compiler needs no GPU: `python3 course.py --compiler` installs it, on Linux and Windows.
#
# **What we now know:** a kernel in a file can be checked, counted and compared like one of the ladder's.
#
# ## Why do people still write kernels?
#
# cuBLAS, NVIDIA's library, multiplies matrices as fast as they come. But a neural network wants more than a
# product. After it, it adds a **bias**, a number for each column, and then replaces what is negative by zero:
# **ReLU**.
#
# A second kernel can do that. It reads all of C and stores all of C. A kernel of your own does it while the
# results still lie in registers. Such an end of a kernel is called an [**epilogue**](glossary.md#epilogue),
# *fused* into the multiplication.
#
# For C of 4096 × 4096 floats the second kernel reads 64 MiB and stores 64 MiB, 128 MiB in all.

# %%
see.predict("own_kernel.extra")

# %% [markdown]
# And in time? At 4.8 TB/s, the H200's memory by its data sheet, 128 MiB take 28 µs, if none of
# them is still in L2. The product itself takes 2.6 ms at 52 TFLOPS. But with k = 256, at 45 TFLOPS, it takes
# only 0.19 ms, and the second kernel a seventh of that.

# %% [markdown]
# ### Exercise [[fused_epilogue]] · A fused epilogue
# *core · medium · 12 minutes*
#
# The kernel below computes TM results per thread, one below the other, straight from global memory. Its sums
# are done. Write what is left: `C = max(A @ B + bias, 0)`.
#
# - `bias` has an element for each column of C.
# - m, n and k may be anything.
# - C is stored once and never read. A thread reads its element of `bias` once.
# - Stay in float32: write zero as `float32(0)`.


# %% id="ex-fused_epilogue"
def make_fused(BM, BN, TM):
    @cuda.jit
    def fused(m, n, k, A, B, bias, C):
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        row0 = cuda.blockIdx.y * BM + cuda.threadIdx.y * TM
        col = cuda.blockIdx.x * BN + cuda.threadIdx.x
        for p in range(k):
            b = B[p, col] if col < n else float32(0)
            for i in range(TM):
                if row0 + i < m:
                    acc[i] += A[row0 + i, p] * b
        ### BEGIN SOLUTION
        if col < n:
            extra = bias[col]
            for i in range(TM):
                if row0 + i < m:
                    C[row0 + i, col] = max(acc[i] + extra, float32(0))
        ### END SOLUTION

    return fused


check.fused_epilogue(make_fused)

# %% [markdown]
# **What we now know:** what follows a product needs no trip to memory while its results lie in registers.
#
# ## Can a network call it?
#
# Now the same for a kernel with tiles. Make a second file, `python3 course.py new layer`, and give it the
# epilogue. It takes four edits:
#
# ```python
# # 1: at the top
# import numpy as np
# # 2: the kernel takes bias after C
#     def thread_tiled_2d(m, n, k, alpha, A, B, beta, C, bias):
# # 3: the store; alpha and beta stay
#                     c = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]
#                     C[row, col] = max(c + bias[col], float32(0))
# # 4: in STAGE; "n": bias has n elements; check compares with the epilogue
#     extras={"bias": "n"},
#     epilogue=lambda C, bias: np.maximum(C + bias, 0),
# ```

# %%
layer = own("layer.py", otherwise="thread_tiled_2d")
layer.check()

# %% [markdown]
# Now **break it once more**: leave out edit 4, or write `"m"` for `"n"`. Does `check` name what you did? Then
# repair it.
#
# A kernel in a file is also a function. `layer(A, B, bias=bias)` returns `max(A @ B + bias, 0)`. Where does A
# lie? That decides what runs:
#
# - NumPy's arrays lie in the computer's memory. They are copied to the GPU and back. Without a GPU, the
#   emulator runs the kernel.
# - Arrays on a GPU, of **PyTorch** (the library that most networks are written in) or of CuPy (NumPy for
#   GPUs), stay where they are. The kernel reads and writes their memory, and nothing is copied.
#
# The next cell takes PyTorch where it is installed and finds a GPU, and NumPy otherwise.

# %%
try:
    import torch

    ready = torch.cuda.is_available()
    print("PyTorch is here, and", "finds a GPU." if ready else "finds no GPU. NumPy's arrays do as well.")
except ImportError:
    ready = False
    print("PyTorch is not installed here. That is fine: NumPy's arrays do as well.")

rng = np.random.default_rng(13)
A, B, bias = (rng.standard_normal(shape, np.float32) for shape in [(65, 33), (33, 70), 70])
if ready:
    A, B, bias = (torch.from_numpy(each).cuda() for each in (A, B, bias))
C = layer(A, B, bias=bias) if layer.extras else layer(A, B)

# %% [markdown]
# Is C right? Compute the same without your kernel, and print the largest difference. (With PyTorch:
# `torch.relu` and `.max()`; with NumPy: `np.maximum`.)

# %% id="compare"
### BEGIN SOLUTION
right = A @ B + bias if layer.extras else A @ B
if layer.extras:
    right = right.clip(0)
print(float(abs(C - right).max()))
### STUB
# # your code
### END SOLUTION

# %% [markdown] tags=["thought"]
# Some 10⁻⁶: float32 rounds, and your kernel adds in another order. (Without `layer.py` there is no epilogue:
# then compare with `A @ B`.)

# %% [markdown]
# In PyTorch this is a layer of a network:
#
# ```python
# class Layer(torch.nn.Module):
#     def __init__(self, k, n):
#         super().__init__()
#         self.weight = torch.randn(k, n, device="cuda")
#         self.bias = torch.zeros(n, device="cuda")
#
#     def forward(self, x):
#         return layer(x, self.weight, bias=self.bias)
# ```
#
# It runs in turn with PyTorch's own operations, and like these it returns before the GPU has finished. It
# cannot be trained: PyTorch knows no derivative of your kernel.
#
# **What we now know:** a kernel of your own can stand where a network has a product, a sum and a ReLU.
#
# *A good place for a pause. The second sitting takes about 50 minutes.*
#
# ## How high is the roof?
#
# Back to `mine`. Its main loop, as compiled for an H200 with the tiles that it begins with, has 2,821
# instructions, and 773 of them are no multiply-adds. **How many of the 773 are reads of shared memory?** Say
# a number, then open this.

# %%
loop = recorded(LADDER["thread_tiled_2d"], (9, 0)).loop
kinds = pd.Series(loop.by_kind)
see.fold(kinds[kinds > 0].to_frame("instructions"), first="Say a number first, then open this.")

# %% [markdown] tags=["thought"]
# 160, one in five. A step reads 16 + 4 floats, and the compiler has made fours of them: 5 reads in each of 32
# steps. (`kinds` holds the table.)

# %% [markdown]
# An SM issues four instructions per clock. If all were multiply-adds, an H200 would reach 67 TFLOPS.
# **Compute the roof of this loop's issue slots,** and compare it with the card's.

# %% id="roof"
### BEGIN SOLUTION
print(67 * kinds["multiply-add"] / kinds.sum())
### STUB
# # your code
### END SOLUTION

# %% [markdown]
# So the roof rises when instructions go that are no multiply-adds. Two candidates:
#
# - **Fewer reads.** A thread reads TM + TN floats for TM × TN multiply-adds.
# - **Cheaper copies.** The tile of B comes float by float. Notebook [[vectorized_access.ipynb]] moved four at
#   once.
#
# First the reads. Move TM and TN, and watch *shared loads per multiply-add*: which legal choice has the
# fewest? (No TFLOPS here: your kernel is not on record.)

# %%
see.tiles(mine)

# %% [markdown] tags=["thought"]
# With the other sizes as they begin, 16 × 8 and 8 × 16: 0.19 reads, where 16 × 4 takes 0.31. A block then has
# 4 warps instead of 8, and a thread needs more registers.

# %%
see.predict("own_kernel.roof")

# %% [markdown]
# ### Exercise [[raised_roof]] · Raise the roof
# *stretch · hard · 40 minutes*
#
# Change `mine.py` until its issue slots allow **at least 55 TFLOPS** on an H200. The first change is done for
# you, on one line of STAGE:
#
# ```python
#     tiles={"BM": 128, "BN": 128, "BK": 16, "TM": 16, "TN": 8},
# ```
#
# (BK is 16, as in the square.) The rest is yours. If you are stuck, `.hints` of the check leads you on. These
# rules hold:
#
# - It stays right: `mine.check()` finds nothing.
# - It stays a float32 kernel with tiles in shared memory, of at most 48 KB.
# - No thread needs more than 255 registers, and nothing *spills*: no value has to wait in memory because
#   registers are full.
# - A kernel that moves fours needs rows at multiples of 16 bytes. It gets them if STAGE has a line
#   `alignment=16,`. The rule for B in `requirements` then takes `at_once=4`: a thread fetches four floats in
#   a pass.
# - Without the compiler there is no roof to look at. Then two counts are asked: at most 0.20 reads of shared
#   memory per multiply-add, and at most 1.3 loads and stores per float that is copied into a tile.
#
# After each change save the file, and run the next cell.

# %% id="ex-raised_roof"
### BEGIN SOLUTION
from gemm_course.own_kernel import own_with

# What the edits of mine.py are, each as (old text, new text):
mine = own_with(
    "thread_tiled_2d",
    # The tile: more results per thread.
    (
        '"BM": 128, "BN": 128, "BK": 32, "TM": 16, "TN": 4',
        '"BM": 128, "BN": 128, "BK": 16, "TM": 16, "TN": 8',
    ),
    # Four floats of B at once.
    ("import u32, unroll", "import load4, store4, u32, unroll"),
    ("THREADS // BK, THREADS // BN  #", "THREADS // BK, THREADS // (BN // 4)  #"),
    (
        "        tid = u32(",
        "        zeros = (float32(0), float32(0), float32(0), float32(0))\n        tid = u32(",
    ),
    ("r, c = i + tid // BN, tid % BN\n", "r, c = i + tid // (BN // 4), tid % (BN // 4) * 4\n"),
    (
        "Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)",
        "store4(Bs, (r, c), load4(B, (k0 + r, col0 + c)) if k0 + r < k and col0 + c < n else zeros)",
    ),
    # What the file promises: rows begin at multiples of 16 bytes, and a pass fetches four per thread.
    ("blocks=columns_by_rows,\n", "blocks=columns_by_rows,\n    alignment=16,\n"),
    ('width=("BN", t.BN))', 'width=("BN", t.BN), at_once=4)'),
)
### STUB
# mine = own("mine.py", otherwise="thread_tiled_2d")
### END SOLUTION

check.raised_roof(mine)

# %% [markdown]
# Is the raised roof a faster kernel? An H200 ran the two moves alone and together. **Put the four rows in the
# order of their speed, and say why.** (A thread takes 128 registers with 16 × 4 results, and up to 255 with
# 16 × 8.)
#
# | | roof, TFLOPS |
# |---|---|
# | as begun | 49 |
# | 16 × 8 results | 50 |
# | fours of B | 52.5 |
# | both | 56 |

# %%
moves = records.one_change().query("question == 'raise the roof'").set_index("change")
see.fold(moves[["tflops", "registers"]].round(1), first="Write down the order, then open this.")

# %% [markdown] tags=["thought"]
# Fours alone are the fastest, 38. As begun it is 34, with both 31, and 16 × 8 alone is the slowest, 29. The
# highest roof belongs to both together, which come third. With 254 registers per thread an SM holds 8 warps
# instead of 16. That these wait more is a forecast, which `profile` can test on a GPU. **A roof says what a
# kernel cannot pass, and no more.** (Notebook [[overlap.ipynb]] has the cure for few warps: ask before you
# need.)

# %% [markdown]
# **What we now know:** here copying took more instructions than reading did. A roof is raised by looking at
# what the instructions do. Whether the kernel follows, only a clock can tell.
#
# ## What do you show to others?
#
# The card, saved as a picture (`.svg` or `.png`), and a line of text to paste. The picture goes into the
# folder of this notebook. With a GPU the kernel is measured first, beside cuBLAS, and the line has its speed.
# A kernel that is wrong gets no card.
#
# **Which of your kernels do you send?** The one with the highest roof, or the one that was fastest: the tiles
# put back to 16 × 4 and 32, and B still by fours? Set the file as you decide, and save it. Then take the `#`
# away, run the cell, and send the card to somebody.

# %% tags=["stub"]
# see.card(own("mine.py"), save="mine.png")

# %% tags=["solution"]
see.card(mine)

# %% [markdown]
# Three kernels that nobody has given you yet:
#
# - `python3 course.py new wide --from warp_tiled`: with the lanes of notebook [[warp_tiles.ipynb]], and your
#   epilogue.
# - One for *your* shapes. Tall and narrow matrices want other tiles: `see.tiles` and `check(tiles=...)` take
#   any.
# - A stencil, or another kernel that is no product: count it with `emulate`, as in notebook
#   [[warp_tiles.ipynb]].

# %% [markdown]
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a kernel of my own, right for all shapes, with an epilogue that a network can call, and with a
#   higher roof than it began with.
# - **It reached** a roof of 56 TFLOPS, after 49, and 31 TFLOPS, after 34. With its old tile and the fours it
#   reached 38.
# - **What stops it now** is not the roof. An SM holds 8 warps instead of 16, and my forecast is that they
#   wait.
#   On a GPU `python3 course.py profile mine.py` tests it.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("own_kernel")
