# %% [markdown]
# # [[tensor_cores.ipynb]] · How do you feed a unit that does 4,096 multiply-adds per call?
#
# Every kernel so far used the FP32 units. A multiply-add instruction of a warp was 32 multiply-adds. Since
# 2017 GPUs have a second kind of unit, which does nothing but multiply small matrices: the **Tensor Core**.
#
# Here one warp multiplies two 16 × 16 matrices. One line of this kernel does all the multiplying. Which?

# %%
import numpy as np
from numba import cuda, float32
from numba.types import float16

from gemm_course import check, emulate, run
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
C = np.zeros((16, 16), np.float32)
done = emulate(one_product, 1, 32, A, B, C).arithmetic.query("op == 'mma'")
print(f"off by at most {abs(C - A.astype(float) @ B.astype(float)).max():.7f}")
print(f"{done['lanes'].sum():,} multiply-adds, by line {done['line'].tolist()} of the kernel's cell")

# %% [markdown]
# `wmma_mma`, one call of the whole warp. An FP32 kernel issues 128 instructions for as much. How fast is
# that?

# %%
see.predict("tensor_cores.speed")

# %% [markdown]
# *Time: about 65 minutes to read, 57 for the exercises, in two sittings; the pause is marked. Comes
# from document 004, kernel v07; the [glossary](glossary.md#document) says what the documents are. You can
# come here from notebook [[warp_tiles.ipynb]] directly, too; then one of the two questions below is new to
# you.*

# %%
see.recall("tensor_cores")

# %% [markdown]
# And a bet, to keep. In this notebook you build a whole kernel for Tensor Cores. `warp_tiled` reached 43
# TFLOPS. How many will the new kernel reach at 4096³? Write a number in place of the dots.

# %%
my_bet = ...

# %% [markdown]
# ## Who holds what?
#
# The fast unit has a price: A and B are **FP16**, numbers of 16 bits. NumPy and Numba say float16.
#
# A Tensor Core takes its operands from registers, and a register belongs to one lane. So the 256 elements of
# a 16 × 16 matrix are dealt out to the 32 lanes of the warp. What the warp holds then is called a
# **fragment**. The dealer has a system. Find it in A: the number in a cell is the lane that holds it. B is
# dealt in the same way, but by columns. **Which lane holds B[5, 12]?** Say it before you switch to B.

# %%
see.fragment()

# %% [markdown] tags=["thought"]
# Lane 18. Each row of A has four lanes, and rows 8 apart share them. So each column of B has four, and
# column 12's are column 4's: they begin at 4 · 4 = 16. A lane holds two neighbours, and two more 8 on: rows 4
# and 5 go to the third of the four.

# %% [markdown]
# Well done, and now forget it: **CUDA does not promise it.** The next GPU may deal in another way. So a
# kernel leaves the dealing to four functions, called WMMA (*warp matrix multiply-accumulate*):
#
# | call of the whole warp | does |
# |---|---|
# | `wmma_load_a(a, As, (y, p), ROW_MAJOR)` | fills `a` with 16 × 16 elements of As, from **place** (y, p) |
# | `wmma_load_b(b, Bs, (p, x), ROW_MAJOR)` | the same for `b` |
# | `wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)` | `acc += a · b`; it is told the orders of both loads |
# | `wmma_store(Cs, (y, x), acc, ROW_MAJOR)` | stores the accumulators, from place (y, x) on |
#
# - A lane's share of a fragment is a local array, in registers. `acc` has 256 / 32 = 8 elements. `a` and `b`
#   have 16, because the first Tensor Cores wanted every value twice. Now the second eight are copies.
# - As, Bs and Cs are in shared memory. A fragment begins at a multiple of 32 bytes there, and rows are
#   multiples of 16 bytes long. (The 32 in `cuda.shared.array(..., 32)` sees to the first.)
# - The **order** says how a matrix lies in memory: `ROW_MAJOR` as `array[row, column]`, `COL_MAJOR`
#   transposed, as `array[column, row]`.
# - All 32 lanes make each call, with the same place: never in a branch that only some of them take.
# - `cuda.syncwarp()` is a barrier for the 32 lanes of one warp. They need not run in step, and a load of a
#   fragment reads what other lanes have stored.
#
# ### Exercise [[warp_product]] · A warp's product
# *core · easy · 12 minutes*
#
# Now a loop along k. A block is one warp, and computes one 16 × 16 tile of C (float32). The copies of the
# tiles are written for you: B's as it is, A's **transposed**, as in document 004, so `As[p, y]` is element
# (y, p). Write the fragments, the loads, the product, and the store into `Cs`. m, n and k are multiples
# of 16. PAD is some padding behind each row; ignore it.


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
# **What we now know:** a warp loads, multiplies and stores fragments as a whole. No lane knows which
# elements it holds.
#
# ## What does a short number lose?
#
# FP16 has a sign, 5 bits of exponent and 10 of fraction. With the one in front, which is not stored, a number
# has 11 significant bits: about three decimal digits.

