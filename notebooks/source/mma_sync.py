# %% [markdown]
# # [[mma_sync.ipynb]] · What can you do once you know which lane holds what?
#
# In notebook [[tensor_cores.ipynb]] a warp loaded fragments, and which lane got what was CUDA's secret. Here
# is another instruction, `ldmatrix`. Lane `i` names row `i` of a tile, in which every value is the number of
# its row. Then the hardware deals the values out. Run it.

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32
from numba.types import float16

from gemm_course import check, emulate, launch, records
from gemm_course import widgets as see
from lockstep.intrinsics import cp_async_wait, ldmatrix_x4, ldmatrix_x4_trans, mma_m16n8k16, unroll


@cuda.jit
def one_load(rows, got):
    tile = cuda.shared.array((32, 8), float16, 16)
    fragment = cuda.local.array(8, float16)
    lane = cuda.threadIdx.x
    for e in range(8):
        tile[lane, e] = lane
    cuda.syncwarp()
    ldmatrix_x4(fragment, tile, (rows[lane], 0))
    for e in range(8):
        got[lane, e] = fragment[e]


def loaded(rows):
    got = launch(one_load[1, 32], rows, np.zeros((32, 8), np.float16)).arrays["got"]
    lanes = [f"lanes {first} to {first + 3}" for first in range(0, 32, 4)]
    return pd.DataFrame(got[::4, ::2].T.astype(int), ["a[0:2]", "a[2:4]", "a[4:6]", "a[6:8]"], lanes)


loaded(np.arange(32))

# %% [markdown]
# A lane gets eight values, `a[0]` to `a[7]`: two each of four rows. Four lanes get values of the same rows,
# so they share a column of the table. **Now lane 5 makes a mistake: it names row 31 instead of row 5.**

# %%
see.predict("mma_sync.named")

# %%
rows = np.arange(32)
rows[5] = 31
see.fold(loaded(rows))

# %% [markdown] tags=["answer"]
# Lane 5 itself has what it always has. Lanes 20 to 23 have the wrong row in `a[0:2]`, and did nothing wrong.

# %% [markdown]
# Your turn: make lanes 28 to 31 get row 0, in `a[4:6]`, and nobody else anything wrong. Which lane must name
# row 0? Write its number into the brackets.

# %%
rows = np.arange(32)
rows[[]] = 0  # which lane?
loaded(rows)

# %% [markdown] tags=["thought"]
# Lane 23. Lanes 16 to 23 name the eight rows of the third line, and lanes 28 to 31 get the last of them.
#
# **The lane that names an address is not the lane that gets the data.** So the layout must be known, and
# here it is: it stands in NVIDIA's [manual of these
# instructions](https://docs.nvidia.com/cuda/parallel-thread-execution/#warp-level-matrix-fragment-mma-16816-float),
# and holds on every GPU that has them.

# %% [markdown]
# *Time: about 55 minutes to read, 80 for the exercises; two pauses are marked. Beyond the documents.*
#
# First two questions from memory:

# %%
see.recall("mma_sync")

# %% [markdown]
# ## Which lane holds which element?
#
# `mma_m16n8k16(acc, a, b)` is one call of a whole warp: `acc += a · b`. It multiplies 16 × 16 by 16 × 8 and
# adds to 16 × 8. The name has the sizes: m 16, n 8, k 16. The instruction is called `mma.sync`. WMMA was made
# of it all along: the compiler wrote two for each `wmma_mma`.
#
# A lane's share is 8 FP16 values of `a`, 4 of `b`, and 4 float32 accumulators. A number in a cell is the lane
# that holds it. **Find the lanes that hold the two ends of A's first row.** Then switch to B: which way are
# its lanes dealt?

# %%
see.fragment("mma")

# %% [markdown] tags=["thought"]
# Lanes 0 and 3: four lanes share a row of A, and each comes again 8 columns further on. B is dealt by
# columns: four lanes share a column, and each holds pairs that lie one below the other.

