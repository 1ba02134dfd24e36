# %% [markdown]
# # [[warps_in_waiting.ipynb]] · What are warps for?
#
# A side trip from [notebook [[thread_tiles_1d.ipynb]]](thread_tiles_1d.ipynb#cell-id=side-warps_in_waiting),
# and back. An SM of an H200 has places for 64 warps, and issues instructions of four in a clock. What are the
# other sixty good for?
#
# Take `thread_tiled_1d` with tiles of 64 × 64 × 8 and TM = 8. A block has 512 threads, 16 warps, and four
# blocks fit on an SM. Now let fewer in: each block asks for shared memory that it never uses. The code stays
# the same, to the last instruction.

# %%
from gemm_course import check
from gemm_course import widgets as see

# %%
see.predict("thread_tiles_1d.blocks")

# %% [markdown]
# *Time: about 18 minutes to read, 6 for the exercises. Needs notebook [[thread_tiles_1d.ipynb]]. All figures
# are for these tiles, until the last section.*
#
# ## What do they wait for?
#
# Each step of 8 along k begins with loads from global memory. A thread stores what it has loaded into the
# tile, and goes to the barrier. Until the last value has come, the whole block waits.
#
# ### Exercise [[tile_sectors]] · How deep a tile?
# *core · easy · 6 minutes*
#
# What does such a load move? The lanes take the elements of a tile of A one after the other, row by row, and
# a row of the tile has BK of them. How many **sectors** does the request of a full warp move? BK is a power
# of two up to 32. The rows of A begin where sectors begin, and so do the tile's rows where BK is at least 8.


# %% id="ex-tile_sectors"
def sectors(BK):
    ### BEGIN SOLUTION
    return 32 // BK * max(1, BK // 8)
    ### STUB
    # return None
    ### END SOLUTION


check.tile_sectors(sectors)

# %% [markdown]
# With BK = 8 nothing is wasted, and the block waits all the same. This was measured, with the same code:
#
# | blocks per SM | 4 | 2 | 1 |
# |---|---|---|---|
# | TFLOPS | 19 | 15 | 8.5 |
# | clocks in which an instruction is issued, % | 59 | 46 | 26 |
# | a warp waits for global memory, % of its time | 13 | 22 | 31 |
#
# Which row do the TFLOPS follow? And why is the third row not enough to explain them?

# %% [markdown] tags=["thought"]
# They follow the second. A single warp waits somewhat longer with fewer blocks. But what counts is whether
# somebody else has work meanwhile. With one block nobody has: all its warps wait at the same barrier.

# %% [markdown]
# **What we now know:** a warp that waits costs nothing, as long as another block has something to compute.
#
# ## How many blocks hide the wait?
#
# A **model** of this kernel, as simple as possible:
#
# - a tile takes 600 clocks to come, as supposed here, and shared memory takes none;
# - a scheduler has 4 warps of a block, with 127 instructions each per tile, as compiled. So a block computes
#   for 508 clocks;
# - while one block waits, others compute.
#
# How many blocks fit depends on the registers: an SM has 65,536. Of 96, 64, 40 and 32 registers per thread,
# which is the first that leaves no clock idle? Work it out, then move the slider.

# %%
see.fold(lambda: see.strips("thread_tiled_1d"), first="Work it out first, then open this.")

# %% [markdown] tags=["thought"]
# 40. The 600 + 508 clocks of one block have room for 1,108 / 508 = 2.2 blocks that compute. So it takes
# three, and with 40 registers three fit.
#
# The model leaves something out. With 40 registers this kernel reached 33 % of cuBLAS's speed, with 32 it
# reached 38 %, so the course's cap is 32. In the model one block keeps a scheduler busy 46 % of the time, and
# measured are 26 %. Shared memory takes time as well, and there is more to hide than the wait for a tile.

# %% [markdown]
# **What we now know:** a cap on registers buys blocks, and blocks hide waiting.
#
# ## What is full first?
#
# How many warps an SM holds is called its [occupancy](glossary.md#occupancy). Blocks fit until the places for
# threads, the registers or the shared memory run out. These blocks have 512 threads with 32 registers each.
# What is full first? And with one register more, 33?

# %%
see.fold(
    lambda: see.occupancy("thread_tiled_1d", tiles={"BM": 64, "BN": 64, "BK": 8, "TM": 8}),
    first="Work it out first, then open this.",
)

# %% [markdown] tags=["thought"]
# Four blocks, and two things are full at once: the places for threads, and the registers. With 33 registers
# only three fit: one register more, a quarter fewer warps. (A warp takes registers in multiples of 256, so 33
# per thread cost as much as 40.)

# %% [markdown]
# Set the sliders to the tiles of notebook [[thread_tiles_1d.ipynb]]: 128 × 128 × 8, TM = 32. A thread takes
# 64 registers, and the SM holds 32 warps instead of 64.
#
# ## Are more warps better?
#
# Half as many warps, and yet these tiles are faster: 21 TFLOPS instead of 19. Shared memory is as busy with
# one as with the other. Why do they win? Count wavefronts per multiply-add, as compiled, for TM = 32 and TM =
# 8.

# %% [markdown] tags=["thought"]
# ½ + 1/32 against ½ + 1/8: the small tiles ask for 1.18 times as many, and shared memory is the busiest part
# of both, 86 and 87 % of the clocks. More warps only fill clocks in which nobody issues. They do not make the
# work less. (The speeds differ by 1.10 only, for other things take clocks as well.)

# %% [markdown]
# ## The way back
#
# **Warps are for waiting.** Each that waits needs others that can work, and registers decide how many there
# are. But a warp with more results has less to wait for. [Back to notebook
# [[thread_tiles_1d.ipynb]]](thread_tiles_1d.ipynb#cell-id=side-warps_in_waiting).
