# %% [markdown]
# # [[naive.ipynb]] · How fast can this kernel be?
#
# Here one kernel multiplies the same two matrices four times, one thread per element of C. Only the *shape*
# of its blocks changes: rows × columns of C, `BM` × `BN` in the code. Run it.

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, emulate, run
from gemm_course import widgets as see

rng = np.random.default_rng(0)
A, B = rng.standard_normal((64, 64), np.float32), rng.standard_normal((64, 64), np.float32)
for rows, columns in ((8, 32), (32, 32), (4, 64), (16, 16)):
    done = run("naive_uncoalesced", A, B, tiles={"BM": rows, "BN": columns}, backend="emulator")
    right = np.allclose(done.C, A @ B, atol=1e-4)
    print(f"{rows:2} × {columns}: right: {right}, numbers read: {done.report.total('lanes', op='load'):,}")

# %% [markdown]
# Four times the same work. Yet on an H200, with matrices of 4096 × 4096, **one of the four is 6.6 times as
# fast as another.** Which is the fastest, which the slowest? Write your guess in place of the dots. Three
# quarters of an hour from now you compute all four speeds with a pencil.

# %%
guess = {"fastest": ..., "slowest": ...}

# %% [markdown]
# *Time: about 50 minutes to read, 30 for the exercises; a pause is marked.*
#
# And a bet for [your ladder](glossary.md#ladder). Speed is counted in TFLOPS, 10¹² additions or
# multiplications per second. An H200 can compute 67 TFLOPS, and cuBLAS, NVIDIA's own library, reaches 51. How
# many will this kernel reach, with blocks of 32 × 32? Write a number in place of the dots.

# %%
see.my_bet("naive", tflops=...)

# %% [markdown]
# ## Can you write it?
#
# First the kernel itself, to know what it does in each step.
#
# A thread computes one element: a row of A times a column of B. Libraries offer a little more, $C
# \leftarrow \alpha A B + \beta C$. Whoever calls the kernel chooses α and β.
#
# - With `beta = 0`, C must not even be *read*: there may be anything in it, and $0 \cdot \mathrm{NaN}$ is
#   `NaN`.
# - `cuda.grid(2)` gives x first. In notebook [[welcome.ipynb]] x counted columns. Here it counts **rows**.
#   Notebook [[coalesced.ipynb]] asks what that costs.
#
# ### Exercise [[naive]] · One thread, one element
# *core · medium · everything builds on it · 12 minutes*
#
# The kernel gets `(m, n, k, alpha, A, B, beta, C)`. A has m rows and k columns, B has k rows and n columns.
#
# - Take the sizes from `m, n, k`, not from `.shape`: in memory, rows may be longer than the matrix is wide.
# - It is launched with blocks of 32 × 32 threads, `ceil(m / 32)` × `ceil(n / 32)` of them. x runs over the
#   rows, as `row, col = cuda.grid(2)` says.
# - Start the sum at `float32(0)`, and store each element of C once.
# - The checker tries sizes that do not fit the blocks, a C full of NaN with `beta = 0`, and `k = 0`, where
#   A · B is all zeros.


# %% id="ex-naive"
@cuda.jit
def naive(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    ### BEGIN SOLUTION
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]
    ### END SOLUTION


check.naive(naive)

# %% [markdown]
# The course's kernel of this notebook is `naive_uncoalesced`, v00 of document 004. (The *documents* are
# five texts that the course started from.) It has `while` in place of `for`, and `u32`, whole numbers of 32
# bits. Both help the compiler, which makes the machine code. Compare it with yours.

# %% tags=["listing"]
see.fold(see.source("naive_uncoalesced"), first="Write the exercise first, then open this.")

# %% [markdown]
# Now launch yours. `run` does it on a GPU if there is one, else on the emulator. C gets 70 rows and 60
# columns: how many blocks of 32 × 32 does it take in each direction?

# %% id="own-run"
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 60), np.float32)
### BEGIN SOLUTION
np.abs(run(naive[(3, 2), (32, 32)], A, B).C - A @ B).max()
### STUB
# # Take the first # of the next line away, and put numbers in place of the question marks.
# # np.abs(run(naive[(?, ?), (32, 32)], A, B).C - A @ B).max()
### END SOLUTION