# %% [markdown]
# The 16 × 8 accumulators are dealt **by rows**, like A: row 0 belongs to lanes 0, 0, 1, 1, 2, 2, 3, 3, and
# row 1 begins with lane 4. Eight rows further down the same lanes come again. A lane numbers its four
# places 0 to 3: 0 and 1 are neighbours in the upper row, 2 and 3 lie below them.
#
# ### Exercise [[accumulator_owner]] · Who has this result?
# *core · easy · 10 minutes*
#
# Where is element (row, column) of the accumulators? Return `(lane, place)`.


# %% id="ex-accumulator_owner"
def owner(row, column):
    ### BEGIN SOLUTION
    return row % 8 * 4 + column // 2, row // 8 * 2 + column % 2
    ### STUB
    # return None  # (lane, place)
    ### END SOLUTION


check.accumulator_owner(owner)

# %% [markdown]
# **What we now know:** a lane can find its results, and the row and column of each, without asking anybody.
#
# ## How does a value reach the lane that needs it?
#
# `ldmatrix_x4(a, As, (row, column))` loads four matrices of 8 × 8 FP16 values. Lanes 0 to 7 name the rows of
# the first, lanes 8 to 15 those of the second, and so on. A lane names where 8 values begin. These 16 bytes
# are a **piece** of a row.
#
# For a tile of 16 × 16, the four matrices go **down first**:
#
# | | columns 0 to 7 | columns 8 to 15 |
# |---|---|---|
# | rows 0 to 7 | first: `a[0:2]`, `b[0:2]` | third: `a[4:6]`, `b[4:6]` |
# | rows 8 to 15 | second: `a[2:4]`, `b[2:4]` | fourth: `a[6:8]`, `b[6:8]` |
#
# So `b[0:4]` are columns 0 to 7 of B, and `b[4:8]` are columns 8 to 15: one load serves two products.
#
# There is one difference. In B a lane wants pairs that lie one below the other, and `ldmatrix` deals pairs
# that lie side by side. So B is loaded by `ldmatrix_x4_trans`, which transposes each of the four matrices on
# the way. This is what lanes get of one matrix, as (row, column) in the tile:
#
# | | lane 0 | lane 1 | lane 4 |
# |---|---|---|---|
# | by `ldmatrix_x4` | (0, 0), (0, 1) | (0, 2), (0, 3) | (1, 0), (1, 1) |
# | by `ldmatrix_x4_trans` | (0, 0), (1, 0) | (2, 0), (3, 0) | (0, 1), (1, 1) |
#
# ### Exercise [[by_hand]] · A warp's product, by hand
# *core · medium · 20 minutes*
#
# This is [[warp_product]] without WMMA: one warp per block, a block for each 16 × 16 tile of C. All sizes are
# multiples of 16. The tiles are fetched for you. Write the loads, two products, and the stores: **each lane
# stores its eight results into C itself.** There is no `Cs`.
#
# Which row and column does a lane name? Which half of `b` goes with which `acc[j]`? To which row and column
# does `acc[j, e]` belong? (That is [[accumulator_owner]], the other way round.)


