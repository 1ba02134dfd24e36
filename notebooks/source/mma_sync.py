# %% [markdown]
# # [[mma_sync.ipynb]] · Fragments in the open: mma.sync
#
# WMMA kept one thing secret: which lane holds which element. In this notebook the secret is out, and the
# kernel goes from 39 % of cuBLAS to 63 %. What you store by hand in [[by_hand]] is only half of the story:
# the fastest kernel here knows the secret, and stores its results another way all the same.
#
# **After this notebook you can** say which lane holds an element of a fragment, load and multiply
# fragments with `ldmatrix` and `mma.sync`, and store results from registers. You can write a swizzle and
# prove it conflict-free. And you can say what a loop that multiplies on Tensor Cores still waits for.
#
# *Time: about 60 minutes to read, 90 for the exercises. Beyond the documents: the stages `mma_swizzled`,
# `mma_ring` and `mma_sync`.*

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
# ## In one picture
#
# `mma.sync` multiplies 16 × 16 by 16 × 8 and adds to 16 × 8. A number in a cell is the lane that holds
# it. **Find the two lanes that hold the corners of A's first row.** Then switch to B: which way are its
# lanes dealt?

# %%
see.fragment("mma")

# %% [markdown] tags=["thought"]
# Lanes 0 and 3: four lanes share a row of A, and each comes back 8 columns further on. B is dealt by
# columns: four lanes share a column, and each holds pairs that lie one below the other.

# %% [markdown]
# In notebook [[tensor_cores.ipynb]] you were told to forget such a picture. This one you may keep. It
# stands in NVIDIA's [PTX
# ISA](https://docs.nvidia.com/cuda/parallel-thread-execution/#warp-level-matrix-fragment-mma-16816-float),
# the manual of the instructions that a compiler writes, and holds on every GPU that has this instruction.
#
# | call of the whole warp | does | a lane's share |
# |---|---|---|
# | `mma_m16n8k16(acc, a, b)` | `acc += a · b` | `a`: 8 FP16 values, `b`: 4, `acc`: 4 float32 |
#
# The name gives the sizes: m 16, n 8, k 16. WMMA was made of it all along: the compiler wrote two for
# each `wmma_mma`.
#
# The accumulators are 16 × 8, dealt **by rows** like A: row 0 belongs to lanes 0, 0, 1, 1, 2, 2, 3, 3,
# row 1 begins with lane 4. Eight rows further down the same lanes come again. A lane counts its four:
# places 0 and 1 are neighbours in the upper row, 2 and 3 lie below them.
#
# ### Exercise [[accumulator_owner]] · The owner map
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
# ## Loading: you name a row, others get it
#
# Each lane could fetch its own pairs: four loads of 32 bits for A. `ldmatrix` does it in one instruction,
# with a trick: **the lane that names an address is not the lane that gets the data.**
#
# `ldmatrix_x4(a, As, (row, column))` loads four matrices of 8 × 8 FP16 values. Lanes 0 to 7 name the rows
# of the first, lanes 8 to 15 those of the second, and so on. A lane names where 8 values begin, 16 bytes:
# a **piece**. The hardware then deals each matrix as `mma.sync` wants it: its row 0 goes to lanes 0 to 3,
# two values each.
#
# Below, lane `i` names row `i` of a tile in which every value is its row's number. Four lanes get values
# of the same row, so they share a column of the table; each line is one of the four matrices.


# %%
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

# %%
see.predict("mma_sync.named")

# %%
rows = np.arange(32)
rows[5] = 31
see.fold(loaded(rows))

# %% [markdown] tags=["answer"]
# Lane 5 itself got what it always gets. Lanes 20 to 23, `a[0:2]`, suffer: theirs is row 5 of the first
# matrix. Who gets a wrong operand need not look at his own address.