# %% [markdown]
# The difference from NumPy is tiny, but not zero. (`nan` would mean that some elements were never stored.)
# Both add 50 products in float32, and round at different points. So results are compared with a
# [tolerance](glossary.md#tolerance), never with `==`.
#
# Here is the kernel at work, seen from one of its threads. In a step along k it reads a number of A and one
# of B. How many *different* numbers do the 32 threads of a warp read in that step? Say it, then set *look
# at* to *warp*.

# %%
see.multiply("naive_uncoalesced")

# %% [markdown] tags=["thought"]
# 32 numbers of A, one below the other, and one number of B, the same for all.

# %% [markdown]
# **What we now know:** one thread makes one element, with one loop along k. What does a step of that loop
# cost?
#
# ## What does a warp ask memory for?
#
# When a warp executes `A[row, p]`, its 32 lanes ask together: that is one **request**. What it touches are
# whole **sectors** of 32 bytes, 8 floats each. Lanes that want the same sector share it.

# %%
see.predict("naive.moved")

# %% [markdown]
# And how many sectors does the load of B touch? And the store of C? Write both numbers down. Then follow
# the lanes, four at a time.

# %%
see.fold(lambda: see.warp_and_memory("naive_uncoalesced", blocks=False))

# %% [markdown] tags=["thought"]
# - **B**: all lanes want the *same* float. It is touched once and handed to all: a **broadcast**, 1 sector.
# - **C**: like A, every lane in a row of its own: 32 sectors.

# %% [markdown]
# ### Exercise [[naive_sectors]] · Another block
# *core · medium · 6 minutes*
#
# The same kernel with blocks of 8 × 32: 8 threads along x, 32 along y. Each row begins where a sector
# begins. Which rows and columns of C does a warp have now? How many sectors does **one request** touch: a
# load of A, a load of B, the store of C?

# %% id="ex-naive_sectors"
### BEGIN SOLUTION
check.naive_sectors(A=8, B=1, C=8)
### STUB
# check.naive_sectors(A=None, B=None, C=None)
### END SOLUTION

# %% [markdown]
# Now the requests of *your* kernel. Take the `#` away, and set the block to (8, 32). Then find the block
# whose request for A touches fewest sectors.

# %% id="own-lanes"
### BEGIN SOLUTION
see.warp_and_memory(naive)  # With (1, 256) all 32 lanes are in one row of A: 1 sector.
### STUB
# # see.warp_and_memory(naive)
### END SOLUTION

# %% [markdown]
# **What we now know:** lanes one below the other touch a sector each. Lanes that want the same float, or
# neighbours in a row, share sectors.
#
# ## What does padding change?
#
# An experiment on an H200. The kernel stays as it is, in blocks of 32 × 32. Only in memory every row of A,
# B and C gets 16 floats longer. Nobody reads these: they are **padding**. So every lane still touches a
# sector of its own in A, and a step still touches 32 + 1 = 33 sectors.

# %%
see.predict("naive.padding")

# %% [markdown]
# So something else takes the time. All loads go through **L1**, the cache of an SM. It works on lines of
# 128 bytes, 32 floats. Call a float's position in its line its **place**, 0 to 31.
#
# In one clock L1 makes one delivery, a **wavefront**: at most one float from each place, from whichever line.
# A float goes to all lanes that want it. Two floats at the same place of different lines take two wavefronts:
# they queue.
#
# The picture shows such a queue. At the top are the lines of memory that a warp touches, below them the 32
# places. Move the padding. Before you choose 8 and 24: how long will the longest queue be? Then set the
# padding back to 0, and try the other reads.

# %%
see.queue()

# %% [markdown] tags=["thought"]
# 4096 floats are 128 whole lines, so without padding all 32 floats of a column have place 0. With 16, rows
# begin at place 0 or 16: two queues of 16. With 8, at 0, 8, 16 or 24; with 24, at the same four in another
# order: four queues of 8. With 32, each row moves by a whole line, and nothing changes.

