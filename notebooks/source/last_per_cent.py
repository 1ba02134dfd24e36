# %% [markdown]
# # [[last_per_cent.ipynb]] · What idles when no loop does?
#
# In the loop of `warp_specialised` a product is always queued, and nobody waits for a copy. Yet at 4096³ it
# reached 664 TFLOPS on an H200, 88 % of cuBLAS. What is missing is not in the loop.
#
# The picture shows the 132 SMs of an H200 from top to bottom, and time from left to right. Each block
# computes a tile of C, 128 × 256, and m = n = k = 3072. Only blue multiplies. **How many thousand clocks
# would it take if every SM were blue all the time?** (Leave the first control, *schedule*, for later.)

# %%
import pandas as pd
from numba import cuda, float32, int32
from numba.types import float16

from gemm_course import check
from gemm_course import widgets as see
from gemm_course.checks.kits import clear, give_back, multiply, order, roles_on_trial, store
from gemm_course.profiles import recorded
from lockstep.intrinsics import mbarrier_wait

see.tiles_over_time(size=3072)

# %% [markdown] tags=["thought"]
# 107 instead of 191: the blue is 56 % of the picture. Three things are in its way. SMs have no tile (white),
# or store one (green), or wait for a tile's first operands (hatched). A quarter is white.

# %% [markdown]
# *Time: about 80 minutes to read, 72 for the exercises; two pauses are marked. Beyond the documents: the
# kernels from `persistent` on.*
#
# First two questions from memory:

# %%
see.recall("last_per_cent")

# %% [markdown]
# ## What does a last wave cost?
#
# A block of these kernels takes nearly all shared memory of an SM, so an SM holds one. 132 tiles are under
# way at a time: a [**wave**](glossary.md#wave). The picture has three, and the last one has 24 tiles. It
# takes as long as a full one.
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
# A *place* is an SM in a wave. 3072³ has 288 tiles for 3 · 132 places, so 27 % are empty. **Is that the worst
# from 2048 to 8192, and which size wastes least?** Say it, then compute it.


# %%
def empty(size):
    return None  # your code: the share of places that are empty, from last_wave(size, size, 128, 256)


pd.Series({size: empty(size) for size in range(2048, 8193, 512)}, name="empty")

# %% [markdown] tags=["thought"]
# It is the worst. 3584 and 7168 waste least, 1 %: their last waves are nearly full. The more waves there are,
# the less the last one weighs.

# %% [markdown]
# **What we now know:** tiles come in waves, and a wave of few tiles takes as long as a full one.
#
# ## Must a block end with its tile?
#
# So far a block computes one tile and ends. A [**persistent**](glossary.md#persistent-kernel) block stays.
# Only 132 are launched, one for each SM, and block b computes tiles b, b + 132, b + 264 and so on.

# %%
see.predict("last_per_cent.persistent")

# %% [markdown]
# Those are the hatched parts: 4,300 clocks in the picture, for every tile. A block sets up its barriers, its
# producer asks for the first operands, and its consumers wait for them.

# %% [markdown]
# ### Exercise [[ring_goes_on]] · The ring goes on
# *core · hard · the heart of this notebook · 15 minutes*
#
# Here are the two roles of notebook [[hopper.ipynb]]. The **producer**, one thread, waits at `empty[slot]`
# until the slot may be filled, and orders a step's boxes. The **consumers**, four warps, wait at `full[slot]`
# until these have come, multiply them, and give the slot back. Each role goes round the
# [ring](glossary.md#ring) by itself: `slot` counts up, and where it goes back to 0, `parity` flips. They
# call:
#
# | call | does |
# |---|---|
# | `order(full, slot, As, Bs, A, B, row, col, step)` | has TMA bring both boxes of a step into the slot |
# | `multiply(acc, slot, As, Bs)` | adds the slot's products to `acc` |
# | `give_back(empty, slot)` | one lane of each warp arrives at `empty[slot]` |
# | `clear(acc)`, `store(C, acc, row, col)` | begin and end a tile of 64 × 64; `row` and `col` count tiles |
#
# Below, each role computes **one** tile. Write the loop over tiles, in both. Tile t is in row `t //
# tile_cols` and column `t % tile_cols`, and a block takes every `cuda.gridDim.x`-th, for that is the number
# of blocks. **The ring goes on from tile to tile,** and a tile has any number of `steps`. So ask of each line
# whether it belongs to a tile or to the block. No barrier of the whole block is needed.


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
# Here is the stage. (`grouped` says which tile of C is tile t: those that run at the same time lie close
# together, and find what they share in L2.) Where are `slot` and `parity` set, and where not?

