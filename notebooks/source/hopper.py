# %% [markdown]
# # [[hopper.ipynb]] · Hopper: copies and products by machines
#
# So far threads did the work: they copied tiles, loaded fragments, multiplied. On a
# [Hopper](glossary.md#hopper) GPU they only give orders. One machine copies whole tiles, another multiplies
# them in shared memory, and the art is to tell them apart in time. It brings the kernel from 63 % of cuBLAS
# within sight of it.
#
# **After this notebook you can** say which phase of a barrier a thread waits for, have TMA fetch a tile,
# write a producer and its consumers, and explain a kernel that stands still.
#
# *Time: about 65 minutes to read, 70 for the exercises. Beyond the documents: the stages `mma_tma`,
# `wgmma_tma` and `warp_specialised`.*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32, uint64
from numba.types import float16

from gemm_course import check, emulate, records
from gemm_course import widgets as see
from gemm_course.checks.kits import two_roles
from lockstep import EmulatorError
from lockstep.intrinsics import (
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    tensor_map,
    tma_acquire,
    tma_load,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)

# %% [markdown]
# ## In one picture
#
# One warp fills two slots with tiles, two others read them, and nobody ever stops everybody. Step through it,
# and watch the small numbers: **what says that a slot is full, and what says that it may be filled again?**
# By the end you will know every word in it.

# %%
see.phases()

# %% [markdown]
# ## A barrier that counts
#
# At `cuda.syncthreads()` all threads of a block wait for each other. Often that is too much: whoever has
# stored a tile could go on at once, and only its reader has to wait.
#
# An [**mbarrier**](glossary.md#mbarrier) takes the two apart. Some threads **arrive** and go on, others
# **wait**. It is 8 bytes of shared memory, an element of a `uint64` array, and it counts:
#
# | call | does |
# |---|---|
# | `mbarrier_init(ready, 0, 1)` | makes `ready[0]` a barrier that needs 1 arrival each time |
# | `mbarrier_arrive(ready, 0)` | one arrival; the thread goes on |
# | `mbarrier_wait(ready, 0, parity)` | waits, and what was stored before the arrivals can be read |


# %%
@cuda.jit
def hand_over(out):
    ready = cuda.shared.array(1, uint64)
    letter = cuda.shared.array(1, float32)
    tid = cuda.threadIdx.x
    if tid == 0:
        mbarrier_init(ready, 0, 1)
    cuda.syncthreads()
    if tid == 0:
        letter[0] = 42
        mbarrier_arrive(ready, 0)
    if tid == 32:
        mbarrier_wait(ready, 0, 0)
        out[0] = letter[0]


def tried(kernel, threads, *arguments, **options):
    """Run one block on the emulator; print what was found, or why it stands still."""
    try:
        found = emulate(kernel, 1, threads, *arguments, **options).errors
        print(*found or ["It runs, and nothing was found."], sep="\n")
    except EmulatorError as error:
        print(error)


out = np.zeros(1, np.float32)
tried(hand_over, 64, out)
out

# %% [markdown]
# **Break it.** Leave out the arrival and run the cell again. Then put it back and leave out the wait. One of
# the two is a race, the other a standstill. On a GPU the race gives some number; the standstill hangs, and
# you restart the kernel. Here the emulator tells you who waits for what.
#
# ### Phases
#
# When all arrivals are in, a [phase](glossary.md#phase) is over, and the count starts again. Phases have
# numbers, 0, 1, 2, …, but a wait names only the **parity** of one, 0 for even, 1 for odd. It looks at the
# phase that is running: if that has the **other** parity, the thread passes, else it waits. That is enough as
# long as nobody falls a whole phase behind. In a ring that works nobody can: a slot is filled again only when
# all its readers are done.

# %%
see.predict("hopper.new")

# %% [markdown]
# ### Exercise [[parities]] · Which parity?
# *core · medium · 10 minutes*
#
# The [ring](glossary.md#ring) of notebook [[overlap.ipynb]], now with two barriers for each slot.
# `full[slot]` ends a phase when a tile has come, `empty[slot]` when all readers are done with it. A
# **producer** fills slots in turn, one per step, **consumers** read them.
#
# In each step the consumer waits at `full`. The producer first waits at `empty`, for the end of the *last*
# use of the slot; the first time round there was none, and it must not wait. Which slot is it, and which
# parity does each of them name?