# %%
float(np.float16(0.1)), float(np.finfo(np.float16).max)

# %%
see.predict("tensor_cores.ones")

# %% [markdown]
# A Tensor Core adds 16 products at once. Does that save FP16 sums? Change one line: 65,536 ones, 16 at a
# time, are 4,096 times 16.

# %% id="sums"
ones = np.ones(4096, np.float16)
### BEGIN SOLUTION
sixteens = np.full(4096, 16, np.float16)
### STUB
# sixteens = ones  # change this
### END SOLUTION
print([int(np.add.accumulate(each, dtype=np.float16)[-1]) for each in (ones, sixteens)])

# %% [markdown]
# So it only puts it off. **Take float32 accumulators.** And the products? That of two FP16 values has at most
# 22 significant bits, and a float32 has room for 24: products are exact. Only the sum can lose something.

# %%
see.predict("tensor_cores.cut")

# %% [markdown] tags=["thought"]
# A Tensor Core even cuts twice. First it cuts each product. The largest number sets the scale, here the
# accumulator 1: each product keeps only whole multiples of 2⁻²⁵ of that number's first bit. Then it adds up
# what is left, and cuts the sum to a float32.

# %% [markdown]
# ### The perfect theft
#
# `adds` does in NumPy what a Tensor Core of an H200 does. Here it adds 16 products to an accumulator of 1. A
# **step** is the distance from 1 to the next float32, 2⁻²³. The products come to 4.8 steps, and the sum
# changes.
#
# Your turn: **16 positive products that come to as many steps as possible, and the sum stays exactly 1.**
# More than 2 is good, nearly 4 a master's work. There is a little more to be had.

# %%
from gemm_course.model.tensor_cores import adds

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
# The first cut keeps quarters of a step: 2⁻²⁵ is a quarter of 2⁻²³. So `[0.2499 * step] * 16` is lost whole,
# nearly **4** steps. The second cut drops what is left below a whole step. So one product may keep three
# quarters: `[0.9999 * step] + [0.2499 * step] * 15` is nearly **4.75**. Three of almost ½ and 13 of almost ¼
# do as well. Measured: an H200 loses sixteen products of ⅛ step without a trace, 2 steps in all.

# %% [markdown]
# Does it matter? The sum of 4,096 positive products comes out too small by 2.3 · 10⁻⁵ of its value. C is
# stored in FP16, which rounds by up to 5 · 10⁻⁴. So nobody sees it.
#
# ### Rescue it
#
# A goes up to a million here, and FP16 ends at 65,504. So C becomes infinite. Dividing by a power of two
# changes the exponent alone, which is exact. So divide A by such a power, and multiply the sums, which are
# float32, by the same: `alpha` does that. **Which is the smallest power of two, and which the largest, with
# an error below 0.001?**

# %%
scale = 1.0  # change this, to 2.0**3 for example
A, B = np.random.default_rng(0).random((2, 64, 64))
A, B = 1e6 * A, 1e-3 * B
with np.errstate(over="ignore"):
    C = run("wmma", (A / scale).astype(np.float16), B.astype(np.float16), alpha=scale).C
    error = abs(C / (A @ B) - 1).max()
f"largest relative error: {error:.5f}"

# %% [markdown] tags=["thought"]
# 2⁴ and 2³⁵. Below, A still reaches infinity. Above, A's values become so small that FP16 runs out of
# exponents and loses digits. A factor of two billion lies between, and a largest value of about 1, with 2²⁰
# here, is in the middle.

# %% [markdown]
# **What we now know:** FP16 inputs, exact products, float32 sums. The inputs must fit into FP16, and a
# factor can make them fit.

# %% [markdown] id="side-fp16_in_use"
# Side trip, 28 minutes: [When is FP16 safe?](fp16_in_use.ipynb) It needs the whole of this notebook, and
# leads back to this line.