# %% tags=["listing"]
see.fold(see.diff("warp_specialised", "persistent"), first="Write the exercise first, then open this.")

# %% [markdown]
# **Break it.** Copy your `consume` into the next cell, call it `again`, and put `slot, parity = 0, 0` into
# its loop over tiles: the ring starts again with each. It has four slots. **With which numbers of steps per
# tile, from 1 to 9, is it still right?** Say it, then run the cell.

# %%
again = consume  # your code in place of this line
tried = {steps: roles_on_trial(produce, again, slots=4, steps=steps) for steps in range(1, 10)}
see.fold(pd.Series(tried).to_frame("with so many steps"), first="Say it first, then open this.")

# %% [markdown] tags=["thought"]
# Only with 8, twice the slots: then slot and parity are 0 anyway when a tile ends. Take 6 steps. The second
# tile's first step is number 6 of all, counted from 0, and lies in slot 2. The consumer waits at slot 0, and
# multiplies number 8 in its place. Later it waits for slot 2 to be filled again, and the producer waits for
# it to be given back: a standstill.
#
# And a test at 4096³? There a tile has 64 steps. **It would have found nothing.**

# %% [markdown]
# What is it worth? `persistent` reached 671 TFLOPS, after 664: 1 %. The picture promises 4: set it to 4096,
# and *schedule* to "persistent". Where the other 3 % went, the last section tells.
#
# **What we now know:** a producer that does not notice the end of a tile fetches for the next one meanwhile.
# That alone is worth little.
#
# *A good place for a pause.*
#
# ## Who multiplies while a tile is stored?
#
# Nobody: the green. A consumer stores its results straight from its registers, and only then queues the next
# tile's products, whose operands lie in the ring already.
#
# Suppose that a tile were stored while the next one is multiplied. (Do not measure the green: it was computed
# from the answer.)

# %%
see.predict("last_per_cent.store")

# %% [markdown]
# Two changes are in this gain. `staged_store` has the first alone: threads write their results to shared
# memory, and TMA stores them from there. Nothing is multiplied meanwhile, and it has 747 TFLOPS already. The
# second is what you write now.
#
# What is in its way? The results, in the accumulators that the next products need. A second set does not fit
# into the registers. But results are stored as FP16, and of those a register holds two. So a consumer rounds
# them and keeps them aside, queues the next tile's first products, and stores what it kept while the Tensor
# Cores work.
#
# **Write it,** 12 minutes, from a copy of your `consume`. `multiply` does two things, which you now call
# apart: `queue(acc, slot, As, Bs)` queues a step's products and returns at once; `finish()` waits until they
# are there. Until then `acc` is not yours. What changes at a tile's end, what in its first step, and which
# tile is missing after the loop?


# %%
from gemm_course.checks.kits import finish, queue  # noqa: F401


@cuda.jit(device=True)
def consume_behind(full, empty, As, Bs, C, acc, tiles, tile_cols, steps, slots):
    kept = cuda.local.array(32, float16)
    # your code: as in consume, but each tile is stored from kept, behind products of the next one


for blocks in (1, 2):
    print(blocks, roles_on_trial(produce, consume_behind, slots=4, steps=5, blocks=blocks))

# %% [markdown] tags=["thought"]
# ```python
# while tile < tiles:
#     clear(acc)
#     for step in range(steps):
#         mbarrier_wait(full, slot, parity)
#         queue(acc, slot, As, Bs)
#         if step == 0 and tile >= cuda.gridDim.x:  # the block's first tile has none before it
#             before = tile - cuda.gridDim.x
#             store(C, kept, before // tile_cols, before % tile_cols)
#         finish()
#         give_back(empty, slot)
#         slot += 1
#         if slot == slots:
#             slot, parity = 0, parity ^ 1
#     for e in range(32):
#         kept[e] = acc[e]
#     tile += cuda.gridDim.x
# before = tile - cuda.gridDim.x
# store(C, kept, before // tile_cols, before % tile_cols)
# ```