# %% id="ex-parities"
def parities(step, SLOTS):
    ### BEGIN SOLUTION
    times = step // SLOTS
    return step % SLOTS, times % 2, 1 - times % 2
    ### STUB
    # return None, None, None  # slot, the consumer's parity, the producer's
    ### END SOLUTION


check.parities(parities)

# %% [markdown]
# ## A machine that copies
#
# `cp.async` needs a thread for every 16 bytes, and each thread computes two addresses. The [**Tensor Memory
# Accelerator**](glossary.md#tma), TMA, does that by itself. One thread names a corner, and the unit copies
# the whole tile, its **box**, into shared memory.
#
# What it must know about the matrix, the host writes down before the launch: a [**tensor
# map**](glossary.md#tensor-map), 128 bytes with address, shape, length of rows, and the shape of the box.
#
# ```python
# tensor_map(A, (m, k), (64, 64))                  # on the host
# tma_load(tile, (0, 0, 0), A, (row0, 0), full, 0)  # in the kernel, by one thread
# ```
#
# The second line copies the box at `A[row0, 0]` to `tile[0, 0, 0]` (slot, row, column: a ring of one slot
# here), and **reports to `full[0]`**: copies arrive at mbarriers, too. They count in bytes. So the thread
# says first how many will come: `mbarrier_expect(full, 0, bytes)`. That is an arrival and a promise, and the
# phase is over when all arrivals *and* all bytes are in.


# %%
def make_fetch(row0, expected):
    @cuda.jit
    def fetch(A, out):
        full = cuda.shared.array(1, uint64)
        tile = cuda.shared.array((1, 64, 64), float16, 1024)
        tid = cuda.threadIdx.x
        if tid == 0:
            tma_acquire(A)  # the map was written by the host: make it visible here
            mbarrier_init(full, 0, 1)
            fence_async()  # and the barrier visible to TMA
            mbarrier_expect(full, 0, expected)
            tma_load(tile, (0, 0, 0), A, (row0, 0), full, 0)
        cuda.syncthreads()
        mbarrier_wait(full, 0, 0)
        for r in range(tid, 64, 32):
            for c in range(64):
                out[r, c] = tile[0, r, c]

    return fetch


