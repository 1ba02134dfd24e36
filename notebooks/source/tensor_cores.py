# %% [markdown]
# # [[tensor_cores.ipynb]] · Tensor Cores
#
# Every kernel so far has fed the FP32 units. GPUs since 2017 have another unit, which does nothing but
# multiply small matrices. It is so fast that the hard part is to feed it.
#
# **After this notebook you can** write a kernel for Tensor Cores that loads nothing twice per step. You can
# say when 16 bits are enough, and how to lose whole steps of a sum without a trace. And you can find the
# padding, the depth and the warp tile that keep these units fed.
#
# *Time: about 90 minutes to read, 60 for the exercises. Comes from document 004, kernel v07; the course's own
# version of it is called `wmma`. (The exercises are not in numerical order.)*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32
from numba.types import float16

from gemm_course import LADDER, check, launch, records, run
from gemm_course import widgets as see
from lockstep.intrinsics import (
    COL_MAJOR,
    ROW_MAJOR,
    unroll,
    wmma_load_a,
    wmma_load_b,
    wmma_mma,
    wmma_store,
)

# %% [markdown]
# ## In one picture
#
# A warp multiplies as a whole, 16 steps along `k` in one call. Look at the warp first, then at a thread: a
# single thread only loads and stores.

# %%
see.multiply("wmma")

# %% [markdown]
# ## A bigger instruction
#
# In notebook [[warp_tiles.ipynb]] the number of instructions was the limit. A multiply-add instruction of a
# warp does 32 multiply-adds, and an SM does four of them per clock. That is the FP32 peak, and `warp_tiled`
# has come to 64 % of it. So we need an instruction that does more.
#
# A **Tensor Core** takes two small matrices from the registers of a warp and adds their product to a third:
# 16 × 16 × 16 = 4,096 multiply-adds for one call that all 32 lanes make together. An SM of an H200 has four
# Tensor Cores. The data sheet says: 990 TFLOPS with them, 67 without.

# %%
see.predict("tensor_cores.speed")

# %% [markdown]
# The price: short operands. Here they are FP16, numbers of 16 bits.
#
# ## The smallest kernel
#
# One warp, one product of two 16 × 16 matrices. The four `wmma_` calls are explained below.


