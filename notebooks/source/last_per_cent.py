# %% [markdown]
# # [[last_per_cent.ipynb]] · The last per cent: scheduling
#
# Notebook [[hopper.ipynb]]'s kernel keeps the Tensor Cores busy within a tile. What is left to win lies
# between tiles, and after the last one.
#
# **After this notebook you can** say how much of a GPU a shape leaves idle, write blocks that stay, and hide
# a store behind products. You can share one tile among many blocks, without any of them waiting. And you can
# say how far a kernel is from what the hardware can do, and how far to trust the figure beside it.
#
# *Time: about 75 minutes to read, 70 for the exercises. Comes from no document: these are the ladder's last
# stages.*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32, int32

from gemm_course import check, own, records
from gemm_course import widgets as see
from lockstep.intrinsics import mbarrier_wait

# %% [markdown]
# ## In one picture
#
# The 132 multiprocessors (SMs) of an H200 from top to bottom, time from left to right. Each computes tiles of
# C, 128 × 256 at the start. Go through the four schedules once, for 4096³. They are the four stations of this
# notebook.

# %%
see.tiles_over_time()

# %% [markdown]
# The picture is a model: a few measured clocks, and arithmetic. It will be right to a per cent in one place
# and quite wrong in another.
#
# ## Waves
#
# A block of these kernels takes nearly all shared memory of an SM, so each SM runs one. 132 tiles are under
# way at a time: a [**wave**](glossary.md#wave). A last wave with few tiles takes as long as a full one.
#
# ### Exercise [[last_wave]] · The last wave
# *core · easy · 5 minutes*
#
# C is m × n, tiles are BM × BN, and a wave has 132 of them. How many tiles are there, how many waves, and how
# many tiles are in the last wave? A full last wave has 132.