# %% [markdown]
# `overlapped_store` does both at full size. Words of its listing:
#
# | word | is |
# |---|---|
# | `scale_and_round` | fills `rounded`, your `kept` |
# | `RESULTS` | the results of a thread: 128, in 64 registers |
# | `Cs` | room for results in shared memory, beside the ring |
# | `PARTS`, `PIECES` | results go there in `PARTS` parts, one by one, each of `PIECES` pieces of 64 × 64 |
# | `stage_part` | writes a part into Cs, by `stmatrix`, which stores what `ldmatrix` would load |
# | `store_tiles` | another warp has TMA store each part from Cs |
# | `c_full`, `c_empty` | barriers of Cs: it is written; TMA has read it |
#
# Find your changes in it. In which step of the next tile is each part written?

# %% tags=["listing"]
see.fold(see.diff("persistent", "overlapped_store"), first="Write yours first, then open this.")

# %% [markdown]
# PARTS is 2 here. With 4, Cs takes half the room. With 1 a tile is written at once, and Cs takes so much that
# SLOTS must be 3. **Order the three by their TFLOPS,** with a reason. Then try them. Watch the last line,
# *measured on an H200*.

# %%
see.tiles("overlapped_store", tiles={"PARTS": 2}, tells_best=False)

# %% [markdown] tags=["thought"]
# Four parts have 754, one has 742, and two have 708. So it is not the size of a part, or two would lie
# between. With two the compiler [spills](glossary.md#spilling) 256 bytes per thread. Part p is written in
# step 2p. Written in steps 0 and 8, not 0 and 2, two parts spill nothing, and the loss is gone.

# %% [markdown]
# **What we now know:** Tensor Cores need not notice that a tile is stored, if its results make room for the
# next products first.
#
# ## Which tile for which shape?
#
# Back to the white. In the picture at the top, at 3072, move BN: which width takes the fewest clocks? It is
# not the narrowest. What works against that one?

# %%
see.predict("last_per_cent.narrow")

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
# **Bet before you look,** once [[best_width]] has passed. Shares of cuBLAS, measured with `overlapped_store`:
# at which of these sizes does your rule choose another width than was fastest?
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
# At none, though at 2048³ two widths are level. The four numbers were taken from runs at 4096³ and 8192³. So
# three of the five sizes are a test. (On another GPU the numbers are others.)

# %% [markdown]
# Beware of the first column: at 1024³ a launch takes 9 microseconds. A good part is the launch itself, and
# what shortens that is outside of the kernel, such as a *CUDA graph*, many launches handed over as one. And
# it was launched again and again, so A and B were in L2 already: a *warm* figure.
#
# **What we now know:** the best tile makes waves times step shortest. Four measured numbers tell which it is.
#
# *A good place for a pause.*
#
# ## Can blocks share a tile, and none wait?
#
# No tile fits every shape. 5120³ in tiles of 128 × 256 is six full waves, and eight tiles for a seventh.
# Could 132 SMs share eight tiles? Then several work on one, each with a part of **k**, and somebody adds up.
#
# The simplest form is **split-K**. Each tile has `parts` blocks, and each multiplies its stretch of k. It
# writes its sums to `partials`, an array in global memory, and counts itself. **The block that counts last
# adds up all parts.** So no block ever waits for another, in whichever order they run.
#
# ```
# each block      store the part → fence → barrier → count
# the last one                                       count → fence → read all parts
# ```
#
# Three things make that safe:
#
# - `cuda.threadfence()`: whoever sees what a thread stores after the fence also sees what it stored before.
#   Without it others may see the count first. The last block's own fence keeps what it reads from being older
#   than the count.
# - `cuda.atomic.add(done, place, 1)` ([atomic](glossary.md#atomic-operation)) adds 1 as one step that no
#   other block can come between, and returns what was there **before**.
# - `cuda.syncthreads()` between the block's stores and the one thread that counts.
#
# ### Exercise [[last_arrival]] · The last one adds up
# *core · hard · 20 minutes*
#
# Tiles of 8 × 8, a thread per element, and `cuda.gridDim.z` blocks per tile; m and n are multiples of 8.
# `acc` is this thread's sum over the block's stretch of k.
#
# - Store it, count the block, and let the last one add up the parts **in the order of k** and store C.
# - The count of a tile is `done[tile row, tile column]`, int32; `place` above is such a pair.
# - Leave `done` as you found it: zeros, for the next launch.
# - `before`, in shared memory, passes on what the counting thread found.


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
# Why in the order of k? A float32 sum depends on the order of its terms, and who is last depends on chance.
# Added in one order, the result is **bit for bit the same** in every run.
#
# **What we now know:** blocks can work on one tile in any order, if each counts itself behind a fence, and
# the last one adds up.
#
# ## How do 132 blocks share eight tiles?
#
# 16.5 blocks per tile: split-K cannot do that. [Stream-K](glossary.md#stream-k) ([Osama and others,
# 2023](https://arxiv.org/abs/2301.03598)) can. Lay the steps of all tiles end to end, and cut that row into
# one range per block. With `total` steps, block b has
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
# The ladder's last kernel, `stream_k_fp16`, computes full waves as before, and then shares the tiles that are
# left, in a second launch. Does it pay? Predict an extreme case:

