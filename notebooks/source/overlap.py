# %% [markdown]
# # [[overlap.ipynb]] · Nobody waits: overlap
#
# A tile is fetched, everybody waits, the tile is multiplied, and the memory waits. This notebook ends the
# waiting. It needs no new unit of the GPU, and it leads past cuBLAS, in FP32 and in Python.
#
# **After this notebook you can** fetch tiles while others are multiplied, through registers and with copies
# that run by themselves. You can write a ring of tiles and say how many may be under way; tell a missing
# wait from a missing barrier; and read from a loop's machine code what it can reach at most.
#
# *Time: about 60 minutes to read, 90 for the exercises. Beyond the documents.*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32

from gemm_course import check, emulate, records, run
from gemm_course import widgets as see
from lockstep.intrinsics import cp_async4, cp_async_commit, cp_async_wait, unroll

# %% [markdown]
# ## In one picture
#
# Time runs from left to right. Shared memory has room for some tiles; each room is a **slot**. A thin line
# is a copy that is under way, a block with a number is that tile's products.
#
# With one slot you see the kernels of notebooks [[shared_memory_tiles.ipynb]] to [[warp_tiles.ipynb]]. Now
# give it a second. Then make the copies slow, 12 against 4 for the products: **how many slots until nobody
# waits?** Guess, then try.

# %%
see.overlap()

# %% [markdown] tags=["thought"]
# Four. While one tile is multiplied, three others are under way: 12 / 4. In general it takes 1 + copy /
# products, rounded up. It is [Little's law](glossary.md#in-flight) once more: what has to be in flight is
# latency times throughput.

# %% [markdown]
# ## Who waits?
#
# In notebook [[warp_tiles.ipynb]] an SM held two blocks of `warp_tiled`. While one waited for its tile, the
# other multiplied. That is overlap too, without a line of code.
#
# But the two blocks share the registers. Take larger tiles, 128 × 256 × 8, with warps of 64 × 64. A
# thread has 16 × 8 = 128 results, and reads only 24 operands for 128 multiply-adds, where 8 × 8 results
# need 16 for 64. It also takes 191 registers, so an SM has room for one block of 8 warps.

# %%
see.predict("overlap.alone")

# %%
large = ("warp_tiled", {"BM": 128, "BN": 256, "BK": 8, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "PAD": 4})
see.fold(lambda: see.waits(large))

# %% [markdown] tags=["answer"]
# 32.9 TFLOPS, where the smaller tiles do 43.0. The larger ones need fewer instructions (1.14 per
# multiply-add instead of 1.16), but in 42 % of the clocks a scheduler has nothing to issue. All 8 warps
# come to the same barrier, and then all wait for the same tile.

# %% [markdown]
# ## Two slots
#
# The idea is old and simple: **ask for the next tile before you multiply this one.** A load is only a
# request. The thread goes on until it *uses* the value. So in iteration t a thread
#
# 1. loads its elements of tile t + 1 into registers, and does not touch them;
# 2. multiplies tile t;
# 3. stores the elements into the *other* slot;
# 4. meets the others at a barrier.
#
# Step 2 takes long enough for the load to arrive. This is called **double buffering**.

# %%
see.predict("overlap.barriers")

# %% [markdown]
# ### Exercise [[two_slots]] · Two slots
# *core · medium · 15 minutes*
#
# Notebook [[shared_memory_tiles.ipynb]]'s kernel with two slots: tiles of 16 × 16, a thread per element of C,
# m, n and k multiples of
# 16. The first tile is fetched for you. Write what belongs before and after the loop over p. The checker
# looks for loads before the products, for stores after them, and for no barrier too many.


