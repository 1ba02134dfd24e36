# %% [markdown]
# # [[hopper.ipynb]] · What is left for threads?
#
# So far threads did the work. They copied tiles, loaded fragments and multiplied. A
# [Hopper](glossary.md#hopper) GPU has one machine that copies whole tiles, and one that multiplies them in
# shared memory. What is left is small, and easy to get wrong. Here is its smallest form: one thread waits for
# a letter from another.

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


def tried(kernel, threads, *arguments, **options):
    """Run one block on the emulator; print what was found, or why it stands still."""
    try:
        found = emulate(kernel, 1, threads, *arguments, **options).errors
        print(*found or ["It runs, and nothing was found."], sep="\n")
    except EmulatorError as error:
        print(error)


# %% id="hand_over"
@cuda.jit
def hand_over(out):
    ready = cuda.shared.array(1, uint64)
    letter = cuda.shared.array(1, float32)
    tid = cuda.threadIdx.x
    if tid == 0:
        mbarrier_init(ready, 0, 1)  # waits will be for 1 arrival
    cuda.syncthreads()
    if tid == 0:
        letter[0] = 42
        mbarrier_arrive(ready, 0)  # line A: thread 0 has written, and says so
    if tid == 32:  # a thread of another warp
        mbarrier_wait(ready, 0, 0)  # line B: until thread 0 has said so; the last 0 is told below
        out[0] = letter[0]


out = np.zeros(1, np.float32)
tried(hand_over, 64, out)
out

# %% [markdown]
# **Remove a line.** Without line A or without line B it is broken. In one case there is a race, in the other
# the kernel stands still. Which is which? Choose. Then put a # before line A, and run. Put it back, and do
# the same with line B.

# %% [markdown] tags=["thought"]
# Without A it stands still: thread 32 waits for an arrival that never comes. Without B it is a race: thread
# 32 reads, whether or not the letter is there. On a GPU the race gives some number. The standstill hangs, and
# you have to restart. The emulator tells who waits for what. You will read that message often today.

# %% [markdown]
# *Time: about 70 minutes to read, 90 for the exercises, in four sittings; the pauses are marked. Goes beyond
# the documents, with the stages `mma_tma`, `wgmma_tma` and `warp_specialised`.*
#
# First two questions from memory:

# %%
see.recall("hopper")

# %% [markdown]
# ## Who arrives, and who waits?
#
# At `cuda.syncthreads()` every thread of a block arrives, and every thread waits. An
# [**mbarrier**](glossary.md#mbarrier) takes the two apart: some threads **arrive** and go on, others
# **wait**. It is an element of a `uint64` array in shared memory, and it counts.
#
# | call | does |
# |---|---|
# | `mbarrier_init(ready, 0, 1)` | makes `ready[0]` a barrier that needs 1 arrival |
# | `mbarrier_arrive(ready, 0)` | one arrival; the thread goes on |
# | `mbarrier_wait(ready, 0, 0)` | waits; what was stored before the arrivals can then be read |
#
# (The third argument of the wait comes in the next section.)
#
# **Write it.** Two threads send a letter each: thread 0 stores 40 in `letter[0]`, thread 1 stores 2 in
# `letter[1]`. Both arrive. Thread 32 writes the sum into `out[0]`. `tried` should find nothing, and `out`
# should be 42.


# %% id="two_letters"
@cuda.jit
def two_letters(out):
    ready = cuda.shared.array(1, uint64)
    letter = cuda.shared.array(2, float32)
    tid = cuda.threadIdx.x
    ### BEGIN SOLUTION
    if tid == 0:
        mbarrier_init(ready, 0, 2)
    cuda.syncthreads()
    if tid < 2:
        letter[tid] = 40 if tid == 0 else 2
        mbarrier_arrive(ready, 0)
    if tid == 32:
        mbarrier_wait(ready, 0, 0)
        out[0] = letter[0] + letter[1]
    ### STUB
    # # your code
    ### END SOLUTION


out = np.zeros(1, np.float32)
tried(two_letters, 64, out)
out

