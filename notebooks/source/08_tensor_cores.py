# %% [markdown]
# # 08 · Tensor Cores
#
# Everything up to here was about feeding the FP32 units, and the last kernels keep them busy most of the
# time. To be much faster one needs another unit. GPUs since 2017 have one, and it does nothing but multiply
# small matrices.
#
# **After this notebook you can**
# - say what FP16 keeps of a number, and why sums are kept in FP32;
# - have a warp load, multiply and store fragments, and say what must not be assumed about them;
# - predict the bank conflicts of any skew, and work out what held document 004's v07 to a third of
#   cuBLAS.
#
# *Time: about 45 minutes to read, 60 for the exercises. Comes from document 004, kernel v07.*

# %%
import numpy as np
from numba import cuda, float32
from numba.types import float16

from gemm_course import LADDER, check, records, run
from gemm_course import widgets as see
from gemm_course.intrinsics import COL_MAJOR, ROW_MAJOR, wmma_load_a, wmma_load_b, wmma_mma, wmma_store

# %% [markdown]
# ## In one picture
#
# Here a warp multiplies as a whole, 16 steps along `k` in one operation. Look at the warp first, then at a
# thread: what is left for it to do alone?

# %%
see.multiply("wmma")

# %% [markdown]
# ## What limits it now?
#
# Waiting, said notebook 07, and waiting can be hidden. But that can bring v06 no further than the FP32
# peak: an SM has 128 FP32 units, and each does one multiply-add a clock. v06 has come more than half the way.
# So what limits everything that we have written is the **arithmetic**.
#
# A **Tensor Core** takes two small matrices from the registers of a warp and adds their product to a
# third: 16 × 16 × 16 = 4,096 multiply-adds for one call that all 32 lanes make together, where an
# ordinary instruction of a warp has 32. An SM has four Tensor Cores.

# %%
see.predict("08.speed")

# %% [markdown]
# There is a price: the operands are **halves**.
#
# ## What a half keeps
#
# FP16 has a sign, 5 bits of exponent and 10 of fraction. With the one in front that is not stored, a
# number has 11 significant bits, three decimal digits. The largest is 65,504.

# %%
float(np.float16(0.1)), float(np.float16(2049)), float(np.finfo(np.float16).max)

# %%
see.predict("08.ones")

# %%
int(np.add.accumulate(np.ones(4096, np.float16), dtype=np.float16)[-1])

# %% [markdown]
# Not one addition of these was inexact before 2,048, and not one had an effect after it. A sum of many
# small numbers is the worst that can be done to a short format, and a matrix product is nothing else.
#
# The product of two halves, though, has at most 22 significant bits, and a float32 has room for 24:
# **products are exact**. So Tensor Cores take halves, multiply without any loss, and add up in float32.
# That is the bargain: half the bytes, many times the arithmetic, and an error that comes from rounding
# the inputs, hardly from the sums.
#
# Document 004 keeps its sums in FP16 as well. A Tensor Core adds up 16 products before it rounds, which
# helps: 4,096 ones come out right. It only takes more of them:

# %%
int(np.add.accumulate(np.full(4096, 16, np.float16), dtype=np.float16)[-1])

# %% [markdown]
# 65,536 ones, 16 at a time, and the sum stops at 32,768. Both kinds of kernel are stages of the ladder:
# `wmma` adds up in float32, `wmma_fp16_acc` in float16. The largest relative error of a product of
# positive numbers:

