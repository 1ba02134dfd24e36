# %% [markdown]
# # [[row_lengths.ipynb]] · How long should a row be?
#
# A side trip from [notebook [[naive.ipynb]]](naive.ipynb#cell-id=side-row_lengths), and back. There 16
# floats of padding behind each row, which nobody reads, made `naive_uncoalesced` 1.8 times as fast. **Which
# length is best?** And is it the best for every kernel?
#
# *Time: about 15 minutes to read, 10 for the exercises. Needs notebook [[naive.ipynb]] up to the line that
# leads here. Matrices are 4096 × 4096, blocks 32 × 32, unless the text says so.*

# %%
import numpy as np

from gemm_course import check
from gemm_course import widgets as see


def wavefronts(addresses):  # a right answer to the exercise on L1's queue
    places = [address // 4 % 32 for address in set(addresses)]
    return max(places.count(place) for place in places)


# %% [markdown]
# ## Which padding is best?
#
# First by the rule. A warp reads 32 floats of A, one below the other; B takes one wavefront more. Rows have
# 4096 + `extra` floats. Write the 32 addresses of the load of A, in bytes.


# %% id="own-padding"
def addresses(extra):
    ### BEGIN SOLUTION
    return [4 * (4096 + extra) * lane for lane in range(32)]
    ### STUB
    # return None
    ### END SOLUTION


# %% [markdown]
# The wavefronts of a step, by padding:

# %%
{extra: wavefronts(addresses(extra)) + 1 for extra in (*range(9), 16, 32, 64) if addresses(extra)}

# %% [markdown]
# **Your hunt.** The rule calls four paddings best. Which of them is fastest on the H200? Which two, of all
# but 0, change nothing? Choose one padding after the other, and set *speed of* to *all lengths* last. (Leave
# the block alone for now.)

# %%
see.row_lengths("naive_uncoalesced")

# %% [markdown] tags=["thought"]
# By the rule 1, 3, 5 and 7 are best: each float has a place of its own, 1 + 1 wavefronts. **One float** is
# fastest, 1.6 TFLOPS, 3.3 times as fast as none. 32 and 64 change nothing: rows move by whole lines, and
# the places stay. So multiples of 32 floats are the worst length for a warp that reads down a column, and
# 4096 is one of them.

# %% [markdown]
# **What we now know:** the length of a row decides how long the queue at a place is.
#
# ## Where does the rule end?
#
# With one float of padding a step takes 2 wavefronts. So L1's roof is 16.7 / 2 = 8.4 TFLOPS. The H200
# reached 1.6, a fifth. Something else is in the way.
#
# Count in clocks. A wavefront takes one, so a step takes 16.7 / TFLOPS of them: 10 with blocks of 32 × 32,
# instead of 2. Leave the padding at 1, and choose the three other blocks in the picture above. Fill in the
# speeds that you read there.

# %% id="own-clocks"
### BEGIN SOLUTION
tflops = {"32 × 32": 1.62, "16 × 16": 2.70, "4 × 64": 5.04, "2 × 128": 5.89}
### STUB
# tflops = {"32 × 32": 1.62, "16 × 16": None, "4 × 64": None, "2 × 128": None}
### END SOLUTION
{block: f"{16.7 / each:.1f} clocks" for block, each in tflops.items() if each}

# %% [markdown]
# By the rule all four blocks have 2 wavefronts. So what do the clocks follow? Say a rule of your own before
# you open this.

# %% [markdown] tags=["thought"]
# They follow the rows of a warp: 10, 6, 3 and 3 clocks for 32, 16, 4 and 2 rows. Each row that it reads is
# a line of its own. With as many wavefronts, more lines take more clocks. A forecast from one limit is a
# roof, and another roof may lie below it. Padding shortens the queue, but the lines stay.

# %% [markdown]
# **What we now know:** L1's queue is not the only thing that can take a kernel's clocks.
#
# ## Which length suits a warp that reads along a row?
#
# In notebook [[coalesced.ipynb]] x counts columns, and nothing else changes: `naive_coalesced`. A warp then
# reads 32 neighbours in a row of B. They have 32 places, whatever the length. But how many *sectors* do
# they touch, if a row has 333 floats? Say it. Then choose a width, and one *step along k* after the other.

# %%
see.fold(lambda: see.warp_and_memory("naive_coalesced", widths=True), first="Say it first, then open this.")

# %% [markdown] tags=["thought"]
# 333 floats are 1332 bytes, no multiple of 32. So most rows begin inside a sector, and 32 neighbours then
# lie in 5 sectors instead of 4. With rows of 336 floats, 42 whole sectors, it is always 4.

# %% [markdown]
# ### Exercise [[leading_dimension]] · Rows that start at sectors
# *core · medium · 10 minutes*
#
# A Numba array carries the length of its rows along, its **leading dimension**: `B[p, col]` finds its
# element even in a view, such as `wide[:, :333]`. Write `padded(B)`: an array of float32 whose first
# columns hold `B`, and whose **every row starts at a sector**, for any width of `B`. Make no row longer
# than it must be. Return the wide array, or a view of its first columns.


# %% id="ex-leading_dimension"
def padded(B):
    ### BEGIN SOLUTION
    rows, columns = B.shape
    wide = np.zeros((rows, -(-columns // 8) * 8), np.float32)
    wide[:, :columns] = B
    return wide
    ### STUB
    # return None
    ### END SOLUTION


check.leading_dimension(padded)

# %% [markdown]
# One float of padding made `naive_uncoalesced` 3.3 times as fast. What does it do to `naive_coalesced`,
# whose rows then begin inside sectors? Say a number before you open this.

# %% [markdown] tags=["thought"]
# Next to nothing: it gets less than 1 % slower, which is noise. 4 sectors become 5, and L1 still delivers
# them in one wavefront. Notebook [[vectorized_access.ipynb]] needs rows that start at sectors for another
# reason.

# %% [markdown]
# ## The way back
#
# For a warp that reads down a column, multiples of 32 floats are the worst length, and one float more is
# the best. For a warp that reads along a row, the length hardly matters. [Back to notebook
# [[naive.ipynb]]](naive.ipynb#cell-id=side-row_lengths).