# %% [markdown]
# **What we now know:** a missing wait is a race, a missing arrival a standstill. The barrier must know how
# many will arrive.
#
# ## Can the same barrier be used again?
#
# A tile is handed over in every step. So when all arrivals are in, the barrier begins anew by itself. We
# draw that as a strip, and each new stretch has the other colour, dark and light in turn.
#
# In the picture a stretch takes two arrivals. A thread comes along and waits for **dark**. Step through: in
# which stretches does it go on? Then say in one sentence what it means to wait for dark.

# %%
see.two_colours("dark")

# %% [markdown] tags=["thought"]
# It goes on while the stretch that runs is **not** dark. So to wait for dark means: wait until a dark stretch
# is over.

# %% [markdown]
# Now the words. A stretch is a [**phase**](glossary.md#phase). Phases have numbers from 0 on. The colour is
# the **parity** of that number: 0 for even (dark), 1 for odd (light). That is the third argument:
# `mbarrier_wait(ready, 0, parity)` waits until a phase of this parity is over.

# %%
see.predict("hopper.new")

# %% [markdown]
# **Try it:** let thread 32 of `hand_over` wait for parity 1. What does the emulator find? Then look at the
# strip again, with the other colour:

# %%
see.two_colours()

# %% [markdown]
# A wait cannot tell phase 0 from phase 2. A thread that comes two phases late would wait for the wrong one.
# In a [ring](glossary.md#ring) that works this cannot happen: a slot is filled again only after all its
# readers have said that they are done.
#
# ### Exercise [[parities]] · Which parity?
# *core · medium · 10 minutes*
#
# The ring of notebook [[overlap.ipynb]], now with two mbarriers for each slot. A **producer** fills the slots
# in turn, one per step. **Consumers** read them.
#
# - `full[slot]` ends a phase when a tile has come. In each step the consumer waits for the end of that phase.
# - `empty[slot]` ends a phase when all readers are done with the slot. Before the producer fills a slot, it
#   waits for the end of the *last* use. The first time round there was none, and it must not wait.
#
# Which slot is a step's, and which parity does the consumer name there, which the producer? Play steps 0 to 5
# with two slots on paper first.


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
# **What we now know:** a wait names the colour of a phase, and returns when that phase is over. On a new
# barrier a wait for parity 1 returns at once.
#
# ## Can one thread bring a whole tile?
#
# A `cp.async` moves 16 bytes, and its thread computes two addresses for them. The [**Tensor Memory
# Accelerator**](glossary.md#tma), TMA, needs no such help. One thread names a corner, and the unit copies the
# whole tile, its **box**, into shared memory.
#
# What it must know about the matrix is written down before the launch, by the
# [host](glossary.md#host), the Python program that launches the kernel. That is a [**tensor
# map**](glossary.md#tensor-map): address, shape, length of a row, and the shape of the box.
#
# ```python
# tensor_map(A, (m, k), (64, 64))                   # on the host: boxes of 64 × 64
# tma_load(tile, (0, 0, 0), A, (row0, 0), full, 0)  # in the kernel, by one thread; here A is the map
# ```
#
# The second line copies the box at `A[row0, 0]` to `tile[0, 0, 0]` (slot, row, column). And it **reports to
# `full[0]`**, for copies can arrive at mbarriers as well. They are counted in bytes. So the thread says first
# how many will come: `mbarrier_expect(full, 0, bytes)`. That is one arrival and a promise. The phase is over
# when all arrivals *and* all bytes are in.


# %% id="fetch"
def make_fetch(row0, expected):
    @cuda.jit
    def fetch(A, out):
        full = cuda.shared.array(1, uint64)
        tile = cuda.shared.array((1, 64, 64), float16, 1024)
        tid = cuda.threadIdx.x
        if tid == 0:
            tma_acquire(A)  # the host wrote the map: now TMA is sure to see it
            mbarrier_init(full, 0, 1)
            fence_async()  # this thread wrote the barrier: now TMA is sure to see it, too
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
# (TMA reaches shared memory by a path of its own. `fence_async` stands between what a thread stored and what
# TMA does there next. The same fence is needed where threads store a tile that TMA then carries out, as in
# notebook [[last_per_cent.ipynb]].)
#
# **Where have you seen this table before?** And what stands in row 8?

