# %% [markdown]
# # 08 · Tensor Cores
#
# Everything up to here was about feeding the FP32 units, and their peak is near. To be much faster, a kernel
# needs another unit. GPUs since 2017 have one, and it does nothing but multiply small matrices.
#
# **After this notebook you can**
# - have a warp load, multiply and store fragments, and say what must not be assumed about them;
# - say what FP16 keeps of a number, how a Tensor Core adds, and when that is good enough;
# - predict the bank conflicts of any padding, and work out how busy document 004's v07 can keep Tensor Cores.
#
# *Time: about 80 minutes to read, 55 for the exercises. Comes from document 004, kernel v07. (The exercises
# are not in numerical order.)*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32
from numba.types import float16

from gemm_course import LADDER, check, launch, records, run
from gemm_course import widgets as see
from gemm_course.intrinsics import (
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
# Here a warp multiplies as a whole, 16 steps along `k` in one operation. Look at the warp first, then at a
# thread: alone it only copies parts of tiles, and brings results to C.

# %%
see.multiply("wmma")

# %% [markdown]
# ## What limits it now?
#
# Instructions, said notebook 07. A multiply-add instruction of a warp does 32 multiply-adds, and with 128
# FP32 units an SM does four of them per clock. That is the peak, 67 TFLOPS, and `warp_tiled` has come to 64 %
# of it. So what is needed is an instruction that does more.
#
# A **Tensor Core** takes two small matrices from the registers of a warp and adds their product to a third:
# 16 × 16 × 16 = 4,096 multiply-adds for one call that all 32 lanes make together. An SM of an H200 has four,
# as has one of an A100 or RTX 3090; V100 and T4 have eight smaller ones. The H200's data sheet says: 990
# TFLOPS with them, 67 without.

# %%
see.predict("08.speed")

# %% [markdown]
# There is a price: the operands are short. Here they are FP16, numbers of 16 bits. (Newer Tensor Cores take
# other formats as well: bfloat16, TF32, FP64, 8-bit floats and integers.)
#
# ## The smallest kernel
#
# One warp, one product of two 16 × 16 matrices:


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
# The names begin with WMMA: *warp matrix multiply-accumulate*, CUDA's portable way to Tensor Cores. A Tensor
# Core reads its operands from registers, and registers belong to lanes. So the 256 elements of a 16 × 16
# matrix are dealt out over the 32 lanes of a warp. What the warp holds then is a **fragment**.
#
# - `a`, `b`, `acc`: a lane's shares of three fragments, in local arrays that are registers. `acc` has 256 /
#   32 = 8 elements. `a` and `b` have 16: WMMA began with V100, where two lanes hold each value. On newer GPUs
#   the second eight repeat the first, and cost no registers.
# - `As`, `Bs`, `Cs`: the matrices in shared memory. The 32 is their [alignment](glossary.md#alignment) in
#   bytes: a fragment begins at a multiple of it, and the rows' length must be a multiple of 16 bytes.
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
# **Why `cuda.syncwarp()`?** It is a barrier for the 32 lanes of a warp. Since 2017 these need not run in
# step, and `wmma_load_a` reads what other lanes have copied. `cuda.syncthreads()` would be right as well, but
# it waits for all warps of a block. Nobody else uses these arrays, so there is nobody else to wait for.
#
# ### Who holds what?
#
# Choose an element. The number in a cell is the lane that holds it:

# %%
see.fragment()

# %% [markdown]
# Now the other way round: choose a lane, and see what it holds.

# %%
see.fragment(by="lane")

# %% [markdown]
# That is what GPUs from the A100 to the H200 do. But **CUDA does not promise it**: with WMMA the layout is
# unspecified, and the next GPU may deal in another way. What you may do to a fragment is the same thing to
# every element.
#
# ### Exercise 08.1 · A warp's product
# *core · easy · 10 minutes*
#
# Now along k: one warp per block, and a block for each 16 × 16 tile of C (float32). The tiles are fetched for
# you, B's as it is, A's **transposed**: `As[p, y]` is element (y, p). Rows of both are 16 + PAD values long.
# Write the fragments, the loads, the product and the store of the accumulators into `Cs`. m, n and k are
# multiples of 16.
#
# (Why transposed? Document 004's v07 inherits it. In v05 and v06 a thread reads several rows of A for one p,
# and wants them side by side. A fragment does not need that, since the load can transpose. So the course's
# `wmma` keeps A as it is.)


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
# ## What FP16 keeps
#
# FP16 has a sign, 5 bits of exponent and 10 of fraction. With the one in front that is not stored, a
# number has 11 significant bits, three decimal digits. The largest is 65,504.

# %%
float(np.float16(0.1)), float(np.finfo(np.float16).max)

# %%
see.predict("08.ones")

# %% tags=["answer"]
ones, sixteens = np.ones(4096, np.float16), np.full(4096, 16, np.float16)
sums = [int(np.add.accumulate(each, dtype=np.float16)[-1]) for each in (ones, sixteens)]
pd.Series(sums, ["4,096 ones", "4,096 times 16"]).to_frame("sum in FP16")

# %% [markdown] tags=["answer"]
# Each addition before 2,048 was exact, and none after it had an effect. A sum of many small numbers is the
# worst that can happen to a short format, and a matrix product consists of nothing else.
#
# Document 004 keeps its accumulators in FP16. A Tensor Core of an H200 adds 16 products at once, so 4,096
# ones come out right. It only takes more of them: the second row is 65,536 ones, 16 at a time, and the
# sum stops at 32,768.

# %% [markdown]
# ## How a Tensor Core adds
#
# The product of two FP16 values has at most 22 significant bits, and a float32 has room for 24: **products
# are exact**. Tensor Cores multiply without any loss, and add in FP32. What becomes of bits that do not fit?

# %%
see.predict("08.cut")

# %% [markdown] tags=["answer"]
# It **cuts**, or truncates: bits that do not fit are dropped, not rounded. And it cuts twice. First the 16
# products and the accumulator are brought to the exponent of the largest of them, with 25 bits behind its
# first; what is smaller is lost. Then they are added, and the sum is cut to a float32. `adds` does this in
# NumPy: `adds??` shows it.

# %%
from gemm_course.model.tensor_cores import adds  # in NumPy, what a Tensor Core of an H200 does

# %% [markdown] tags=["answer"]
# Sums in which it shows. The last column is what an H200 gave (`data/h200/tensor_core_sums.csv`); a step is
# that from 1 to the next float32. Which of the two cuts is to blame in each?

# %% tags=["answer"]
sums = records.tensor_core_sums().query("k == 16")
table = {}
for row in sums.itertuples():
    products = [float(product) for product in row.products.split()]
    exact = row.accumulator + sum(products)
    table[row.case] = exact, np.float32(exact), adds(row.accumulator, products), float(row.result)
pd.DataFrame(table, ["exact", "rounded to float32", "adds", "H200"]).T.map("{:.9f}".format)

# %% [markdown] tags=["answer"]
# The second cut in the first two. The first cut in the eighths of a step, which beside 1 are the 26th bit,
# and in 2²⁶ - 2²⁶ + 1. Quarters, the 25th bit, are kept.
#
# Cutting always makes a positive sum smaller, so the errors do not cancel.

# %% [markdown]
# Does it matter? Here are 100 sums of 4,096 products of numbers between 0 and 1, which first have to be
# rounded to FP16:

# %%
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
pd.DataFrame(
    {name: (e.mean(), (e**2).mean() ** 0.5) for name, e in errors.items()}, ["mean", "typical size"]
).T

# %% [markdown]
# The sums lose more than the rounding of the inputs: -2.3 · 10⁻⁵ on average, as on an H200 (the same
# record). Once C is stored in FP16, which rounds to 5 · 10⁻⁴, nobody sees it; with C in float32 you do.
# (Tests of V100, T4 and A100 have found the same kind of sum, with fewer bits and fewer products at a time:
# Fasi and others, PeerJ Computer Science 7, e330. The course's emulator adds in float32 and rounds, so its
# last bits differ.)
#
# Both kinds of accumulators are stages of the ladder: `wmma` adds in FP32, `wmma_fp16_acc` in FP16. The
# largest relative error of a product of positive numbers, on the emulator unless you have a GPU:

# %%
A, B = (rng.random(shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
exact = A.astype(float) @ B.astype(float)
{stage: f"{abs(run(stage, A, B).C / exact - 1).max():.5f}" for stage in ("wmma", "wmma_fp16_acc")}

# %% [markdown]
# C is FP16 in both, and rounding to it costs up to 0.0005. What is beyond that comes from the accumulators.
#
# ## When is FP16 safe?
#
# - **Range.** Beyond 65,504 a number becomes infinite, below 3 · 10⁻⁸ zero (from there to 6 · 10⁻⁸ it is
#   rounded up), and already below 6 · 10⁻⁵ it has fewer digits. That holds for A, for B *and for C*. The
#   remedy is to scale: divide A by a power of two, which is exact, and multiply the result by it, as part of
#   `alpha`.
# - **Precision.** Each element of A and B is rounded once, by at most 0.05 %. If that is too much, FP16 is
#   out.
# - **Accumulation.** In FP32, unless k is small.
#
# **bfloat16** has the same 16 bits, cut elsewhere: 8 bits of exponent, as float32, and 7 of fraction. It
# needs no scaling, and rounds 8 times as coarsely. Tensor Cores since the A100 take it at the speed of FP16,
# and neural networks are mostly trained with it. **TF32** has 8 bits of exponent and 10 of fraction; it is
# read from float32 arrays, at half the speed. cuBLAS uses it for FP32 only if it is told to, and our FP32
# figures are without it.


# %%
def bfloat16(x):
    """x with 8 bits of exponent and 7 of fraction: the upper half of a float32, rounded."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


numbers = np.array([0.1, 257, 60_000, 1e6, 1e-7], np.float32)
with np.errstate(over="ignore"):
    as_fp16 = numbers.astype(np.float16).astype(np.float32)
pd.DataFrame({"FP16": as_fp16, "bfloat16": bfloat16(numbers)}, numbers).map("{:.6g}".format)

# %% [markdown]
# ## More than one fragment
#
# In 08.1 every product needs two loads. A warp that computes 2 × 2 fragments of C can do with one load per
# product: it is the outer product of notebook 05, with matrices for numbers.
#
# ### Exercise 08.5 · Each fragment once
# *core · hard · the heart of this notebook · 20 minutes*
#
# One warp per block, and a block for each **32 × 32** tile of C (float32). The tiles are fetched for you,
# both as they are: `As[row, p]`, `Bs[p, column]`. Write 2 × 2 fragments of accumulators, the loads, the
# products and the stores into `Cs`. Per step of 16 along k the checker counts **4 loads and 4 products**. m
# and n are multiples of 32, k of 16.
#
# A fragment of an array of fragments is `a[i]`. Let `i` come from `unroll(range(2))`, so that the compiler
# keeps them in registers.


# %% id="ex-08-5"
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
# ## Where C ends
#
# The end of the kernel has a problem that thread tiles did not have.
#
# ### Exercise 08.4 · The edge of C
# *stretch · medium · 10 minutes*
#
# The product of 08.1 for **any** m, n and k. Where the matrices have ended, the tiles hold zeros, so the
# accumulators are right. But a fragment is 16 × 16, and C may end in the middle of it. v07 stores whole
# fragments and writes beyond C. Bring to C what belongs there (float32; its rows may be longer than n), and
# nothing else.


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
# ## The kernel
#
# It is v06 with the innermost part replaced. Blocks, tiles and warp tiles are as before; a warp's tile is now
# cut into fragments. First the names that are new:
#
# - `SIDE` is 16. `ROWS` and `COLUMNS` count the fragments of a warp's tile: WM / 16 of A, WN / 16 of B.
# - `A_WIDTH` and `B_WIDTH` are the lengths of rows of As and Bs, with `PAD` extra values.
# - `acc_type` is the accumulators' dtype: float32 here, float16 in `wmma_fp16_acc`.
# - `A_ROWS` and `B_ROWS`: rows of a tile that the whole block copies at a time. `C_WIDTH`: the length of rows
#   of Cs, padded as well.
# - `cp_async16(As, (r, c), A, (row, col), valid)` asks for 16 bytes to be copied from A to As, and does not
#   wait. Only `valid` bytes are read, the rest become zeros: that is the bounds check.
# - `cp_async_commit` closes the list of what was asked for, `cp_async_wait(0)` waits until all of it has
#   come. This kernel waits at once. Still, no value passes a register, and all copies of a thread are under
#   way together. The stage `async_copy` shows how to multiply meanwhile.
# - `copy16` copies 8 values at once between a local array and memory, as `load4` and `store4` do with four.

# %%
see.source("wmma")

# %% [markdown]
# Notice
#
# - the three loops over `i` and `j`: every fragment is loaded **once** for each step of 16 along k, and
#   used for a whole row or column of products. It is the outer product of notebook 05, with matrices for
#   numbers;
# - the barriers: `syncthreads` for As and Bs, which the block shares, `syncwarp` for a warp's own part of Cs;
# - the end: accumulators go through shared memory, since nobody knows which lane holds which. There they have
#   a row and a column again, and get their alpha, beta and bounds check.
#
# Document 004's v07 is different in four things. It transposes A on the way into shared memory. Its
# accumulators are FP16. Its padding is 16. And it loads B's fragments again for every row of fragments.
#
# It has a mistake as well, which any kernel can have:
#
# ### Exercise 08.3 · n is not the leading dimension
# *stretch · easy · 8 minutes*
#
# Document 004 pads the rows of its matrices, and passes lda, ldb and ldc, the distances from row to row. But
# where v07 loads and stores C, it says n. Here is that end with one thread per element, and C as the flat
# array that it is in C++. It has passed every test with matrices whose rows were not padded. Fix it.


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
# ## Count it three ways

# %%
t = LADDER["wmma"].tiles
t

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
# For shared memory the hardware's counter has a little less. Eight accumulators of a lane lie side by side in
# Cs, and the compiler reads them in two loads of 16 bytes instead of eight. Fragment loads, the bulk, are as
# many as in the source.
#
# ## Padding
#
# A fragment is 16 rows of 32 bytes. A load fetches it in four quarters, each of 8 rows of 16 bytes. 8 rows of
# 16 bytes are 128 bytes: they could come in **one** wavefront, if they lie in 32 different banks. But rows of
# 128 values are 256 bytes long, twice around all banks. So every row begins in the same bank.
#
# The remedy is to make rows longer. By how much?
#
# ### Exercise 08.2 · How much padding?
# *core · easy · 6 minutes*
#
# Rows of 128 FP16 values, as in document 004, with a padding of 0, 8 and 16 values. How many **wavefronts**
# does it take each time to fetch 8 rows of 16 bytes, one below the other? Work it out from the banks in which
# the rows begin, then run the cell.

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
# More is not better for loads. What counts is where the eight rows begin: 4 banks apart they fill the 32
# banks once around. (Copies have needs of their own, below.)
#
# ## A roof over v07
#
# 46.78 TFLOPS, 33.7 % of cuBLAS, was all that v07 got on its author's RTX 3090. Part of the reason can be
# worked out:

# %%
see.tflops("wmma_fp16_acc", on="RTX 3090")

# %%
see.predict("08.limit")

# %% [markdown] tags=["answer"]
# One warp's step may stand for all: the warps of an SM share its Tensor Cores and its shared memory, and each
# asks both for the same.
#
# | v07 | clocks |
# |---|---|
# | Tensor Cores | 8 · 4,096 / 512 = 64 |
# | shared memory | (4 + 4 · 2) loads · 4 · 2 wavefronts = 96 |
#
# So the Tensor Cores cannot be busy for more than **two thirds** of the time. (With FP32 accumulators an RTX
# 3090 does half as many multiply-adds.) A third was measured; the rest was not profiled on that GPU. On an
# H200 BK = 16 makes warps wait for copies (below).

# %% [markdown] tags=["answer"]
# Three things change this sum:
#
# - **Load each fragment once**: 4 + 2 loads instead of 12.
# - **A padding of 8**: 1 wavefront for 8 rows instead of 2. Together 24 wavefronts for the same 64 clocks.
# - **Larger warp tiles**: loads go with rows + columns, products with rows × columns. 64 × 64 takes 8
#   loads for 16 products.
#
# One changes the waiting: **a larger BK**. With BK = 64 a block waits once for four steps.

# %% [markdown]
# The H200's Tensor Cores have four times that peak: 2,048 multiply-adds per clock and SM. The compiler makes
# two `mma` of each `wmma_mma`, 16 × 8 × 16 each. One needs 4 clocks of a Tensor Core at the peak; the counter
# says 6. (Why, NVIDIA does not say.) Shared memory serves one wavefront per clock, as ever:

# %%
sizes = ((32, 32), (64, 64), (128, 64))
sums = {f"{r} × {c}": (r * c * 16 / 2048, r * c * 16 / 2048 * 6 / 4, (r + c) // 16 * 4) for r, c in sizes}
pd.DataFrame(sums, ["clocks at the peak", "clocks of mma", "wavefronts"]).T

# %% [markdown]
# At the peak 64 × 64 would be just enough, at the rate of `mma` its 32 wavefronts fit beside 48 clocks. 128 ×
# 64 would be better still, but its 8,192 accumulators take 256 registers of each lane, one more than a lane
# can have. So shared memory presses from one side, registers from the other. A newer instruction of the
# H200, `wgmma`, takes its operands from shared memory by itself; the stage `wgmma_tma` uses it.
#
# ## How deep?
#
# Every legal choice of tiles was measured on an H200. Two sizes say how often a block waits and where its
# rows begin: BK and PAD.

# %%
see.predict("08.depth")

# %% tags=["answer"]
see.heatmap("wmma", "BK", "PAD", others="best")

# %% [markdown] tags=["answer"]
# Read down the columns. With a padding of 8 or 16 every larger BK pays. Without one it makes the kernel
# *slower*. Rows of A's tile are BK values long here: 8 rows of 32 bytes take 2 wavefronts, of 64 bytes 4, of
# 128 bytes 8. What waiting less often brings, the banks take away, and more.

# %% [markdown]
# ## What is it worth?

# %%
see.tflops("warp_tiled", "wmma_fp16_acc", "wmma")

# %% [markdown]
# And what limits it? Here is `wmma`, then with BK = 16, then without padding:

# %%
see.limits("wmma", ("wmma", {"BK": 16}), ("wmma", {"PAD": 0}))

# %% [markdown]
# Mostly it waits. A warp of `wmma` spends 27 % of its time waiting for copies of tiles and 26 % for results
# of instructions just before (in the picture: fixed delay). The Tensor Cores are busy 48 %, with an `mma`
# counted as 6 clocks. (Its 302 TFLOPS are 47 % of the 648 below, not of 990.) L2 comes next with 69 %; it can
# do more, 88 % in a kernel further down. Shared memory is busy 36 %.
#
# With BK = 16 a warp waits 62 % for copies, and the Tensor Cores are busy 24 %. Without padding it waits 74 %
# for shared memory, and that is the limit, 86 %.

# %%
see.roofline("warp_tiled", "wmma")

# %% [markdown]
# The lowest roof over `wmma` is its own instruction. Without any memory, on registers alone, an H200 was
# measured to do so many TFLOPS:

# %%
alone = records.compute_roofs()
dict(zip(alone["unit"], alone["tflops"].round().astype(int)))

# %% [markdown]
# Our kernel gets not quite half of the 648. Shared memory's roof is higher, 901 (that `wgmma` has 901 as well
# is chance). L2's line is no roof: the axis counts bytes that warps ask for. So the rest is the waiting.
#
# But do copies not take shared memory's time as well?

# %% [markdown] tags=["thought"]
# The hardware has a counter of wavefronts for them, 12.5 per request: 1.6 times as many as for all fragments.
# What these are is not documented. But they do not stand in the queue of loads and stores. Added to these,
# small blocks (further down) would have 1.37 per clock, more than there can be. The queue is busy in 36 % of
# the clocks, in 33 % with loads and stores.

# %% [markdown]
# **Why are FP16 accumulators faster?** Products take as long. But the accumulators take half the registers,
# and an SM has room for three blocks instead of two:

# %%
see.occupancy("wmma_fp16_acc")

# %% [markdown]
# Is that the reason? Keep the third block out, by shared memory that nobody uses: 311 TFLOPS. In the same run
# of profiles `wmma` had 302, and with the third block it was 342. So with these tiles it is, mostly; then L2
# is the limit, 79 % busy. You have seen what it costs: the error.

# %% [markdown]
# ## Tune it
#
# First the warp's tile. 32 × 32 takes 4 loads for 4 products, 64 × 64 takes 8 for 16, 128 × 32 takes 10 for
# 16. Which is fastest?

# %% tags=["thought"]
see.heatmap("wmma", "WM", "WN", others="best")

# %% [markdown] tags=["thought"]
# 128 × 32, by 2 %: 310 TFLOPS against 303. Loads alone would have chosen 64 × 64. Nobody has profiled the
# other one, so we do not know why.

# %% [markdown]
# With FP16 accumulators other tiles are fastest, 397 TFLOPS. How many loads does a step of a warp take with
# them, for how many products?

# %%
records.best_tiles("wmma_fp16_acc")

# %% [markdown] tags=["thought"]
# 12 loads for 32 products, not 8 for 16. A lane's 256 accumulators take 128 registers; as float32 they would
# not fit. An SM has four such blocks of two warps: 8 warps, where the default tiles have 12. And a padding of
# 16 asks L2 for fewer sectors (the riddle below says why): with 8 these tiles do 346. For loads 8 is best;
# copies may prefer 16.

# %% [markdown]
# And all choices of `wmma`. Begin with the document's tiles: 128 × 128 × 16, warps of 64 × 32, padding 16.
# Then change one thing at a time: padding 8, BK 32, BK 64, and at last WN 64. Which step brings the most?
# Which do the wavefronts announce?

# %%
see.tiles("wmma")

# %% [markdown] tags=["thought"]
# Wavefronts announce what padding brings, and say nothing of BK, which brings more: waiting is no wavefront.

# %% [markdown]
# A last riddle. Blocks of 64 × 64 with BK = 64 and warps of 32 × 64 are faster with a padding of 16 than with
# 8, although they take twice as many wavefronts. What is it then?

# %% tags=["thought"]
small = {"BM": 64, "BN": 64, "WM": 32}
see.limits(("wmma", small), ("wmma", small | {"PAD": 16}))

# %% [markdown] tags=["thought"]
# L2, busy 88 % with a padding of 8. Copies ask it for 206 million sectors instead of 137, 24 per request
# instead of 16, though they fetch the same bytes of A and B. Only where these go has changed: rows of 64 + 8
# values are 144 bytes long, so every second one begins in the middle of 32 bytes of shared memory. With 16
# none does. Another limit appears then, bank conflicts; but it is the smaller evil, 246 TFLOPS against 186.
# Small blocks copy most. (The default tiles ask for 24 per request as well. The explorer above says 16: it
# counts global memory's side, by the source, and cannot see where copies go.)

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("08")

# %% [markdown]
# ## The whole ladder
#
# The kernels of the documents, followed by some from no document. (Those from `double_buffered` to
# `stream_k` are still FP32.)

# %%
see.ladder()

# %% [markdown]
# One roofline, with all stages of the documents:

# %%
see.roofline(until="wmma_fp16_acc")

# %% [markdown]
# Read the ladder from the top. Coalescing made each request cheaper, tiles in shared memory made them fewer.
# Thread tiles moved repeated loads on to registers. Wide accesses made instructions fewer, warp tiles
# wavefronts. Then Tensor Cores replaced ordinary multiply-adds. Each step began with the same question: what
# limits it now?
#
# ### Beyond the documents
#
# The later stages keep asking it. No notebook builds them; `see.source` shows each, `see.limits` what limits
# it, and the [glossary](glossary.md) explains their words.
#
# - `mma_swizzled` has instructions whose [layout](glossary.md#layout) is documented, so results go to C
#   straight from registers, and [swizzling](glossary.md#swizzle) instead of padding.
# - `mma_ring` fetches the next tiles while it multiplies, into a [ring](glossary.md#ring); `mma_sync` loads
#   the next fragments meanwhile, too.
# - `mma_tma` lets [TMA](glossary.md#tma) bring the tiles; one [warpgroup](glossary.md#warpgroup) asks for
#   them.
# - `wgmma_tma` multiplies with [wgmma](glossary.md#wgmma). `warp_specialised` does both.
# - `persistent` has as many blocks as SMs; each takes one tile of C after the other.
# - `staged_store` lets TMA store the results as well, `overlapped_store` while the next tile is multiplied.
# - `stream_k_fp16` cuts the last tiles, too few for all SMs, along k and shares them out.
#
# How far does this get us? Each stage's speed as a percentage of cuBLAS's in the same run, for two sizes:

# %%
halves = records.ladder().query("dtype == 'fp16' and m == n == k and m in (4096, 8192)")
share = 100 * halves.pivot(index="stage", columns="m", values="ratio_to_cublas")
share.loc[[stage.name for stage in LADDER if stage.dtype == "float16"]].round(1)

# %% [markdown]
# Why "in the same run"? cuBLAS does not always reach the same. With products of random FP16 values the power
# limit decides the clock: some 1.5 GHz, not 1.98. Beside these stages it did 748 to 781 TFLOPS at 4096³, and
# 642 to 726 at 8192³. So a share is not more certain than some per cent.
#
# And Triton, a compiler that is made for such kernels, in the same run as `overlapped_store`:

# %%
last = halves[halves["stage"] == "overlapped_store"].set_index("m")
(100 * last["triton_tflops"] / last["cublas_tflops"]).round(1).to_frame("Triton")

# %% [markdown]
# So on this GPU, at these sizes, kernels written in Python, the last two, are about as fast as NVIDIA's own
# library. Each stage has its file in `gemm_course/kernels`.
#
# ## Recap
#
# - A Tensor Core adds the product of two small matrices to a third. With FP16 operands products are exact;
#   sums should be FP32, and are cut, not rounded.
# - FP16 ends at 65,504 and has three digits: scale, or take bfloat16, which has the range of FP32 and fewer
#   digits.
# - A fragment is dealt out over a warp. All 32 lanes make each call together, and nobody relies on who
#   holds what.
# - A load fetches 8 rows of 16 bytes at a time. A padding of 8 values puts them into 32 different banks. For
#   loads 8 is best; copies may prefer 16.
# - Tensor Cores are so fast that shared memory can limit them again, which asks for large warp tiles, each
#   fragment loaded once; and so fast that a kernel mostly waits, which asks for a large BK.
#
# This was the last notebook. In `wmma`, no thread computes while tiles arrive; how to do both at
# once, `see.source("async_copy")` shows. Then go on with the stages beyond the documents, above.