# %% [markdown]
# A 16 × 16 tile is four matrices, and their order goes **down first**:
#
# | | columns 0 to 7 | columns 8 to 15 |
# |---|---|---|
# | rows 0 to 7 | first: `a[0:2]`, `b[0:2]` | third: `a[4:6]`, `b[4:6]` |
# | rows 8 to 15 | second: `a[2:4]`, `b[2:4]` | fourth: `a[6:8]`, `b[6:8]` |
#
# So `b[0:4]` are columns 0 to 7 of B, `b[4:8]` columns 8 to 15: one load, two products. But B's tile has
# rows, and a lane wants pairs down a column. `ldmatrix_x4_trans` transposes each matrix on the way. Of a
# matrix, as (row, column) in the tile, get
#
# | | lane 0 | lane 1 | lane 4 |
# |---|---|---|---|
# | by `ldmatrix_x4` | (0, 0), (0, 1) | (0, 2), (0, 3) | (1, 0), (1, 1) |
# | by `ldmatrix_x4_trans` | (0, 0), (1, 0) | (2, 0), (3, 0) | (0, 1), (1, 1) |
#
# ### Exercise [[by_hand]] · A warp's product, by hand
# *core · medium · the heart of this notebook · 20 minutes*
#
# [[warp_product]] without WMMA: one warp per block, a block for each 16 × 16 tile of C (float32). All sizes
# are multiples of 16. The tiles are fetched for you, as they are. Write the loads, two products, and the
# stores: **each lane stores its eight results into C itself**. There is no Cs.
#
# Three questions lead there. Which row and column does a lane name? Which half of `b` goes with which
# `acc[j]`? And to which row and column does `acc[j, e]` belong: that is [[accumulator_owner]], the other way
# round.


# %% id="ex-by_hand"
@cuda.jit
def by_hand(k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 16)
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
# Try it: swap `ldmatrix_x4_trans` for `ldmatrix_x4` and run the cell again. A kernel that is wrong by a
# layout runs without any error, and its numbers look like numbers. That is the price of the open secret.
#
# ## Swizzling: padding without the padding
#
# `ldmatrix` reads 8 pieces at a time, one below the other. Rows of 64 FP16 values are 128 bytes, once
# around all banks: without padding all 8 pieces lie in the same 4 banks, and take 8 wavefronts. In
# [[tensor_cores.ipynb]] the remedy was to make rows longer.
#
# But a lane may name any 16 bytes that begin at a multiple of 16. So there is another remedy: leave the
# rows as they are, and **shuffle the pieces within each row**, in each row in another way. Whoever stores
# a piece and whoever reads it use the same function. That is a **swizzle**.
#
# ### Exercise [[swizzle]] · Shuffle, and prove it
# *core · medium · 10 minutes*
#
# Rows of 8 pieces: place 0 lies in banks 0 to 3, place 7 in banks 28 to 31. (A place is 16 bytes of a row
# now, no longer an index of `acc`.) Write `place(row, piece)`: where a row keeps a piece. Two things must
# hold. Within a row, no two pieces get the same place. And in any 8 rows that are read together, 0 to 7,
# 8 to 15 and so on, the same piece lies in 8 different places. There is more than one answer. The checker
# goes through every read that there is.


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
# ## Your ring round it
#
# Now all in one kernel: tiles come by themselves, into a ring (notebook [[overlap.ipynb]]), each piece to
# the place that a swizzle gives it, and a warp multiplies them by hand.
#
# ### Exercise [[ring_and_swizzle]] · Ring and swizzle
# *core · hard · 20 minutes*
#
# One warp per block, and a block for each 16 × 64 of C. Tiles are 16 × 64 of A and 64 × 64 of B, as they
# are in memory. Given are
#
# - `place(row, piece)`, an answer to [[swizzle]];
# - `fetch_swizzled(As, Bs, slot, A, B, t, k)`, which asks for tile t, each piece to its place, and commits;
# - `store_accumulators(C, acc)`.
#
# Write the loop: the wait, the copies of the tile that comes SLOTS - 1 later, and the four steps of 16,
# each with one fragment of A and four times 16 columns of B. m is a multiple of 16, n of 64, k of 8.


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
# ## The kernel
#
# `mma_swizzled` is `wmma` with your three ideas: `ldmatrix`, `mma.sync`, a swizzle. `in_a` and `in_b`
# swizzle rows of any length, as in [[swizzle_any]], and give a column: the place times 8. The tiles are the
# same: 128 × 128 × 64, warps of 64 × 64.
#
# Find three lines of yours in it: the row and the piece that a lane names, the two products, and the row
# and column of a lane's results. `A_PIECES` counts the pieces of a row, `PRODUCTS` is 2 · `COLUMNS`, and
# `store_pair` stores two neighbours with their bounds check.

# %% tags=["listing"]
see.fold(see.source("mma_swizzled"), first="Write the exercise first, then open this.")