# %% [markdown] tags=["thought"]
# It is the swizzle of [[swizzle]], `piece ^ (row % 8)`, and row 8 is row 0 again. TMA shuffles while it
# copies, so that 8 pieces one below the other lie in all 32 banks. For that the tile must begin at a multiple
# of 1,024 bytes: eight rows of 128.

# %% [markdown]
# ### Exercise [[expected_bytes]] · Bytes expected, bytes that come
# *core · medium · 10 minutes*
#
# A step needs a tile of A, BM × BK values, and one of B, BK × BN, all FP16. A box may have up to 256 rows,
# but with this swizzle at most 128 bytes per row. So A's tile is one box. B's is cut into **panels**, boxes
# of BK × 64 side by side (BN is a multiple of 64).
#
# From the corner on, `rows` rows of A are left, `columns` columns of B and `depth` steps along k: sometimes
# fewer than the tile has. **How many requests does the step make, and how many bytes must its barrier
# expect?** Every step requests all its boxes, even one that lies wholly outside.
#
# An experiment beats a guess. A has 100 rows. In the cell above fetch from `row0=64`, where 36 are left, let
# `expected` be what you believe, and look at the edge: `out[32:40, ::8]`.


# %% id="ex-expected_bytes"
def expected_bytes(BM, BN, BK, rows, columns, depth):
    ### BEGIN SOLUTION
    return 1 + BN // 64, 2 * (BM * BK + BK * BN)
    ### STUB
    # return None, None  # requests, bytes
    ### END SOLUTION


check.expected_bytes(expected_bytes)

# %% [markdown]
# **What we now know:** one thread orders a tile by one call per box. The barrier counts the whole box, zeros
# included.
#
# *A good place for a pause. The next sitting takes about 40 minutes.*
#
# ## How far ahead can one thread ask?
#
# Now the ring turns without a barrier for the whole block. One thread, the
# [producer](glossary.md#producer-and-consumer), does nothing but request tiles, as far ahead as there are
# empty slots. The consumers do nothing but read.
#
# | | who arrives | who waits |
# |---|---|---|
# | `full[slot]` | the producer, once, with its bytes | every consumer |
# | `empty[slot]` | each consumer warp, once, when it has read | the producer |
#
# Here is the kernel around: a block computes 64 × 64 elements of C in steps of 64. `produce` and `consume`
# are device functions that you will write. `carve` cuts As and Bs out of one piece of shared memory. Find the
# line that sets the counts of this table, and the only `syncthreads`. Why is that one needed?

# %%
see.source(two_roles)

# %% [markdown] tags=["thought"]
# `mbarrier_init(full, s, 1)` and `mbarrier_init(empty, s, 4)`: four consumer warps. And barriers must be
# barriers before anybody uses them.

# %% [markdown]
# ### Exercise [[producer]] · A producer by hand
# *core · medium · 20 minutes*
#
# For each step: wait for the slot, promise the bytes, request both tiles, move on. All boxes are 64 × 64. A's
# begins at row `row0`, B's at column `col0`. Consumers are given: they wait at `full` with the parity of
# [[parities]], and arrive at `empty`.
#
# - Count `slot` up, and flip `parity` where it goes back to 0: `//` and `%` in every step would be slow.
# - The producer shall run ahead: with three slots, three tiles under way before anybody has read one.


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
# **Look at what is not there.** No bounds check, no zeros, no loop over elements. A step copies 16 KB. How
# many requests does it take, and how many `cp.async` of 16 bytes would it take?

# %% [markdown] tags=["thought"]
# Two requests, by one thread. By `cp.async` it was 1,024 copies of 16 bytes: 32 instructions of a warp, each
# with its addresses.