# %% [markdown]
# That explains most of the experiment: 32 + 1 wavefronts for A and B became 16 + 1, and 33 / 17 is 1.9
# where 1.8 times was measured. (The side trip at the end asks where the rest goes.) The sectors rarely come
# from afar: the block's other warps read the same rows of A, and in 99 % of the cases a sector is in L1
# already. But its floats still have to be delivered.
#
# ### Exercise [[l1_queue]] · The queue
# *core · medium · the same rule returns with shared memory · 8 minutes*
#
# Write `wavefronts(addresses)`: from a list of 32 byte addresses, one float of 4 bytes for each lane, to
# the number of wavefronts, the deliveries that L1 needs.
#
# - A line has 128 bytes. Each delivery takes at most one float from each of its 32 places. Floats at one
#   place queue up, whatever line they are in. All lanes that want the same float get it at once.
# - `[4 * lane for lane in range(32)]`: 32 neighbours, each at a place of its own. **1 delivery.**
# - `[16384 * (lane // 2) for lane in range(32)]`: rows of 4096 floats, two lanes for each row. 16 different
#   floats, all at place 0. **16 deliveries.**
#
# Lanes may ask in any order.


# %% id="ex-l1_queue"
def wavefronts(addresses):
    ### BEGIN SOLUTION
    floats = {address // 4 for address in addresses}
    places = [each % 32 for each in floats]
    return max(places.count(place) for place in places)
    ### STUB
    # return None
    ### END SOLUTION


check.l1_queue(wavefronts)

# %% [markdown]
# **What we now know:** sectors tell what is touched. The work of L1 is counted in wavefronts: the longest
# queue at a place.
#
# *A good place for a pause. About 30 minutes are left.*
#
# ## Can a pencil tell the speed?
#
# How fast *can* the kernel be, if L1 never pauses? A warp's step is 32 multiply-adds, two operations each:
# 64 FLOP. It takes L1 one clock per wavefront. An H200 has 132 SMs, each with an L1, and 1.98 · 10⁹ clocks
# per second:
#
# $$132 \cdot 1.98 \cdot 10^9 \cdot \frac{64}{\text{wavefronts per step}} =
# \frac{16.7\ \text{TFLOPS}}{\text{wavefronts per step}}$$
#
# This is a **roof**: the most that one part allows. No kernel beats it. Whether a kernel reaches it, only a
# measurement tells.
#
# Now the four blocks of the opening, with rows of 4096 floats. How many rows of A does a warp read in a
# step, and how many neighbours of B? Write three numbers: wavefronts for A and B together.

# %% id="forecast"
### BEGIN SOLUTION
per_step = {"32 × 32": 33, "16 × 16": 17, "8 × 32": 9, "4 × 64": 5}
### STUB
# per_step = {"32 × 32": 33, "16 × 16": None, "8 × 32": None, "4 × 64": None}
### END SOLUTION
{block: f"{16.7 / each:.2f} TFLOPS" for block, each in per_step.items() if each}

# %% [markdown]
# Let your `wavefronts` of [[l1_queue]] check the pencil. (If yours has not passed, run the one under
# *Solution* there.) In a block of `rows` × `columns`, lane l computes row `l % rows` and column `l // rows`
# of C. Write the 32 addresses that a warp loads of A at p = 0, and those that it loads of B. A row has
# 16,384 bytes, and each array begins at address 0.


# %% id="own-forecast"
def wavefronts_of(rows, columns):
    ### BEGIN SOLUTION
    of_a = [16384 * (lane % rows) for lane in range(32)]
    of_b = [4 * (lane // rows) for lane in range(32)]
    ### STUB
    # of_a = None
    # of_b = None
    ### END SOLUTION
    return wavefronts(of_a) + wavefronts(of_b) if of_a and of_b else None


{
    f"{rows} × {columns}": wavefronts_of(rows, columns)
    for rows, columns in ((32, 32), (16, 16), (8, 32), (4, 64))
}

# %% [markdown]
# Your guess was:

# %%
guess

# %% [markdown]
# Open what the H200 did:

# %% [markdown] tags=["thought"]
# | block | rows, columns of a warp | wavefronts | your roof | measured, TFLOPS |
# |---|---|---|---|---|
# | 32 × 32 | 32, 1 | 32 + 1 = 33 | 0.51 | 0.50 |
# | 16 × 16 | 16, 2 | 16 + 1 = 17 | 0.98 | 0.97 |
# | 8 × 32 | 8, 4 | 8 + 1 = 9 | 1.9 | 1.9 |
# | 4 × 64 | 4, 8 | 4 + 1 = 5 | 3.3 | 3.3 |
#
# None is off by more than 2 %. And 33 / 5 is the 6.6 of the opening.

# %% [markdown]
# (Measure one kernel twice, and the two speeds differ by 1 or 2 %. That is **noise**: such a difference means
# nothing, unless the text says so.)
#
# **What we now know:** this kernel runs as fast as L1 can deliver: 16.7 TFLOPS, divided by the wavefronts
# of a step.

# %% [markdown]
# ## What does a `0.0` cost?
#
# Arithmetic has a roof as well: 67 TFLOPS with float32. One number in the code can lower it. This is the
# matrix multiplication that Numba's manual shows. x counts rows in it, as in yours.


# %%
@cuda.jit
def matmul(A, B, C):
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for k in range(A.shape[1]):
            tmp += A[i, k] * B[k, j]
        C[i, j] = tmp


a, b, c = (np.ones((32, 32), np.float32) for _ in range(3))
report = emulate(matmul, (1, 1), (32, 32), a, b, c)

# %% [markdown]
# It is right. But Numba gives a number such as `0.0` the type float64, with 64 bits. And float64 with
# float32 gives float64.

# %%
see.predict("naive.float64")

# %% [markdown]
# What the emulator counted, line by line (*lanes* are operations here):

# %%
see.fold(report.arithmetic, first="Choose your answer first, then open this.")

# %% [markdown]
# An H200 computes float64 at half the speed of float32, many other GPUs at a 64th. In this kernel L1's roof
# lies lower still. In later kernels it does not.
#
# ### Exercise [[no_float64]] · Repair the manual
# *core · easy · 4 minutes*
#
# Change one line, so that nothing is computed in float64, and take the cell's last assignment away. The
# kernel is launched as in [[naive]], with k = 0 as well.


# %% id="ex-no_float64"
@cuda.jit
def matmul(A, B, C):
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        ### BEGIN SOLUTION
        tmp = float32(0)
        ### STUB
        # tmp = 0.0
        ### END SOLUTION
        for k in range(A.shape[1]):
            tmp += A[i, k] * B[k, j]
        C[i, j] = tmp


### BEGIN SOLUTION
### STUB
# matmul = None  # change one line of the kernel above, then take this line away
### END SOLUTION

check.no_float64(matmul)

# %% [markdown]
# **What we now know:** one number without a type turns every sum into float64, and no result shows it.
#
# ## What stops it now?
#
# The pencil says L1. Does the hardware agree? Nsight Compute is NVIDIA's **profiler**: it counts in how many
# clocks each part of a GPU works. On an H200, with blocks of 32 × 32, L1 was busy in 99 % of the clocks.

# %%
see.predict("naive.busy")

# %% [markdown]
# The picture has every part. An *issue slot* is room for one instruction in one clock; *integer units*
# compute addresses. L1 is one unit with *shared memory*, which comes in notebook
# [[shared_memory_tiles.ipynb]], as *Tensor Cores* come later still. The *queue to global memory* is the
# line in front of L1.

# %%
see.fold(lambda: see.limits("naive_uncoalesced"), first="Choose your answer first, then open this.")

# %% [markdown]
# Busy is not yet the limit. **A limit shows when you take its work away.** You did: from 33 wavefronts to
# 5, with the same instructions, the kernel got 6.6 times as fast.
#
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a matrix multiplication with one thread per element, a guard, α and β.
# - **It reached** 0.50 TFLOPS on an H200 in blocks of 32 × 32: less than 1 % of what the H200 can compute.
# - **What stops it now** is L1: 33 wavefronts for a step, 32 of them for one column of A. Notebook
#   [[coalesced.ipynb]] changes which thread takes which element, and nothing else.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("naive")

# %% [markdown] id="side-row_lengths"
# Side trip, 25 minutes: 16 floats of padding nearly doubled the speed. [Which padding is
# best?](row_lengths.ipynb) It leads back to this line.