# %% id="ex-by_hand"
@cuda.jit
def by_hand(k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 16)  # rows of 16 values, and 8 of padding
    Bs = cuda.shared.array((16, 24), float16, 16)
    a = cuda.local.array(8, float16)
    b = cuda.local.array(8, float16)
    acc = cuda.local.array((2, 4), float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8  # what this lane copies
    for j in unroll(range(2)):
        for e in unroll(range(4)):
            acc[j, e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            As[r, c + e] = A[row0 + r, k0 + c + e]
            Bs[r, c + e] = B[k0 + r, col0 + c + e]
        cuda.syncwarp()
        ### BEGIN SOLUTION
        line, half = lane % 16, lane // 16 * 8
        ldmatrix_x4(a, As, (line, half))
        ldmatrix_x4_trans(b, Bs, (line, half))
        mma_m16n8k16(acc[0], a, b[0:4])
        mma_m16n8k16(acc[1], a, b[4:8])
        ### STUB
        # # your code: load both operands, multiply twice
        ### END SOLUTION
        cuda.syncwarp()
    ### BEGIN SOLUTION
    for j in unroll(range(2)):
        for e in unroll(range(4)):
            row, col = lane // 4 + e // 2 * 8, j * 8 + lane % 4 * 2 + e % 2
            C[row0 + row, col0 + col] = acc[j, e]
    ### STUB
    # # your code: from acc to C
    ### END SOLUTION


check.by_hand(by_hand)

# %% [markdown]
# **Break it:** change `ldmatrix_x4_trans` to `ldmatrix_x4`, and run the cell again. On a GPU there would be
# no error, and numbers that look like numbers. Then change it back.
#
# **What we now know:** a warp can load, multiply and store by a known layout. A wrong layout gives no error.
#
# *A good place for a pause. What follows takes about 50 minutes to the next one.*
#
# ## Must rows be padded?
#
# `ldmatrix` reads 8 pieces at a time, one below the other. A row of 64 FP16 values is 128 bytes, once around
# all 32 banks. So all 8 pieces lie in the same 4 banks, and take 8 wavefronts instead of one. In notebook
# [[tensor_cores.ipynb]] padding made the rows longer, so that they begin in other banks.
#
# But now each lane names its own piece, wherever it is. So leave the rows as long as they are, and **shuffle
# the pieces within each row**, in each row in another way. Whoever stores a piece and whoever reads it use
# the same function. That is a **swizzle**.
#
# ### Exercise [[swizzle]] · Shuffle, and prove it
# *core · medium · 10 minutes*
#
# A row has 8 pieces, and 8 places for them. Place 0 lies in banks 0 to 3, place 7 in banks 28 to 31. Write
# `place(row, piece)`: where a row keeps a piece. Two things must hold:
#
# - Within a row, no two pieces have the same place.
# - In any 8 rows that are read together (0 to 7, 8 to 15 and so on), the same piece has 8 different places.
#
# There is more than one answer. The checker goes through every read that there is.


# %% id="ex-swizzle"
def place(row, piece):
    ### BEGIN SOLUTION
    step = row % 8
    return (piece + step) % 8
    ### STUB
    # return None
    ### END SOLUTION


check.swizzle(place)

# %% [markdown]
# Look at your swizzle: for each row, the place of each piece. Where in this table do you see the two rules?

# %%
pd.DataFrame([[place(row, piece) for piece in range(8)] for row in range(8)]).add_prefix("piece ")

# %% [markdown] tags=["thought"]
# Along a line no number comes twice. Down a column none comes twice either.

# %% [markdown]
# ## What is a shuffle worth?
#
# `mma_swizzled`, a kernel of the ladder, keeps piece p of a row at place `p ^ row % 8`. (`^` is Python's
# *xor*: it flips those bits of p that are 1 in `row % 8`.) On an H200 it was run twice: as it is, and with
# its rows padded by 8 values and no swizzle. Nothing else was changed. Neither has a bank conflict when
# fragments are loaded.

# %%
see.predict("mma_sync.padded")

# %%
change = ["rows padded by 8, not swizzled", "none"]
names = {
    "tflops": "TFLOPS",
    "async_copy_sectors": "sectors of copies",
    "l2_read_sectors": "sectors read from L2",
}
rows = records.one_change().query("stage == 'mma_swizzled' and change in @change")
rows = rows.merge(records.one_change_counted()[["stage", "change", *list(names)[1:]]])
rows = rows.set_index("change").loc[change].rename({"none": "swizzled"})
see.fold(rows[list(names)].rename(columns=names).map("{:,.0f}".format))

# %% [markdown] tags=["answer"]
# From 271 to 330 TFLOPS. We had bet on 3 %. And the copies move 1.5 times the sectors if rows are padded. Yet
# padding changes nothing in global memory, where sectors are! What does it change?

# %% [markdown]
# It changes where the copies *go*. Two neighbouring pieces are one sector of 32 bytes. Do they also go to
# the same 32 bytes of shared memory? Below, a row's 8 pieces come from 4 sectors. Write where piece `piece`
# of row `row` goes, in bytes, if rows are `row_bytes` long. Then run it for 128 bytes, and for 144, padded
# by 8 values.


# %%
def pairs(row, row_bytes):
    """How many pairs a row makes: a sector, and the 32 bytes of shared memory that it goes to."""
    found = set()
    for piece in range(8):
        sector = piece * 16 // 32
        target = 0  # in place of 0: the byte of shared memory at which this piece goes
        found.add((sector, target // 32))
    return len(found)


pd.DataFrame({bytes_: [pairs(row, bytes_) for row in range(8)] for bytes_ in (128, 144)}).T.add_prefix("row ")

# %% [markdown] tags=["thought"]
# It goes to byte `row * row_bytes + piece * 16`. With rows of 144 bytes, every second one begins in the
# middle of 32 bytes. There each sector goes to two places: 8 pairs instead of 4, so 6 per row on average.
# **That is 1.5 times as many, just as counted**, as if a sector were fetched once for each 32 bytes that it
# goes to.
#
# Is that the whole reason? No. With `(piece + row) % 8` in place of xor, copies move as many sectors as with
# padding, and it costs only 4 %. (Padded rows also read L2 1.6 times as often.)

# %% [markdown]
# **What we now know:** a swizzle saves wavefronts as padding does, and xor keeps the two pieces of a sector
# together. The wavefronts of the loads alone would not have told the two kernels apart.
#
# ## Can it all work together?
#
# Now your four ideas in one kernel. Tiles come by themselves, into a ring (notebook [[overlap.ipynb]]). Each
# piece goes to the place that a swizzle gives it. A warp reads them there, and multiplies by hand.
#
# ### Exercise [[ring_and_swizzle]] · Ring and swizzle
# *core · hard · the heart of this notebook · 30 minutes*
#
# One warp per block, and a block for each 16 × 64 of C. Tiles are 16 × 64 of A and 64 × 64 of B, as they are
# in memory: As and Bs have a slot, a row, and a column. Given are
#
# - `place(row, piece)`, an answer to [[swizzle]]. It counts pieces; the column is 8 times as much.
# - `fetch_swizzled(As, Bs, slot, A, B, t, k)`: this lane asks for its part of tile t, each piece to its
#   place. It closes the group, so you need no commit. It may be asked for a tile beyond k: zeros come.
# - `store_accumulators(C, acc)`: it takes `acc[j]` for columns 8 j to 8 j + 7 of the block's 64.
#
# Write the loop over tiles. An iteration has four parts. Find their order:
#
# - four steps of 16 along k, each with one fragment of A and four times 16 columns of B;
# - the request: in iteration t ask for tile t + SLOTS - 1, as early as its slot is free;
# - the wait for this lane's own copies of tile t. `IN_FLIGHT` groups may still be under way;
# - a barrier of the warp, since a lane reads what others have copied.
#
# m is a multiple of 16, n of 64, k of 8. First fill the gaps in this table, for SLOTS = 3:
#
# | iteration t | multiplies tile, in slot | asks for tile, into slot |
# |---|---|---|
# | 0 | 0, in 0 | 2, into 2 |
# | 1 | 1, in 1 | 3, into 0 |
# | 2 | 2, in … | …, into … |


# %% id="ex-ring_and_swizzle"
from gemm_course.checks.kits import fetch_swizzled, place, store_accumulators


def make_ring(SLOTS):
    IN_FLIGHT = SLOTS - 2

    @cuda.jit
    def ring(k, A, B, C):
        As = cuda.shared.array((SLOTS, 16, 64), float16, 128)
        Bs = cuda.shared.array((SLOTS, 64, 64), float16, 128)
        a = cuda.local.array(8, float16)
        b = cuda.local.array(8, float16)
        acc = cuda.local.array((8, 4), float32)
        lane = cuda.threadIdx.x
        for j in unroll(range(8)):
            for e in unroll(range(4)):
                acc[j, e] = 0
        for t in range(SLOTS - 1):
            fetch_swizzled(As, Bs, t, A, B, t, k)
        ### BEGIN SOLUTION
        line, half = lane % 16, lane // 16
        for t in range((k + 63) // 64):
            slot = t % SLOTS
            cp_async_wait(IN_FLIGHT)
            cuda.syncwarp()
            fetch_swizzled(As, Bs, (t + SLOTS - 1) % SLOTS, A, B, t + SLOTS - 1, k)
            for p in unroll(range(0, 64, 16)):
                ldmatrix_x4(a, As, (slot, line, place(line, p // 8 + half) * 8))
                for j in unroll(range(4)):
                    ldmatrix_x4_trans(b, Bs, (slot, p + line, place(p + line, 2 * j + half) * 8))
                    mma_m16n8k16(acc[2 * j], a, b[0:4])
                    mma_m16n8k16(acc[2 * j + 1], a, b[4:8])
        ### STUB
        # # your code: the loop over tiles
        ### END SOLUTION
        cp_async_wait(0)
        store_accumulators(C, acc)

    return ring


check.ring_and_swizzle(make_ring)

# %% [markdown]
# Count it. One warp multiplies tiles of 64 steps: k = 192 is three of them. How many wavefronts do all loads
# of fragments take? Write a forecast in place of the dots, then run the cell.

# %%
forecast = ...
A, B = np.ones((16, 192), np.float16), np.ones((192, 64), np.float16)
report = emulate(make_ring(3), 1, 32, 192, A, B, np.zeros((16, 64), np.float32))
forecast, report.total("wavefronts", space="shared", op="load")

# %% [markdown] tags=["thought"]
# A load of four matrices takes four wavefronts, one for each eight rows. A step has five loads, a tile four
# steps: 3 · 4 · 5 · 4 = 240. Without a swizzle it would be eight times as many.

# %% [markdown]
# *A good place for a pause. What follows takes about 45 minutes.*
#
# ## What else does a fast kernel need?
#
# `mma_swizzled` is `wmma` with `ldmatrix`, `mma.sync` and a swizzle, and tiles of 128 × 128 × 64. Find
# three lines of yours in it: the row and piece that a lane names, the two products, the row and column of a
# lane's results. (`A_PIECES` counts the pieces of a row, `PRODUCTS` a warp's products side by side.
# `store_pair` stores two neighbours, if they lie in C. `in_a` and `in_b` are swizzles for rows of any
# length.)

# %% tags=["listing"]
see.fold(see.source("mma_swizzled"), first="Write the exercise first, then open this.")

# %% [markdown]
# Its warps compute 64 × 64 results each. Forecast what warps of 32 × 32 change: the shared loads per
# multiply-add, the registers, the speed. Then set WM and WN to 32, and watch these three lines.

# %%
see.tiles("mma_swizzled", tells_best=False)

# %% [markdown] tags=["thought"]
# A fragment serves half as many products, so there are twice as many loads. Registers fall from 254 to 114,
# so more warps fit. Yet the speed falls from 342 to 179 TFLOPS. It goes with the loads, but more than one
# thing has changed.

# %% [markdown]
# Two stages go on from here. `mma_ring` puts a ring of three tiles around it, and makes blocks of 128 × 256.
# `mma_sync` also reads fragments a step before they are multiplied, across the barrier, as you did in
# [[reads_ahead]]: a warp has two sets of `a` and `b`.

# %%
see.tflops("mma_swizzled", "mma_ring", "mma_sync")

# %% [markdown]
# Here are the profiles of the three, without names. **Who is who?** (*Busy unit*: the wait for a unit that
# is at work for another warp.)
#
# | | X | Y | Z |
# |---|---|---|---|
# | Tensor Cores are busy | 83 % | 55 % | 72 % |
# | a warp waits for copies | 1 % | 25 % | 0 % |
# | at barriers | 2 % | 6 % | 5 % |
# | for a busy unit | 32 % | 9 % | 26 % |

# %%
see.fold(lambda: see.limits("mma_swizzled", "mma_ring", "mma_sync"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# Y is `mma_swizzled`: it waits for its copies. Z is `mma_ring`: the ring has removed that wait. X is
# `mma_sync`: with fragments read ahead the wait at barriers shrinks too. The unit for which its warps queue
# is the Tensor Core, and that is the queue one wants.

# %% [markdown] id="side-reading_mma_sync"
# *Side trip, 45 minutes: [How do you read `mma_sync`?](reading_mma_sync.ipynb)*

# %% [markdown]
# ## Busy 83 %, and yet half of 990?
#
# `mma_sync` does 490 TFLOPS in its profile, half of the 990 of the data sheet. And yet its Tensor Cores are
# busy 83 % of the time?
#
# ### Exercise [[product_clocks]] · What a product costs
# *core · medium · 10 minutes*
#
# `mma_sync` at 4096³: 33,685,504 products `mma_m16n8k16`, and 463,520 clocks in which the SMs had work. An
# H200 has 132 SMs with four Tensor Cores each, and a product keeps one of them busy for **6 clocks**. (That
# is measured. By the data sheet it would be 4.) The stage reached 63.0 % of cuBLAS in the ladder's run.
#
# (Multiply-adds of a product: 16 · 8 · 16. 4096³ needs 33,554,432 products, then. `mma_sync` multiplies the
# fragments that it read a step before. In its first step there are none, and it multiplies zeros: that makes
# the other 131,072.)
#
# 1. `clocks`: how many clocks must each Tensor Core work, at least?
# 2. `pauses`: for how many of the 463,520 clocks does each do nothing?
# 3. `at_most`: with Tensor Cores that never pause, and all else as it is, how many percent of cuBLAS would
#    it be?

# %% id="ex-product_clocks"
### BEGIN SOLUTION
clocks = 33_685_504 / (132 * 4) * 6
pauses = 463_520 - clocks
at_most = 63.0 * 463_520 / clocks
answer = (clocks, pauses, at_most)
### STUB
# answer = (None, None, None)  # clocks, pauses, at_most
### END SOLUTION

check.product_clocks(answer)

# %% [markdown]
# Now the half. Four things make it: 4 / 6 by the instruction, 83 % of the clocks busy, SMs with work for 96 %
# of the launch, and 1.73 GHz where the data sheet counts with 1.83. Multiply the four here.

# %%
share = ...
share

# %% [markdown]
# **What we now know:** two things are between `mma_sync` and cuBLAS. One is the instruction. cuBLAS must be
# using another one, and notebook [[hopper.ipynb]] has it. The other is the 17 % of the clocks in which Tensor
# Cores pause.
#
# ## Surgery: which part of the loop costs?
#
# Why do they pause? Before `mma_sync` had its present form, we had predicted 68 % of cuBLAS, with shared
# memory as the limit. It reached 58 %. So we operated: leave out one part of the loop, and measure. The
# results are garbage then; the time is not.
#
# | left out of the loop | µs |
# |---|---|
# | nothing | 313.1 |
# | X | 311.7 |
# | Y | 309.3 |
# | Z | 270.8 |
#
# X, Y and Z are the **copies** of the next tiles, the **loads** of fragments, and the **wait** for copies
# with the barrier. (4096³ on an H200, from `gemm_course/kernels/NOTES.md`.)

# %%
see.predict("mma_sync.surgery")

# %% [markdown]
# Copies run by themselves, and a warp waits for them 1 % of its time. How can they cost the most? Two more
# operations, on the kernel as it is now. It took 279 µs that day:
#
# | | µs |
# |---|---|
# | copies that are asked for, but fetch no byte, only zeros | 276 |
# | no copies at all | 250 |
#
# How much of the time goes to bytes from L2, and how much to the rest of a copy? Compute both, and then say
# in a sentence what you conclude.

# %%
from_l2, the_rest = ..., ...
from_l2, the_rest

# %% [markdown] tags=["thought"]
# 3 µs and 26 µs: **it is not the bytes from L2.** But zeros are still written to shared memory. So it may
# be the writing, or the asking: a copy is an instruction of every warp, 12 in the loop beside 128 products,
# with instructions for its addresses.
#
# One more trial points at the asking. In notebook [[hopper.ipynb]] one thread asks for whole tiles. The same
# bytes are written to shared memory, and it takes 258 to 268 µs. (More than one thing is different there, so
# this is a hint and no proof.)

# %% [markdown]
# **What we now know:** a part can cost time although nobody waits for it. Profiles show waits; leaving a part
# out shows what it costs.
#
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a warp that reads swizzled tiles out of a ring, multiplies them by a layout that I know, and
#   stores its results from registers.
# - **It reached**, with larger tiles, and fragments read ahead, 486 TFLOPS on an H200: from 39 % of cuBLAS
#   to 63 %.
# - **What stops it now** is the Tensor Core, which takes 6 clocks for a product of one warp. And it pauses in
#   17 % of the clocks; copies are most of the reason.
#
# What can you do once you know the layout, then? Shuffle rows instead of making them longer, and handle
# fragments as you do other operands: load them ahead, and store results where they are.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("mma_sync")
