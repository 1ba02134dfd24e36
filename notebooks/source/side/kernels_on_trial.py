# %% [markdown]
# # [[kernels_on_trial.ipynb]] · Which shape gives a wrong kernel away?
#
# A side trip from [notebook
# [[shared_memory_tiles.ipynb]]](shared_memory_tiles.ipynb#cell-id=side-kernels_on_trial), and back. Four
# kernels give the right result for most matrices that people test with. You find the smallest shapes that
# show their faults. Then a riddle: what do blocks share in L2?
#
# *Time: about 10 minutes to read, 15 for the exercises. Needs notebook [[shared_memory_tiles.ipynb]] up to
# exercise [[tile_walk]].*

# %%
from gemm_course import check
from gemm_course import widgets as see

# %% [markdown]
# ## Which shape shows a fault?
#
# This is the kernel of document 002, for tiles of 4 × 4. It takes whole tiles only, and it has more barriers
# than it needs.
# %%
from gemm_course.checks.kits import SUSPECTS, document_002

see.source(document_002(4))

# %% [markdown]
# Four people made it work for other sizes. Each of their kernels has one fault. Here is the first suspect,
# beside document 002, and then each beside the one before. (`cuda.gridDim.x` is the number of blocks along
# x.)

# %%
see.diff(document_002(4), SUSPECTS["a"](4))

# %%
see.diff(SUSPECTS["a"](4), SUSPECTS["b"](4))

# %%
see.diff(SUSPECTS["b"](4), SUSPECTS["c"](4))

# %%
see.diff(SUSPECTS["c"](4), SUSPECTS["d"](4))

# %% [markdown]
# ### Exercise [[smallest_failing_shape]] · Four suspects
# *stretch · hard · 15 minutes*
#
# Find for each suspect a shape `(m, n, k)` that shows its fault, with $m \cdot n \cdot k$ as small as
# possible. T is 4, alpha 1 and beta 0. A test with square matrices whose size is a multiple of T finds none
# of the four.

# %% id="ex-smallest_failing_shape"
### BEGIN SOLUTION
check.smallest_failing_shape(a=(1, 1, 1), b=(1, 1, 5), c=(2, 1, 1), d=(1, 1, 5))
### STUB
# check.smallest_failing_shape(a=None, b=None, c=None, d=None)
### END SOLUTION

# %% [markdown]
# ## Which blocks share L2?
#
# `naive_coalesced` is the kernel without tiles. `block_tiled` has tiles, and makes 21 times fewer loads. Here
# their blocks compute 2 × 128 and 16 × 32 elements of C, rows × columns. **Which of the two keeps DRAM
# busier?** What you need for your guess:
#
# - What L2 still holds does not come from DRAM. An H200's L2 has room for 60 MB. A matrix of 4096 × 4096 has
#   67 MB: it does not fit.
# - Blocks start in the order of `blockIdx.x`, more or less; nothing promises it. So blocks with neighbouring
#   numbers run at the same time.
# - `naive_coalesced` numbers its blocks down the columns of C, `block_tiled` along the rows.

# %%
see.fold(
    lambda: see.limits("naive_coalesced", "block_tiled"), first="Choose one of the two first, then open this."
)

# %% [markdown]
# One keeps it ten times as busy as the other. Why? Suppose that only the blocks of one strip of C share what
# they load: a column of blocks in one kernel, a row in the other. Which of A and B do they share? So how
# often does each matrix come from DRAM as a whole? Put your four numbers in. The cell adds up the GB that
# DRAM delivers.

# %% id="dram-by-strips"
matrix = 4 * 4096**2 / 1e9  # the GB of one matrix
comes = {  # how often A comes, and how often B
    ### BEGIN SOLUTION
    "naive_coalesced": (32, 1),
    "block_tiled": (1, 256),
    ### STUB
    # "naive_coalesced": (None, None),
    # "block_tiled": (None, None),
    ### END SOLUTION
}
{kernel: round((a + b) * matrix, 1) for kernel, (a, b) in comes.items() if a and b}

# %% [markdown]
# Now from the other side. DRAM can deliver 4,800 GB per second. The cell has the seconds that each kernel
# took, and the part of that time in which DRAM was busy. How many GB has it delivered?


# %% id="dram-by-time"
def delivered(seconds, busy):
    ### BEGIN SOLUTION
    return round(4800 * seconds * busy, 1)
    ### STUB
    # return None
    ### END SOLUTION


{"naive_coalesced": delivered(0.0210, 0.023), "block_tiled": delivered(0.0153, 0.23)}

# %% [markdown] tags=["thought"]
# The blocks of `naive_coalesced` go down a strip of 128 columns of C, then down the next, 32 in all. In a
# strip they share 128 columns of B, and need all of A. So B comes once and A 32 times: 2.2 GB. By the time it
# is 2.3 GB.
#
# Those of `block_tiled` go along a strip of 16 rows, then along the next, 256 in all. In a strip they share
# 16 rows of A, and need all of B. So A comes once and B 256 times: 17.2 GB. By the time it is 16.9 GB.
#
# Both ways agree within a few percent. **So strips share hardly anything with each other**, though some run
# at the same time.

# %% [markdown]
# DRAM at 23 % does not limit `block_tiled`. But the order of blocks can cost time. `naive_coalesced` with
# blocks of 32 × 32 was measured in both orders, and nothing else changed: down the columns it reached 10.1 %
# of the speed of [cuBLAS](glossary.md#cublas), along the rows 9.5 %. With blocks of 2 × 128 it was 12.7 and
# 10.4 %.
#
# ## The way back
#
# A test of a tile kernel needs sizes that are no multiple of the tile, that all differ, and that take more
# than one tile along k. And which blocks run side by side decides what L2 can share. [Back to notebook
# [[shared_memory_tiles.ipynb]]](shared_memory_tiles.ipynb#cell-id=side-kernels_on_trial).
