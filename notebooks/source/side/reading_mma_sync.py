# %% [markdown]
# # [[reading_mma_sync.ipynb]] · How do you read mma_sync?
#
# A side trip from [notebook [[mma_sync.ipynb]]](mma_sync.ipynb#cell-id=side-reading_mma_sync), and back.
#
# *Time: about 15 minutes to read, 10 for the exercises. Needs notebook [[mma_sync.ipynb]].*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32
from numba.types import float16

from gemm_course import check, launch, records
from gemm_course import widgets as see
from gemm_course.profiles import recorded
from lockstep.intrinsics import cp_async_wait, ldmatrix_x4, ldmatrix_x4_trans, mma_m16n8k16, unroll

# %% [markdown]
# ### Two hunts: rows of other lengths

# %% [markdown] tags=["listing"]
# Two swizzles to try, at four lengths of rows. `a ^ b`, Python's *xor*, flips those bits of `a` that are
# 1 in `b`: with 8 places it shuffles them, and to do it twice restores the order.
#
# 1. At which lengths does `piece ^ row % pieces` fail?
# 2. There, look at the rows that meet. How many rows apart are they?

# %% tags=["listing"]
see.fold(lambda: see.swizzle(), first="Write the exercise first, then open this.")

# %% [markdown] tags=["thought"]
# 1. With 2 and with 4 pieces: 2 wavefronts. From 8 on it holds. The other swizzle does just the same.
# 2. Four, in both. Short rows lie side by side: 4 rows of 2 pieces fill the banks once, or 2 rows of 4.
#    Such neighbours never meet, whatever the swap. Yet the formula spends its few swaps on them, and
#    repeats too early.

# %% [markdown]
# ### Exercise [[swizzle_any]] · Rows of any length
# *stretch · medium · 10 minutes*
#
# The stages also have tiles with short rows. Write the swizzle for 2, 4, 8, 16 and 32 pieces per row.