# %% id="ex-two_slots"
@cuda.jit
def two_slots(k, A, B, C):
    As = cuda.shared.array((2, 16, 16), float32)
    Bs = cuda.shared.array((2, 16, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    As[0, ty, tx] = A[row, tx]
    Bs[0, ty, tx] = B[ty, col]
    cuda.syncthreads()
    tiles = k // 16
    for t in range(tiles):
        slot = t % 2
        ### BEGIN SOLUTION
        if t + 1 < tiles:
            next_a = A[row, (t + 1) * 16 + tx]
            next_b = B[(t + 1) * 16 + ty, col]
        ### STUB
        # # your code: load this thread's elements of tile t + 1
        ### END SOLUTION
        for p in range(16):
            acc += As[slot, ty, p] * Bs[slot, p, tx]
        ### BEGIN SOLUTION
        if t + 1 < tiles:
            As[1 - slot, ty, tx] = next_a
            Bs[1 - slot, ty, tx] = next_b
        cuda.syncthreads()
        ### STUB
        # # your code: store them, and meet the others
        ### END SOLUTION
    C[row, col] = acc


check.two_slots(two_slots)

# %% [markdown]
# ## What is it worth?
#
# `double_buffered` is the same change to `warp_tiled`, with the large tiles. (Its loop runs once more, and
# fetches the first tile as well.)

# %%
see.predict("overlap.two")

# %%
see.fold(lambda: see.waits(large, "double_buffered"))

# %% [markdown] tags=["answer"]
# 1.39 times. The wait for global memory falls from 20 % to 0.1 %, that at barriers from 8 to 2 %. And this
# with 2 % *more* instructions in the loop: 1,191 instead of 1,170. So there are two ways to be faster:
# fewer instructions, or fewer clocks in which none is issued. This was the second.
#
# And the example of notebook [[warp_tiles.ipynb]], 128 × 128 × 16 with two blocks per SM? There double
# buffering *loses*: 42.0 TFLOPS instead of 43.0. The other block was already at work while one waited.
# (`data/h200/sweep.csv`, `ladder.csv`.)

# %% [markdown]
# ## Copies that run by themselves
#
# `double_buffered` still does too much. Each element passes through a register: a load, a register that is
# taken for a whole iteration, a store, addresses for both. Since compute capability 8.0 there is an
# instruction for the whole way, `cp.async`: global memory to shared memory, no register, and the thread
# goes on at once. You met it in notebook [[tensor_cores.ipynb]], where the kernel waited at once.
#
# | call of a thread | does |
# |---|---|
# | `cp_async4(As, (slot, r, c), A, (row, p), valid)` | starts to copy 4 bytes; `valid` of them are read |
# | `cp_async_commit()` | closes a **group**: the copies that this thread has started since the last one |
# | `cp_async_wait(n)` | waits until at most the `n` newest groups are still under way |
#
# `valid` is 4 for an element that exists. With 0 a zero is stored and A is not touched, so its index may lie
# outside. The compiler must know `n`: a plain number, or a name from outside the kernel. Groups arrive in the
# order in which they were committed, and **an empty group counts too**.

# %% [markdown]
# Now the trap. A copy that has arrived is visible to the thread that *asked* for it, and to nobody else. So
# says the [PTX
# manual](https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-cp-async-wait-group).
# A tile is made of everybody's copies. So there are two steps, always in this order:
#
# 1. `cp_async_wait(...)`: **my** copies are there;
# 2. `cuda.syncthreads()`: **everybody** has said so.
#
# ## The ring
#
# With copies that cost no registers, there can be more than two slots. They form a **ring**: tile t lies in
# slot `t % SLOTS`, and after the last slot comes the first. One slot is read; in the others tiles are on
# their way.

# %% [markdown]
# ### Exercise [[ring_places]] · Around the ring
# *core · easy · 5 minutes*
#
# The loop is at tile t. SLOTS - 1 tiles were asked for before the loop, and each iteration asks for one
# more. Return three numbers: the slot that is read, the slot that is filled, and the tile that it is filled
# with. Draw a ring of three on paper first.


# %% id="ex-ring_places"
def places(t, SLOTS):
    ### BEGIN SOLUTION
    return t % SLOTS, (t + SLOTS - 1) % SLOTS, t + SLOTS - 1
    ### STUB
    # return None, None, None
    ### END SOLUTION


check.ring_places(places)

# %% [markdown]
# One barrier per iteration is enough, if it stands in the right place. It makes two promises at once: tile
# t has come for everybody; **and** everybody has finished with tile t - 1, whose slot is filled next. So
# the iteration is: wait, barrier, ask for a tile, multiply.
#
# How many groups may be under way at the wait? Count with three slots: before the loop tiles 0 and 1 were
# committed. At t = 0 tile 0 must be there, and tile 1 may still be under way: **one**.

# %%
see.predict("overlap.pending")

# %% [markdown]
# ### Exercise [[any_ring]] · A ring by hand
# *core · hard · the heart of this notebook · 25 minutes*
#
# The kernel of [[two_slots]] with a ring of SLOTS tiles, now for **any** m, n and k. `fetch` is written for
# you: it starts this thread's two copies of tile t, zeros beyond k, and may be asked for tiles that do not
# exist. Threads beyond the last row or column fetch the last one's elements: nobody stores their results.
# `fetch` does not commit.
#
# You write `IN_FLIGHT`, the number of groups that may be under way at the loop's wait; the **prologue**,
# which fills the ring before the loop; the loop; and the end: no copy may be under way when a block ends.


# %% id="ex-any_ring"
def make_ring(SLOTS):
    ### BEGIN SOLUTION
    IN_FLIGHT = SLOTS - 2
    ### STUB
    # IN_FLIGHT = 0  # your code: for any SLOTS
    ### END SOLUTION

    @cuda.jit(device=True)
    def fetch(As, Bs, slot, A, B, row, col, t, m, n, k):
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        p, q = t * 16 + tx, t * 16 + ty
        cp_async4(As, (slot, ty, tx), A, (min(row, m - 1), p), 4 if p < k else 0)
        cp_async4(Bs, (slot, ty, tx), B, (q, min(col, n - 1)), 4 if q < k else 0)

    @cuda.jit
    def ring(m, n, k, A, B, C):
        As = cuda.shared.array((SLOTS, 16, 16), float32)
        Bs = cuda.shared.array((SLOTS, 16, 16), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        ### BEGIN SOLUTION
        for t in range(SLOTS - 1):
            fetch(As, Bs, t, A, B, row, col, t, m, n, k)
            cp_async_commit()
        for t in range((k + 15) // 16):
            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()
            fetch(As, Bs, (t + SLOTS - 1) % SLOTS, A, B, row, col, t + SLOTS - 1, m, n, k)
            cp_async_commit()
            for p in range(16):
                acc += As[t % SLOTS, ty, p] * Bs[t % SLOTS, p, tx]
        cp_async_wait(0)
        ### STUB
        # # your code: prologue, loop over tiles, end
        ### END SOLUTION
        if row < m and col < n:
            C[row, col] = acc

    return ring


check.any_ring(make_ring)

# %% [markdown]
# ## Four rings, three bugs
#
# Bugs of this kind are mean: on a GPU the numbers are often right, until another GPU or another clock makes
# them wrong. Here are four rings of three slots, W, X, Y and Z, without their source. One has no bug and
# only waits too much, one never waits for its copies, one has no barrier in its loop, and one fills a slot
# too early. The emulator runs each with one tile, two and four.

# %%
from gemm_course.checks.kits import RINGS

rng = np.random.default_rng(0)
seen = {}
for name, ring in RINGS.items():
    for k in (16, 32, 64):
        A, B = rng.random((16, k), np.float32), rng.random((k, 16), np.float32)
        C = np.zeros((16, 16), np.float32)
        errors = emulate(ring, 1, (16, 16), k, A, B, C).errors
        right = np.allclose(C, A @ B, 1e-4)
        found = ", findings" if errors else ""
        seen[name, f"k = {k}"] = ("right" if right else "wrong") + found
pd.Series(seen).unstack()[["k = 16", "k = 32", "k = 64"]]

# %% [markdown]
# ### Exercise [[ring_suspects]] · Who is who?
# *core · medium · 10 minutes*
#
# Think first: how many tiles does it take until a slot is used twice? What do the numbers look like if
# nobody waits at all? The numbers and the findings together tell all four.

# %% id="ex-ring_suspects"
### BEGIN SOLUTION
bugs = {"W": "slot", "X": "none", "Y": "barrier", "Z": "wait"}
### STUB
# bugs = {"W": None, "X": None, "Y": None, "Z": None}  # each "none", "wait", "barrier" or "slot"
### END SOLUTION

check.ring_suspects(bugs)

# %% [markdown]
# ## What do the copies bring?
#
# In `async_copy` each thread of `double_buffered`'s block asks for copies instead of carrying elements. As is
# still transposed: `fetch` copies A's elements one by one, each to its own place, and B's by fours. It also
# commits. The stage's ring has `SLOTS` slots, two in our example. Look at the loop: what is gone?

# %%
see.fold(see.diff("double_buffered", "async_copy"), first="Answer first, then open this.")

# %% [markdown]
# The loop over tiles has been compiled for the H200. Of its 1,191 instructions in `double_buffered` 1,024
# are multiply-adds: 16 × 8 results, 8 steps. In `async_copy` it has 1,136, 4.6 % fewer.
#
# A scheduler of an H200 issues one instruction per clock, and a multiply-add in each clock is the FP32
# peak. So **every instruction that is no multiply-add costs one.** At most `async_copy` can reach 1,024 /
# 1,136 = 90 % of the peak.

# %%
see.predict("overlap.copies")

# %%
see.fold(lambda: see.compare_code("double_buffered", "async_copy"))

# %% [markdown] tags=["answer"]
# 45.6 TFLOPS become 49.3, 8 % more. From 89 % of cuBLAS's speed we had predicted 93, and it became 96. The
# instructions explain 5 %. The rest is in the row "issue slots taken": of all clocks, 82 % became 85. Most of
# what has gone is no load and no store, but what surrounded them: addresses, moves, comparisons.

# %% [markdown]
# ## Read ahead
#
# One wait is left. After each barrier the first thing that all 8 warps do is to read operands from shared
# memory, and until these come nobody has anything to multiply. Within a tile the compiler reads ahead by
# itself. Across a barrier it must not.
#
# So move the barrier. Take **two sets** of registers for a step's operands: one is multiplied while the other
# is read. At a tile's last step, p = BK - 1, its operands are in registers already. Nobody needs the old slot
# any more, and the step after p is the first of the next tile.
#
# ### Exercise [[reads_ahead]] · Read ahead
# *core · hard · the heart of this section · 20 minutes*
#
# A block of 8 × 8 threads computes 32 × 32 elements, 4 × 4 per thread. The parts are given:
#
# - `fetch(As, Bs, slot, A, B, t, m, n, k)` asks for tile t, and commits. Beyond k it brings zeros.
# - `read_step(a[s], b[s], As, Bs, slot, p)` reads step p of the tile in `slot` into set s, 4 + 4 operands.
# - `add_step(acc, a[s], b[s])` adds the 16 products of set s.
#
# Write the loop. Each step's operands are read **before** the products of the step before it are added, and
# so across the tile's end: 16 multiply-adds always stand between a read and its use. One wait and one barrier
# per tile, in the right step. Let p run over `unroll(range(BK))`: only a number that the compiler knows may
# choose a register. BK is even.


# %% id="ex-reads_ahead"
from gemm_course.checks.kits import ahead_parts


def make_reads_ahead(SLOTS, BK):
    IN_FLIGHT = SLOTS - 2
    fetch, read_step, add_step, store = ahead_parts(SLOTS, BK)

    @cuda.jit
    def ahead(m, n, k, A, B, C):
        As = cuda.shared.array((SLOTS, BK, 32), float32)
        Bs = cuda.shared.array((SLOTS, BK, 32), float32)
        a = cuda.local.array((2, 4), float32)
        b = cuda.local.array((2, 4), float32)
        acc = cuda.local.array((4, 4), float32)
        for i in unroll(range(4)):
            for j in unroll(range(4)):
                acc[i, j] = 0
        for t in range(SLOTS - 1):
            fetch(As, Bs, t, A, B, t, m, n, k)
        ### BEGIN SOLUTION
        cp_async_wait(IN_FLIGHT)
        cuda.syncthreads()
        read_step(a[0], b[0], As, Bs, 0, 0)
        for t in range((k + BK - 1) // BK):
            fetch(As, Bs, (t + SLOTS - 1) % SLOTS, A, B, t + SLOTS - 1, m, n, k)
            for p in unroll(range(BK)):
                slot = t % SLOTS
                if p == BK - 1:
                    cp_async_wait(IN_FLIGHT)
                    cuda.syncthreads()
                    slot = (t + 1) % SLOTS
                now, then = p % 2, (p + 1) % 2
                read_step(a[then], b[then], As, Bs, slot, (p + 1) % BK)
                add_step(acc, a[now], b[now])
        ### STUB
        # # your code: the very first operands, then the loop over tiles and steps
        ### END SOLUTION
        cp_async_wait(0)
        store(C, acc, m, n)

    return ahead


check.reads_ahead(make_reads_ahead)

# %% [markdown]
# `read_ahead` on the ladder does so with 16 × 8 results per thread. It is the same work in another order.
# Both loops have 1,136 instructions, of which 1,024 are multiply-adds and 51 reads of shared memory, 48 of
# them of operands, four at a time.

# %%
see.predict("overlap.ahead")

# %%
see.fold(lambda: see.waits("async_copy", "read_ahead"))

# %% [markdown] tags=["answer"]
# 6 % faster, with not one instruction fewer. Issue slots were taken in 85 % of the clocks, now in 90.
# **52.2 TFLOPS are 102 % of cuBLAS's**, measured in the same run. But the stage changes one thing more.

# %% [markdown] id="side-walks_and_groups"
# *Side trip, 20 minutes: [What if the order changes?](walks_and_groups.ipynb)*

# %% [markdown]
# ## What limits it now?
#
# Somebody has lost the labels again. Three of `warp_tiled` with the large tiles, `double_buffered`,
# `async_copy` and `read_ahead` are here. **Who is who, and who is missing?**
#
# | | X | Y | Z |
# |---|---|---|---|
# | instructions per multiply-add | 1.11 | 1.14 | 1.11 |
# | a warp waits for global memory | 1 % | 20 % | 0 % |
# | a warp waits for shared memory | 8 % | 8 % | 5 % |

# %%
see.fold(
    lambda: see.limits(large, "double_buffered", "async_copy", "read_ahead"),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# X is `async_copy`, Y `warp_tiled`, Z `read_ahead`. Missing is `double_buffered`, the only one with 1.16
# instructions per multiply-add.
#
# The limit of the last three is the same, issue slots, and it is now a hard one: in 90 % of the clocks an
# instruction is issued, and 90 % of these are multiply-adds. That is 81 % of the FP32 peak while the SMs
# have work. For 3 % of the time some have none, since 512 blocks are no multiple of 132: a matter for
# notebook [[last_per_cent.ipynb]].

# %% [markdown]
# ## Tune it
#
# **Two hunts.** Change one slider each time, from the example, and come back.
#
# 1. One change makes the kernel **ten times slower**. Which, and why? (The explorer's line on registers and
#    warps tells.)
# 2. Which change costs least? Is it one that you would have called important?

# %%
see.tiles("grouped_blocks")

# %% [markdown] tags=["thought"]
# 1. BM = 256. The block has 512 threads, and 65,536 / 512 leaves 128 registers for each. The 128
#    accumulators alone take that many, so they [spill](glossary.md#spilling) to memory: 4.6 TFLOPS.
# 2. GROUP = 1: 0.1 % or less.

# %% [markdown]
# ## Past cuBLAS
#
# Does the last stage still multiply? Then the three steps, and the library. `warp_tiled` has its usual tiles
# here, with two blocks per SM. **Which step brings the most now?**

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((150, 70), np.float32), rng.standard_normal((70, 140), np.float32)
np.abs(run("grouped_blocks", A, B).C - A @ B).max()

# %%
see.fold(
    lambda: see.tflops("warp_tiled", "double_buffered", "async_copy", "read_ahead"),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# The copies: 8 %. Large tiles and two slots bring 6 % together, and so does reading ahead with the walk.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("overlap")

# %% [markdown]
# ## Recap
#
# You
#
# - fetched the next tile while this one was multiplied, and saw the wait for memory go from 20 % to
#   nothing;
# - wrote a ring of tiles with copies that run by themselves: wait for mine, meet the others, ask, multiply;
# - told four rings apart by what goes wrong, and when;
# - read from a loop what it can reach: 1,024 of 1,136 instructions are 90 % of the peak;
# - gained 6 % with not one instruction fewer, and lost 5 when the walk was taken out;
# - and saw two good ideas that the profile had no need of: a third slot lost 3 %, groups of blocks brought
#   0.1 %.
#
# 52 TFLOPS of 67, and 102 % of cuBLAS's. Every instruction that is no multiply-add costs one, and few are
# left. So the next step needs a bigger instruction again.
#
# **Next:** [notebook [[mma_sync.ipynb]]](mma_sync.ipynb) takes Tensor Cores apart: which lane holds what, and
# how to feed them without padding.
#
# <details><summary>For the curious</summary>
#
# - **How does [CUTLASS](https://github.com/NVIDIA/cutlass/blob/main/media/docs/cpp/efficient_gemm.md) call
#   all this?** Its pipeline has stages where we say slots; reading ahead is its software pipeline at the
#   level of warps; the order of blocks is threadblock swizzle.
# - **Do the copies bypass L1?** Those of 16 bytes do (`cp.async.cg`), those of 4 bytes cannot
#   (`cp.async.ca`).
# - **What about cuBLAS at other sizes?** The FP32 record has 23 shapes. For small matrices 128 × 256 tiles
#   are too few for 132 SMs, and cuBLAS, which picks its tiles, is far ahead.
#
# </details>
