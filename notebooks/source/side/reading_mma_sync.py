# %% [markdown]
# # [[reading_mma_sync.ipynb]] · How do you read mma_sync?
#
# A side trip from [notebook [[mma_sync.ipynb]]](mma_sync.ipynb#cell-id=side-reading_mma_sync), and back.
#
# `mma_sync` is your [[ring_and_swizzle]] for a block of eight warps, with three things added: a swizzle for
# short rows, a second set of fragments, and another way for the results to C. You meet each alone. Then you
# read the whole kernel.
#
# *Time: about 25 minutes to read, 20 for the exercises. Needs what notebook
# [[mma_sync.ipynb]] tells before it leads here.*

# %%
import numpy as np
from numba import cuda, float32
from numba.types import float16

from gemm_course import check, launch, records
from gemm_course import widgets as see
from gemm_course.checks.kits import fetch_swizzled, place, store_accumulators
from lockstep.intrinsics import cp_async_wait, ldmatrix_x4, ldmatrix_x4_trans, mma_m16n8k16, unroll

# %% [markdown]
# ## Do short rows need another swizzle?
#
# In [[swizzle]] a row had 8 pieces, and filled the 32 banks once. `mma_sync` can also have tiles of 32 steps
# along k: then a row of A's tile has only 4 pieces.
#
# Set *place of a piece* to `piece ^ row % pieces`. Then go down with *pieces per row*: 16, 8, 4, 2. At which
# lengths does this swizzle fail? There, look at rows that share their banks: how many rows apart are they?

# %%
see.swizzle()

# %% [markdown] tags=["thought"]
# With 4 and with 2 pieces it takes 2 wavefronts. The rows that meet are four apart, both times. In a short
# row there are few places, so the formula soon repeats. And it wastes them on rows that cannot meet: two rows
# of 4 pieces lie side by side in the banks.

# %% [markdown]
# ### Exercise [[swizzle_any]] · Rows of any length
# *stretch · medium · 10 minutes*
#
# Write a swizzle for rows of 2, 4, 8, 16 and 32 pieces. The two rules of [[swizzle]] hold: within a row no
# two pieces have the same place, and in 8 rows that are read together (0 to 7, 8 to 15 and so on) a piece
# lies in 8 different groups of 4 banks. Places go from 0 to `pieces - 1`.


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
# **What we now know:** rows that lie side by side in the banks may be shuffled alike. Rows that begin in the
# same bank may not.
#
# ## What if a warp had two sets of fragments?
#
# A tile has four steps of 16 along k. Your ring loads the fragments of a step, waits for them, and
# multiplies them. With two sets of `a` and `b` a warp can load one set while the Tensor Core multiplies the
# other. That is [[reads_ahead]] once more. Fill the dots:
#
# | step of a tile | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | loads | 0, into set 0 | 1, into set 1 | …, into set … | …, into set … |
# | multiplies | … | 0, of set 0 | …, of set … | …, of set … |

# %% [markdown] tags=["thought"]
# Step 2 goes into set 0, and step 3 into set 1. Step 2 multiplies 1, of set 1, and step 3 multiplies 2, of
# set 0. Step 0 multiplies step 3 **of the tile before**, of set 1. So the last products of a tile come after
# the barrier, beside the first loads of the next tile.

# %% [markdown]
# Now write it. Below is a right [[ring_and_swizzle]], except that the loads already go into two sets, and
# nothing is multiplied. `multiply(acc, a, b)` does the eight products of one set. Call it twice: for the
# set that the step *before* has loaded, and for what is left when the loop is over. Set s is `a[s]` and
# `b[s]`. (In the first step of all nothing was loaded before, so set 1 begins with zeros.) The next cell
# shows which share of C is right.


# %%
@cuda.jit
def multiply(acc, a, b):
    for j in unroll(range(4)):
        mma_m16n8k16(acc[2 * j], a, b[j, 0:4])
        mma_m16n8k16(acc[2 * j + 1], a, b[j, 4:8])