# %% [markdown]
# *A good place for a pause. The second sitting takes about 75 minutes.*
#
# ## Can a fragment be used twice?
#
# In [[warp_product]] each product needs two loads. This warp computes two fragments of C, side by side. How
# many numbers does it read for its 8,192 multiply-adds, and how many would it read for 2 × 2 fragments?

# %%
see.multiply("wmma")

# %% [markdown] tags=["thought"]
# 768: A's fragment serves both. With 2 × 2 it would be 1,024 numbers for 16,384 multiply-adds: twice the
# numbers of one fragment, for four times the products. It is the outer product of notebook
# [[thread_tiles_2d.ipynb]], with matrices for numbers.

# %% [markdown]
# ### Exercise [[fragments_once]] · Each fragment once
# *core · medium · 15 minutes*
#
# A block is one warp again, and computes a **32 × 32** tile of C (float32). The copies are written, both as
# they are: `As[row, p]`, `Bs[p, column]`. Write 2 × 2 fragments of accumulators, the loads, the products and
# the stores into `Cs`. The checker counts loads and products per step of 16 along k; load nothing twice. m
# and n are multiples of 32, k of 16.
#
# `a[i]` is one fragment of an array of fragments. Let `i` come from `unroll(range(2))`: the loop is written
# out, and the fragments stay in registers.


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
# **What we now know:** rows times columns of fragments need rows plus columns of loads. The larger a warp's
# tile, the fewer loads per product.
#
# ## How do eight rows lie in the banks?
#
# A load fetches a fragment in four quarters, each 8 rows of 16 bytes. That is 128 bytes, as much as the 32
# banks give in **one** wavefront. It depends on where the rows begin.
#
# ### Exercise [[padding_wavefronts]] · How much padding?
# *core · easy · 5 minutes*
#
# Rows of 128 FP16 values, with a padding of 0, 8 and 16 values behind each. How many **wavefronts** does it
# take each time to fetch 8 rows of 16 bytes, one below the other? Work it out on paper, then run the cell.

# %% id="ex-padding_wavefronts"
### BEGIN SOLUTION
wavefronts = (8, 1, 2)  # PAD 0, 8, 16
### STUB
# wavefronts = (None, None, None)  # PAD 0, 8, 16
### END SOLUTION

check.padding_wavefronts(wavefronts)

# %% [markdown]
# **Two hunts.**
#
# 1. Which paddings on the slider take **one** wavefront whatever the width? Guess the rule from the first
#    two, then check the others.
# 2. Rows of 16 values take 2 wavefronts without any padding. Find the padding that makes it **four times as
#    bad**.

# %%
see.padding()

# %% [markdown] tags=["thought"]
# 1. Four: 8, 24, 40 and 56, the odd multiples of 8. Eight rows then begin in eight places 4 banks apart,
#    in some order, and fill all 32 banks.
# 2. 48. Rows of 64 values are once around all banks: 8 wavefronts. Padding is no magic; what counts is where
#    the rows begin.

# %% [markdown]
# **What we now know:** rows that begin 4 banks apart, in any order, come in one wavefront. A padding of 8 is
# the smallest that always works.
#
# ## Can several warps share two tiles?
#
# Now the whole kernel. A block computes BM × BN results with several warps, each warp WM × WN of them, in
# fragments. Our tiles are **128 × 128 × 64, warps of 64 × 64, padding 8**.
#
# A small sum first. One step of 16 along k of one such warp has 16 products, and 8 loads of four wavefronts
# each. All warps of an SM share its Tensor Cores, 2,048 multiply-adds per clock together, and its shared
# memory, one wavefront per clock. How many clocks does such a step keep each of the two busy?

# %% id="clocks"
### BEGIN SOLUTION
clocks = {"Tensor Cores": 16 * 4096 / 2048, "shared memory": 8 * 4}
### STUB
# clocks = {"Tensor Cores": ..., "shared memory": ...}
### END SOLUTION
clocks

# %% [markdown] tags=["thought"]
# 32 and 32: a dead heat, by data sheet. With half as large a warp tile, or with two wavefronts in place of
# one, shared memory would hold the Tensor Cores up. (Measured, `wmma_mma` keeps a Tensor Core busy half as
# long again as the data sheet says: 48 clocks for these 16 products. So shared memory has a little air.)