# %% [markdown]
# ### What we bet, and lost
#
# As many products, as many loads of fragments, no conflicts in either. So before it ran we wrote down:
# *as fast as `wmma`*. Then it ran.

# %%
see.tflops("wmma", "mma_swizzled")

# %% [markdown]
# (Within a run, figures are good to a per cent or two. Between runs all of them move, below by 3 %: so a
# kernel has several. A share of cuBLAS compares two speeds of one run, and 39 % is not 301 / 759.)

# %%
see.predict("mma_sync.swizzled")

# %%
names = {
    "matrix_load_wavefronts": "wavefronts of loads of fragments",
    "mma_instructions": "products on Tensor Cores",
    "async_copy_sectors": "sectors of copies",
    "l2_read_sectors": "sectors read from L2",
    "global_store_sectors": "sectors of stores to C",
    "warp_instructions": "all instructions",
}
counted = pd.DataFrame({stage: recorded(stage).measured for stage in ("wmma", "mma_swizzled")})
see.fold(counted.loc[list(names)].rename(names).map("{:,.0f}".format))

# %% [markdown] tags=["answer"]
# Loads are the same to the last wavefront. But the copies move **1.5 times the sectors** in `wmma`, and
# L2 is asked for more. Sectors are global memory's, and padding moves nothing there! It moves the
# *target*: padded rows are 144 bytes apart, so every second one begins in the middle of 32 bytes of
# shared memory. Two pieces of one sector then go to different 32 bytes. If each fetches the sector for
# itself, such a row takes 8 sectors instead of 4: on average 1.5 times as many, just what is counted.
#
# How sure is that? Between these two kernels 9 % of the instructions are gone as well. So change the rows
# alone, in `mma_swizzled`: `(piece + row) % 8` in the place of xor, and padding by 8. No conflicts in any.

# %%
change = ["none", "pieces moved on, not xored", "rows padded by 8, not swizzled"]
rows = records.one_change().merge(records.one_change_counted()[["stage", "change", *list(names)[2:4]]])
rows = rows.query("change in @change").set_index(["stage", "change"])
see.fold(rows[["tflops", *list(names)[2:4]]].rename(columns=names).map("{:,.0f}".format))

# %% [markdown] tags=["answer"]
# For the padded rows we had bet on 3 % less. It is **18 % less**, and less than `wmma`. So it is the rows.
#
# And the sum? A sector is a pair of pieces, such as 0 and 1. Xor moves a pair as a whole, or swaps its two.
# In odd rows the sum moves all by *one* piece: the pair lies across two times 32 bytes, 1.5 times the sectors
# again. So we bet on as slow as padding, and lost once more: **4 %**. L2 is asked hardly more often there, in
# padded rows 1.6 times as often. That goes together, but is not yet a cause. And why the padded form falls
# behind even `wmma`, nobody has profiled.

# %% [markdown]
# ## What limits it now?
#
# Three profiles without labels: `mma_swizzled`, `mma_ring`, `mma_sync`. **Who is who?** *Fixed delay* is
# the wait for the result of an instruction just before; *busy unit* is the wait for a unit that is at
# work for another warp.
#
# | | X | Y | Z |
# |---|---|---|---|
# | Tensor Cores are busy | 83 % | 55 % | 72 % |
# | a warp waits for copies | 1 % | 25 % | 0 % |
# | at barriers | 2 % | 6 % | 5 % |
# | for a busy unit | 32 % | 9 % | 26 % |
# | fixed delay | 33 % | 32 % | 32 % |