def make_ahead(SLOTS):
    IN_FLIGHT = SLOTS - 2

    @cuda.jit
    def ahead(k, A, B, C):
        As = cuda.shared.array((SLOTS, 16, 64), float16, 128)
        Bs = cuda.shared.array((SLOTS, 64, 64), float16, 128)
        a = cuda.local.array((2, 8), float16)
        b = cuda.local.array((2, 4, 8), float16)
        acc = cuda.local.array((8, 4), float32)
        line, half = cuda.threadIdx.x % 16, cuda.threadIdx.x // 16
        for j in unroll(range(8)):
            a[1, j] = 0
            for e in unroll(range(4)):
                acc[j, e] = 0
                b[1, e, j] = 0
        for t in range(SLOTS - 1):
            fetch_swizzled(As, Bs, t, A, B, t, k)
        for t in range((k + 63) // 64):
            slot = t % SLOTS
            cp_async_wait(IN_FLIGHT)
            cuda.syncwarp()
            fetch_swizzled(As, Bs, (t + SLOTS - 1) % SLOTS, A, B, t + SLOTS - 1, k)
            for p in unroll(range(4)):
                now, before = p % 2, (p + 1) % 2
                ldmatrix_x4(a[now], As, (slot, line, place(line, 2 * p + half) * 8))
                for j in unroll(range(4)):
                    row = 16 * p + line
                    ldmatrix_x4_trans(b[now, j], Bs, (slot, row, place(row, 2 * j + half) * 8))
                # your code: one call
        # your code: one call
        cp_async_wait(0)
        store_accumulators(C, acc)

    return ahead


# %%
rng = np.random.default_rng(10)
A, B = rng.random((16, 192)).astype(np.float16), rng.random((192, 64)).astype(np.float16)
C = launch(make_ahead(3)[1, 32], 192, A, B, np.zeros((16, 64), np.float32)).arrays["C"]
f"{np.isclose(C, A.astype(float) @ B, rtol=1e-3).mean():.0%} of C is right"

# %% [markdown] tags=["thought"]
# In the loop, behind the loads: `multiply(acc, a[before], b[before])`. Behind the loop: `multiply(acc,
# a[1], b[1])`, since step 3 was the last one loaded. With `now` in place of `before`, and no second call, C
# is right as well. But then each product waits for the loads just before it.

# %% [markdown]
# `mma_ring` has one set, `mma_sync` two. Within a tile the compiler already moves `mma_ring`'s loads ahead
# of products, as far as registers are free. But it moves none across a barrier.

# %%
see.predict("reading_mma_sync.ahead")

# %% [markdown]
# ### Exercise [[fragment_registers]] · What do two sets cost?
# *core · easy · 10 minutes*
#
# Registers. A register has 32 bits, so two FP16 values. How many does a lane need for the accumulators of
# WM × WN results of its warp (float32), and for `sets` sets of fragments, A's and B's, of one step of 16
# along k? All come out even.


# %% id="ex-fragment_registers"
def fragment_registers(WM, WN, sets):
    ### BEGIN SOLUTION
    return WM * WN // 32 + sets * (WM + WN) // 4
    ### STUB
    # return None
    ### END SOLUTION


check.fragment_registers(fragment_registers)

# %% [markdown]
# **A mystery.** Two choices of tiles, four speeds in TFLOPS on an H200. A warp has 64 × 64 results each
# time. With blocks 256 wide the second set makes the kernel faster. With blocks 64 wide it makes it **more
# than four times slower**. What would you look
# up? The names of what was measured stand first. Put one in place of `tflops`.

# %%
tiles = [f"BM=128 BN={BN} BK=64 WM=64 WN=64 SLOTS=3 GROUP=8" for BN in (256, 64)]
measured = records.sweep().query("stage in ('mma_ring', 'mma_sync') and tiles in @tiles")
", ".join(measured)

# %%
measured.pivot(index="tiles", columns="stage", values="tflops").round().loc[tiles]

# %% [markdown] tags=["thought"]
# `local_bytes`: 336 bytes per thread are [spilled](glossary.md#spilling). You counted 192 registers of at
# most 255, and the rest is for addresses. A narrow block has two warps instead of eight, so a thread copies
# 24 pieces of a tile instead of 12. `mma_ring` takes all 255 registers there already.

# %% [markdown]
# **What we now know:** a second set lets products go on across the barrier, and costs 32 registers here.
# They must be free.
#
# ## Which way do the results go?
#
# In [[by_hand]] each lane stored its results straight into C. `mma_swizzled` does so too, two neighbours at a
# time. But its C is FP16, so these are 4 bytes. Remember how accumulators are dealt: four lanes share eight
# results of a row. How many sectors does such a store of a warp touch? And how many bytes of each does it
# fill?

# %%
sectors, filled = ..., ...
sectors, filled

# %% [markdown] tags=["thought"]
# Eight rows, and in each four lanes with 4 bytes: 8 sectors, and 16 of the 32 bytes of each. So `mma_sync`
# goes the way of `wmma`, through shared memory, but by choice. There a warp puts 16 rows of its results
# together, and then each lane stores 16 bytes. In an early form of the kernel that alone cut 312 µs to 302.

# %% [markdown]
# **What we now know:** whole sectors are worth a way through shared memory.
#
# ## Can you read it now?
#
# These names are new:
#
# | | |
# |---|---|
# | `own_pieces`, `fetch_first`, `fetch` | a thread's pieces; copies of the first tile; of a step |
# | `a_at`, `b_at` | four offsets each: where this lane's swizzled row lies |
# | `A_REPEAT`, `A_SPAN` | `8 // pieces` and `pieces`, as in [[swizzle_any]] |
# | `carve(tiles, start, shape)`, `rest(As, start)` | a part of shared memory as an array; `As[start:]` |
# | `kept(x)` | `x`, which the compiler may not compute anew |
# | `whole`, `ahead` | where whole tiles end along k; where the next tile to fetch begins |
# | `grouped`, `clear`, `multiply`, `finish` | the block's place in C; zeros; a set's products; stores |
#
# The tiles have one dimension here, so `ldmatrix` takes one number instead of (row, column). Find four
# places in the listing:
#
# 1. the two lines that say which set is loaded and which is multiplied;
# 2. the products that are left when the loop is over;
# 3. the line after which the slot just read may be filled, and the one that says so;
# 4. the zeros of set 1.

# %% tags=["listing"]
see.fold(see.source("mma_sync"), first="Write the exercises first, then open this.")

# %% [markdown] tags=["thought"]
# 1. `now, before = p % 2, (p + 1) % 2`, and `multiply(acc, a[before], b[before])`.
# 2. `multiply(acc, a[(STEPS - 1) % 2], ...)`, behind the loop: set 1, since `STEPS` is 4.
# 3. `cuda.syncthreads()` at the end of the loop, and then `free, slot = slot, ...`.
# 4. `clear(acc, a[1], b[1])`.

# %% [markdown]
# Why all those helpers? At first the loop had 138 instructions that are neither product nor load nor copy,
# and now 66. They brought it from 58 to 64 % of cuBLAS: what a copy needs beside itself had been much of what
# copies cost.
#
# ## The way back
#
# A kernel of sixty lines is your ring, with two sets, short rows and another way out. [Back to notebook
# [[mma_sync.ipynb]]](mma_sync.ipynb#cell-id=side-reading_mma_sync).
