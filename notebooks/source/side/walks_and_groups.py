# %% [markdown]
# # [[walks_and_groups.ipynb]] · What if the order changes?
#
# A side trip from [notebook [[overlap.ipynb]]](overlap.ipynb#cell-id=side-walks_and_groups), and back.
#
# In each step a thread adds 16 × 8 products. Any order of them gives the same results. `async_copy` goes row
# by row, each row from left to right, and `read_ahead` goes otherwise. **What if `read_ahead` went row by row
# as well, and nothing else were changed?** Bet first.
#
# *Time: about 15 minutes to read, 15 for the exercises. Needs notebook [[overlap.ipynb]].*

# %%
from itertools import pairwise

from gemm_course import check, records
from gemm_course import widgets as see

# %%
see.predict("walks_and_groups.walk")

# %%
AS_IT_IS = {"none": "as it is"}
order = records.one_change().query("question == 'order of products' and stage == 'read_ahead'")
see.fold(order.pivot(index="size", columns="change", values="tflops").rename(columns=AS_IT_IS).round(1))

# %% [markdown]
# ## What do two products share?
#
# A multiply-add reads three registers: `acc[i, j]`, `a[i]` and `b[j]`. There is a model of how an SM reads
# them, fitted to another GPU, an RTX A6000 ([Huerta and others, 2025](https://arxiv.org/abs/2503.20481)). In
# it a small cache keeps registers that the instruction before has just read. If an H200 is built like that,
# a product should **share an operand** with the one before: the same i, or the same j.
#
# How often does row by row fail to do so? Count it.

# %% id="row-by-row"
rows = [(i, j) for i in range(16) for j in range(8)]
### BEGIN SOLUTION
sum(one[0] != two[0] and one[1] != two[1] for one, two in pairwise(rows))
### STUB
# # your code: in how many of the 127 pairs in pairwise(rows) do both i and j change?
### END SOLUTION

# %% [markdown]
# ### Exercise [[shared_walk]] · The walk
# *core · easy · 5 minutes*
#
# Find an order in which it never fails. Return all places `(i, j)` of TM × TN results, each in the row or in
# the column of the one before. There is more than one such order.


# %% id="ex-shared_walk"
def walk(TM, TN):
    ### BEGIN SOLUTION
    return [(i, s if i % 2 == 0 else TN - 1 - s) for i in range(TM) for s in range(TN)]
    ### STUB
    # return None  # a list of TM * TN pairs
    ### END SOLUTION


check.shared_walk(walk)

# %% [markdown] tags=["thought"]
# `read_ahead` goes back and forth. Its line is `j = s if i % 2 == 0 else TN - 1 - s`, with s from 0 to
# TN - 1. Row by row, 15 of the 127 pairs share nothing: each time a row ends.

# %% [markdown]
# Now give that walk to `async_copy`, which does not read ahead. Does it become faster, slower, or neither?

# %%
alone = records.one_change().query("question == 'a walk without reading ahead'")
see.fold(alone[["stage", "change", "tflops"]].round(1), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# Slower: 49.4 TFLOPS become 48.5. So reading ahead without the walk brings hardly anything, and neither does
# the walk without reading ahead. Each needs the other. Operands that are shared need not be the whole reason:
# row by row the compiler gave a thread of `read_ahead` 239 registers instead of 228.

# %% [markdown]
# **What we now know:** the order of a thread's products is worth 5 %, but only to a kernel that reads ahead.
#
# ## In which order do blocks take their tiles?
#
# A thread's order mattered. Does that of the blocks? 132 of them run at a time, one per SM, and blocks with
# neighbouring numbers run together. Two blocks whose tiles lie in one row of C read the same rows of A. The
# second may find them in the [L2 cache](glossary.md#l2), which all SMs share.
#
# At 8192³, C has 64 × 32 of the large tiles. Row by row, the first 132 blocks fill four rows, and begin a
# fifth. So together they read 5 · 128 = 640 rows of A, and all 8,192 columns of B: **8,832** rows and
# columns. A square would need fewer, as in notebook [[thread_tiles_2d.ipynb]].
#
# So number the blocks otherwise. Take **groups** of GROUP rows of tiles. Within a group go down its first
# column, then down the second, and so on. Then comes the next group; the last one may be lower. [Triton's
# tutorial](https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html) calls this
# grouped ordering. `grouped_blocks`, the stage after `read_ahead`, does it.
#
# ### Exercise [[grouped_tile]] · Which tile is mine?
# *core · medium · 10 minutes*
#
# C has `rows` × `columns` tiles. Return the row and the column of the tile that block number `block`
# computes. With 5 rows of 4 tiles and GROUP = 2, blocks 0, 1 and 2 have (0, 0), (1, 0) and (0, 1), block 8
# has (2, 0), and block 17 has (4, 1). Draw these tiles and number them first.


# %% id="ex-grouped_tile"
def tile_of(block, rows, columns, GROUP):
    ### BEGIN SOLUTION
    group, within = divmod(block, GROUP * columns)
    height = min(GROUP, rows - group * GROUP)
    return group * GROUP + within % height, within // height
    ### STUB
    # return None, None
    ### END SOLUTION


check.grouped_tile(tile_of)

# %% [markdown]
# How many rows of A and columns of B do groups of 8 need, at 8192³ and at 4096³? Guess. Then complete
# `needed`, which asks your `tile_of`. With GROUP = 1 and 8192³ it must give 8,832.


# %% id="own-groups"
def needed(size, GROUP):
    rows, columns = size // 128, size // 256
    tiles = [tile_of(block, rows, columns, GROUP) for block in range(132)]
    ### BEGIN SOLUTION
    return 128 * len({row for row, _ in tiles}) + 256 * len({column for _, column in tiles})
    ### STUB
    # return None  # a tile takes 128 rows of A and 256 columns of B; tiles may share them
    ### END SOLUTION


{(size, GROUP): needed(size, GROUP) for size in (4096, 8192) for GROUP in (1, 8)}

# %% [markdown] tags=["thought"]
# At 8192³ they need 5,376 instead of 8,832: 39 % fewer. At 4096³ they need 5,632 instead of 5,248, 7 %
# *more*. There a group has only 16 columns, so it is full after 128 blocks, and the last four begin another.

# %%
see.predict("walks_and_groups.groups")

# %%
groups = records.one_change().query("stage == 'grouped_blocks' and change in ('none', 'GROUP 1')")
see.fold(groups.pivot(index="size", columns="change", values="tflops").rename(columns=AS_IT_IS).round(2))

# %% [markdown] tags=["thought"]
# 52.73 TFLOPS become 52.78, and at 4096³ 52.37 become 52.42: 0.1 % both times, whether the blocks need 39 %
# less or 7 % more. The profile had said so: L2 is busy 11 % of the time, DRAM 3 %.

# %% [markdown]
# The tiles of `grouped_blocks` are here to try. Look at *global loads per multiply-add*: why does it stay the
# same when you move GROUP?

# %%
see.tiles("grouped_blocks")

# %% [markdown] tags=["thought"]
# GROUP decides which blocks run together, and not what a block loads. So the loads that are asked for are as
# many; only where they are answered changes.

# %% [markdown]
# **What we now know:** groups would spare DRAM, and DRAM was not the limit. A remedy for what is not the
# limit is no remedy. [Back to notebook [[overlap.ipynb]].](overlap.ipynb#cell-id=side-walks_and_groups)