A = np.tile(np.arange(64) // 8, (100, 1)).astype(np.float16)  # each element tells its piece of 8
A_map, out = tensor_map(A, (100, 64), (64, 64)), np.full((64, 64), -1, np.float16)
tried(make_fetch(row0=0, expected=64 * 64 * 2), 32, A_map, out)
pd.DataFrame(out[:8, ::8].astype(int)).rename_axis(index="row", columns="place")

# %% [markdown]
# TMA reaches shared memory by another path than threads do. What a thread has stored there, TMA is sure to
# see only after `fence_async()`. Where several threads store, each calls it, and a barrier follows.
#
# **Have you seen this table before?** And what stands in row 8?

# %% [markdown] tags=["thought"]
# It is notebook [[mma_sync.ipynb]]'s swizzle, `piece ^ (row % 8)`, and row 8 is row 0 again. TMA shuffles
# while it copies, so that 8 pieces one below the other lie in all 32 banks. For that the tile must begin at a
# multiple of 1,024 bytes: eight rows of 128.

# %% [markdown]
# ### Exercise [[expected_bytes]] · Bytes expected, bytes that come
# *core · medium · 10 minutes*
#
# A step needs a tile of A, BM × BK values, and one of B, BK × BN, all FP16. A box may have up to 256 rows,
# but with this swizzle at most 128 bytes per row. So A's tile is one box, and B's is cut into boxes of
# BK × 64, side by side (BN is a multiple of 64).
#
# From the corner on, `rows` rows of A are left, `columns` columns of B and `depth` steps along k: sometimes
# fewer than the tile has. **How many requests does the step make, and how many bytes must its barrier
# expect?** Every step requests all its boxes, even one that lies wholly outside.
#
# An experiment beats a guess. A has 100 rows: fetch from `row0=64`, where 36 are left, let `expected` be what
# you believe, and look at the edge with `out[32:40, ::8]`. What arrives for rows that do not exist?


# %% id="ex-expected_bytes"
def expected_bytes(BM, BN, BK, rows, columns, depth):
    ### BEGIN SOLUTION
    return 1 + BN // 64, 2 * (BM * BK + BK * BN)
    ### STUB
    # return None, None  # requests, bytes
    ### END SOLUTION


check.expected_bytes(expected_bytes)

# %% [markdown]
# ## Producer and consumers
#
# Now the ring turns by itself. One warp, the [producer](glossary.md#producer-and-consumer), does nothing but
# request tiles, as far ahead as there are empty slots. The consumers do nothing but read. No barrier stops
# the whole block any more; two mbarriers per slot are enough:
#
# | | who arrives | who waits |
# |---|---|---|
# | `full[slot]` | the producer, once, with its bytes | every consumer |
# | `empty[slot]` | every consumer warp, when it has read | the producer |
#
# That was the picture at the start, and the answer to its question: a phase of `full` says that a slot is
# full, a phase of `empty` that it may be filled again. Now **break it**. Six mistakes are on offer. Guess
# each time before you step:
#
# - the consumers never flip their parity, or one of them does not arrive;
# - the producer does not wait, or starts with parity 0;
# - it expects more bytes than come, or fewer.
#
# 1. Which mistakes end in a **standstill**, whatever the slots and the copies?
# 2. Which one is over **soonest**?
# 3. One mistake stands still, or reads **an old tile**, as slots and copies will have it. Which?
# 4. Which mistake hands over **half a tile**?

# %%
see.phases("consumer 1 does not arrive", slots=3)

# %% [markdown] tags=["thought"]
# 1. Consumer 1 does not arrive; too many bytes expected; the producer starts with parity 0.
# 2. The last of these: the producer waits for a slot to be given back that nobody has filled.
# 3. Consumers that never flip their parity. With two slots they read an old tile; with three or four and
#    quick copies they stand still. A bug that depends on timing passes a test today and fails tomorrow.
# 4. Too few bytes: the phase is over when A's have come.
#
# The last one is luck. A phase is over when as many bytes have come as were expected, and A's were just as
# many. Expect a few bytes less than that, and no copy ever hits the number here, where each counts as a
# whole: the kernel stands still, as in [[expected_bytes]]. In what portions a GPU counts them is nothing to
# rely on.

# %% [markdown]
# ### The kernel around
#
# Here is a small, whole kernel: the block computes 64 × 64 elements of C in steps of 64. The roles are device
# functions that you will write, first the producer, later the consumers.

# %%
see.source(two_roles)

# %% [markdown]
# Notice
#
# - the counts: one arrival at `full`, four at `empty`, one for each consumer warp;
# - the single `syncthreads`: barriers must be barriers before anybody uses them;
# - how C is stored: each of the four warps has 16 rows of the accumulators, laid out as in notebook
#   [[mma_sync.ipynb]];
# - `carve`, which cuts As and Bs out of one piece of shared memory, 16 KB per slot;
# - **one thread** is the producer. Its 31 neighbours go home.
#
# ### Exercise [[producer]] · A producer by hand
# *core · medium · the heart of this notebook · 15 minutes*
#
# For each step: wait for the slot, promise the bytes, request both tiles, move on. All boxes are 64 × 64. A's
# begins at row `row0`, B's at column `col0`. The consumers are given: they wait at `full` with the parity of
# [[parities]], and arrive at `empty`.
#
# `//` and `%` in every step would be slow. So count `slot` up, and flip `parity` where it goes back to 0.


# %% id="ex-producer"
@cuda.jit(device=True)
def produce(full, empty, As, Bs, A, B, row0, col0, steps, slots):
    slot, parity = 0, 0
    for step in range(steps):
        ### BEGIN SOLUTION
        mbarrier_wait(empty, slot, parity ^ 1)
        mbarrier_expect(full, slot, 2 * 64 * 64 * 2)
        tma_load(As, (slot, 0, 0), A, (row0, step * 64), full, slot)
        tma_load(Bs, (slot, 0, 0), B, (step * 64, col0), full, slot)
        slot += 1
        if slot == slots:
            slot, parity = 0, parity ^ 1
        ### STUB
        # pass  # your code: wait, expect, two requests, the next slot
        ### END SOLUTION


check.producer(produce)

# %% [markdown]
# **Look at what is not there.** No bounds check, no zeros, no address of an element, no loop over elements.
# A step copies 16 KB. How many instructions does it take now? How many `cp.async` did 16 KB take?

# %% [markdown] tags=["thought"]
# Two requests, by one thread. With `cp.async` it was 1,024 copies of 16 bytes, in 32 instructions of a warp,
# each with its addresses.

# %% [markdown]
# ## A machine that multiplies
#
# `mma.sync` takes its operands from registers, so warps load fragments all day. Hopper's
# [**wgmma**](glossary.md#wgmma) reads both tiles **from shared memory by itself**. Four warps, a
# [warpgroup](glossary.md#warpgroup), give the order together:
#
# | call of 128 threads | does |
# |---|---|
# | `wgmma(64, acc, As, (slot, 0, p), Bs, (slot, p, 0))` | queues `acc += a · b`: 64 rows, 64 columns, k 16 |
# | `wgmma_commit()` | closes the group of what was queued |
# | `wgmma_wait(1)` | waits until at most 1 group is still running |
# | `wgmma_fence()` | before a step's first product: says that the accumulators are ready |
#
# The first number is the columns, up to 256. The two places say where A's and B's parts begin: in a slot, at
# p = 0, 16, 32 or 48 along k. Registers hold only the accumulators: 64 × 64 over 128 threads are 32 each.
#
# `wgmma` returns at once, as `cp.async` does. Until the wait, the accumulators are not yours, **and the tiles
# are still being read**.
#
# The swizzle is undone on the way: rows of 128 bytes, as TMA brings them ([PTX
# ISA](https://docs.nvidia.com/cuda/parallel-thread-execution/#asynchronous-warpgroup-level-matrix-instructions)).
#
# ### Exercise [[consumer]] · The consumers by hand
# *core · hard · 20 minutes*
#
# For each step: wait for the tile, queue four products, each of 16 values along k, wait until they are
# complete, give the slot back, move on. `acc` is zero already. The kernel stores it when your function
# returns: by then all products must be complete. `empty` counts 4 arrivals: one lane of each warp.
#
# First make it right, with `wgmma_wait(0)`. Then try to leave one group running while the next is queued:
# whose slot may you give back then?


# %% id="ex-consumer"
@cuda.jit(device=True)
def consume(full, empty, As, Bs, acc, lane, steps, slots):
    slot, parity = 0, 0
    ### BEGIN SOLUTION
    before = 0
    for step in range(steps):
        mbarrier_wait(full, slot, parity)
        wgmma_fence()
        for p in unroll(range(0, 64, 16)):
            wgmma(64, acc, As, (slot, 0, p), Bs, (slot, p, 0))
        wgmma_commit()
        wgmma_wait(1)
        if lane == 0 and step > 0:
            mbarrier_arrive(empty, before)
        before = slot
        slot += 1
        if slot == slots:
            slot, parity = 0, parity ^ 1
    wgmma_wait(0)
    ### STUB
    # # your code
    ### END SOLUTION


check.consumer(consume)

# %% [markdown]
# ## One slot or two?
#
# With `wgmma_wait(1)` a slot is given back one step late. Here are such consumers:

# %% tags=["listing"]
from gemm_course.checks.kits import given_producer, late_consumer

see.fold(see.source(late_consumer), first="Write the exercise first, then open this.")

# %% [markdown]
# They run with the course's producer, `given_producer`, in rings of two slots and of one. **What will the
# second do?**

# %%
A, B = (np.random.default_rng(0).random(shape).astype(np.float16) for shape in ((64, 512), (512, 64)))
A_map, B_map = (tensor_map(each, each.shape, (64, 64)) for each in (A, B))
C = np.zeros((64, 64), np.float32)


def with_two_slots_and_with_one():
    for slots in (2, 1):
        print(f"{slots} slots: ", end="")
        kernel = two_roles(slots, given_producer, late_consumer)
        tried(kernel, 160, 512, A_map, B_map, C, shared_bytes=slots * 2 * 64 * 64 * 2)


see.fold(with_two_slots_and_with_one, first="Answer first, then open this.")

# %% [markdown] id="side-how_far_it_gets"
# *Side trip, 20 minutes: [How far does a block get?](how_far_it_gets.ipynb)*

# %% [markdown]
# ## Three kernels
#
# The ladder takes three steps. All compute 128 × 256 elements of C per block, in steps of 64.
#
# | stage | who copies | who multiplies |
# |---|---|---|
# | `mma_sync` (notebook [[mma_sync.ipynb]]) | all threads, `cp.async` | warps, `mma.sync` |
# | `mma_tma` | a producer, TMA | warps, `mma.sync` |
# | `wgmma_tma` | thread 0, TMA | warpgroups, `wgmma`; a barrier of the block in each step |
# | `warp_specialised` | a producer, TMA | warpgroups, `wgmma`, no barrier of the block |
#
# The second step changes three things: what multiplies, who asks for tiles, and the slots, four instead of
# three. The last one changes who asks, and so needs no barrier; the rest stays, so that you can tell what
# that brings. (Two slots run, but slowly: `warp_specialised` has 482 TFLOPS with two, 671 with three, 674
# with four.) And that kernel is yours, grown up:

# %% tags=["listing"]
see.fold(see.source("warp_specialised"), first="Write the exercise first, then open this.")

# %% [markdown]
# `produce` is [[producer]], with a request for each of B's four panels of 64 columns; `next_slot` is the end
# of your loop, and `grouped` [[grouped_tile]]. Notice `4 * CONSUMERS` arrivals at `empty`; `wgmma(BN, ...)`
# with 256 columns; `HEIGHT`, the products of 64 rows that a consumer needs, here one, each with `ACCS`
# accumulators; `rolled`, which keeps the compiler from copying the loop's body four times; and the stores at
# the end, straight from registers. `FEW` and `MANY` are the registers of producer and consumers. They change
# hands between whole warpgroups: so the producer has 128 threads now, and comes first, `tid < 128`. Still
# only one of them works.

# %%
see.predict("hopper.share")

# %%
from gemm_course.compiler.record import recorded

see.fold(lambda: see.compare_code(*(recorded(stage, (9, 0)) for stage in ("mma_tma", "wgmma_tma"))))

# %% [markdown] tags=["answer"]
# 113: 4 products and 109 others, where `mma_tma` has 64 others. Loops used to be good if they were full of
# products. Here the others have grown, and it does not matter. One `wgmma` does as much as 32 `mma.sync`,
# 65,536 multiply-adds per warp, and meanwhile a warp has time for them all: issuing takes 22 % of the clocks
# that the products need.
#
# And read the line on Tensor Cores: they are busy 1.51 times as long with `mma.sync` for the same work, 6
# clocks for what takes `wgmma` 4. (The picture's 38 % for `mma_tma` counts 4 as well. Of 6 it is 25 %.)

# %% [markdown]
# ### Two losses make a win
#
# `mma_tma` changes two things at once: TMA copies, and a warpgroup of its own asks for them. Each was tried
# alone, beside `mma_sync` in the same run (`gemm_course/kernels/NOTES.md` has all of it). TMA, requested by a
# thread that multiplies as well: 63.2 to 63.5 % of cuBLAS, where `mma_sync` had 64.5. Producer warps with
# `cp.async`: 61.5 % at best. **Both together: 67 to 69 %.**
#
# So whoever tests one idea at a time would have dropped both. The rule stays, one change per measurement. But
# what a change is worth may depend on the others.
#
# ### One last bet
#
# In `wgmma_tma` a warp spends 30 % of its time at the barriers of the block, by its profile.
# `warp_specialised` takes them away.

# %%
see.predict("hopper.gain")

# %%
stages = ["mma_sync", "mma_tma", "wgmma_tma", "warp_specialised"]
fp16 = records.ladder().query("dtype == 'fp16' and m == n == k and m in (4096, 8192) and stage in @stages")
see.fold((100 * fp16.pivot(index="stage", columns="m", values="ratio_to_cublas")).loc[stages].round(1))

# %% [markdown] tags=["answer"]
# Nothing, or a little less, at both sizes. Before the measurement we had written down 90 to 95 % of cuBLAS
# for 4096³; it was 87.3 in that first run, and `wgmma_tma` had 87.7. Where did the 30 % go?

# %% [markdown]
# ## What limits it now?
#
# Four profiles, and somebody has lost the labels. **Which is `mma_sync`, `mma_tma`, `wgmma_tma`,
# `warp_specialised`?** And is the one with the busiest Tensor Cores the fastest?
#
# | | P | Q | R | S |
# |---|---|---|---|---|
# | Tensor Cores are busy | 89 % | 79 % | 83 % | 81 % |
# | issue slots are busy | 24 % | 16 % | 27 % | 13 % |
# | a warp waits for the result just before | 37 % | 13 % | 33 % | 14 % |
# | a warp waits for a busy unit | 33 % | 0 % | 32 % | 0 % |
# | a warp waits at barriers | 0 % | 0 % | 2 % | 30 % |
# | a warp waits for products | 0 % | 45 % | 0 % | 26 % |

# %%
see.fold(
    lambda: see.limits("mma_sync", "mma_tma", "wgmma_tma", "warp_specialised"),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# P is `mma_tma`, Q `warp_specialised`, R `mma_sync`, S `wgmma_tma`. Only `wgmma` is waited for as a product;
# `mma.sync` shows as a busy unit. S has the barrier of the whole block. And between P and R, the loop without
# copies issues less.
#
# The busiest Tensor Cores are P's, and P is third: 522 TFLOPS, S has 673. With `mma.sync` they take 6 clocks
# where 4 would do, and are busy all that time. **A busy unit is not yet a useful one.**

# %%
see.fold(lambda: see.waits("wgmma_tma", "warp_specialised"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# And this is where the 30 % went: at barriers none is left, and waits for products grew from 26 % to 45 %.
# The warps only wait **somewhere else**. With a group of products always queued, it is all the same to a
# Tensor Core where the threads stand. A wait costs something only if the unit that limits runs dry meanwhile.

# %% [markdown]
# ### Where the rest is
#
# Tensor Cores are busy in about 80 % of the clocks, not 100, and the loop hides every copy. What is left lies
# outside the loop: each block waits for its first tiles, and at its end stores 128 × 256 results while nobody
# multiplies. And at 8192³, where each tile has twice as many steps, both kernels reach 95 % and more. **What
# would you change?**

# %% [markdown] tags=["thought"]
# Let a producer fetch the tiles for the next part of C while the consumers still store: blocks that live on,
# and take one tile after another. That needs a producer of its own. So `warp_specialised` was no dead end: it
# is the step before the next one.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("hopper")

# %% [markdown]
# ## Recap
#
# You
#
# - split a barrier into arriving and waiting, and named phases by their parity;
# - had one thread copy whole tiles, counted in bytes, zeros included;
# - broke a ring in six ways, and told a standstill from a race;
# - wrote a producer, and consumers that keep a product queued;
# - explained why a ring needs one slot more than it gives back late;
# - moved registers from those who wait to those who add;
# - lost a bet: a wait that nobody notices is not worth removing.
#
# From 486 to 664 TFLOPS in the ladder's run, with four products in the loop. The last per cent are not in
# the loop at all: they are in notebook [[last_per_cent.ipynb]].
#
# <details><summary>For the curious</summary>
#
# - **Is this how the professionals do it?** Producer, consumers and two barriers per slot are those of
#   CUTLASS's [warp-specialized](https://docs.nvidia.com/cutlass/media/docs/cpp/efficient_gemm.html) kernels.
#   Consumers that share a tile, as these do, are called *cooperative* there. In *ping-pong* kernels each
#   consumer has a tile of its own, and stores it while the other one multiplies.
# - **Why does only lane 0 arrive?** The whole warp executes `wgmma_wait`, so one lane can speak for all 32.
# - **And the next generation?** In data centres' Blackwell GPUs an instruction of a single thread replaces
#   `wgmma`, with accumulators in a memory of their own: `tcgen05.mma` in the [PTX
#   ISA](https://docs.nvidia.com/cuda/parallel-thread-execution/#tcgen05-mma-instructions). TMA stays.
#
# </details>
