# %% [markdown]
# # [[thread_tiles_2d.ipynb]] · A tile of results in every thread
#
# A column of results shares what it reads from Bs. What it reads from As is used once and thrown away. So the
# column grows sideways, into a rectangle: TM × TN results per thread.
#
# **After this notebook you can**
# - write a kernel whose threads compute rectangles of results, and choose their shape;
# - find the holes that a kernel leaves in its tiles;
# - tell a bank conflict that costs time from one that the compiler has long removed.
#
# *Time: about 60 minutes to read, 43 for the exercises. Comes from document 004, kernel v04, and from
# documents 000 and 001, "Kernel 5"; the [glossary](glossary.md#document) says what the documents are.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import LADDER, check, run
from gemm_course import widgets as see

# %% [markdown]
# One step of one thread. Choose another: what does it read, and how many products does it make of that?

# %%
see.multiply("thread_tiled_2d")

# %% [markdown]
# ## The outer product, in NumPy first
#
# Notebook [[thread_tiles_1d.ipynb]] ended with shared memory busy in 86 % of the clocks. Fewer reads are
# needed, and there is an old trick. Until now k was the innermost loop. Make it the outermost:

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((8, 50), np.float32), rng.standard_normal((50, 8), np.float32)

# %%
C = np.zeros((8, 8), np.float32)
for p in range(50):
    C += np.outer(A[:, p], B[p])
np.abs(C - A @ B).max()

# %% [markdown]
# In every step a **column of A** and a **row of B** come in. Each element of one meets each of the other, and
# 64 sums grow by a product: an [outer product](glossary.md#outer-product). The sums stay where they are.
#
# A thread does this now, with 64 registers for its sums. But in which shape?

# %%
see.predict("thread_tiles_2d.reads")

# %% [markdown]
# Try it on one block with small tiles. Make 4 × 4 results 2 × 8: how many reads? Then go from thread to
# thread: which of them read the same?

# %%
see.fold(lambda: see.registers("thread_tiled_2d"))

# %% [markdown] tags=["answer"]
# A thread reads TM + TN elements per step, for TM · TN multiply-adds:
#
# $$1/TM + 1/TN \text{ reads per multiply-add.}$$
#
# (Threads in one row of the block read the same of As, those in one column the same of Bs.)
#
# With one result per thread it was 2. The emulator counts your four shapes, in a kernel from further below:

# %%
A, B = rng.standard_normal((64, 64), np.float32), rng.standard_normal((64, 64), np.float32)


def reads(TM, TN):
    tiles = {"BM": 64, "BN": 64, "BK": 8, "TM": TM, "TN": TN}
    report = run("kernel5", A, B, tiles=tiles, backend="emulator").report
    return report.total("lanes", space="shared", op="load") / 64**3


see.fold({shape: reads(*shape) for shape in ((64, 1), (2, 32), (4, 16), (8, 8))})

# %% [markdown] tags=["answer"]
# Why not 16 × 16? That would be 256 accumulators, and a thread may have 255 registers. 16 × 8 takes all 255,
# so 8 warps fit on an SM instead of 16. With BK = 32 it was measured, and is 13 % slower than 16 × 4.

# %% [markdown]
# ## The kernel
#
# ### Exercise [[outer_product]] · The outer product
# *core · hard · the heart of this notebook · 20 minutes*
#
# The tiles are fetched for you, by threads that are numbered consecutively. Three pieces are missing: TM ×
# TN results, their outer products, their store. Where `beta == 0`, do not read C. Blocks of (BN/TN) × (BM/TM)
# threads, x along the columns; `ceil(n / BN)` × `ceil(m / BM)` blocks.
#
# The checker wants TM + TN reads of shared memory for TM · TN multiply-adds, and the results in registers.
# The shape of an array must be a constant for the compiler: a variable of the enclosing function, such as
# `TM` or `THREADS`. `TM * TN` written inside the kernel does not count as one.


