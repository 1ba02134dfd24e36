# %% [markdown]
# # [[walks_and_groups.ipynb]] · What if the order changes?
#
# A side trip from [notebook [[overlap.ipynb]]](overlap.ipynb#cell-id=side-walks_and_groups), and back.
#
# *Time: about 15 minutes to read, 10 for the exercises. Needs notebook [[overlap.ipynb]].*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32

from gemm_course import check, emulate, records, run
from gemm_course import widgets as see
from lockstep.intrinsics import cp_async4, cp_async_commit, cp_async_wait, unroll

# %% [markdown]
# ## How many slots?
#
# The ring may have three slots. It costs 12 KB more of shared memory, and nothing else that you can see.
# The same tiles, another number of slots:

# %%
see.predict("overlap.slots")

# %%
asked = records.sweep().query("stage in ('async_copy', 'read_ahead')")
sizes = pd.DataFrame([records.parse_tiles(tiles) for tiles in asked.tiles], asked.index)
asked = asked[["stage", "tflops"]].join(sizes).query("PAD == 4 and SLOTS in (2, 3)").dropna()
see.fold(asked.pivot_table(index=["stage", "BM", "BN"], columns="SLOTS", values="tflops").dropna().round(1))

# %% [markdown] tags=["answer"]
# The third slot sometimes wins and sometimes loses; for 128 × 256 it loses. With two slots a warp waits 1 %
# of its time for global memory, so there is hardly anything left to hide. And the loop has 7 instructions
# more: 1,143. That is 0.6 %, not 3; where the rest goes nobody has profiled. Slots hide latency. If none is
# left, they hide nothing.

# %% [markdown]
# ## A walk over the results
#
# `read_ahead` has a second idea, which looks small. A multiply-add reads three registers: `acc[i, j]`,
# `a[i]` and `b[j]`. In a model that was fitted to an RTX A6000 ([Huerta and others,
# 2025](https://arxiv.org/abs/2503.20481)), registers deliver two per clock, one from the even and one from
# the odd half, and a small cache keeps what the instruction before has just read. If an H200 is built like
# that, neighbours should **share an operand**.
#
# Row by row, all neighbours within a row share `a[i]`. Then the row ends, `j` jumps back to 0, and nothing
# is shared.
#
# ### Exercise [[shared_walk]] · The walk
# *core · easy · 5 minutes*
#
# Return all places `(i, j)` of a thread's TM × TN results in an order in which each shares its row or its
# column with the one before. There is more than one.


# %% id="ex-shared_walk"
def walk(TM, TN):
    ### BEGIN SOLUTION
    return [(i, s if i % 2 == 0 else TN - 1 - s) for i in range(TM) for s in range(TN)]
    ### STUB
    # return None  # a list of TM * TN pairs
    ### END SOLUTION


check.shared_walk(walk)

# %% [markdown]
# Here is the whole change. Find the wait that has moved, and your walk:

# %%
see.diff("async_copy", "read_ahead")

# %% [markdown]
# Now break it: take the walk out again, and leave all else as it is.

# %%
see.predict("overlap.walk")

# %%
order = records.one_change().query("question == 'order of products' and change != 'GROUP 1'")
see.fold(order.pivot(index=["size", "stage"], columns="change", values="tflops").round(1))

# %% [markdown] tags=["answer"]
# We had predicted 1.5 %, and lost 5 %; in `grouped_blocks`, the stage after this one, 7 %. What is left,
# 49.6, is about what `async_copy` does. Without the idea that looked small, nearly the whole gain is gone.
# And without reading ahead the walk brings nothing: with it, `async_copy` falls from 49.4 to 48.5. Each needs
# the other.
#
# It need not be the cache alone: the compiler took 239 registers instead of 228. At this height its choice
# of registers counts. Names for two intermediate numbers, in place of one long line,
# were worth 3 % (`gemm_course/kernels/NOTES.md`). Another version must be measured again.

# %% [markdown]
# ## Blocks in groups
#
# The last idea looks beyond the block. 132 blocks run at a time, one per SM, and neighbours in number run
# together. They all read A and B through the [L2 cache](glossary.md#l2). Numbered row by row, the 132 of
# one moment need a few rows of tiles of A, but every column of tiles of B.
#
# So number them otherwise: take **groups** of GROUP rows of tiles, go down the first column of the group,
# then down the second, and so on. The last group may be lower. [Triton's
# tutorial](https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html) calls it
# grouped ordering.
#
# ### Exercise [[grouped_tile]] · Which tile is mine?
# *core · medium · 10 minutes*
#
# The grid has one dimension now. C has `rows` × `columns` tiles. Return the row and the column of the tile
# that block number `block` computes. With 5 rows of 4 tiles and GROUP = 2, blocks 0, 1 and 2 have (0, 0),
# (1, 0) and (0, 1), block 8 has (2, 0), and block 17 has (4, 1).


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

# %% tags=["solution"] id="own-groups"
needs = {}
for size in (4096, 8192):
    rows, columns = size // 128, size // 256
    for GROUP in (1, 4, 8, 16, 32):
        tiles = {tile_of(block, rows, columns, GROUP) for block in range(132)}
        of_a, of_b = ({tile[axis] for tile in tiles} for axis in (0, 1))
        needs[GROUP, size] = 128 * len(of_a) + 256 * len(of_b)
pd.Series(needs).unstack().rename_axis(index="GROUP", columns="rows of A and columns of B, m = n =")

# %% [markdown]
# A function like yours tells which tiles the first 132 blocks compute, and so what they read. With GROUP = 8,
# at 8192³ they need 5,376 rows of A and columns of B together; row by row it is 8,832. Groups need 39 %
# fewer. At 4096³ it is 5,632 against 5,248: there they need 7 % *more*.

# %%
see.predict("overlap.groups")

# %%
groups = records.one_change().query("question == 'order of products' and change in ('none', 'GROUP 1')")
see.fold(groups.pivot(index=["stage", "change"], columns="size", values="tflops").round(2))

# %% [markdown] tags=["answer"]
# 52.73 TFLOPS become 52.78, and at 4096³ 52.37 become 52.42: 0.1 % both times, whether the blocks need 39 %
# less or 7 % more. We had predicted 1 and 0.2. `grouped_blocks` does beat `read_ahead`, by 0.4 % at 4096³
# and 0.7 % at 8192³. That is the rewriting, not the groups.
#
# The profile had said so: L2 is busy 11 % of the time, DRAM 3 %. **A remedy for what is not the limit is no
# remedy.**