# %%
@cuda.jit
def one_product(A, B, C):
    As = cuda.shared.array((16, 16), float16, 32)
    Bs = cuda.shared.array((16, 16), float16, 32)
    Cs = cuda.shared.array((16, 16), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    r, c = cuda.threadIdx.x // 2, cuda.threadIdx.x % 2 * 8  # each lane copies 8 elements of a row
    for e in range(8):
        As[r, c + e], Bs[r, c + e], acc[e] = A[r, c + e], B[r, c + e], 0
    cuda.syncwarp()
    wmma_load_a(a, As, (0, 0), ROW_MAJOR)
    wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
    wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    cuda.syncwarp()
    for e in range(8):
        C[r, c + e] = Cs[r, c + e]


# %%
rng = np.random.default_rng(0)
A, B = (rng.random((16, 16)).astype(np.float16) for _ in "AB")
C = launch(one_product[1, 32], A, B, np.zeros((16, 16), np.float32)).arrays["C"]
abs(C - A.astype(float) @ B.astype(float)).max()

# %% [markdown]
# WMMA is *warp matrix multiply-accumulate*, CUDA's portable way to Tensor Cores. These read their operands
# from registers, and registers belong to lanes. So the 256 elements of a 16 × 16 matrix are dealt out over
# the 32 lanes of a warp. What the warp holds then is a **fragment**.
#
# - `a`, `b`, `acc`: a lane's shares of three fragments, in local arrays that are registers. `acc` has 256 /
#   32 = 8 elements. `a` and `b` have 16: on the first Tensor Cores two lanes held each value. Now the second
#   eight repeat the first, and cost no registers.
# - `As`, `Bs`, `Cs`: the matrices in shared memory. The 32 is their [alignment](glossary.md#alignment) in
#   bytes: a fragment begins at a multiple of it. Rows are multiples of 16 bytes long.
#
# | call of the whole warp | does |
# |---|---|
# | `wmma_load_a(a, As, (0, 0), ROW_MAJOR)` | fills `a` with 16 × 16 elements, from **place** (0, 0) on |
# | `wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)` | the same for `b` |
# | `wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)` | `acc += a · b`; it must be told the orders of the loads |
# | `wmma_store(Cs, (0, 0), acc, ROW_MAJOR)` | stores the accumulators, from that place on |
#
# The **order** says how a matrix lies in memory: `ROW_MAJOR` as `array[row, column]`, `COL_MAJOR` transposed,
# as `array[column, row]`.
#
# All 32 lanes make each call, with the same place: not in a branch that some of them take, and not with a
# place for each lane.
#
# **Why `cuda.syncwarp()`?** It is a barrier for the 32 lanes of a warp. These need not run in step, and
# `wmma_load_a` reads what other lanes have copied. `cuda.syncthreads()` would wait for other warps, too, and
# none of them uses these arrays.
#
# ### Who holds what?
#
# The dealer has a system. Look at some elements of A: the number in a cell is the lane that holds it. B is
# dealt in the same way, but by columns. **Which lane holds B[5, 12]?** Say it before you switch to B.

# %%
see.fragment()

# %% [markdown] tags=["thought"]
# Lane 18. Each row of A has four lanes, and rows 8 apart share them. So each column of B has four, and
# column 12's are column 4's: they begin at 4 · 4 = 16. A lane holds two neighbours, and two more 8 on: rows 4
# and 5 go to the third of the four.

# %% [markdown]
# Well done, and now forget it: **CUDA does not promise it.** With WMMA the layout is unspecified, and the
# next GPU may deal in another way. What you may do to a fragment is the same thing to every element.
#
# ### Exercise [[warp_product]] · A warp's product
# *core · easy · 10 minutes*
#
# Now along k: one warp per block, and a block for each 16 × 16 tile of C (float32). The tiles are fetched for
# you, B's as it is, A's **transposed**, as document 004 has it: `As[p, y]` is element (y, p). (A fragment
# does not need it: it is loaded in either order.) All rows are padded, those of the tiles by PAD values; how
# much is best, you find in [[padding_wavefronts]]. Write the fragments, the loads, the product and the store
# of the accumulators into `Cs`. m, n and k are multiples of 16.


# %% id="ex-warp_product"
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
# ## What FP16 keeps
#
# FP16 has a sign, 5 bits of exponent and 10 of fraction. With the one in front that is not stored, a
# number has 11 significant bits, three decimal digits. The largest is 65,504.

# %%
float(np.float16(0.1)), float(np.finfo(np.float16).max)

# %%
see.predict("tensor_cores.ones")

# %%
ones, sixteens = np.ones(4096, np.float16), np.full(4096, 16, np.float16)
sums = [int(np.add.accumulate(each, dtype=np.float16)[-1]) for each in (ones, sixteens)]
see.fold(pd.Series(sums, ["4,096 ones", "4,096 times 16"]).to_frame("sum in FP16"))

# %% [markdown] tags=["answer"]
# Each addition before 2,048 was exact, and none after it had an effect. A sum of many small numbers is the
# worst that can happen to a short format, and a matrix product consists of nothing else. Adding 16 products
# at once, as a Tensor Core does, only puts it off: the second row is 65,536 ones, 16 at a time, and stops at
# 32,768.

# %% [markdown]
# ## How a Tensor Core adds
#
# The product of two FP16 values has at most 22 significant bits, and a float32 has room for 24: **products
# are exact**. Tensor Cores multiply without any loss, and add in FP32. What becomes of bits that do not fit?

# %%
see.predict("tensor_cores.cut")

# %% [markdown] tags=["answer"]
# It **cuts**: bits that do not fit are dropped, not rounded. And it cuts twice. First the 16 products and the
# accumulator are brought to the exponent of the largest of them, with 25 bits behind its first; what is
# smaller is lost. Then they are added, and the sum is cut to a float32.

# %% [markdown]
# Does it matter? `adds` does in NumPy what a Tensor Core of an H200 does. Take 100 sums of 4,096 products of
# numbers between 0 and 1, which first have to be rounded to FP16. Which error is larger: that of the inputs,
# or that of a Tensor Core's sums?

# %%
from gemm_course.model.tensor_cores import adds

x, y = np.random.default_rng(0).random((2, 4096, 100))
products = x.astype(np.float16).astype(float) * y.astype(np.float16)
on_core = np.zeros(100, np.float32)
for p in range(0, 4096, 16):
    on_core = adds(on_core, products[p : p + 16])
one_by_one = np.add.accumulate(products, dtype=np.float32)[-1]
errors = {
    "inputs rounded to FP16": products.sum(0) / (x * y).sum(0) - 1,
    "sums in float32, rounded": one_by_one / products.sum(0) - 1,
    "sums of a Tensor Core": on_core / products.sum(0) - 1,
}
see.fold(
    pd.DataFrame(
        {name: (e.mean(), (e**2).mean() ** 0.5) for name, e in errors.items()}, ["mean", "typical size"]
    ).T,
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# That of the sums, -2.3 · 10⁻⁵ on average, as on an H200: cutting makes every positive sum smaller, so errors
# do not cancel. Once C is stored in FP16, which rounds to 5 · 10⁻⁴, nobody sees it.

# %% [markdown]
# ### The perfect theft
#
# Here `adds` adds 16 products to an accumulator of 1. A **step** is the distance from 1 to the next float32.
# The products come to 4.8 steps, and the sum changes.
#
# Your turn: **16 positive products that come to as many steps as possible, and the sum stays exactly 1.**
# More than 2 is good, nearly 4 a master's work. There is a little more to be had.

# %%
step = 2.0**-23
products = [0.3 * step] * 16  # change these
if len(products) != 16:
    found = f"There must be 16 products, not {len(products)}."
elif min(products) <= 0:
    found = "Every product must be positive."
elif adds(1, products) != 1:
    found = "caught: the sum has changed"
else:
    found = f"{sum(products) / step:.2f} steps stolen"
found

# %% [markdown] tags=["thought"]
# The first cut keeps 25 bits behind the 1: quarters of a step. So `[0.2499 * step] * 16` is lost whole,
# nearly **4** steps. The second cut drops what is left below a whole step. So one product may keep three
# quarters: `[0.9999 * step] + [0.2499 * step] * 15` is nearly **4.75**. Three of almost ½ and 13 of almost ¼
# do as well. Measured (`data/h200/tensor_core_sums.csv`): an H200 loses sixteen products of ⅛ step without
# a trace, 2 steps in all.

# %% [markdown]
# Both kinds of accumulators are stages of the ladder: `wmma` adds in FP32, `wmma_fp16_acc` in FP16. The
# largest relative error of a product of positive numbers, on the emulator unless you have a GPU. (The
# emulator rounds where a Tensor Core cuts. Here the rounding of C hides the difference.)

# %%
A, B = (rng.random(shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
exact = A.astype(float) @ B.astype(float)
{stage: f"{abs(run(stage, A, B).C / exact - 1).max():.5f}" for stage in ("wmma", "wmma_fp16_acc")}

# %% [markdown]
# ## More than one fragment
#
# In [[warp_product]] every product needs two loads. A warp that computes 2 × 2 fragments of C can do with one
# load per product: it is the outer product of notebook [[thread_tiles_2d.ipynb]], with matrices for numbers.
#
# ### Exercise [[fragments_once]] · Each fragment once
# *core · medium · the heart of this notebook · 15 minutes*
#
# One warp per block, and a block for each **32 × 32** tile of C (float32). The tiles are fetched for you,
# both as they are: `As[row, p]`, `Bs[p, column]`. Write 2 × 2 fragments of accumulators, the loads, the
# products and the stores into `Cs`. Per step of 16 along k the checker counts **4 loads and 4 products**. m
# and n are multiples of 32, k of 16.
#
# A fragment of an array of fragments is `a[i]`. Let `i` come from `unroll(range(2))`, to be sure that the
# compiler keeps them in registers.


# %% id="ex-fragments_once"
@cuda.jit
def product_2x2(k, A, B, C):
    As = cuda.shared.array((32, 24), float16, 32)
    Bs = cuda.shared.array((16, 40), float16, 32)
    Cs = cuda.shared.array((32, 40), float32, 32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 32, cuda.blockIdx.x * 32
    ### BEGIN SOLUTION
    a = cuda.local.array((2, 16), float16)
    b = cuda.local.array((2, 16), float16)
    acc = cuda.local.array((2, 2, 8), float32)
    for i in unroll(range(2)):
        for j in unroll(range(2)):
            for e in unroll(range(8)):
                acc[i, j, e] = 0
    ### STUB
    # # your code: two fragments of A, two of B, 2 × 2 of accumulators, all zero
    ### END SOLUTION
    for k0 in range(0, k, 16):
        for e in range(16):
            As[lane, e] = A[row0 + lane, k0 + e]
            Bs[e, lane] = B[k0 + e, col0 + lane]
        cuda.syncwarp()
        ### BEGIN SOLUTION
        for i in unroll(range(2)):
            wmma_load_a(a[i], As, (i * 16, 0), ROW_MAJOR)
            wmma_load_b(b[i], Bs, (0, i * 16), ROW_MAJOR)
        for i in unroll(range(2)):
            for j in unroll(range(2)):
                wmma_mma(acc[i, j], a[i], b[j], ROW_MAJOR, ROW_MAJOR)
        ### STUB
        # # your code: four loads, four products
        ### END SOLUTION
        cuda.syncwarp()
    ### BEGIN SOLUTION
    for i in unroll(range(2)):
        for j in unroll(range(2)):
            wmma_store(Cs, (i * 16, j * 16), acc[i, j], ROW_MAJOR)
    ### STUB
    # # your code: four stores into Cs
    ### END SOLUTION
    cuda.syncwarp()
    for r in range(32):
        C[row0 + r, col0 + lane] = Cs[r, lane]


check.fragments_once(product_2x2)

# %% [markdown]
# ## The kernel
#
# `wmma` is our version of v07: v06, with a warp's tile cut into fragments. v07 has A transposed, BK 16, warp
# tiles of 64 × 32, PAD 16 and FP16 accumulators; ours differs in all five. Before the whole, its three parts.
# Their sizes:
#
# - `SIDE` is 16. `ROWS` and `COLUMNS` count the fragments of a warp's tile: WM / 16 of A, WN / 16 of B.
# - `A_WIDTH`, `B_WIDTH`, `C_WIDTH`: the lengths of rows of As, Bs and Cs, padded. `A_ROWS` and `B_ROWS`: rows
#   of a tile that the whole block copies at a time.
# - `acc_type` is the accumulators' dtype: float32 here, float16 in `wmma_fp16_acc`.
#
# ### Copy
#
# ```python
# valid = max(0, min(k - k0 - c, 8)) * 2  # bytes; past k there may be NaN
# cp_async16(As, (r, c), A, (min(row0 + r, m - 1), k0 + c), valid)
# ```
#
# This asks for 16 bytes, 8 values, to be copied from A to As, and does not wait. They arrive as they are. So
# As is **not transposed** any more, and rows of A, B and C must begin at multiples of 16 bytes.
#
# Three bounds, three remedies:
#
# - Along k, only `valid` bytes are read. The rest become zeros, which add nothing.
# - Below the last row of A, `min` fetches that row again. What comes of it is never stored.
# - Right of the last column of B, its last group of 8 columns is fetched again, in the same way.
#
# `cp_async_commit` closes the list of copies, `cp_async_wait(0)` waits until all of them have come. This
# kernel waits at once. Still, no value passes a register, and all copies of a thread are under way together.
#
# ### Multiply
#
# ```python
# for i in unroll(range(ROWS)):
#     wmma_load_a(a[i], As, (y0 + i * SIDE, p), ROW_MAJOR)
# ```
#
# This is [[fragments_once]], with `ROWS` × `COLUMNS` fragments. (y0, x0) is the corner of the warp's tile.
#
# ### Store
#
# ```python
# wmma_store(Cs, (warp, 0, 0), acc[i, j], ROW_MAJOR)
# ```
#
# Cs has a 16 × 16 matrix for each warp. There the accumulators have a row and a column again, and get their
# alpha, beta and bounds check, as in [[ragged_product]]. `copy16(old, 0, C, (row, col))` copies 8 values at
# once, from C to `old`; with the array first it stores.

# %%
see.source("wmma")

# %% [markdown]
# ## Count it three ways
#
# These tiles are the example from here on: **128 × 128 × 64, warps of 64 × 64**.

# %%
t = LADDER["wmma"].tiles
{name: t[name] for name in ("BM", "BN", "BK", "WM", "WN")}

# %% [markdown]
# Write the number of requests of all warps. Global memory: a lane fetches 8 values at a time, and a request
# is that of 32 lanes. Shared memory: a load of a fragment is one request; and at the end each 16 × 16 tile of
# C is read back from shared memory in 8 requests. (Off by 8: you counted values; by 32: lanes; by 4:
# fragments loaded again.)


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
# The hardware has fewer: at the end, the compiler reads eight neighbours in Cs by two loads.
#
# ## Padding
#
# A fragment is 16 rows of 32 bytes. A load fetches it in four quarters, each of 8 rows of 16 bytes. 8 rows of
# 16 bytes are 128 bytes: they could come in **one** wavefront, if they lie in 32 different banks. But rows of
# 128 values are 256 bytes long, twice around all banks: every row begins in the same bank. The remedy is to
# make rows longer. By how much?
#
# ### Exercise [[padding_wavefronts]] · How much padding?
# *core · easy · 5 minutes*
#
# Rows of 128 FP16 values, like those of B's tile, with a padding of 0, 8 and 16 values. How many
# **wavefronts** does it take each time to fetch 8 rows of 16 bytes, one below the other? Work it out from the
# banks in which the rows begin, then run the cell.

# %% id="ex-padding_wavefronts"
### BEGIN SOLUTION
wavefronts = (8, 1, 2)  # PAD 0, 8, 16
### STUB
# wavefronts = (None, None, None)  # PAD 0, 8, 16
### END SOLUTION

check.padding_wavefronts(wavefronts)

# %% [markdown]
# ### Two hunts
#
# 1. Which paddings on the slider take **one** wavefront whatever the width? How many are there? Guess the
#    rule from the first two, then check the others.
# 2. Rows of 16 values take 2 wavefronts without any padding. Find the padding that makes it **four times as
#    bad**.

# %%
see.padding()

# %% [markdown] tags=["thought"]
# 1. Four: 8, 24, 40 and 56, the odd multiples of 8. Eight rows then begin in eight places 4 banks apart,
#    in some order, and fill all 32 banks.
# 2. 48. Rows of 64 values are once around all banks: 8 wavefronts. Padding is no magic; what counts is where
#    the rows begin.
#
# Our example has the smallest that always works: **PAD 8**.

# %% [markdown]
# ## Several warps
#
# A block of the stage `wmma` has eight warps, a thread of it hardly any work of its own: everything is done
# by warps. Its tile of C has BM × BN results, a warp's part of it WM × WN.
#
# ### Exercise [[several_warps]] · Several warps
# *core · hard · 20 minutes*
#
# Two parts are given. `fetch(As, Bs, A, B, k0, m, n, k)` copies the block's tiles from step k0 on, with all
# threads. `put(C, Cs, acc[i, j], y, x, m, n)` stores a fragment at row y and column x of the block's tile.
# Write the rest: where the warp's part begins, the loop over tiles, and in a tile the steps of 16 along k,
# each with **WM / 16 + WN / 16** loads of fragments. All sizes but PAD are multiples of 16, and warps are
# numbered row by row in the block's tile. It has to be right for any m, n and k.


# %% id="ex-several_warps"
from gemm_course.checks.kits import wmma_parts


def make_wmma(BM, BN, BK, WM, WN, PAD):
    WARPS = BM // WM * (BN // WN)
    A_TILE, B_TILE = (BM, BK + PAD), (BK, BN + PAD)
    DOWN, ACROSS = WM // 16, WN // 16  # a warp's fragments of A and of B
    fetch, put = wmma_parts(BM, BN, BK, WARPS)

    @cuda.jit
    def several(m, n, k, A, B, C):
        As = cuda.shared.array(A_TILE, float16, 32)
        Bs = cuda.shared.array(B_TILE, float16, 32)
        Cs = cuda.shared.array((WARPS, 16, 24), float32, 32)
        a = cuda.local.array((DOWN, 16), float16)
        b = cuda.local.array((ACROSS, 16), float16)
        acc = cuda.local.array((DOWN, ACROSS, 8), float32)
        for i in unroll(range(DOWN)):
            for j in unroll(range(ACROSS)):
                for e in unroll(range(8)):
                    acc[i, j, e] = 0
        warp = cuda.threadIdx.x // 32
        ### BEGIN SOLUTION
        y0, x0 = warp // (BN // WN) * WM, warp % (BN // WN) * WN
        for k0 in range(0, k, BK):
            fetch(As, Bs, A, B, k0, m, n, k)
            cuda.syncthreads()
            for p in unroll(range(0, BK, 16)):
                for i in unroll(range(DOWN)):
                    wmma_load_a(a[i], As, (y0 + i * 16, p), ROW_MAJOR)
                for j in unroll(range(ACROSS)):
                    wmma_load_b(b[j], Bs, (p, x0 + j * 16), ROW_MAJOR)
                for i in unroll(range(DOWN)):
                    for j in unroll(range(ACROSS)):
                        wmma_mma(acc[i, j], a[i], b[j], ROW_MAJOR, ROW_MAJOR)
            cuda.syncthreads()
        for i in unroll(range(DOWN)):
            for j in unroll(range(ACROSS)):
                put(C, Cs, acc[i, j], y0 + i * 16, x0 + j * 16, m, n)
        ### STUB
        # # your code: the warp's corner, the loop over tiles, and a put for each fragment
        ### END SOLUTION

    return several


check.several_warps(make_wmma)

# %% [markdown]
# That is `wmma`, but for its copies, which run by themselves (notebook [[overlap.ipynb]]), and for the
# store of C. Compile yours with other sizes if you like: `BK` and `PAD` are yours to vary.

# %% [markdown]
# ## Memory or products?
#
# v07 reached 33.7 % of cuBLAS's speed on its author's RTX 3090. One step of one warp shows part of the
# reason: all warps of an SM share its Tensor Cores and its shared memory.

# %%
see.predict("tensor_cores.limit")

# %% [markdown] tags=["answer"]
# The course's `wmma` repairs both causes, and takes a larger warp tile:
#
# | one step of a warp | v07: 64 × 32 | `wmma`: 64 × 64 |
# |---|---|---|
# | products | 8 | 16 |
# | loads of fragments | 4 + 4 · 2 = 12 | 4 + 4 = 8 |
# | wavefronts per 8 rows | 2 | 1 |
# | **wavefronts in all** | 12 · 4 · 2 = **96** | 8 · 4 · 1 = **32** |
# | **clocks of a 3090's Tensor Cores**, FP16 sums | 8 · 4,096 / 512 = **64** | 16 · 4,096 / 512 = **128** |
#
# So v07's Tensor Cores cannot be busy for more than **two thirds** of the time. Why v07 gets but
# half of that, nobody has profiled.

# %% [markdown]
# An H200's Tensor Cores are four times as fast, and its shared memory still serves one wavefront per clock.
# How many clocks do they take for the 16 products of `wmma`, and who is ahead now?

# %% [markdown] tags=["thought"]
# 16 · 4,096 / 2,048 = 32 clocks for 32 wavefronts: a dead heat, by data sheet. But the compiler makes two
# [`mma`](glossary.md#mma) of each call, the machine's own instruction. By data sheet one takes 4 clocks of a
# Tensor Core; measured are 6. So it is 16 · 2 · 6 / 4 = 48 clocks, and shared memory has time to spare.

# %% [markdown]
# ## How deep?
#
# One thing no wavefront tells: how often a block waits for its tiles. That is what BK decides.

# %%
see.predict("tensor_cores.depth")

# %%
see.fold(lambda: see.heatmap("wmma", "BK", "PAD", others="best"))

# %% [markdown] tags=["answer"]
# Read down the columns. With padding every larger BK pays. Without it, it makes the kernel *slower*: rows of
# A's tile are BK values long, 32 bytes, then 64, then 128, and 8 of them take 2, 4 and 8 wavefronts. What
# waiting less often brings, the banks take away, and more.

# %% [markdown]
# ## What is it worth?
#
# 16 times the multiply-adds per clock. **Place two bets:** how many times as fast as `warp_tiled` is `wmma`,
# and what part of cuBLAS's FP16 speed does it reach?

# %%
see.fold(lambda: see.tflops("warp_tiled", "wmma"), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# 7 times as fast, and 40 % of cuBLAS. (Below it is 302 or 303 TFLOPS, and 39 %: each picture has runs of its
# own.) With `mma` no kernel reaches cuBLAS: on registers alone, without any memory, it does 648 TFLOPS.
# Hopper has a bigger instruction, `wgmma`, and that does 901. But `wmma` is far from 648, too. What keeps it?

# %% [markdown]
# ## What limits it now?
#
# Three suspects: `wmma` as it is, with BK = 16, and without padding. Here are their profiles, and somebody
# has lost the labels. **Who is who?** And which of the three is fastest?
#
# | | X | Y | Z |
# |---|---|---|---|
# | Tensor Cores are busy | 24 % | 16 % | 48 % |
# | shared memory is busy | 20 % | 86 % | 36 % |
# | L2 is busy | 38 % | 11 % | 69 % |
# | a warp waits for copies | 62 % | 10 % | 27 % |
# | a warp waits for shared memory | 5 % | 74 % | 10 % |

# %%
see.fold(
    lambda: see.limits("wmma", ("wmma", {"BK": 16}), ("wmma", {"PAD": 0})),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# X is BK = 16: short steps, and a wait for copies after each. Y is without padding: bank conflicts. Z is
# `wmma` as it is, the fastest, as its Tensor Cores are busiest.
#
# And what limits Z? **Waiting**: no part of the GPU is busy in 70 % of the clocks. That is certain; that L2
# would be next is likely. So the change to try is to multiply while the next tiles arrive.

# %% [markdown] id="side-fp16_in_use"
# *Side trip, 20 minutes: [When is FP16 safe?](fp16_in_use.ipynb)*

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("tensor_cores")

# %% [markdown]
# ## Beyond the documents
#
# The ladder goes on, and each step keeps asking what limits it now:
#
# - [notebook [[mma_sync.ipynb]]](mma_sync.ipynb), with fragments in the open: `mma_swizzled` saves wavefronts
#   without padding, `mma_ring` fetches the next tiles while it multiplies, `mma_sync` loads the next
#   fragments, too;
# - [notebook [[hopper.ipynb]]](hopper.ipynb), on Hopper GPUs alone: `mma_tma` has warps that only ask for
#   tiles, `wgmma_tma` has four warps multiply together, `warp_specialised` does both;
# - [notebook [[last_per_cent.ipynb]]](last_per_cent.ipynb), with the work shared out: `persistent`,
#   `staged_store`, `overlapped_store` and `stream_k_fp16`.
#
# **Guess before you look:** one of these steps brings the most. Does it hide a wait, save wavefronts, or
# have a bigger instruction? Each stage's speed as a percentage of cuBLAS's in the same run, for two sizes:

# %%
halves = records.ladder().query("dtype == 'fp16' and m == n == k and m in (4096, 8192)")
share = 100 * halves.pivot(index="stage", columns="m", values="ratio_to_cublas")
see.fold(
    share.reindex([stage.name for stage in LADDER if stage.dtype == "float16"]).round(1),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# `wgmma_tma`: a bigger instruction, once more. And at the end a kernel in Python is about as fast as NVIDIA's
# own library, at these sizes, give or take some per cent: cuBLAS itself varies by as much.

# %% [markdown]
# ## The whole ladder
#
# The kernels of the documents, then those from no document. (Those from `double_buffered` to `stream_k` are
# still FP32.) **Before you open it:** which three steps multiplied the speed by the most?

# %%
see.fold(lambda: see.ladder(), first="Answer first, then open this.")

# %% [markdown] tags=["thought"]
# `naive_coalesced`, 13 times: neighbours read neighbours. `wmma`, 7 times: a bigger instruction.
# `thread_tiled_1d`, 2.4 times: more than one result per thread.

# %% [markdown]
# ## Recap
#
# You
#
# - had a warp load, multiply and store fragments, all 32 lanes together, and relied on no layout;
# - saw FP16 end at 65,504 and FP16 sums stop, and took FP32 accumulators;
# - stole steps from a Tensor Core, which cuts where others round;
# - loaded each fragment once, the outer product again;
# - moved rows 4 banks apart, so that 8 of them come in one wavefront;
# - told waiting from bank conflicts by a profile, and tuned by it.
#
# Your first kernel did 0.5 TFLOPS, this one does 301, on shorter operands: some 600 times as fast, and you
# can say of almost every step what it was worth and why. **You have climbed the
# documents' ladder.**
#
# **Next:** how to multiply while the next tiles arrive? [Notebook [[overlap.ipynb]]](overlap.ipynb) goes back
# to FP32 for it, and on past cuBLAS.
#
# <details><summary>For the curious</summary>
#
# - **Why does an `mma` take 6 clocks instead of 4?** NVIDIA does not say.
# - **Why "in the same run"?** The power limit decides the clock. Beside these stages cuBLAS did 642 to 726
#   TFLOPS at 8192³.
# - **Do other GPUs add like this?** V100, T4 and A100 cut as well: Fasi and others, PeerJ Computer Science 7,
#   e330.
#
# </details>
