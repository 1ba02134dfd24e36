# %% [markdown]
# # [[overlap.ipynb]] · Who works while a tile is under way?
#
# This is one block of the kernels that you wrote in notebooks [[shared_memory_tiles.ipynb]] to
# [[warp_tiles.ipynb]]. Time runs from left to right. A thin line is a copy: a tile of A and one of B are
# under way to shared memory. A box with a number is the products of that tile. Here both take 4 units of
# time.
#
# Shared memory has room for one such pair of tiles. We call this room a **slot**. The block fills it, meets
# at the barrier, multiplies, meets again, and fills it anew. **Half of the time nobody multiplies. Make that
# vanish.**

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32

import lockstep
from gemm_course import check, emulate, run
from gemm_course import widgets as see
from lockstep.intrinsics import cp_async4, cp_async_commit, cp_async_wait, unroll

see.overlap()

# %% [markdown]
# With two slots one tile is multiplied while the next is copied: set *slots* to 2. Now the memory is slow,
# and a copy takes 12. How many slots does it take until nobody waits? Guess first. Then move *slots* and
# *time of a copy*, find the rule for any copy, and write it down as a function.


# %% id="slots-needed"
def slots_needed(copy, products):
    ### BEGIN SOLUTION
    return 1 + -(-copy // products)
    ### STUB
    # return None  # the fewest slots with which nobody waits
    ### END SOLUTION


[slots_needed(copy, 4) for copy in (2, 4, 6, 8, 12, 14)]  # compare with the picture

# %% [markdown] tags=["thought"]
# Four: one tile is multiplied, and during its 4 units of time three others are on their way. In general it
# takes **1 + copy / products** slots, with the fraction rounded up: `1 + -(-copy // products)`, which is 2,
# 2, 3, 3, 4 and 5 here.

# %% [markdown]
# *Time: about 55 minutes to read, 80 for the exercises, in four sittings: pauses are marked. None of the
# documents goes as far as this.*
#
# First two questions from memory, without looking back:

# %%
see.recall("overlap")

# %% [markdown]
# ## Is a second block not enough?
#
# An SM held two blocks of `warp_tiled`. While one waited for its tiles, the other one multiplied. So there
# was overlap already, without a line of code. But the two share the SM's registers.
#
# Larger tiles want all of these. From here on every figure is for **the large tiles**: a block computes 128 ×
# 256 results, 8 steps along k at a time, and a thread 16 × 8. Blocks have 256 threads, as before. Complete
# the two lines.

# %% id="large"
large = {"BM": 128, "BN": 256, "BK": 8, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "PAD": 4}
### BEGIN SOLUTION
reads = {"8 × 8": 16 / 64, "16 × 8": 24 / 128}
blocks = 65536 // (256 * 191)
### STUB
# reads = {"8 × 8": 16 / 64, "16 × 8": ...}  # reads of shared memory per multiply-add
# blocks = ...  # on an SM: it has 65,536 registers, and each of these threads takes 191
### END SOLUTION
reads, blocks

# %%
see.predict("overlap.alone")

# %%
see.fold(lambda: see.waits(("warp_tiled", large)), first="Choose your answer first, then open this.")

# %% [markdown]
# **What we now know:** larger tiles need fewer reads, but only one block fits. Alone, it waits.
#
# ## How does a thread ask early?
#
# A load is a **request**. The thread goes on at once, and stops only where it *uses* what it loaded. So ask
# for the next tile before you multiply this one. In iteration t a thread
#
# 1. loads its elements of tile t + 1 into registers, and does not touch them;
# 2. multiplies tile t, which lies in one slot;
# 3. stores the elements into the *other* slot;
# 4. meets the others at a barrier.
#
# While step 2 runs, the load arrives. This is called **double buffering**.

# %%
see.predict("overlap.barriers")

# %% [markdown]
# ### Exercise [[two_slots]] · Two slots
# *core · medium · 15 minutes*
#
# Here is the kernel of [[tile_kernel]] with two slots: tiles of 16 × 16, a thread for each element of C, and
# m, n and k multiples of 16. The first tile is fetched for you. Write what belongs before and after the loop
# over p. The checker wants all loads of a tile before its products begin, the stores after them, and no
# barrier too many.


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
# `double_buffered` is the same change to `warp_tiled`, with the large tiles.

# %% tags=["listing"]
see.fold(see.diff("warp_tiled", "double_buffered"), first="Write the exercise first, then open this.")

# %%
see.predict("overlap.two")

# %%
see.fold(
    lambda: see.waits(("warp_tiled", large), "double_buffered", meanings=False),
    first="Choose your answer first, then open this.",
)

# %% [markdown] tags=["answer"]
# 33 TFLOPS become 46: **1.39 times**. The wait for global memory has gone from 20 % to nothing. And that with
# 2 % *more* instructions. So a kernel can become faster in two ways: by fewer instructions, or by fewer
# clocks in which none is issued.
#
# Was it the waiting alone? With 128 × 128 × 16, where two blocks share an SM, the second slot gains nothing:
# 42 TFLOPS instead of 43. There the other block had been at work.

# %% [markdown]
# **What we now know:** with two slots a single block fetches and multiplies at the same time.
#
# *A good place for a pause.*
#
# ## Must a thread carry every float?
#
# In `double_buffered` a thread carries its floats: a load, a register that is taken as long as a tile is
# multiplied, a store, and addresses for both. Since the A100 of 2020 NVIDIA's GPUs have one instruction for
# the whole way, `cp.async`: from global to shared memory, through no register. The thread orders the copy,
# and goes on.
#
# | call of a thread | what it does |
# |---|---|
# | `cp_async4(As, (s, r, c), A, (row, p), 4)` | orders a copy of 4 bytes, from `A[row, p]` to `As[s, r, c]` |
# | `cp_async4(As, (s, r, c), A, (row, p), 0)` | the same, but `A` is not touched, and a zero is stored |
# | `cp_async_commit()` | closes a **group**: the copies that this thread has ordered since the last one |
# | `cp_async_wait(n)` | waits until at most `n` of this thread's groups, the newest, are still under way |
#
# Groups arrive in the order in which they were committed, and **an empty group counts too**. The compiler
# must know `n`: it is a plain number, or a name from outside the kernel.
#
# Now a trap. This kernel turns 64 floats round. Two lines are missing between the order and the use. Run it,
# and read what the emulator finds. Add one line, run it again, and add the other. Then **swap the two**.


# %% id="turn-round"
@cuda.jit
def turn_round(x, out):
    tile = cuda.shared.array(64, float32)
    tx = cuda.threadIdx.x
    cp_async4(tile, tx, x, tx, 4)
    cp_async_commit()
    ### BEGIN SOLUTION
    cp_async_wait(0)
    cuda.syncthreads()
    ### STUB
    # # your two lines
    ### END SOLUTION
    out[tx] = tile[63 - tx]


x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
for finding in emulate(turn_round, 1, 64, x, out).errors:
    print(finding.message)
print("right" if (out == x[::-1]).all() else "wrong")

# %% [markdown] tags=["thought"]
# With `cp_async_wait(0)` alone the numbers are right, and it is a race all the same: this thread's copy has
# come, and of the others' it knows nothing. ([So says NVIDIA's
# manual.](https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-cp-async-wait-group))
# A barrier before the wait proves nothing either. So always, in this order:
#
# 1. `cp_async_wait(...)`: **my** copies are there;
# 2. `cuda.syncthreads()`: **everybody** has said so.

# %% [markdown]
# **What we now know:** copies can run by themselves. Who uses a tile first waits for its own copies, then
# meets the others.
#
# ## How many tiles may be under way?
#
# Copies that take no registers can be ordered further ahead than one tile. Then the slots form a **ring**:
# tile t lies in slot `t % SLOTS`, so after the last slot comes the first. One is read; into the others tiles
# are on their way.
#
# ### Exercise [[ring_places]] · Around the ring
# *core · easy · 5 minutes*
#
# SLOTS - 1 tiles are asked for before the loop. Each iteration asks for one more, and then multiplies. The
# loop is at tile t. Return three numbers: the slot that is read, the slot that is filled, and the tile that
# it is filled with. Draw a ring of three on paper first.


# %% id="ex-ring_places"
def places(t, SLOTS):
    ### BEGIN SOLUTION
    return t % SLOTS, (t + SLOTS - 1) % SLOTS, t + SLOTS - 1
    ### STUB
    # return None, None, None
    ### END SOLUTION


check.ring_places(places)

# %% [markdown]
# One barrier per tile is enough, if it stands in the right place. It promises two things: tile t has come for
# everybody, **and** everybody has finished tile t - 1, whose slot is filled next. So the order is: **wait,
# barrier, ask, multiply.**
#
# How many groups may still be under way at this wait, if each tile is a group? Take three slots. Before the
# loop tiles 0 and 1 were committed. At t = 0 tile 0 must have come, and tile 1 may be under way: one.

# %%
see.predict("overlap.pending")

# %% [markdown]
# ### Exercise [[any_ring]] · A ring by hand
# *core · hard · 25 minutes*
#
# This is the kernel of [[two_slots]] with a ring of SLOTS tiles, for **any** m, n and k. `fetch` is written
# for you. It orders this thread's two copies of tile t, zeros beyond k, and may be asked for tiles that do
# not exist. It does not commit. Threads outside C copy as well, for their whole block; only their results are
# not stored.
#
# You write
#
# - `IN_FLIGHT`, how many groups may be under way at the loop's wait, for any SLOTS;
# - the **prologue**, which asks for the first tiles before the loop;
# - the loop over tiles;
# - the end: no copy may be under way when a block ends.


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
# **Break it.** Near the end there is no tile left to ask for. So put `fetch` and `cp_async_commit` of the
# loop under one `if t + SLOTS - 1 < (k + 15) // 16:`, and run the cell again. What will the checker say? Say
# it first; then repair your kernel.

# %% [markdown] tags=["thought"]
# A tile is read before it has come. In the last iterations no group is committed any more, so the tile that
# is needed is itself among the newest, which the wait lets go on. An empty commit costs nothing, and keeps
# the count right: only `fetch` may stand in the `if`.

# %% [markdown]
# **What we now know:** wait for mine, meet the others, ask, multiply. SLOTS - 2 groups may be under way at
# the wait.
#
# *A good place for a pause.*
#
# ## Which ring has which bug?
#
# Such bugs are mean: on a GPU the numbers are often right, until another GPU or another clock makes them
# wrong. Here are four rings of three slots, W, X, Y and Z, without their source:
#
# - one has no bug, and only waits too much;
# - one never waits for its copies;
# - one has no barrier in its loop;
# - one fills a slot too early.
#
# The emulator runs each with one tile, two and four. *Findings* means that it found something wrong.

# %%
from gemm_course.checks.kits import RINGS

rng = np.random.default_rng(0)
seen = {}
for name, ring in RINGS.items():
    for tiles in (1, 2, 4):
        A, B = rng.random((16, 16 * tiles), np.float32), rng.random((16 * tiles, 16), np.float32)
        C = np.zeros((16, 16), np.float32)
        errors = emulate(ring, 1, (16, 16), 16 * tiles, A, B, C).errors
        right = np.allclose(C, A @ B, 1e-4)
        seen[name, tiles] = ("right" if right else "wrong") + (", findings" if errors else "")
pd.Series(seen).unstack().rename_axis(columns="tiles")

# %% [markdown]
# ### Exercise [[ring_suspects]] · Who is who?
# *core · medium · 10 minutes*
#
# Think first: with how many tiles is a slot used twice? What are the numbers like if nobody waits at all? The
# numbers and the findings together tell all four.

# %% id="ex-ring_suspects"
### BEGIN SOLUTION
bugs = {"W": "slot", "X": "none", "Y": "barrier", "Z": "wait"}
### STUB
# bugs = {"W": None, "X": None, "Y": None, "Z": None}  # each "none", "wait", "barrier" or "slot"
### END SOLUTION

check.ring_suspects(bugs)

# %% [markdown]
# **What we now know:** a missing wait shows in the first tile, a slot that is filled too early only when it
# is used again. Right numbers prove nothing.
#
# ## What does it save to carry nothing?
#
# `async_copy` is `double_buffered` with a ring, of two slots here. Its `fetch` commits as well.

# %% tags=["listing"]
see.fold(see.diff("double_buffered", "async_copy"), first="Write the exercises first, then open this.")

# %% [markdown]
# The loop of `double_buffered` has 1,191 instructions, 1,024 of them multiply-adds: 16 × 8 results, 8 steps.
# That of `async_copy` has 1,136. A scheduler issues one instruction per clock, of any kind, and a
# multiply-add in each clock would give 67 TFLOPS. **Every instruction that is no multiply-add costs one.**
# What is each loop's roof, in TFLOPS?

# %% id="loop-roofs"
### BEGIN SOLUTION
roofs = {"double_buffered": 67 * 1024 / 1191, "async_copy": 67 * 1024 / 1136}
### STUB
# roofs = {"double_buffered": ..., "async_copy": ...}
### END SOLUTION
roofs

# %%
see.predict("overlap.copies")

# %%
see.fold(
    lambda: see.compare_code("double_buffered", "async_copy"),
    first="Choose your answer first, then open this.",
)

# %% [markdown] tags=["answer"]
# 46 TFLOPS become 49: **8 %**. The roofs are 58 and 60, so the instructions explain 5 %. The rest is in the
# row of the issue slots: taken in 82 % of the clocks before, in 85 now.

# %% [markdown]
# **What we now know:** most of what went is neither load nor store. It is what surrounded them: addresses,
# moves, comparisons.
#
# *A good place for a pause. What follows takes about 55 minutes.*
#
# ## Who multiplies right behind the barrier?
#
# Nobody. All 8 warps come from the barrier together, and all ask shared memory for their **operands** of step
# 0, the elements that they multiply. Until these come, no warp has anything to do. Within a tile the compiler
# places such reads early, by itself. Across a barrier it must not: what a slot holds may change there.
#
# So you do it. A thread gets **two sets** of registers for the operands of a step. While it multiplies one
# set, it reads the operands of the step after it into the other. Here is tile 1 of a ring with three slots;
# its tiles are 4 steps deep. The operands of its step 0 are in set 0 already.
#
# | step p | wait and barrier first? | reads | multiplies |
# |---|---|---|---|
# | 0 | no | slot 1, step 1, into set 1 | set 0 |
# | 1 | no | slot 1, step 2, into set 0 | set 1 |
# | 2 | no | slot 1, step 3, into set 1 | set 0 |
# | 3 | ? | slot ?, step ?, into set ? | set ? |
#
# Fill in its last row. What comes after step 3, and where does it lie?

# %% id="last-row"
### BEGIN SOLUTION
slot, step, into, multiplied = 2, 0, 0, 1
### STUB
# slot, step, into, multiplied = None, None, None, None
### END SOLUTION
7 * slot + 5 * step + 3 * into + multiplied if slot is not None else "not yet"  # must be 15

# %% [markdown] tags=["thought"]
# Behind step 3 comes step 0 of tile 2, in slot 2. It goes into set 0, while set 1, which holds step 3, is
# multiplied. Tile 2 must have come before that read. So **the wait and the barrier belong into the last
# step**, p = BK - 1, before its read. And what they cost is hidden: this step's products are still to be
# multiplied.
#
# The barrier promises two things as before. Everybody's copies of tile 2 have come. And everybody has read
# tile 1 to its end, so behind this barrier its slot may be filled.

# %% [markdown]
# ### Exercise [[reads_ahead]] · Read ahead
# *core · hard · the heart of this notebook · 25 minutes*
#
# A block of 8 × 8 threads computes 32 × 32 elements, 4 × 4 per thread, for any m, n and k. Four device
# functions are given:
#
# - `fetch(As, Bs, slot, A, B, t, m, n, k)` asks for tile t **and commits it**, so each call is a group.
#   Beyond k it brings zeros; t may be a tile that does not exist.
# - `read_step(a[s], b[s], As, Bs, slot, p)` reads step p of the tile in `slot` into set s: 4 + 4 operands.
# - `add_step(acc, a[s], b[s])` adds the 16 products of set s.
# - `store(C, acc, m, n)` stores the results, and is called already.
#
# The prologue is given, and `IN_FLIGHT` too. You write what brings the very first operands into set 0, and
# the loops over tiles and steps:
#
# - In each step, also the last one of a tile, the operands of the step after it are read first; then this
#   step's products are added. So 16 multiply-adds always stand between a read and its use.
# - There is one wait and one barrier per tile, where your table has them.
# - As in [[any_ring]], every iteration asks for one tile, the last ones too. It is the same circle of wait,
#   barrier, ask, multiply; but this loop enters it at *ask*, for the first wait stands before it. So ask
#   before you wait: `IN_FLIGHT` counts on that.
# - BK is even, so step 0 always goes into set 0. Behind the last tile one step may be read that nobody
#   multiplies.


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
# `read_ahead` does so with the large tiles. It has as many instructions in its loop as `async_copy`, 1,136,
# and as many of each kind that counts: 1,024 multiply-adds, 51 reads of shared memory. Only the order is
# another one.

# %% tags=["listing"]
see.fold(see.diff("async_copy", "read_ahead"), first="Write the exercise first, then open this.")

# %%
see.predict("overlap.ahead")

# %%
see.fold(
    lambda: see.waits("async_copy", "read_ahead", meanings=False),
    first="Choose your answer first, then open this.",
)

# %% [markdown] tags=["answer"]
# 49 TFLOPS become **52**, 6 % more, with not one instruction fewer. Issue slots were taken in 85 % of the
# clocks, now in 90. And cuBLAS, NVIDIA's own library, does 51 on the same H200, with a kernel that it chose
# itself, as it does for everybody. **You have passed it: 102 %, in Python.**

# %% [markdown]
# Does this kernel still multiply? And which of the steps to it brought most? (`warp_tiled` has its usual
# tiles here, with two blocks on an SM.)

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((150, 70), np.float32), rng.standard_normal((70, 140), np.float32)
np.abs(run("read_ahead", A, B).C - A @ B).max()

# %%
see.fold(
    lambda: see.tflops("warp_tiled", "double_buffered", "async_copy", "read_ahead"),
    first="Answer first, then open this.",
)

# %% [markdown]
# **What we now know:** the same instructions in a better order are worth as much as fewer instructions.

# %% [markdown] id="side-walks_and_groups"
# Side trip, 30 minutes: `read_ahead` also changes the order in which a thread multiplies.
# [What if the order changes?](walks_and_groups.ipynb) It leads back to this line.

# %% [markdown]
# ## Which number matters most?
#
# Each of these changes one number of `read_ahead`, and each makes it slower. Put the four in order, from the
# smallest loss to the largest, before you move a slider. Then try them, one at a time.
#
# - SLOTS 3: one slot more
# - PAD 0: no padding behind the rows of As
# - BM 64: a block half as tall
# - BM 256: a block twice as tall

# %%
see.tiles("read_ahead", tells_best=False)

# %% [markdown] tags=["thought"]
# | | as it was | SLOTS 3 | BM 64 | PAD 0 | BM 256 |
# |---|---|---|---|---|---|
# | TFLOPS | 52.2 | 51.6 | 50.4 | 47.4 | 4.5 |
#
# BM 256 leaves each of 512 threads 128 registers, as many as it has accumulators: it spills, as in notebook
# [[warp_tiles.ipynb]]. A third slot hides nothing, for with two hardly anybody waits. The surprise is PAD: in
# notebook [[vectorized_access.ipynb]] it made no difference.

# %% [markdown]
# Why does it now? Count what the copies of A do. `fetch` stores As transposed, float by float. Lane `l` of a
# warp copies row `l // 8` of A's tile, column `l % 8`. So its float goes to the word `l % 8 * (128 + PAD) + l
# // 8` of As. `lockstep.wavefronts` takes the words of 32 lanes, the bits per lane, and `"store"`.

# %% id="copy-wavefronts"
### BEGIN SOLUTION
for PAD in (0, 4):
    words = [lane % 8 * (128 + PAD) + lane // 8 for lane in range(32)]
    print("PAD", PAD, "takes", lockstep.wavefronts(words, 32, "store"), "wavefronts")
### STUB
# # your code: how many wavefronts does one such copy take with PAD 0, and with PAD 4?
### END SOLUTION

# %% [markdown] tags=["thought"]
# By the rule for stores 8 with PAD 0, where eight lanes meet in one bank, and 1 with PAD 4. A tile of A takes
# 32 such copies: 256 wavefronts instead of 32, while all reads of the tiles take 1,024. In
# notebook [[vectorized_access.ipynb]] four lanes met.

# %% [markdown]
# **What we now know:** what brought nothing in one kernel brings 10 % in another. Measure again.

# %% [markdown]
# ## What stops it now?
#
# Forecast `read_ahead` from three shares. An instruction is issued in 90 % of the clocks; 90 % of these are
# multiply-adds; and its 512 blocks run on 132 SMs, one at a time on each, so in the last of four rounds some
# SMs have none. What does that make of 67 TFLOPS?

# %% id="forecast"
### BEGIN SOLUTION
forecast = 67 * 0.90 * 0.90 * (512 / (4 * 132))
### STUB
# forecast = ...  # 67 times what?
### END SOLUTION
forecast

# %% [markdown] tags=["thought"]
# 67 · 0.90 · 0.90 · 0.97 = 53, and 52 were measured. So **issue slots** are the limit, and now a hard one.
# One clock in ten is left without an instruction, and one instruction in ten is no multiply-add.

# %% [markdown]
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a ring of tiles that copies fill by themselves, and a loop that reads its operands one step
#   ahead, across the barrier.
# - **It reached** 52 TFLOPS on an H200, as `read_ahead` with the large tiles: 102 % of cuBLAS.
# - **What stops it now** is that an instruction is issued in 90 % of the clocks, and 90 % of them are
#   multiply-adds already.
#
# Who works while a tile is under way? The same block, on the tile before.

# %% [markdown]
# **Celebrate: here the story of FP32 ends.** In notebook [[naive.ipynb]] your first kernel reached 0.5
# TFLOPS. This one is a hundred times as fast, and you have written each of its ideas yourself: coalescing,
# tiles, results in registers, fours, lanes, a ring, reading ahead.
#
# (The 102 % are for 4096³ and 8192³. At 1024³ C has 32 of the large tiles, for 132 SMs: there the course's
# kernels with these tiles reach a third of cuBLAS, which chooses its kernel by the size.)
#
# From here on a place of your ladder is a *part* of a kernel: it has the speed of the ladder's kernel, and no
# bet.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("overlap")