# %% id="ex-last_wave"
def last_wave(m, n, BM, BN):
    ### BEGIN SOLUTION
    tiles = -(-m // BM) * -(-n // BN)
    waves = -(-tiles // 132)
    return tiles, waves, tiles - (waves - 1) * 132
    ### STUB
    # return None, None, None  # tiles, waves, tiles in the last wave
    ### END SOLUTION


check.last_wave(last_wave)

# %% [markdown]
# ### A hunt
#
# Back to the picture, with BN = 256 and a block per tile. Of the sizes from 3072 on, **which leaves the
# largest part of its places empty?** A *place* is an SM in a wave. Then set BN = 192: what does it change
# there?

# %% [markdown] tags=["thought"]
# 3072: 288 tiles are two waves and 24 tiles, so 27 % of the places are empty. With BN = 192 there are 384
# tiles, three waves nearly full, and each wave is shorter: the measured gain is from 0.785 to 0.989 of
# cuBLAS. You will compute such choices yourself in [[best_width]].

# %% [markdown]
# ## Blocks that stay
#
# `warp_specialised` launches a block per tile. A [**persistent**](glossary.md#persistent-kernel) block stays:
# there is one per SM, and block b computes tiles b, b + 132, b + 264 and so on.

# %%
see.predict("last_per_cent.persistent")

# %% [markdown] tags=["answer"]
# The number of waves stays. What goes away is a beginning per tile: barriers are set up once, and the
# [producer](glossary.md#producer-and-consumer) fetches for the next tile while the consumers still store this
# one.

# %% [markdown]
# ### Exercise [[ring_goes_on]] · The ring goes on
# *core · hard · the heart of this section · 15 minutes*
#
# Below are the two roles of notebook [[hopper.ipynb]], each for **one** tile of 64 × 64. What they call is
# given: `order` announces the bytes of a step's two boxes and has [TMA](glossary.md#tma) bring them,
# `multiply` adds the products of a slot, `give_back` arrives at `empty`, `clear` and `store` begin and end
# a tile.
#
# There are fewer blocks than tiles now. Write the loop over tiles, in both roles: tile t is in row `t //
# tile_cols` and column `t % tile_cols` of tiles, and a block takes every `cuda.gridDim.x`-th. **The ring goes
# on from tile to tile.** `steps`, the number of steps per tile, is any number. So ask of each line whether it
# belongs to a tile or to the block.

# %%
from gemm_course.checks.kits import clear, give_back, multiply, order, store


# %% id="ex-ring_goes_on"
@cuda.jit(device=True)
def produce(full, empty, As, Bs, A, B, tiles, tile_cols, steps, slots):
    slot, parity = 0, 0
    tile = cuda.blockIdx.x
    ### BEGIN SOLUTION
    while tile < tiles:
        for step in range(steps):
            mbarrier_wait(empty, slot, parity ^ 1)
            order(full, slot, As, Bs, A, B, tile // tile_cols, tile % tile_cols, step)
            slot += 1
            if slot == slots:
                slot, parity = 0, parity ^ 1
        tile += cuda.gridDim.x
    ### STUB
    # for step in range(steps):
    #     mbarrier_wait(empty, slot, parity ^ 1)
    #     order(full, slot, As, Bs, A, B, tile // tile_cols, tile % tile_cols, step)
    #     slot += 1
    #     if slot == slots:
    #         slot, parity = 0, parity ^ 1
    ### END SOLUTION


@cuda.jit(device=True)
def consume(full, empty, As, Bs, C, acc, tiles, tile_cols, steps, slots):
    slot, parity = 0, 0
    tile = cuda.blockIdx.x
    ### BEGIN SOLUTION
    while tile < tiles:
        clear(acc)
        for _ in range(steps):
            mbarrier_wait(full, slot, parity)
            multiply(acc, slot, As, Bs)
            give_back(empty, slot)
            slot += 1
            if slot == slots:
                slot, parity = 0, parity ^ 1
        store(C, acc, tile // tile_cols, tile % tile_cols)
        tile += cuda.gridDim.x
    ### STUB
    # clear(acc)
    # for _ in range(steps):
    #     mbarrier_wait(full, slot, parity)
    #     multiply(acc, slot, As, Bs)
    #     give_back(empty, slot)
    #     slot += 1
    #     if slot == slots:
    #         slot, parity = 0, parity ^ 1
    # store(C, acc, tile // tile_cols, tile % tile_cols)
    ### END SOLUTION


check.ring_goes_on(produce, consume)

# %% [markdown]
# Here is the stage. `grouped` is where the tile lies, in groups that share operands in the L2 cache (notebook
# [[overlap.ipynb]]). Note where `slot` and `parity` are set, and where they are not:

# %% tags=["listing"]
see.fold(see.diff("warp_specialised", "persistent"), first="Write the exercise first, then open this.")

# %% [markdown]
# **The [ring](glossary.md#ring) never starts again.** A tile takes 6 steps, the ring has 4 slots. In which
# slot is the second tile's first step, and what is its parity, if that of the first time through the ring is
# 0? What goes wrong if each tile begins in slot 0 with parity 0?

# %% [markdown] tags=["thought"]
# Slot 2, parity 1: step 6 of all is the third of the second time through. A consumer that began in slot 0
# with parity 0 would wait for that slot's *third* filling, step 8, and multiply it in place of step 6. In
# slot 1 it multiplies step 9 in place of 7. Then it waits for slot 2's third filling, while the producer
# waits for somebody to give back its second: a standstill. With 64 steps nobody would notice, for 64 is a
# multiple of 8.

# %% [markdown]
# ### What is it worth?
#
# Before `persistent` was measured, its author wrote down 0.88 to 0.90 of cuBLAS at 4096³, a little more than
# `warp_specialised`. Measured: 0.890, from 0.878. That is 1 %. The picture above promised 4. By the profiles
# the launch takes 2.0 % fewer clocks, and these are 0.8 % slower: at the GPU's limit of power, part of each
# clock saved is paid back.
#
# ## The store
#
# Blocks that stay make the next step possible. At a tile's end its results go to C, and meanwhile nothing is
# multiplied. A tile of 4096³ takes 64 steps of 1,025 clocks. (The Tensor Cores of an SM do 4 · 512
# multiply-adds per clock. The 128 · 256 · 64 of a step take them 1,024.) How long the store takes depends on
# who stores:
#
# - `persistent`: each thread stores its own results, in pairs. The picture takes 10,000 clocks for this,
#   which is what was left of `warp_specialised`'s time, so it cannot explain that time.
# - The first form of `overlapped_store` wrote them to shared memory, from where [TMA](glossary.md#tma) stores
#   them: **2,900 clocks** per tile. 1,300 to 1,500 of these went by while TMA was given 32 boxes of 2 KB.
#   (`gemm_course/kernels/NOTES.md` has each trial and its clocks.)

# %%
see.predict("last_per_cent.store")

# %% [markdown] tags=["answer"]
# 2,900 beside 65,600 is 4 %. At 8192³ a tile takes 128 steps and its store as long as before: 2 %. Costs per
# tile matter most where k is small.

# %% [markdown]
# Two stages came of it:
#
# - `staged_store` writes results to shared memory, and a warp that has nothing else to do hands them to TMA,
#   eight boxes of 8 KB per tile. Then the consumers go on.
# - `overlapped_store` only rounds them, and keeps them in registers, two per register. It queues the first
#   products of the next tile, and writes results to shared memory *behind* those, in four parts
#   ([`PARTS`](glossary.md#tile-parameters)).
#
# Here is the first. Per consumer two barriers pass a tile on to the warp that stores it: `c_full` says that
# it is written, `c_empty` that TMA has read it. **Which calls stand in the place of the loop over the
# results, and which of them may wait?**

# %%
see.diff("persistent", "staged_store")

# %% [markdown] tags=["thought"]
# `scale_and_round`, then `stage_part` per part of the tile. Only `stage_part` may wait: for `c_empty`, if TMA
# has not yet read what was written there before.

# %% [markdown]
# ### The case of the 1,350 clocks
#
# When `overlapped_store` first wrote behind products, rounding a tile took 1,350 clocks. By its instructions
# it should be 500. These lines stood between products and store. **Which of them does rounding not need if
# beta is 0?**
#
# ```python
# whole = group_rows * tile_cols
# first, rest = tile // whole * group_rows, tile % whole
# height = min(group_rows, tile_rows - first)      # the last group may have fewer rows
# row, col = first + rest % height, rest // height
# for e in unroll(range(RESULTS)):
#     rounded[e] = float16(alpha * acc[e] + beta * C[...])   # C is read only if beta is not 0
# ```

# %% [markdown] tags=["thought"]
# The first four, with four divisions: here only reading C needs `row` and `col`. And half of the last. Now
# they run only where C is read, and nothing is multiplied by an alpha of 1. Rounding takes 465 clocks. What
# each change brought, nobody measured.

# %% [markdown]
# ### Predicted and measured
#
# How `overlapped_store` came to be, in percentages of cuBLAS at 4096³. Some rows changed more than their name
# says. **Which change did not make it faster?**
#
# | step | predicted | measured |
# |---|---|---|
# | first form: store, then go on | 97 to 103 | 96.8 |
# | `stmatrix`, room for a whole tile, one fence per tile | + 3.5 in all | 98.4 |
# | written behind the next products, in two parts | 99.5 to 101 | 98.0 to 98.2 |
# | the 1,350 clocks found | | 99.0 to 99.6 |
# | in four parts, six measurements | | 99.8 to 100.9 |

# %% [markdown] tags=["thought"]
# Writing behind the next products: the idea itself, and at first it brought nothing. (Six measurements of one
# form lie 1.1 apart. So a step of 0.2 says nothing.)
#
# What the clock showed: beside the writing, a tile's products took 67,000 to 68,100 clocks in two parts, and
# 65,600 to 65,900 in four. Without any writing they took 65,550. In today's form two parts cost 4 % as well,
# and one part or four cost nothing. But with two the compiler [spills](glossary.md#spilling) 256 bytes per
# thread. Written in steps 0 and 8 instead of 0 and 2 they spill nothing, and cost nothing. So it is not the
# size of a part.

# %% [markdown]
# ### What limits it now?
#
# `persistent`, `staged_store` and `overlapped_store` at 4096³, labels lost. **Who is who?** (Shares of the
# clocks in which an SM has work.)
#
# | | X | Y | Z |
# |---|---|---|---|
# | Tensor Cores are busy | 96 % | 80 % | 94 % |
# | shared memory is busy | 61 % | 55 % | 60 % |
# | sectors that threads store by themselves, in millions | 0 | 2.1 | 0 |

# %%
see.fold(
    lambda: see.limits("persistent", "staged_store", "overlapped_store"),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# Y is `persistent`: its threads store pairs. X is `overlapped_store`, Z `staged_store`. In all three the
# **Tensor Cores** are the limit, in X nearly without a pause. Besides, SMs have no work at all for 5 % of the
# launch, the empty places of the last wave among it. (Shared memory's 61 % are what products read: 80 of 128
# bytes per clock, 96 % of the time. What TMA writes seems not to be counted.)
#
# The chart's TFLOPS are of single launches under the profiler. The ladder has 671, 747 and 758: the better
# store brought most, hiding it 1.5 %.

# %% [markdown]
# ## Tiles for a shape
#
# 1024³ is 32 tiles of 128 × 256, and 100 SMs watch. Narrower tiles make more of them.

# %%
see.predict("last_per_cent.narrow")

# %% [markdown] tags=["answer"]
# A step of a narrow tile is not as short as it should be: its operands serve fewer products.

# %% [markdown]
# Steps measured on an H200, in units of a step of 128 × 256:

# %%
STEP = {64: 0.44, 128: 0.54, 192: 0.755, 256: 1.0}  # BN: a step of 128 rows by BN columns by 64

# %% [markdown]
# ### Exercise [[best_width]] · Choose a tile
# *core · medium · 10 minutes*
#
# Return the BN of `STEP` with which an m × n product takes the least time, with tiles of 128 × BN on 132 SMs.
# (k is the same for all of them.)


# %% id="ex-best_width"
STEP = {64: 0.44, 128: 0.54, 192: 0.755, 256: 1.0}


def best_width(m, n):
    ### BEGIN SOLUTION
    def time(BN):
        tiles = -(-m // 128) * -(-n // BN)
        return -(-tiles // 132) * STEP[BN]

    return min(STEP, key=time)
    ### STUB
    # return None
    ### END SOLUTION


check.best_width(best_width)

# %% [markdown]
# **Bet before you look,** once [[best_width]] has passed: at which of these sizes does the rule choose
# another width than was fastest? Shares of cuBLAS, measured with `overlapped_store`:
#
# | BN | 1024³ | 2048³ | 3072³ | 4096³ | 8192³ |
# |---|---|---|---|---|---|
# | 64 | 0.934 | 0.639 | 0.618 | 0.598 | 0.595 |
# | 128 | 0.752 | 0.969 | 0.874 | 0.961 | 0.989 |
# | 192 | 0.615 | 0.738 | 0.983 | 0.909 | 1.048 |
# | 256 | 0.524 | 0.971 | 0.785 | 1.017 | 1.041 |

# %%
see.fold(
    pd.Series({size: best_width(size, size) for size in (1024, 2048, 3072, 4096, 8192)}).to_frame("chosen"),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# At none, though at 2048³ two widths are level. The four numbers were taken from runs at 4096³ and 8192³, so
# three of the five sizes are a test. (On another GPU the numbers are others.)

# %% [markdown]
# ## One tile, many blocks
#
# No tile fits every shape. 5120³ in tiles of 128 × 256 is six full waves, and eight tiles for a seventh.
# Could 132 SMs share eight tiles? Then several work on one, each with a part of **k**, and somebody adds up.
#
# The simplest form is **split-K**: each tile has `parts` blocks, and block `part` multiplies its stretch of
# k. It writes its sums to a workspace, `partials`. Then it counts itself. **The block that counts last adds
# up all parts.** So no block ever waits for another one, in whichever order they run.
#
# ```
# each block      store the part → fence → barrier → count
# the last one                                       count → fence → read all parts
# ```
#
# Three things make that safe:
#
# - `cuda.threadfence()`: whoever sees what a thread stores after the fence also sees what it stored before.
#   Without it a GPU may show others the count first. The last block's own fence keeps what it reads from
#   being older than the count.
# - `cuda.atomic.add(done, place, 1)` ([atomic](glossary.md#atomic-operation)) adds 1 as one step that no
#   other block can come between, and returns what was there **before**.
# - `cuda.syncthreads()` between the block's stores and the one thread that counts.
#
# ### Exercise [[last_arrival]] · The last one adds up
# *core · hard · the heart of this notebook · 20 minutes*
#
# Tiles of 8 × 8, a thread per element, and `cuda.gridDim.z` blocks per tile; m and n are multiples of 8.
# `acc` is this thread's sum over the block's stretch of k. Store it, count the block, and let the last one
# add up the parts **in the order of k** and store C. The count of a tile is `done[tile row, tile column]`,
# int32; `place` above is such a pair. Leave `done` as you found it: zeros, for the next launch. `before`
# passes on what the counting thread found.


# %% id="ex-last_arrival"
@cuda.jit(device=True)
def products(row, col, first, stop, A, B):
    acc = float32(0)
    for p in range(first, stop):
        acc += A[row, p] * B[p, col]
    return acc


@cuda.jit
def split_k(k, A, B, partials, done, C):
    before = cuda.shared.array(1, int32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * 8 + y, cuda.blockIdx.x * 8 + x
    part, parts = cuda.blockIdx.z, cuda.gridDim.z
    acc = products(row, col, k * part // parts, k * (part + 1) // parts, A, B)
    ### BEGIN SOLUTION
    partials[part, row, col] = acc
    cuda.threadfence()
    cuda.syncthreads()
    if x == 0 and y == 0:
        before[0] = cuda.atomic.add(done, (cuda.blockIdx.y, cuda.blockIdx.x), 1)
    cuda.syncthreads()
    if before[0] == parts - 1:
        cuda.threadfence()
        total = float32(0)
        for p in range(parts):
            total += partials[p, row, col]
        C[row, col] = total
        if x == 0 and y == 0:
            done[cuda.blockIdx.y, cuda.blockIdx.x] = 0
    ### STUB
    # # your code: acc -> partials[part, row, col]; count; the last block: partials -> C
    ### END SOLUTION


check.last_arrival(split_k)

# %% [markdown]
# Why in the order of k? Float32 addition is not associative: a sum depends on the order of its terms, and who
# is last depends on chance. Added in one order, the result is **bit for bit the same** in every run.
#
# ## Stream-K
#
# Eight tiles and 132 blocks: 16.5 blocks per tile. Split-K cannot do that. [Stream-K](glossary.md#stream-k)
# ([Osama and others, 2023](https://arxiv.org/abs/2301.03598)) can. Lay the steps of all tiles end
# to end, and cut that row into one range per block. With `total` steps, block b has
#
# `total * b // blocks` to `total * (b + 1) // blocks`,
#
# the end not included. Ranges differ by one step at most. Where a range crosses from one tile to the next,
# the block has a part of each.
#
# ### Exercise [[stream_k_parts]] · Who computes what?
# *core · medium · 10 minutes*
#
# Return the parts of a block, in order: `(tile, first, stop)` for steps `first` to `stop - 1` of that tile.
# Each tile has `steps` steps, counted from 0.


# %% id="ex-stream_k_parts"
def stream_k_parts(block, blocks, tiles, steps):
    ### BEGIN SOLUTION
    at, stop = tiles * steps * block // blocks, tiles * steps * (block + 1) // blocks
    parts = []
    while at < stop:
        tile, first = at // steps, at % steps
        end = min(steps, first + stop - at)
        parts.append((tile, first, end))
        at += end - first
    return parts
    ### STUB
    # return None
    ### END SOLUTION


check.stream_k_parts(stream_k_parts)

# %% [markdown]
# The stages do both: full waves as before, then the tiles that are left as stream-K, in a second launch.
# `stream_k` does it in FP32, `stream_k_fp16` behind `overlapped_store`.
#
# ### Does it pay?
#
# Predict an extreme case:

# %%
see.predict("last_per_cent.share")

# %% [markdown] tags=["answer"]
# Writing, counting and adding up has a price as well. In that trial `overlapped_store` reached 0.942 of
# cuBLAS, the shared form 0.666. All 128 tiles were cut, and 33 MB of parts were written and read again.
# Sharing took the time of some 30 steps; 10 to 18 were predicted.

# %% [markdown]
# **A hunt.** In the picture, BN = 256: at which of 3072, 4096, 5120 and 6144 does stream-K take fewer clocks
# than the store behind the next tile? What do their last waves have in common?

# %%
see.tiles_over_time(size=3072, kind="stream-K")

# %% [markdown] tags=["thought"]
# 3072 and 5120: 24 and 8 tiles are left, a small part of a wave. Where a last wave is fuller, there is less
# to win, and the sharing costs as much.
#
# And measured? In FP32 a step takes far longer, so the sharing costs little beside it: `stream_k` went from
# 0.867 to 1.162 of cuBLAS at 3072³. In FP16 at 3072³ narrow tiles win (0.989). At 5120³ sharing brought 0.932
# to 1.013 in a trial: each of the eight tiles was cut into four narrow ones first, and these were shared
# ([`CUT`](glossary.md#tile-parameters)). The ladder's run, below, has 0.994.

# %% [markdown]
# ## How far is it to the limit?
#
# `overlapped_store` at 4096³ takes 273,000 clocks. Products alone need 4 tiles · 64 steps · 1,024 clocks. How
# much of the GPU's ability is used? Multiply two shares: that of the clocks, and that of the places.

# %%
clocks, places = 4 * 64 * 1024 / 273_000, 512 / (4 * 132)
see.fold(
    f"{clocks:.3f} of the clocks, {places:.3f} of the places: {clocks * places:.3f}",
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# 93 %. Of the missing 7, three are the last wave. The rest is mostly the two ends: the first operands and the
# last store. (The profile above, another run, took 280,000 clocks. The same products are 91 % of these, and
# 96 % of those in which an SM had work.)

# %% [markdown]
# ### And 990 TFLOPS?
#
# 132 SMs with 4 · 512 multiply-adds per clock are the data sheet's 990 TFLOPS at 1,830 MHz. Our kernel does
# 758. But clocks and nanoseconds of the launch above, divided, give **1,510 MHz**, while the
# driver's tool reported 1,980. What can the Tensor Cores do at 1,510 MHz, and what part of it is 758?

# %%
limit = 132 * 4 * 512 * 2 * 1510e6 / 1e12
see.fold(f"{limit:.0f} TFLOPS, and 758 are {758 / limit:.2f} of it", first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# The same 93 %, as it must be: 1,510 MHz comes from the same clocks and the same time. The data sheet's
# figure is a clock that this GPU did not keep while it multiplied random FP16 numbers.

# %% [markdown] id="side-ten_shapes"
# *Side trip, 20 minutes: [Is it as fast on other shapes?](ten_shapes.ipynb)*

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("last_per_cent")

# %% [markdown]
# ## The whole ladder

# %%
see.fold(lambda: see.ladder(), first="Answer first, then open this.")

# %% [markdown]
# ## Recap
#
# You
#
# - counted waves, and found the sizes at which a GPU idles;
# - made blocks stay, and saw that this alone is worth 1 %;
# - hid the store behind the next products, which brought nothing at first;
# - chose tiles by four numbers, right at all five sizes, three of which they had not seen;
# - shared tiles along k, with a fence, a count, and nobody waiting;
# - measured 93 % of the possible, and stopped trusting a single ratio;
# - began a kernel of your own, and fused into it what no library could know that you need.
#
# The ladder ends here: from 0.5 TFLOPS to the speed of NVIDIA's own library, each rung with its reason.