# %% id="ex-swizzle_any"
def place_in(row, piece, pieces):
    ### BEGIN SOLUTION
    repeat = max(1, 8 // pieces)  # so many rows fill the banks together
    return piece ^ (row // repeat % min(8, pieces))
    ### STUB
    # return None
    ### END SOLUTION


check.swizzle_any(place_in)

# %% [markdown]
# ## Three old friends
#
# `mma_ring` adds notebook [[overlap.ipynb]]'s **ring**: the tiles that come next are on their way while this
# one is multiplied. With it come blocks of 128 × 256, alone on their SM and numbered in groups. What these
# bring alone was not measured.
#
# And the results take the **detour through shared memory** again, now by choice. Stored from registers, 4
# bytes per store, they fill half of each sector. Through shared memory a lane stores 16 bytes at a time:
# in an early form of `mma_sync` that alone cut 312 µs to 302.
#
# `mma_sync` adds **reading ahead**, with fragments. A warp has two sets of `a` and `b`: while the Tensor
# Cores multiply one, `ldmatrix` fills the other. A tile has four steps of 16 along k:
#
# | | | | | | |
# |---|---|---|---|---|---|
# | `mma_ring` | load 0 | multiply 0 | load 1 | multiply 1 | … |
# | `mma_sync` | load 0, multiply 3 (last tile) | load 1, multiply 0 | load 2, multiply 1 | … | … |
#
# So they are written; the compiler may reorder what no barrier separates. Within a tile it already moves
# `mma_ring`'s loads ahead, as far as registers get free. What it must not do is move them across a
# barrier: there all products wait for the first loads.
#
# In the listing, `now` and `before` are the two sets. Look where `multiply` stands: **the last products
# of a tile come after the barrier**, beside the first loads of the next tile. The tiles have one dimension
# here, so `ldmatrix` takes an offset in place of (row, column). Some words are new:
#
# | | |
# |---|---|
# | `carve(tiles, start, shape)`, `rest(As, start)` | a part of shared memory as an array; `As[start:]` |
# | `kept(x)` | `x`, in a register: the compiler cannot work it out anew |
# | `STEPS` | steps of 16 in a tile: 4 |
# | `A_REPEAT`, `A_SPAN` | [[swizzle_any]]'s: so many short rows fill the banks; `min(8, pieces)` |
# | `every_second_piece(row, piece)` | four offsets, one per step: where this lane's piece lies |
# | `ahead`, `whole` | where along k the next tile to fetch begins, and where whole tiles end |
# | `own_pieces`, `fetch_first`, `fetch` | what a thread copies; the copies of the first tile, and of a step |
# | `grouped`, `multiply`, `finish` | [[grouped_tile]]; products of a step; alpha, beta, detour, stores |

# %% tags=["listing"]
see.fold(see.source("mma_sync"), first="Write the exercise first, then open this.")

# %%
see.predict("mma_sync.ahead")

# %% [markdown]
# ### Exercise [[fragment_registers]] · What do two sets cost?
# *core · easy · 10 minutes*
#
# Registers. How many 32-bit registers does a lane need for the accumulators of a warp tile WM × WN
# (float32), and for `sets` sets of fragments, A's and B's, of one step of 16 along k? All come out even.


# %% id="ex-fragment_registers"
def fragment_registers(WM, WN, sets):
    ### BEGIN SOLUTION
    return WM * WN // 32 + sets * (WM + WN) // 4
    ### STUB
    # return None
    ### END SOLUTION


check.fragment_registers(fragment_registers)

# %% [markdown]
# **A mystery.** Two choices of tiles, four measurements on an H200. The warps have 64 × 64 each time. In
# one choice the second set makes the kernel faster, in the other **more than four times slower**. Say why
# before you read on: what would you look up?

# %%
tiles = [f"BM=128 BN={BN} BK=64 WM=64 WN=64 SLOTS=3 GROUP=8" for BN in (256, 64)]
measured = records.sweep().query("stage in ('mma_ring', 'mma_sync') and tiles in @tiles")
measured.pivot(index="tiles", columns="stage", values="tflops").round().loc[tiles]

# %%
see.fold(
    measured.pivot(index="tiles", columns="stage", values=["registers", "local_bytes"]).loc[tiles],
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# Local memory: 336 bytes per thread [spill](glossary.md#spilling). You counted 192 registers of at most
# 255, and the rest is for addresses. Of the narrow tiles a thread copies 24 pieces, of the wide ones 12: a
# block has two warps there, not eight. The second set was the last straw.

# %% [markdown]
# ### How little is left in the loop
#
# Knowing that, the loop was stripped: from 138 instructions that are neither product nor load of
# fragments nor copy to 66. That brought it from 58 to 63 or 64 % of cuBLAS. What is left, by kind,
# compared with `wmma`:

# %%
see.compare_code("wmma", "mma_sync")

# %% [markdown]
# (The picture takes the data sheet's 4 clocks per product, 512 for 128 products. With the 6 of
# [[product_clocks]] they are 768, and issuing takes 31 % of them.)
#
# Why *more* shared loads? There are 32 `ldmatrix` in both. The other 12 of 44 (3 in `wmma`) are `@!PT
# LDS`, loads on a condition that is never true. They read nothing and take their turn; they are among the
# 66. What the compiler wants with them, it does not say.
#
# How would you get rid of the copies' instructions, when the tiles have to come all the same? `mma_tma`
# has the same products, fragments and tiles. Its tiles are brought by a machine, on the word of one
# thread.

# %%
see.fold(lambda: see.limits("mma_sync", "mma_tma"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# The Tensor Cores come to 89 %, and the kernel from 490 to 522 TFLOPS. What remains then is the
# instruction itself: on registers alone `mma.sync` was measured to do 648 TFLOPS, and cuBLAS does 771
# beside `mma_sync`.
#
# That is 84 %, not [[product_clocks]]'s 76. A loop on registers has no start and no end, where SMs run out of
# work (4 % of the launch here). And at 6 clocks per product it must have run at 1.80 GHz, where `mma_sync`'s
# profile has 1.73.