# %% [markdown]
# **What we now know:** a producer that only waits for empty slots runs as far ahead as the ring is long.
#
# ## What breaks a ring, and how does it show?
#
# You will meet kernels that stand still. Here is a debugger to learn on: one producer, two consumers, and
# every count of every barrier. First run it without a mistake. Then there are six to choose:
#
# - the consumers never flip their parity, or one of them does not arrive;
# - the producer does not wait, or starts with parity 0;
# - it expects more bytes than come, or fewer.
#
# Guess before each run. Then answer:
#
# 1. Which mistakes end in a **standstill**, whatever the slots and the copies?
# 2. Which one is over **soonest**?
# 3. One mistake stands still, or reads **an old tile**, as slots and copies will have it. Which?
# 4. Which mistake hands over **half a tile**?

# %%
see.phases()

# %% [markdown] tags=["thought"]
# 1. Consumer 1 does not arrive; too many bytes expected; the producer starts with parity 0.
# 2. The last of these: the producer waits for a slot to be given back that nobody has filled.
# 3. Consumers that never flip their parity. With two slots they read an old tile; with three or four and
#    quick copies they stand still. Such a bug passes a test today and fails tomorrow.
# 4. Too few bytes: the phase is over when A's have come.

# %% [markdown]
# **Now break your own.** Go back to your `produce`, and let it promise more bytes than come. Run its check.
# The end of the message comes from the emulator: who waits, and for which phase of which barrier. Warp 4 is
# your producer, warps 0 to 3 are the consumers. Set the picture to the same mistake, and go to its last step.
# Find each of them there, and the count that is not complete. Then do the same with parity 0 at the start.
# Put `produce` right again.
#
# **What we now know:** whoever stands still waits at a barrier whose count is not complete. Look there
# first: arrivals, bytes, parity.
#
# *A good place for a pause. The next sitting takes about 35 minutes.*
#
# ## Who loads the operands?
#
# `mma.sync` takes its operands from registers, so warps load fragments all day. Hopper's
# [**wgmma**](glossary.md#wgmma) reads both tiles **from shared memory by itself**, and undoes TMA's swizzle
# on the way. Four warps, a [warpgroup](glossary.md#warpgroup), give the order together:
#
# | call of 128 threads | does |
# |---|---|
# | `wgmma_fence()` | before a step's first product: says that the accumulators are ready |
# | `wgmma(64, acc, As, (slot, 0, p), Bs, (slot, p, 0))` | queues `acc += a · b`: 64 rows, 64 columns, k 16 |
# | `wgmma_commit()` | closes the group of what was queued |
# | `wgmma_wait(1)` | waits until at most 1 group is still running |
#
# The first number of `wgmma` is the columns, up to 256. The two places say where A's and B's parts begin: in
# a slot, at p = 0, 16, 32 or 48 along k. Registers hold only the accumulators: 64 × 64 over 128 threads are
# 32 each.
#
# `wgmma` returns at once, as `cp.async` does. Until the wait, the tiles are still being read, **and the
# accumulators are in flight**: neither you nor the compiler may touch these registers.
#
# ### Exercise [[consumer]] · The consumers by hand
# *core · hard · the heart of this notebook · 25 minutes*
#
# For each step: wait for the tile, queue four products, each of 16 values along k, wait until they are
# complete, give the slot back, move on. `acc` is zero already. The kernel stores it when your function
# returns, so by then all products must be complete. `empty` counts 4 arrivals: one lane of each warp.
#
# First make it right, with `wgmma_wait(0)`. Then leave one group running while the next is queued: whose slot
# may you give back then?


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
# Consumers that leave a group running give each slot back one step late. They ran in rings of two slots and
# more. **What will happen in a ring of one slot?** And with consumers that wait for all, `wgmma_wait(0)`? Say
# it, then run both. (The kit has the two: `late_consumer` and `given_consumer`.)

# %% id="one_slot"
from gemm_course.checks.kits import given_consumer, given_producer, late_consumer