# %% id="ex-outer_product"
def make_outer(BM, BN, BK, TM, TN):
    THREADS = BM * BN // (TM * TN)

    @cuda.jit
    def outer(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        ### BEGIN SOLUTION
        acc = cuda.local.array((TM, TN), float32)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        ### STUB
        # # your code: TM by TN results, all zero
        ### END SOLUTION
        for k0 in range(0, k, BK):
            for e in range(ty * (BN // TN) + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * (BN // TN) + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            ### BEGIN SOLUTION
            for p in range(BK):
                for i in range(TM):
                    a[i] = As[ty * TM + i, p]
                for j in range(TN):
                    b[j] = Bs[p, tx * TN + j]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            ### STUB
            # # your code: an outer product for each step along k
            ### END SOLUTION
            cuda.syncthreads()
        ### BEGIN SOLUTION
        for i in range(TM):
            for j in range(TN):
                row, col = row0 + ty * TM + i, col0 + tx * TN + j
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]
        ### STUB
        # # your code: store the results
        ### END SOLUTION

    return outer


check.outer_product(make_outer)

# %% [markdown]
# ### The course's version
#
# This is document 004's v04, beside v03. Compare it with yours.

# %% tags=["listing"]
see.fold(see.diff("thread_tiled_1d", "thread_tiled_2d"), first="Write the exercise first, then open this.")

# %% [markdown]
# Threads are numbered consecutively: `tid // (BN // TN)` counts thread tiles down, `tid % (BN // TN)` across.
# `A_ROWS` and `B_ROWS` are the rows of a tile that the block fetches in one pass.
#
# From here on all code and all figures are for **the square**, unless the same sentence names other tiles.
# (Pictures that show every element have smaller ones.)
#
# | tiles, for 256 threads | BM | BN | BK | TM | TN |
# |---|---|---|---|---|---|
# | **the square**, of document 004 | 128 | 128 | 16 | 8 | 8 |
# | **the tall tile** | 128 | 128 | 16 | 16 | 4 |
# | **the [ladder's](glossary.md#ladder) tiles** | 128 | 128 | 32 | 16 | 4 |
#
# | kernel | its stage | how it fills its tiles |
# |---|---|---|
# | **v04**, of document 004 | `thread_tiled_2d` | threads are numbered consecutively |
# | **Kernel 5**, of document 000 | `kernel5` | in slices: the next section |
# | its **draft**, document 001 | `kernel5_draft` | one slice per thread |
#
# To run a copy, put it into a factory such as `make_outer`, and begin with
# `from lockstep.intrinsics import u32, unroll`: [unsigned indices](glossary.md#u32), and loops that are
# [written out in full](glossary.md#unrolling). The 16 in `shared.array` is for notebook
# [[vectorized_access.ipynb]].

# %% [markdown]
# ## Fetching in slices: a case of missing elements
#
# Document 000 has the same outer product, and another way to fill the tiles. It calls the kernel "Kernel 5".
# Threads stand in a grid of BM/TM rows and BN/TN columns; thread (x, y) computes TM rows and TN columns of C.
# From A it fetches a **slice** of these TM rows, in column x of the tile; from B a slice of its TN columns,
# in row y.
#
# Step through the stores of one block. (`top` is the thread's first row of C, `row0 + ty * TM`, and `left`
# its first column.) First with BK = 8, then with BK = 4. What is different?

# %%
see.filling("kernel5")

# %% [markdown] tags=["thought"]
# With BK = 8 there are eight columns of As and still four threads in a row. So every thread comes back for
# another slice, as many columns further on as there are threads in its row: a **strided loop**. Bs works the
# same way, row by row.

# %% [markdown]
# ### The draft
#
# Document 001 is the first draft of the same kernel. This is how it fetches, for each `k0`:
#
# ```python
# for i in unroll(range(TM)):  # column tx of A's tile, ...
#     As[ty * TM + i, tx] = A[top + i, k0 + tx] if top + i < m and k0 + tx < k else float32(0)
# for j in unroll(range(TN)):  # ... and row ty of B's
#     Bs[ty, tx * TN + j] = B[k0 + ty, left + j] if k0 + ty < k and left + j < n else float32(0)
# ```
#
# And this is what its block leaves in the tiles. Try all BK.

# %%
from gemm_course.kernels.variants.kernel5_draft import STAGE as draft

see.coverage("kernel5_draft")

# %%
see.predict("thread_tiles_2d.draft")

# %% [markdown]
# ### Exercise [[draft_is_right]] · When is the draft right?
# *core · easy · 8 minutes*
#
# Among the tiles of the picture are some where nothing is hatched and nobody writes beside them. For which
# BK is the draft right? Write a function of all five tile sizes that returns True or False. (BM and BN are
# multiples of TM and TN.) The checker asks the emulator.


# %% id="ex-draft_is_right"
def right(BM, BN, BK, TM, TN):
    ### BEGIN SOLUTION
    return BK == BN // TN and BK == BM // TM
    ### STUB
    # return None
    ### END SOLUTION


check.draft_is_right(right)

# %% [markdown]
# The author knew, and says so in the draft: "you'll only load the first BM/TM rows of the BK rows unless
# BM/TM == BK". That is the half of your condition that B's tile needs. Of the other half, BN/TN, he says
# "similar for As". A test with a BK that fits both would have found nothing.
#
# ### Exercise [[slices]] · Slices for any tile
# *core · medium · 15 minutes*
#
# Fill both tiles, for any BK. Kernel 5's slices are one way; any way that shares the work passes. Not a
# kernel this time, but a **device function**: a function that kernels call. `cuda.jit(device=True)` makes
# one; it can return something, and cannot be launched.
#
# The block has BN/TN threads along x and BM/TM along y. `As` is (BM, BK), `Bs` is (BK, BN); they begin at
# column and row `k0` of A and B. Store every element **exactly once**, and a zero where a matrix has ended.
# The kernel that calls your function has the barriers. (`row0` and `col0` are the *block's* first row and
# column, as in exercise [[outer_product]].)


# %% id="ex-slices"
def make_fetch(BM, BN, BK, TM, TN):
    @cuda.jit(device=True)
    def fetch(m, n, k, k0, A, B, As, Bs):
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        ### BEGIN SOLUTION
        for c in range(tx, BK, BN // TN):
            for i in range(TM):
                r = ty * TM + i
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
        for r in range(ty, BK, BM // TM):
            for j in range(TN):
                c = tx * TN + j
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
        ### END SOLUTION

    return fetch


check.slices(make_fetch)

# %% [markdown]
# The picture of yours:

# %%
see.coverage(make_fetch)

# %% [markdown]
# What Kernel 5 has and the draft has not. (Two slips of the draft that a compiler refuses are fixed.)

# %% tags=["listing"]
see.fold(see.diff(draft, "kernel5"), first="Write the exercise first, then open this.")

# %% [markdown] id="side-kernel5"
# Side trip, 45 minutes: the tiles are complete, but [what does Kernel 5 cost, and what cures
# it?](kernel5.ipynb) It leads back to this line.

# %% [markdown]
# ## Registers and warps

# %%
see.predict("thread_tiles_2d.occupancy")

# %% [markdown]
# Here is the SM of the question. Which tank is full, and what is left in the others?

# %%
see.fold(lambda: see.occupancy("thread_tiled_2d", tiles={"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}))

# %% [markdown]
# ### How many warps are enough?
#
# A multiply-add takes about four clocks from start to result. With **one** accumulator per thread the next
# multiply-add waits for the last, so each [scheduler](glossary.md#scheduler) needs four warps to be never
# idle. With **64** the next one belongs to another accumulator, and starts at once. That is
# **instruction-level parallelism**: one warp keeps its scheduler busy by itself, as long as it only computes.
#
# When it waits for global memory, somebody else must compute. As compiled, a warp issues 1388 instructions
# per pair of tiles. A scheduler has two warps of a block, so these compute for 2776 clocks. Suppose that they
# then wait for 600.
#
# **A bet:** with more than 128 registers per thread only one block fits. How many per cent of its speed does
# the kernel lose? Guess, then move the slider. (The schedule is computed, with no other wait.)

# %%
see.fold(lambda: see.strips("thread_tiled_2d"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# The picture says 18 %: 600 of 3376 clocks. And 128 is the edge: 2 · 256 · 128 is 65,536, to the last
# register.
#
# Measured, with the ladder's tiles, one block is 19 % slower than two. With their BK the same sum says only
# 10 %: twice as many steps stand between two waits. So a lone block loses more than these 600 clocks.

# %% [markdown]
# Of **your** kernel, perhaps only one block fits on an SM. The checker of [[outer_product]] says how many
# registers it takes: the course's solution 165 (with the checker's 64 × 64 × 8, and the same with the
# square). `@cuda.jit(launch_bounds=(256, 2))` tells the compiler: 256 threads per block, and at least 2
# blocks per SM. It then takes at most 128, and spills nothing. (Whether that pays was not measured.)

# %% [markdown]
# *A good place for a pause. Until here you wrote kernels. From here on you bet, count and explain: about
# 40 minutes.*
#
# ## What is the ceiling?

# %%
see.predict("thread_tiles_2d.ceiling")

# %% [markdown] tags=["answer"]
# **A mystery.** The square was measured at 32.9 TFLOPS, half as much again as this ceiling allows. Who is
# wrong: your count, the clock, or the program that was run?

# %% [markdown]
# ### Count it three ways
#
# Requests of all warps together: loads from global memory, and reads of shared memory. The counters were read
# with the ladder's tiles, so take every size from `t`: with 8 for `t["TM"]` the counts differ.

# %%
t = LADDER["thread_tiled_2d"].tiles
t


# %% id="formula"
def global_requests(m, n, k):
    ### BEGIN SOLUTION
    return (m * n * k // t["BN"] + m * n * k // t["BM"]) // 32
    ### STUB
    # return None
    ### END SOLUTION


def shared_requests(m, n, k):
    ### BEGIN SOLUTION
    return (m * n * k // t["TM"] + m * n * k // t["TN"]) // 32
    ### STUB
    # return None
    ### END SOLUTION


# %%
size = (1024, 1024, 1024)
counted = {"global_load_requests": global_requests, "shared_load_requests": shared_requests}
see.counts("thread_tiled_2d", size, **counted)

# %% [markdown]
# ### What the compiler makes of it
#
# The hardware counts a quarter of the reads. It was the compiler. With the square the source reads 16 · 16 =
# 256 elements per pair of tiles; the program for an H200 has **64 loads of 128 bits** instead:
#
# - of Bs, a thread's 8 columns of one step are neighbours: 8 / 4 = **2 loads per step**;
# - of As, a thread's 8 rows are not neighbours, but four *steps* of a row are. It loads 4 steps of 8 rows at
#   once, 8 loads for 4 steps: again **2 per step**.

# %% [markdown]
# ### Does that cure the conflicts?
#
# A load of 128 bits asks for 512 bytes, and a wavefront brings 128 at most. So a warp is served in **turns**,
# normally four, of 8 lanes each. Where lanes 0 and 1, 2 and 3, ... want the same 16 bytes, there are two, of
# 16 lanes each. A turn takes one wavefront, or more if its lanes want different words of one bank. (NVIDIA
# does not document this; it was measured on an H200.)
#
# Here is one load from each tile. Every lane wants four words, and this is the number of the first:
#
# | lanes | from As | from Bs |
# |---|---|---|
# | 0 to 7 | 0 0 0 0 0 0 0 0 | 0 8 16 24 32 40 48 56 |
# | 8 to 15 | 0 0 0 0 0 0 0 0 | 64 72 80 88 96 104 112 120 |
# | 16 to 23 | 128 128 128 128 128 128 128 128 | 0 8 16 24 32 40 48 56 |
# | 24 to 31 | 128 128 128 128 128 128 128 128 | 64 72 80 88 96 104 112 120 |
#
# **Solve it:** how many turns does each load take, of how many wavefronts? So how many wavefronts does a step
# take as compiled, where the source had 48? And where is the ceiling now?

# %% [markdown] tags=["thought"]
# - **As**: neighbours want the same, so there are 2 turns. In a turn all want the same words: 1 wavefront,
#   and **2** in all. The warp's two rows of threads still want the same banks, but each has a turn of its
#   own. No conflict is left. Two turns are the least for 128 bits, so padding would bring nothing, and would
#   split the wide loads.
# - **Bs**: neighbours want different words, so there are 4 turns. In each, lanes 0 and 4 want the same banks,
#   1 and 5, ...: 2 wavefronts, and **8** in all. This conflict is left.
#
# A step has 2 loads of each: 2 · 2 + 2 · 8 = 20 wavefronts, as the hardware counts. The ceiling is
# 67 · 16 / 20 = 54 TFLOPS, well above 32.9.
#
# Spread columns would remove the conflict in Bs, but cannot be merged: 32 wide loads become 128 single ones.
# That is where the spread kernel's instructions came from. Notebook [[warp_tiles.ipynb]] gets both.

# %% [markdown]
# ### A tall tile
#
# In the tall tile a thread has 16 × 4 results, so a warp is a single row of threads.

# %%
see.predict("thread_tiles_2d.tall")

# %% [markdown]
# ## What limits it now?
#
# Is the tall tile worth anything, then? The square's profile says how much of the clocks each part is busy.
# **Predict the other column.** Shared memory first: add to the wavefronts of the reads one per step, with
# either tile, for the stores into As and Bs. Then the speed: if shared memory cost no time, issuing would
# still take 69 % of the clocks. How many times as fast can it get at most?
#
# | busy, in % of the clocks | the square | the tall tile |
# |---|---|---|
# | shared memory | 72 | ? |
# | issue slots | 69 | ? |
# | multiply-adds | 54 | ? |
# | TFLOPS | 32.9 | ? |

# %%
see.fold(
    lambda: see.limits(
        "thread_tiled_1d",
        ("thread_tiled_2d", {"BK": 16, "TM": 8, "TN": 8}),
        ("thread_tiled_2d", {"BK": 16}),
    ),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# 21 wavefronts become 13: 72 · 13/21 is 45, and 47 were measured. At most it could be 100/69 = 1.45 times as
# fast. It is 1.02 times as fast: the others hardly move, 71, 55 and 33.6 TFLOPS. With the square, shared
# memory (72 %) was barely busier than **issue slots** (69 %), and these stay. So the limit now is probably
# how many instructions there are.
#
# How sure is that? Fewer wavefronts brought almost nothing. Fewer instructions *without* more waiting is the
# next experiment: every element of a tile still comes by a load and a store of its own. Notebook
# [[vectorized_access.ipynb]] begins there, with the ladder's tiles: 33.9 TFLOPS.
#
# (Why 54 % for the multiply-adds, and not 32.9 / 67 = 49 %? The clocks here are those in which an SM has
# work: 51 %. And the same units multiply the integers of addresses.)

# %% [markdown]
# ## Your own kernel
#
# What did the compiler make of yours? Once [[outer_product]] has passed, take the `#` away. (This needs the
# extra `compiler`, but no GPU.) v04 has its loop over p unrolled. The course's solution has not: 16 single
# reads per step, and both conflicts. Put `unroll` in: do your shared loads become as few as v04's? Does it
# help your [[no_conflicts]] as well? (The picture counts per 1,000 multiply-adds. A thread has 16 · 64 = 1024
# per pair of tiles, so 64 loads are 62.5.)

# %%
# from gemm_course import compiled
# from lockstep.intrinsics import unroll
# square = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
# A, B, C = (np.zeros((128, 128), np.float32) for _ in range(3))
# mine = compiled(make_outer(**square), 128, 128, 128, float32(1), A, B, float32(0), C)
# see.compare_code(mine, ("thread_tiled_2d", square))

# %% [markdown] tags=["thought"]
# Yes, [[outer_product]] has the 64 wide loads per pair of tiles then. The course's [[no_conflicts]] has 4
# wide loads and 240 single ones (238 in the picture): rows of 17 words do not begin at 16 bytes, and the
# columns of Bs lie apart. With rows y, y + 16, ... instead of padding it has 32 wide ones and 128 single
# (156). What cures a conflict as written may prevent a merge.

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("thread_tiles_2d")

# %% [markdown]
# ## Recap
#
# - You computed outer products: TM + TN reads feed TM · TN multiply-adds.
# - You found the holes in a draft that is right for one BK, and closed them with strided loops.
# - You saw a kernel beat its ceiling: unrolled, neighbouring reads become wide ones. Count what is compiled.
# - You predicted a profile. Issue slots are busiest now. Notebook [[vectorized_access.ipynb]] tries fewer
#   instructions.
#
# **Next:** four elements in one access, by design instead of by luck.

# %%
see.my_ladder()

# %% [markdown]
# ---
# ## For the curious
#
# A launch has more blocks than places. As many as fit run at once, then the next: one **wave** after another,
# roughly.

# %%
see.predict("thread_tiles_2d.waves")

# %% [markdown]
# <details><summary>More: what waves share.</summary>
#
# Blocks in one row of the grid need the same rows of A, those in one column the same columns of B. What one
# of a wave has fetched is in the **L2 cache** (60 MB on an H200) for the others. 256 blocks in a square need
# 16 strips of A and 16 of B; in one long row, 1 and 256. CUDA promises no order of blocks, but a kernel may
# number its blocks as it likes.
#
# </details>