# %%
rng = np.random.default_rng(0)
A, B = (rng.random(shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
exact = A.astype(float) @ B.astype(float)
{stage: f"{abs(run(stage, A, B).C / exact - 1).max():.5f}" for stage in ("wmma", "wmma_fp16_acc")}

# %% [markdown]
# C is a half in both, and rounding to one costs up to 0.0005. What is beyond that comes from the sums.
#
# *(TF32, if you meet it: FP32's 8 bits of exponent with FP16's 10 of fraction. Tensor Cores take it from
# float32 arrays, at half the speed of FP16. cuBLAS uses it for FP32 only if it is told to; our FP32
# figures are without it.)*
#
# ## A fragment is held by a warp
#
# A Tensor Core reads its operands from registers, and registers belong to lanes. So the 256 elements of a
# 16 × 16 matrix are dealt out over the 32 lanes of a warp, 8 to each. Such a share is called a
# **fragment**. Who gets what? Choose an element. The number in a cell is the lane that holds it:

# %%
see.fragment()

# %% [markdown]
# And back: choose a lane, and see what it holds.

# %%
see.fragment(by="lane")

# %% [markdown]
# The pictures come from a kernel that loads the numbers 0 to 255 and has each lane tell what it got. It
# is what the GPUs from the A100 to the H200 do. But **CUDA does not promise it**: with WMMA the layout is
# nobody's business, and the next GPU may deal in another way. What you may do to a fragment is the same
# thing to every element.
#
# ## Four calls
#
# ```python
# wmma_load_a(a, As, (y, p), ROW_MAJOR)      # 16 × 16 halves of As, from As[y, p] on
# wmma_load_b(b, Bs, (p, x), ROW_MAJOR)
# wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)  # acc += a · b
# wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
# ```
#
# - `a` and `b` are `cuda.local.array(16, float16)`, `acc` is `cuda.local.array(8, float32)`. Everything
#   that notebook 04 said about local arrays holds: they are registers.
# - Each call is **one instruction of the whole warp**. All 32 lanes make it, with the same place. Not in
#   a branch that some of them take, and not with a place for each lane.
# - The order says how the matrix lies in memory: `ROW_MAJOR` is `array[row, column]`. `COL_MAJOR` is
#   `array[column, row]`, a matrix that was stored transposed. That is all it takes to read a transposed
#   tile.
# - As and Bs are in shared memory. Rows are multiples of 16 bytes long; a fragment begins at a multiple
#   of 32.
#
# ## The kernel

# %%
see.source("wmma")

# %% [markdown]
# It is v06 with the innermost part taken out. Blocks, tiles and warp tiles are as before; where a warp's
# tile was cut into thread tiles, it is now cut into fragments, WM / 16 of A and WN / 16 of B. Notice
#
# - the three loops over `i` and `j`: every fragment is loaded **once** for each step of 16 along k, and
#   used for a whole row or column of products. It is the outer product of notebook 05, with matrices for
#   numbers;
# - `PAD`: rows of the tiles are a little longer than they need be;
# - the end: sums go through shared memory, since nobody knows which lane holds which. There they have a
#   row and a column again, and get their alpha, beta and guard;
# - `cp_async16` instead of a load and a store: it brings 16 bytes into shared memory without a register
#   between. What else it is good for, the stage `async_copy` shows: `see.source("async_copy")`.
#
# Document 004's v07 is different in four things. It transposes A on the way into shared memory (and then
# reads it as `COL_MAJOR`; that gains nothing here). Its sums are halves. Its skew is 16. And it loads B's
# fragments again for every row of fragments.
#
# ## Count it three ways

# %%
t = LADDER["wmma"].tiles
t

# %% [markdown]
# Write the number of requests of all warps. Global memory: a lane fetches 8 halves at a time. Shared
# memory: a load of a fragment is one request; and at the end each 16 × 16 tile of C is read back from
# shared memory in 8 requests.


# %% id="formula"
def global_requests(m, n, k):
    ### BEGIN SOLUTION
    return (m * n * k // t["BN"] + m * n * k // t["BM"]) // (8 * 32)
    ### STUB
    # return None
    ### END SOLUTION


def shared_requests(m, n, k):
    ### BEGIN SOLUTION
    a_product = m * n * k // 16**3
    return a_product * 16 // t["WN"] + a_product * 16 // t["WM"] + 8 * m * n // 16**2
    ### STUB
    # return None
    ### END SOLUTION


# %%
counted = {"global_load_requests": global_requests, "shared_load_requests": shared_requests}
see.counts("wmma", (1024, 1024, 1024), **counted)

# %% [markdown]
# For shared memory the hardware's counter has a little less. Eight sums of a lane lie side by side in Cs, and
# the compiler reads them in two loads of 16 bytes instead of eight. The fragments, where it matters, it loads
# as often as they are written.
#
# ## Skew
#
# A load of a fragment fetches 8 rows of 16 bytes at a time, four times. 8 rows of 16 bytes are 128 bytes:
# they could come in **one** wavefront, if they lie in 32 different banks. But rows of 128 halves are 256
# bytes long, twice around all banks. So every row begins in the same bank.
#
# The remedy is to make rows longer. By how much? That is an exercise, and it comes before the picture
# that has the answer.

# %% [markdown]
# ### Exercise 08.2 · How much skew?
# *core · easy · 6 minutes*
#
# Rows of 128 halves, as in document 004, with a skew of 0, 8 and 16 halves. How many **wavefronts** does
# it take each time to fetch 8 rows of 16 bytes, one below the other? Work it out from the banks in which
# the rows begin, then ask.

# %% id="ex-08-2"
### BEGIN SOLUTION
wavefronts = (8, 1, 2)  # PAD 0, 8, 16
### STUB
# wavefronts = (None, None, None)  # PAD 0, 8, 16
### END SOLUTION

check.padding_wavefronts(wavefronts)

# %% [markdown]
# Now the picture. Rows may have other widths as well:

# %%
see.padding()

# %% [markdown]
# More is not better. What counts is where the eight rows begin: 4 banks apart they fill the 32 banks once
# around.
#
# ## Why a third of cuBLAS?
#
# 46.78 TFLOPS, 33.7 % of cuBLAS, was all that v07 got on its author's RTX 3090:

# %%
see.tflops("wmma_fp16_acc", on="RTX 3090")

# %%
see.predict("08.limit")

# %% [markdown]
# Take one warp of v07 and one step of 16 along k. Its tile of 64 × 32 is 4 × 2 fragments, so there are 8
# products. An SM of an RTX 3090 does 512 such multiply-adds a clock, and serves one wavefront of shared
# memory:

# %%
products = 8 * 16**3 / 512
loads = 4 + 4 * 2  # of A once each, of B again for each row of fragments
{"clocks of the Tensor Cores": products, "wavefronts": loads * 4 * 2}

# %% [markdown]
# 64 clocks of arithmetic ask for 96 clocks of shared memory: as it is written, the Tensor Cores cannot be
# busy for more than two thirds of the time. (4 times 8 rows a load, 2 wavefronts for each 8 because of
# the skew of 16. A compiler may save some of the repeated loads.) Then all warps of the block wait at two
# barriers while the next tiles come from global memory, and nobody computes. With BK = 16 they do so
# after every step. That is how one comes to a third.
#
# Three things change the first sum:
#
# - **Load each fragment once**: 4 + 2 loads instead of 12.
# - **A skew of 8**: 1 wavefront for 8 rows instead of 2. Together 24 wavefronts for the same 64 clocks.
# - **Larger warp tiles**: loads go with rows + columns, products with rows × columns. 64 × 64 takes 8
#   loads for 16 products.
#
# One changes the second: **a larger BK**. With BK = 64 a block waits once for four steps. What each of these
# is worth was measured on an H200, and you will see it under *Tune it*.
#
# On an H200 the sum is harder still. Its Tensor Cores do four times as many multiply-adds a clock, and
# shared memory serves one wavefront as ever:

# %%
{
    tile: (tile[0] * tile[1] * 16 / 2048, (tile[0] + tile[1]) // 16 * 4)
    for tile in ((32, 32), (64, 64), (128, 64))
}

# %% [markdown]
# These are (clocks of the Tensor Cores, wavefronts) for warp tiles of three sizes. Only the largest has
# more clocks of arithmetic than wavefronts, and its 8,192 sums take 256 registers of each lane, one more
# than a lane can have. Shared memory presses from one side, registers from the other. That is why Hopper
# got another kind of instruction, for four warps together, which takes its operands from shared memory by
# itself: wgmma, which the stage `wgmma_tma` uses.
#
# ## What is it worth?

# %%
see.tflops("warp_tiled", "wmma_fp16_acc", "wmma")

# %%
see.roofline("warp_tiled", "wmma")

# %% [markdown]
# The FP16 peak is so high that bytes count again. Do not be misled by DRAM's line, on which the kernel seems
# to lie: the axis counts the bytes that warps ask for, and DRAM has to deliver only a part of them. Blocks
# side by side want the same rows of A, blocks below each other the same columns of B, and all but the first
# find them in L2. (L1 does not count either: `cp_async16` fetches past it.) So go straight up from the
# kernel's place, to L2's line. That is the roof over these bytes, and it is well below the peak. The roof of
# shared memory is lower still: so many wavefronts do the kernel's fragments and tiles take.
#
# And there is one between them and the peak. Without any memory, on registers alone, an H200 was measured to
# do so many TFLOPS:

# %%
alone = records.compute_roofs()
dict(zip(alone["unit"], alone["tflops"].round().astype(int)))

# %% [markdown]
# "mma FP16" is the instruction behind `wmma_mma`. On Hopper it does not get the Tensor Cores to their peak;
# that takes "wgmma", which is what cuBLAS and later stages have. So cuBLAS is out of reach here. Put
# it into the sum above: at this rate the products of a 64 × 64 tile take half as many clocks again, and its
# 32 wavefronts fit beside them. Yet our kernel gets about half of what its own instruction can do. Most of
# the rest is waiting.
#
# Why are sums of halves faster? The products take as long. But half the sums are half the registers, and then
# an SM has room for one more block, which computes while others wait: `wmma` takes 246 registers per thread,
# and 2 blocks fit. You have seen what it costs: the error.

# %%
see.occupancy("wmma_fp16_acc")

# %% [markdown]
# ## Tune it
#
# Every legal choice of tiles was measured on an H200. First the two sizes that say how often a block
# waits and where its rows begin.

# %%
see.predict("08.depth")

# %% tags=["answer"]
see.heatmap("wmma", "BK", "PAD", others="best")

# %% [markdown] tags=["answer"]
# Read down the columns. A larger BK means to wait less often, and with a skew of 8 or 16 every step of it
# pays. Without one it makes the kernel *slower*. Rows of A's tile are BK halves long here: 8 rows of 32
# bytes begin in banks 0, 8, 16, 24, 0, ... and take 2 wavefronts, rows of 64 bytes take 4, rows of 128
# bytes 8. What waiting less often brings, the banks take away, and more.

# %% [markdown]
# Now the warp's tile. 32 × 32 takes 4 loads for 4 products, 64 × 64 takes 8 for 16:

# %%
see.heatmap("wmma", "WM", "WN", others="best")

# %% [markdown]
# `wmma_fp16_acc` has the same tiles as `wmma`, so that the two stages differ in nothing but their sums. The
# fastest ones that were measured for it are others. How many sums has a lane with them, and how many
# registers would they take as float32?

# %%
records.best_tiles("wmma_fp16_acc")

# %% [markdown]
# And all choices of `wmma`. Begin with the document's tiles: 128 × 128 × 16, warps of 64 × 32, skew 16. Then
# change one thing at a time: skew 8, BK 32, BK 64, and at last WN 64. Which step brings the most? Which do
# the wavefronts announce, and which not? (As keeps its rows here, of BK + PAD halves; v07 transposes it.)

# %%
see.tiles("wmma")

# %% [markdown]
# Wavefronts announce what the skew brings, and say nothing of BK, which brings more: waiting is no wavefront.
# And there is something that neither explains. Blocks of 64 × 64 with BK = 64 and warps of 32 × 64 are faster
# with a skew of 16 than with 8, although they take twice as many wavefronts. A count explains what it
# counts. For the rest there is measuring. (A guess with a reason: rows of 64 + 16 halves begin at whole
# sectors of 32 bytes, those of 64 + 8 do not, and the GPU's counters say that `cp.async` asks for half as
# many sectors again to fill the latter. Small blocks copy most.)

# %% [markdown]
# ---
# ## Exercises
#
# *(Exercise 08.2 is above, where skew is explained.)*
#
# ### Exercise 08.1 · A warp's product
# *core · hard · the heart of this notebook · 20 minutes*
#
# One warp a block, and a block for each 16 × 16 tile of C (float32). The tiles are fetched for you: B's
# as it is, A's **transposed**, as document 004 does: `As[p, y]` is element (y, p). Add the fragments, the
# loads, the product and the store of the sums into `Cs`. m, n and k are multiples of 16.


# %% id="ex-08-1"
def make_product(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        ### BEGIN SOLUTION
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        ### STUB
        # # your code: the fragments, and eight accumulators per lane, all zero
        ### END SOLUTION
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            ### BEGIN SOLUTION
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            ### STUB
            # # your code: load the fragments, multiply
            ### END SOLUTION
            cuda.syncwarp()
        ### BEGIN SOLUTION
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        ### STUB
        # # your code: store the accumulators into Cs
        ### END SOLUTION
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


check.warp_product(make_product)

# %% [markdown]
# ### Exercise 08.3 · n is not the leading dimension
# *core · easy · 8 minutes*
#
# Document 004 pads the rows of its matrices, and hands the kernels lda, ldb and ldc, the distances from
# row to row. But where v07 loads and stores C, it says n. Here is that end with a thread an element, and
# C as the flat array that it is in C++. It has passed every test with m × n matrices whose rows were not
# padded. Mend it.


# %% id="ex-08-3"
@cuda.jit
def v07_ends(m, n, ldc, alpha, acc, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        ### BEGIN SOLUTION
        old = float32(C[row * ldc + col]) if beta != 0 else float32(0)
        C[row * ldc + col] = float16(alpha * acc[row, col] + beta * old)
        ### STUB
        # old = float32(C[row * n + col]) if beta != 0 else float32(0)
        # C[row * n + col] = float16(alpha * acc[row, col] + beta * old)
        ### END SOLUTION


check.padded_c(v07_ends)

# %% [markdown]
# ### Exercise 08.4 · The edge of C
# *stretch · hard · 20 minutes*
#
# The same product for **any** m, n and k. Where the matrices have ended, the tiles hold zeros, so the
# sums are right. But a fragment is 16 × 16, and C may end in the middle of it. v07 stores whole fragments
# and writes beyond C. Bring to C what belongs there (float32; its rows may be longer than n), and nothing
# else.


# %% id="ex-08-4"
@cuda.jit
def product(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    Cs = cuda.shared.array((16, 24), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    ### BEGIN SOLUTION
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    cuda.syncwarp()
    for e in range(8):
        if row0 + r < m and col0 + c + e < n:
            C[row0 + r, col0 + c + e] = Cs[r, c + e]
    ### STUB
    # # your code: from acc to C
    ### END SOLUTION


check.ragged_product(product)

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("08")

# %% [markdown]
# ## The whole ladder
#
# The kernels of the documents, from the first to this one, followed by some from no document: the published
# speed, the speed on an H200, and how many elements each loads per multiply-add. (Those from
# `double_buffered` to `stream_k` are still FP32.)

# %%
see.ladder()

# %% [markdown]
# One roofline, with the stages up to this notebook's:

# %%
see.roofline(until="wmma_fp16_acc")

# %% [markdown]
# Read the ladder from the top. Coalescing made each request cheaper. Shared-memory tiles made requests to
# global memory fewer. Thread tiles moved repeated loads on from shared memory to registers, first along one
# side, then along both. Wide accesses made instructions fewer, and warp tiles made loads from shared memory
# fewer. Then Tensor Cores replaced ordinary multiply-adds. Each step began with the same question: what
# limits it now?
#
# ### Beyond the documents
#
# The later stages keep asking it. No notebook builds them: `see.source` shows their kernels, and the
# [glossary](glossary.md) explains their words.
#
# - `mma_swizzled` uses instructions whose fragments have a documented layout. So it can store each sum to C
#   from the register that holds it. Instead of a skew, pieces of 16 bytes change places within a row.
# - `mma_ring` fetches the next tiles while it multiplies, as `async_copy` does.
# - `mma_sync` loads the fragments of the next product while it multiplies, too.
# - `mma_tma` lets TMA bring the tiles, a unit of Hopper GPUs that copies on its own. One group of four warps,
#   a warpgroup, asks for the tiles; the warps that multiply copy nothing.
# - `wgmma_tma` multiplies with wgmma, Hopper's instruction for a whole warpgroup, which reads its operands
#   from shared memory by itself. One of the threads that multiply asks for the tiles.
# - `warp_specialised` multiplies with wgmma and fetches with a warpgroup of its own, as `mma_tma` does. By
#   itself that gains nothing here; the stages after it are built on it.
# - `persistent` has as many blocks as there are SMs. Each takes one tile of C after the other.
# - `staged_store` lets TMA store the results as well.
# - `overlapped_store` stores them while the next tile is multiplied.
# - `stream_k_fp16` chooses the size of its tiles by the shape of C. The last tiles, too few for all SMs, are
#   cut along k and shared out among them.
#
# How far does this get us? Each stage's speed as a percentage of cuBLAS's in the same run, for two sizes:

# %%
halves = records.ladder().query("dtype == 'fp16' and m == n == k and m in (4096, 8192)")
share = 100 * halves.pivot(index="stage", columns="m", values="ratio_to_cublas")
share.loc[[stage.name for stage in LADDER if stage.dtype == "float16"]].round(1)

# %% [markdown]
# And Triton, a compiler that is made for such kernels, in the same run as `overlapped_store`:

# %%
last = halves[halves["stage"] == "overlapped_store"].set_index("m")
(100 * last["triton_tflops"] / last["cublas_tflops"]).round(1).to_frame("Triton")

# %% [markdown]
# So on this GPU, at these sizes, kernels written in Python, the last two, are as fast as the library that
# NVIDIA ships. Each stage has its file in `gemm_course/kernels`, and `see.source` shows it.
#
# ## Recap
#
# - A Tensor Core adds the product of two small matrices to a third. Operands are halves, products are
#   exact, sums should be float32.
# - A fragment is dealt out over a warp. All 32 lanes make each call together, and nobody relies on who
#   holds what.
# - A load fetches 8 rows of 16 bytes at a time. A skew of 8 halves puts them into 32 different banks; 16
#   is worse.
# - Tensor Cores are so fast that shared memory limits them again: large warp tiles, each fragment loaded
#   once. And they are so fast that waiting for tiles takes much of the time: a large BK, so as to wait
#   less often.
#
# **Next:** this was the last notebook. In `wmma`, no thread computes while tiles arrive; how to do both at
# once, `see.source("async_copy")` shows. Then go on with the stages beyond the documents, above.