A, B = (np.random.default_rng(0).random(shape).astype(np.float16) for shape in ((64, 512), (512, 64)))
A_map, B_map = (tensor_map(each, each.shape, (64, 64)) for each in (A, B))
C = np.zeros((64, 64), np.float32)


def with_one_slot():
    for name, consumers in (("late", late_consumer), ("patient", given_consumer)):
        print(f"{name}: ", end="")
        kernel = two_roles(1, given_producer, consumers)
        tried(kernel, 160, 512, A_map, B_map, C, shared_bytes=2 * 64 * 64 * 2)


see.fold(with_one_slot, first="Answer first, then open this.")

# %% [markdown] id="side-how_far_it_gets"
# **What we now know:** no warp loads an operand any more. A slot may be filled again when its products are
# complete, not when they are queued.
#
# Side trip, 20 minutes: how many slots does a ring need, and who needs how many registers? [How far does a
# block get?](how_far_it_gets.ipynb) It leads back to this line.
#
# *A good place for a pause. The last sitting takes about 45 minutes.*

# %% [markdown]
# ## What is 30 % of waiting worth?
#
# The ladder takes three steps here. All compute 128 × 256 elements of C per block, in steps of 64.
#
# | stage | who copies | who multiplies |
# |---|---|---|
# | `mma_sync` (notebook [[mma_sync.ipynb]]) | all threads, `cp.async` | warps, `mma.sync` |
# | `mma_tma` | a producer, TMA | warps, `mma.sync` |
# | `wgmma_tma` | thread 0, TMA | warpgroups, `wgmma`; a barrier of the block in each step |
# | `warp_specialised` | a producer, TMA | warpgroups, `wgmma`, no barrier of the block |
#
# The last one is yours, grown up:

# %% tags=["listing"]
see.fold(see.source("warp_specialised"), first="Write the exercise first, then open this.")

# %% [markdown]
# Find your two functions in it. What is new: B's four panels, each with a request of its own; two consumer
# warpgroups, so eight arrivals at `empty`; products of 256 columns; and `registers_down`, `registers_up`,
# which hand registers from the producer to the consumers. That goes by whole warpgroups, so the producer has
# 128 threads now, and still one of them works.
#
# (Both consumers share a tile here. NVIDIA's library CUTLASS calls that *cooperative*. In its *ping-pong*
# kernels each consumer has a tile of its own, and stores it while the other one multiplies.)

# %%
see.predict("hopper.share")

# %%
from gemm_course.compiler.record import recorded

see.fold(lambda: see.compare_code(*(recorded(stage, (9, 0)) for stage in ("mma_tma", "wgmma_tma"))))

# %% [markdown] tags=["answer"]
# The loop of `wgmma_tma` has 4 products and 109 other instructions. Loops used to be good if they were full
# of products. Now one order does as much as 32 `mma.sync`, and while it is carried out, a warp has time for
# all the others.

# %% [markdown]
# In `wgmma_tma` a warp spends 30 % of its time at the barriers of the block, by its profile.
# `warp_specialised` takes them away.

# %%
see.predict("hopper.gain")

# %%
stages = ["mma_sync", "mma_tma", "wgmma_tma", "warp_specialised"]
fp16 = records.ladder().query("dtype == 'fp16' and m == n == k and m in (4096, 8192) and stage in @stages")
see.fold((100 * fp16.pivot(index="stage", columns="m", values="ratio_to_cublas")).loc[stages].round(1))

# %% [markdown]
# Where did the 30 % go? Say what you expect of the waits of `warp_specialised`, then look.