# %% [markdown]
# ### Exercise [[several_warps]] · Several warps
# *core · hard · the heart of this notebook · 25 minutes*
#
# Two functions are given:
#
# - `fetch(As, Bs, A, B, k0, m, n, k)` copies the block's tiles from step k0 on, with zeros past the ends of A
#   and B. All threads of the block must call it. It has **no barrier**: when it returns, a thread knows of
#   its own copies only.
# - `put(C, Cs, acc[i, j], y, x, m, n)` stores a fragment at row y and column x **of the block's tile**. What
#   lies outside of C it leaves out.
#
# Write the rest:
#
# - y0 and x0, where the warp's part begins in the block's tile. Each part has one warp.
# - The loop over tiles, BK steps at a time. It has to be right for any m, n and k. BM, BN, BK, WM and WN are
#   multiples of 16.
# - In a tile the steps of 16, each with WM / 16 loads for A, WN / 16 for B, and all their products.
# - A `put` for each fragment of accumulators.


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
# That is `wmma`, the course's kernel after document 004's v07. It differs from yours in two ways:
#
# - Its copies are notebook [[overlap.ipynb]]'s `cp.async`, here 16 bytes each. They go to shared memory
#   without passing a register. It waits for them at once, so nothing is read ahead.
# - Its store scales by alpha, adds beta times what C held, and rounds to FP16.

# %% tags=["listing"]
see.fold(see.source("wmma"), first="Write the exercise first, then open this.")

# %% [markdown]
# Now your bet. What did you write, and what is it?

# %%
see.fold(lambda: see.tflops("warp_tiled", "wmma"), first="Bet first, then open this.")

# %% [markdown]
# **What we now know:** several warps share what one block has copied, and each loads its own fragments.
#
# ## What do BK and PAD change?
#
# Count it with your own kernel. `eight_rows` runs one block for one pair of tiles. It returns the wavefronts
# that eight rows of a fragment take, in As and in Bs. Print them for BK = 16, 32 and 64, with a padding of 0
# and of 8.


# %% id="count"
def eight_rows(BK, PAD):
    A, B = np.zeros((128, BK), np.float16), np.zeros((BK, 128), np.float16)
    C = np.zeros((128, 128), np.float32)
    report = emulate(make_wmma(128, 128, BK, 64, 64, PAD), 1, 128, 128, 128, BK, A, B, C)
    loads = report.accesses.query("space == 'shared' and op == 'load' and bits == 128").groupby("array")
    return (loads["wavefronts"].sum() / loads["requests"].sum() / 4).to_dict()


### BEGIN SOLUTION
for PAD in (0, 8):
    for BK in (16, 32, 64):
        print(BK, PAD, eight_rows(BK, PAD))
### STUB
# # your code: print the six pairs
### END SOLUTION

# %% [markdown]
# ## Which profile is which?
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

# %% [markdown]
# The two changes were made one at a time. Now look at both. Your six pairs tell.

# %%
see.predict("tensor_cores.depth")

# %% [markdown]
# Check it with the sliders: set PAD to 0 and move BK, then do the same with PAD 8. Watch *wavefronts per 32
# multiply-adds* and the TFLOPS.

# %%
see.tiles("wmma", tiles={"BM": 128, "BN": 128, "BK": 64, "WM": 64, "WN": 64, "PAD": 8}, tells_best=False)

# %% [markdown] tags=["thought"]
# | TFLOPS | BK 16 | BK 32 | BK 64 |
# |---|---|---|---|
# | PAD 0 | 109 | 123 | 100 |
# | PAD 8 | 154 | 229 | 303 |
#
# With padding a deeper tile pays at every step: half as many waits, and not one wavefront more. Without it
# the rows of As are 32, then 64, then 128 bytes long, and eight of them take 2, 4 and 8 wavefronts. In the
# end the banks take away more than waiting less often brings.

# %% [markdown]
# **What we now know:** BK decides how often a block waits, PAD what a load costs. Neither is enough alone.
#
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a kernel for Tensor Cores. Its warps load each fragment once per step, from rows that lie apart
#   in the banks.
# - **It reached** 301 TFLOPS on an H200, 7 times as many as `warp_tiled`, and 39 % of cuBLAS with FP16.
# - **What stops it now** is mostly waiting, for copies more than for anything else. No part of the GPU is
#   busy in 70 % of the clocks. So ask for the next tiles while you multiply: that is in notebook
#   [[mma_sync.ipynb]].

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("tensor_cores")
