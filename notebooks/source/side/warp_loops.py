# %% [markdown]
# # [[warp_loops.ipynb]] · Who owns which element in document 003?
#
# A side trip from [notebook [[warp_tiles.ipynb]]](warp_tiles.ipynb#cell-id=side-warp_loops), and back.
# Document 003 cuts a block's tile of C three times, and has a name for each piece. The names are those of
# Simon Boehm's kernel, which many have read. Here you work out which thread has which element, which tiles
# can work at all, and what both ways to name them have in common.
#
# *Time: about 20 minutes to read, 32 for the exercises. Needs notebook [[warp_tiles.ipynb]] up to exercise
# [[runs_of_four]].*

# %%
from gemm_course import check
from gemm_course import widgets as see

# %% [markdown]
# ## What are the pieces?
#
# From the block down to a thread:
#
# 1. The block's BM × BN results are cut into **warp tiles** of WM × WN, one for each warp.
# 2. A warp tile is cut into WMITER × WNITER **sub-tiles** of WSUBM × WSUBN. The 32 lanes cover one at a time,
#    and come back for the next.
# 3. A sub-tile is cut into 32 **thread tiles** of TM × TN, one for each lane.
#
# Each time the pieces are numbered row by row: 0 and 1 lie side by side. In the document TM is 1, so a thread
# tile is one row of TN elements.
#
# Here is a block of 64 × 64 with four warps. With "TN 8, WNITER 1", lane 5 stands in row 1, column 1 of the
# lanes. In the other two kernels it stands in row 0 and in row 2. **Which is which?** Say it, then look at a
# sub-tile, and colour by lane.

# %%
see.owners(stage="warp_tiled_tm1")

# %% [markdown] tags=["thought"]
# With TN 4 a thread tile is half as wide, so 8 lanes fit side by side: lanes 0 to 7 are row 0. With WNITER 2
# the sub-tile is half as wide, and only 2 fit: lanes 4 and 5 are row 2.

# %% [markdown]
# ### Exercise [[owner_map]] · The owner map
# *core · medium · 20 minutes*
#
# Which elements of the block's tile does thread `tid` own? TM is 1. WNITER says how many sub-tiles lie side
# by side. How many lie one below the other, WMITER, you work out: together they cover the warp tile.
#
# Return a list of `(row, column)`: the sub-tiles from the top down, in each row of them from left to right,
# and in each sub-tile the thread's TN elements. All divisions come out even here. The picture above lets you
# check a thread by hand: its tiles are BN = 64, WM = WN = 32.


# %% id="ex-owner_map"
def elements(tid, BN, WM, WN, TN, WNITER):
    ### BEGIN SOLUTION
    WMITER = WM * WN // (32 * TN * WNITER)
    WSUBM, WSUBN = WM // WMITER, WN // WNITER
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    places = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in places for e in range(TN)]
    ### STUB
    # return None  # [(row, column), ...]
    ### END SOLUTION


check.owner_map(elements)

# %% [markdown] tags=["stub"]
# Right or wrong, you can look at your own map: `see.owners(elements)`. What nobody owns, or several do, is
# hatched. One owner each may still be the wrong one.

# %% tags=["solution"] id="own-map"
see.owners(elements)

# %% [markdown]
# Here are the document's formulas. Compare them with yours.

# %% [markdown] tags=["listing"]
# `tid` is `threadIdx.x`, and all divisions are of whole numbers.
#
# | | formula |
# |---|---|
# | where the block's tile of C begins | row `blockIdx.y * BM`, column `blockIdx.x * BN` |
# | sub-tiles down | `WMITER = WM * WN // (32 * TM * TN * WNITER)` |
# | the size of a sub-tile | `WSUBM = WM // WMITER`, `WSUBN = WN // WNITER` |
# | which warp tile | `warp = tid // 32`, row `warp // (BN // WN)`, column `warp % (BN // WN)` |
# | which lane | `lane = tid % 32`, row `lane // (WSUBN // TN)`, column `lane % (WSUBN // TN)` |
# | row of the tile, sub-tile i | `warp_row * WM + i * WSUBM + lane_row * TM` |
# | column of the tile, sub-tile j, place e | `warp_col * WN + j * WSUBN + lane_col * TN + e` |
# | which result | number `i * (WNITER * TN) + j * TN + e` of threadResults, if TM = 1 |

# %% [markdown]
# And the kernel that computes with them, beside `vectorized`:

# %% tags=["listing"]
see.fold(see.diff("vectorized", "warp_tiled_tm1"), first="Write the exercise first, then open this.")

# %% [markdown]
# ## Are these your runs of four?
#
# In notebook [[warp_tiles.ipynb]] a thread has 8 × 8 results in runs of four, and the lanes stand 4 × 8 in a
# warp tile of 32 × 64. Say it in the document's names: what are TM and TN of one thread tile, and WMITER and
# WNITER? What are WSUBM and WSUBN?

# %% [markdown] tags=["thought"]
# TM = TN = 4, and WMITER = WNITER = 2: a run of rows and a run of columns meet in a thread tile of 4 × 4, and
# there are 2 × 2 of them. So WSUBM = 16 and WSUBN = 32. **A sub-tile is what the first runs of all lanes
# cover.** Mind the names: in `warp_tiled` TM and TN count *all* rows and columns of a thread, 8 and 8.

# %% [markdown]
# ## Which tiles can work?
#
# ### Exercise [[legal_tiles]] · Legal, or not?
# *core · medium · 12 minutes*
#
# Return the number of threads of a block, or 0 where the tiles cannot work. They cannot
#
# - where the 32 lanes of a warp do not reach each element of its tile exactly once,
# - where warp tiles do not fill the block's tile,
# - where a block would have more than 1,024 threads (1,024 is allowed).
#
# TM and TN are the size of *one* thread tile, and TM may be larger than 1. (Reads of four floats add further
# conditions; ignore them.) The checker tries 3,895 combinations. One of the rules is easily forgotten.


# %% id="ex-legal_tiles"
def legal(BM, BN, WM, WN, TM, TN, WNITER):
    ### BEGIN SOLUTION
    sub_tile = 32 * TM * TN * WNITER
    if BM % WM or BN % WN or WM * WN % sub_tile or WN % (WNITER * TN):
        return 0
    WMITER = WM * WN // sub_tile
    if WM % WMITER or WM // WMITER % TM:
        return 0
    threads = BM * BN // (WM * WN) * 32
    return threads if threads <= 1024 else 0
    ### STUB
    # return None  # threads of a block, or 0
    ### END SOLUTION


check.legal_tiles(legal)

# %% [markdown]
# The explorer below applies these rules, and a few more. **Break it:** move one slider, as far as you like.
# Exactly one position of one slider cannot run. Find it; the explorer says why. Your `legal` lets it pass:
# what does it not know?

# %%
see.tiles("warp_tiled_tm1", tells_best=False)

# %% [markdown] tags=["thought"]
# Registers. With WN = 128 a thread has 32 · 8 = 256 results; with 32 elements of As and 8 of Bs it would keep
# 296 numbers. A thread has at most 255 registers. The course leaves 32 of them for addresses and counters:
# 223, a rule of thumb.

# %% [markdown]
# ## The way back
#
# The document names the loops of a thread, your kernel the place of a lane. Both name the same elements: a
# sub-tile is what all lanes cover in one go. [Back to notebook
# [[warp_tiles.ipynb]]](warp_tiles.ipynb#cell-id=side-warp_loops).