# %%
see.fold(lambda: see.waits("wgmma_tma", "warp_specialised"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# At barriers none is left, and waits for products grew from 26 % to 45 %. The warps only wait **somewhere
# else**. A group of products is always queued, so it is all the same to a Tensor Core where the threads
# stand. A wait costs something only if the unit that limits runs dry meanwhile. (In clocks
# `warp_specialised` is 3 % slower. But its producer and its registers changed as well.)

# %% [markdown]
# **One more measurement.** `mma_tma` changes two things at once: TMA copies, and a producer of its own asks.
# Each was tried alone, at 4096³, on another day, when `mma_sync` had 64.5 % of cuBLAS:
#
# - TMA, asked by a thread that multiplies as well: 63.2 to 63.5 %.
# - A producer that copies by `cp.async`: 61.5 % at best.
#
# What would you have done after these two? And what do both together bring?

# %% [markdown] tags=["thought"]
# Most people would have dropped both. But both together are `mma_tma`, 68 % in the table above: two losses
# make a win. The rule stays, one change per measurement. But what a change is worth may depend on the others.

# %% [markdown]
# **What we now know:** a wait counts only if the unit that limits waits, too.
#
# ## Why 256 columns?
#
# Your consumers multiply 64 columns at a time, the ladder's 256. Is that only fewer orders? Shared memory
# gives 128 bytes in a clock of an SM. In that time its Tensor Cores can do 2,048 multiply-adds of FP16.
#
# **Write it.** One `wgmma` multiplies 64 × 16 values of A by 16 × N of B, 2 bytes each, and reads both from
# shared memory. How many bytes does it read per clock, if the Tensor Cores are never to wait? Print it for N
# = 64, 128 and 256.


# %% id="bytes_per_clock"
def bytes_per_clock(N):
    ### BEGIN SOLUTION
    clocks = 64 * N * 16 / 2048
    return 2 * (64 * 16 + 16 * N) / clocks
    ### STUB
    # return None
    ### END SOLUTION


[bytes_per_clock(N) for N in (64, 128, 256)]

# %% [markdown] tags=["thought"]
# 128, 96 and 80: 64 + 4,096 / N. With 64 columns the reads alone take all that shared memory can give, and
# TMA has to write the next tiles as well.

# %% [markdown]
# So forecast `warp_specialised` with BN = 128, and with 64, and rank them. Then set BN. And which of these
# sliders does your one-slot experiment speak of? Go down with it as far as it goes, and watch the TFLOPS.

# %%
see.tiles("warp_specialised", tells_best=False)

# %% [markdown] tags=["thought"]
# 674 TFLOPS with 256 columns, 604 with 128, 390 with 64. (The ladder's run is another one and has 664.) The
# order is as forecast. It is no proof: a step
# with fewer columns also is shorter, and the ring covers less time. And SLOTS: 671 with three, 482 with two.
# Two are enough to run, and too few to run ahead.

# %% [markdown]
# **What we now know:** the wider a product, the fewer bytes of shared memory for each multiply-add.
#
# ## What stops it now?
#
# The Tensor Cores of `mma_tma` or those of `warp_specialised`: which are busy in more of the clocks? And
# which kernel is faster?

# %%
see.fold(
    lambda: see.limits("mma_tma", "warp_specialised"),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# Those of `mma_tma`, 89 % beside 79 %, and it is the slower one. An `mma.sync` takes 6 clocks for what a
# `wgmma` does in 4, and is busy all that time. **A busy unit is not yet a useful one.**

# %% [markdown]
# In `warp_specialised` the Tensor Cores rest in 21 % of the clocks, though the loop hides every copy. At
# 8192³, where each tile has twice as many steps, the kernel reaches 95 % of cuBLAS instead of 88 %. **So
# where is the time lost, and what would you change?**

# %% [markdown] tags=["thought"]
# Outside the loop. Each block waits for its first tiles, and at its end stores 128 × 256 results while nobody
# multiplies. Twice as many steps make that half as important. So let a producer fetch the tiles of the next
# part of C while the consumers still store: notebook [[last_per_cent.ipynb]].
#
# Fewer bytes would not help. Blocks can form a *cluster*, in which one copy is written into several SMs. In a
# later kernel that took a third of the bytes from L2 away, and brought nothing.

# %% [markdown]
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a producer that orders tiles, and consumers that order products. Threads do neither any more:
#   they say when.
# - **It reached** 664 TFLOPS on an H200, where `mma_sync` had 486.
# - **What stops it now** is no wait inside the loop. It is the time before the first tile and after the last.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("hopper")