# %%
see.predict("last_per_cent.share")

# %% [markdown]
# **A hunt.** At which of 3072, 4096, 5120 and 6144 does "stream-K" take fewer clocks than "store behind the
# next tile"? Go through them, with BN at 256. What do their last waves have in common?

# %%
see.tiles_over_time(size=4096, kind="store behind the next tile")

# %% [markdown] tags=["thought"]
# 3072 and 5120: 24 and 8 tiles are left, a small part of a wave. Where a last wave is fuller, there is less
# to win, and the sharing costs as much. (A trial at 5120³ had 0.932 of cuBLAS without sharing, and 0.971 with
# it. Then each of the eight tiles was cut into four narrow ones before, and it had 1.013.)

# %% [markdown]
# **What we now know:** sharing pays where few tiles are left.
#
# ## How far is it to the limit?
#
# `overlapped_store` at 4096³ takes 273,000 clocks. Products alone need 4 tiles · 64 steps · 1,024 clocks, for
# an SM's Tensor Cores do 2,048 multiply-adds in each. And 512 tiles have 4 · 132 places. **Write both shares,
# and multiply them.**

# %%
clocks = None  # your code: the share of the clocks that products need
places = None  # your code: the share of the places that have a tile
clocks, places

# %% [markdown] tags=["thought"]
# 0.96 of the clocks, 0.97 of the places, together 0.93: **93 % of what the Tensor Cores can do.** Of the
# missing 7, three are the last wave. Most of the others are the two ends: the first operands, and the last
# store.

# %% [markdown]
# And the data sheet's 990 TFLOPS? They are for 1,830 MHz. Here are single launches at 4096³, each with its
# clocks and its time. Write the last column.

# %%
stages = ["warp_specialised", "persistent", "staged_store", "overlapped_store"]
launches = pd.DataFrame({stage: recorded(stage, None).measured for stage in stages}).T
launches = pd.DataFrame({"clocks": launches["clocks"], "microseconds": launches["nanoseconds"] / 1000})
launches["MHz"] = None  # your code: clocks in a millionth of a second
launches.round(0)

# %% [markdown] tags=["thought"]
# 1,646, 1,633, 1,576 and 1,579 MHz.
#
# From first to last the clocks fall by 18 %, the time by 15. **The less a kernel idles, the slower the GPU's
# clock.** So `persistent` saves 2 % of the clocks, but 1 % of the time. (The picture's 4 % are a model's.)

# %% [markdown]
# Who slows the clock down? The next bet changes nothing but the numbers that are multiplied.

# %%
see.predict("last_per_cent.zeros")

# %% [markdown]
# So 990 belong to a clock that this GPU does not keep while it multiplies random numbers. (And cuBLAS, of
# which we give shares, is the kernel that it chooses by itself. It has others, which were not tried.)
#
# **What we now know:** the Tensor Cores do 93 % of what they can in these clocks. And of a clock that is
# saved, part is lost again.

# %% [markdown] id="side-ten_shapes"
# *Side trip, 20 minutes: the opponent moves. [Is it as fast on other shapes?](ten_shapes.ipynb)*

# %% [markdown]
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** blocks that stay, with a ring that goes on from tile to tile; a store behind the next products;
#   a rule that chooses tiles; and blocks that share a tile, though none waits.
# - **It reached** 758 TFLOPS at 4096³ on an H200, with 664 at the start, and cuBLAS at 749 in turns with it.
# - **What stops it now** are the Tensor Cores, 93 % of what they can do. The rest is the last wave, and the
#   two ends of a launch.
#
# What idles when no loop does? SMs without a tile, SMs that store, and SMs that wait for their first
# operands.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("last_per_cent")

# %% [markdown]
# ## The whole ladder
#
# From a thread that reads all by itself to this. Find the steps that you made. What stopped the kernel before
# each?

# %%
see.ladder()