# %%
see.fold(lambda: see.limits("mma_swizzled", "mma_ring", "mma_sync"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# Y is `mma_swizzled`: it waits for its copies. Z is `mma_ring`: the ring has removed that wait. X is
# `mma_sync`: with fragments ahead the wait at barriers shrinks, too, and the unit for which warps queue
# is the Tensor Core. That is the queue one wants: **the Tensor Cores limit it**, at 83 %. Fixed delays
# are a third of each warp's time in all three: they do not tell them apart.

# %% [markdown]
# 490 TFLOPS are half of the 990 that the data sheet promises. And yet the Tensor Cores are 83 % busy?
#
# ### Exercise [[product_clocks]] · What 63 % is bound by
# *core · medium · 10 minutes*
#
# `mma_sync` at 4096³: 33,685,504 products `mma_m16n8k16`, and 463,520 clocks in which the SMs had work.
# An H200 has 132 SMs with four Tensor Cores each, and a product keeps one of them busy for **6 clocks**.
# (That is measured. By the data sheet it would be 4: 2,048 multiply-adds, 512 per clock. Why it is 6 no
# counter says.) The stage reached 63.0 % of cuBLAS. (33,554,432 products would do: the rest multiply the
# set that is still empty at the first step.)
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
# And the half of 990? 4 / 6 by the instruction, 83 % of the clocks busy, SMs with work for 96 % of the
# launch, and 1.73 GHz where the data sheet has 1.83. Multiply the four: 0.50.
#
# Two things are between `mma_sync` and cuBLAS. One is the instruction itself: cuBLAS must be using another
# one, and notebook [[hopper.ipynb]] has it. The other is the 17 % of the clocks in which Tensor Cores pause.
#
# ## Surgery
#
# What makes them pause? Our prediction for the first form of this kernel was 68 % of cuBLAS, with shared
# memory as the limit. It reached 58 %: **share and reason were wrong.** So we operated: leave out one
# part of the loop, and measure. The results are garbage then; the time is not.
#
# | left out of the loop | µs |
# |---|---|
# | nothing | 313.1 |
# | X | 311.7 |
# | Y | 309.3 |
# | Z | 270.8 |
#
# X, Y and Z are the **copies** of the next tiles, the **loads** of fragments, and the **wait** for copies
# with the barrier. (From `gemm_course/kernels/NOTES.md`, the notes on these kernels, 4096³ on an H200.)

# %%
see.predict("mma_sync.surgery")

# %% [markdown] tags=["answer"]
# Copies run by themselves, notebook [[overlap.ipynb]] said; nobody waits for them here, the profile says 1 %.
# And yet they are what costs. How can that be?
#
# Two more operations, later, on the kernel as it is now. It took 279 µs that day:
#
# | | µs |
# |---|---|
# | copies that are asked for, but fetch no byte, only zeros | 276 |
# | no copies at all | 250 |
#
# **What do you conclude?**

# %% [markdown] tags=["thought"]
# It is not the bytes from L2. Zeros are still written to shared memory, so this trial says nothing about
# the writing. `mma_tma` does: there one thread asks, the same bytes land, and it takes 258 µs. So most of
# the cost is the **asking**. A copy is an instruction of every warp: 12 in the loop, with instructions for
# their addresses beside 128 products. An SM has room for 8 such warps, two per
# scheduler. While one issues something else, only one more can keep the Tensor Core fed. By the notes,
# one copy of a warp costs 7.6 clocks of a Tensor Core, a quarter of it for the address.
#
# What exactly the copy waits for on its way, no counter shows. That it shares a queue with `ldmatrix` is
# likely, not proven.

# %% [markdown] id="side-reading_mma_sync"
# *Side trip, 20 minutes: [How do you read mma_sync?](reading_mma_sync.ipynb)*

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("mma_sync")

# %% [markdown]
# ## Recap
#
# You
#
# - mapped an element to its lane, by a layout that NVIDIA promises;
# - named rows for `ldmatrix`, and saw that others get what a lane names;
# - multiplied with `mma.sync` and stored results where they were, in registers;
# - shuffled pieces so that no read has a conflict, and had it proven for each;
# - paid for a second set of fragments in registers, and saw one choice of tiles spill;
# - found that copies cost by being asked for, not by their bytes.
#
# From `wmma` to here: 301, 340, 433, 486 TFLOPS. Four of our bets on the way were lost. What helped was to
# change one thing and measure again.
#
# **Next:** [notebook [[hopper.ipynb]]](hopper.ipynb), Hopper: a thread that asks for whole tiles, and
# products that read shared memory by themselves.
#
# <details><summary>For the curious</summary>
#
# - **Is it always 64 %?** On several H200s on one day it was 62.8 to 65.6 %. In runs of seconds the GPU
#   gets hot, its clock falls, and this kernel loses more by it than cuBLAS: 58.5 %.
# - **Do others swizzle like this?** CUTLASS describes such layouts as `Swizzle<3, 3, 3>`: three bits of the
#   row are xored into three bits of the place ([CuTe's
#   source](https://github.com/NVIDIA/cutlass/blob/main/include/cute/swizzle.hpp)).
# - **Why not more warps?** Because of registers: 16 warps of 64 × 32 reached 48 % of cuBLAS.
#
# </details>
