# %% [markdown]
# # 01 · The naive kernel
#
# One thread, one element of `C`: the shortest kernel that multiplies matrices. It is right, and it reaches
# one percent of what the machine can do. This notebook finds out why, by counting.
#
# **After this notebook you can**
# - write a matrix multiplication kernel with a guard, α and β;
# - count what a warp asks of memory: requests, sectors, bytes used;
# - spot a float64 that sneaked in.
#
# *Time: about 30 minutes to read, 30 for the exercises. Comes from document 004, kernel v00.*

# %%
import numpy as np
from numba import cuda, float32

from gemm_course import check, emulate, run
from gemm_course import widgets as see

# %% [markdown]
# ## In one picture
#
# What does a warp of this notebook's kernel read of A and of B, in one step along `k`? Look at an element
# of C, its thread, its warp and its block, and let the steps play.

# %%
see.multiply("naive_uncoalesced")

# %% [markdown]
# ## What limits it now?
#
# Keep this question. Every notebook opens with it, and answers it with counts, not with opinions. Here is
# the kernel:

# %%
see.source("naive_uncoalesced")

# %% [markdown]
# Read it once from top to bottom:
#
# - It computes $C \leftarrow \alpha A B + \beta C$, as every BLAS library does. `beta = 0` must not even
#   *read* `C`: there may be anything in it, and $0 \cdot \mathrm{NaN}$ is `NaN`.
# - `x`, the fast index, counts **rows** here. Document 004 calls that an oversight, made on purpose so that
#   we can mend it.
# - `if row < m and col < n` is the guard.
# - `float32(0)`, `u32(...)` and the `while` instead of `for p in range(k)` are for the compiler.
#   `gemm_course.compiled` shows what it makes of them.
#
# Does it work? `run` takes a stage or a kernel, uses the GPU if there is one and the emulator if not, and
# returns `C`:

# %%
rng = np.random.default_rng(0)
A, B = rng.standard_normal((70, 50), np.float32), rng.standard_normal((50, 60), np.float32)
result = run("naive_uncoalesced", A, B)
np.abs(result.C - A @ B).max()

# %% [markdown]
# Not zero, and that is fine. Both are float32 sums of 50 products, but taken in another order and rounded
# at other places (an FMA rounds once, a multiplication and an addition twice). So we compare with a
# **tolerance**, never with `==`.
#
# ## One request
#
# When a warp executes `A[row, p]`, all its lanes ask at once: that is one **request**. The hardware looks
# at the 32 addresses, finds out which sectors they lie in, and moves those, whole. Lanes that want the same
# sector share it.
#
# Lane 0 has row 0, lane 1 has row 1, ... and all have the same `p`. So a warp reads 32 elements one above
# the other:

# %%
see.predict("01.moved")

# %% tags=["answer"]
see.warp_and_memory("naive_uncoalesced")

# %% [markdown]
# On the left the warp's lanes on C and what they ask for, on the right the memory, drawn from what the
# emulator saw. The hardware takes all 32 lanes together; step by step you can follow four at a time. Choose
# one request after the other, and go to the last lanes each time.

# %% [markdown] tags=["answer"]
# - **A**: every lane in a sector of its own. 1024 bytes move, 128 are used.
# - **B**: all lanes read the *same* element. One sector, handed to all: a **broadcast**.
# - **C**: like A, when the result is stored.

# %% [markdown]
# Try other block shapes. With 16 × 16 a warp has only 16 different rows. Which shape makes A cheapest? And
# what happens to B then?
#
# > **Isn't the sector of A used again at the next k?** Yes: at p + 1 every lane wants the next float in the
# > same sector, and the cache may still hold it. That saves the way to the far memory. But the *request*
# > has to be answered again, 32 sectors of it, out of the cache. The count of sectors is the work of the L1
# > cache, not the traffic to DRAM. And while this warp comes back to its 32 sectors, 63 others on the same
# > multiprocessor want theirs.
#
# ## What does it cost?

# %%
see.tflops("naive_uncoalesced")

# %%
see.tflops("naive_uncoalesced", on="RTX 3090")

# %% [markdown]
# Half a TFLOPS of 67. The answer to *what limits it now?*: **33 sectors for 32 multiply-adds.** The
# arithmetic is idle; the kernel spends its life fetching bytes that nobody asked for.
#
# On the roofline of notebook 00, now with the bytes that warps ask for:

# %%
see.roofline("naive_uncoalesced")

# %% [markdown]
# It stands far to the left, under the roof of the L1 cache. In the next notebooks the point will move.
#
# ---
# ## Exercises
#
# ### Exercise 01.1 · Write it
# *core · medium · everything builds on it · 12 minutes*
#
# Write the kernel yourself, without looking up. It gets `(m, n, k, alpha, A, B, beta, C)`; the rows of the
# arrays may be longer than the matrices are wide, so take the sizes from `m, n, k`. It is launched with
# blocks of (32, 4) threads, and **x runs over the rows**, as above: `ceil(m / 32)` × `ceil(n / 4)` blocks.
# The checker tries sizes that do not fit, and a `C` full of NaN with `beta = 0`.


# %% id="ex-01-1"
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
# Now look at your own kernel's requests, the same picture drawn from *your* code: take the `#` away.

# %% id="own-lanes"
### BEGIN SOLUTION
see.warp_and_memory(naive)
### STUB
# # see.warp_and_memory(naive)
### END SOLUTION

# %% [markdown]
# ### Exercise 01.2 · How many loads?
# *core · easy · 4 minutes*
#
# How many elements of A and B does the whole launch load, with `beta = 0`? A load by each of two threads
# counts twice.


# %% id="ex-01-2"
def loads(m, n, k):
    ### BEGIN SOLUTION
    return 2 * m * n * k
    ### STUB
    # return None
    ### END SOLUTION


check.naive_loads(loads)

# %% [markdown]
# ### Exercise 01.3 · How many sectors?
# *core · easy · 4 minutes*
#
# `naive_uncoalesced`, blocks of 32 × 32, rows that start at a sector. How many sectors does **one request**
# of a warp touch: a load of A, a load of B, the store of C?

# %% id="ex-01-3"
### BEGIN SOLUTION
check.naive_sectors(A=32, B=1, C=32)
### STUB
# check.naive_sectors(A=None, B=None, C=None)
### END SOLUTION

# %% [markdown]
# ---
# ## Count it three ways
#
# Now put the exercises together. How many load **requests** do all warps of the launch make for A and B,
# and how many **sectors** do these requests touch? A warp takes $k$ steps, and there are $mn/32$ warps.
# Write both as formulas; the picture sets them beside two other ways of counting:
#
# - **the emulator** counts what the source asks for;
# - **the hardware** has counters of its own, read with NVIDIA's Nsight Compute on an H200 and kept in
#   `data/`.


# %% id="formula"
def load_requests(m, n, k):
    ### BEGIN SOLUTION
    return 2 * m * n * k // 32
    ### STUB
    # return None
    ### END SOLUTION


def load_sectors(m, n, k):
    ### BEGIN SOLUTION
    return (32 + 1) * m * n * k // 32
    ### STUB
    # return None
    ### END SOLUTION


# %%
size = (1024, 1024, 1024)
see.counts("naive_uncoalesced", size, global_load_requests=load_requests, global_load_sectors=load_sectors)

# %% [markdown]
# Where all three agree, the model in your head is right. It will not always be so: the compiler may change
# the source, and from notebook 03 on it does.
#
# ---
# ## One more thing
#
# ### Exercise 01.4 · The hidden float64
# *core · medium · costs a factor of 2 to 64 where it is missed · 8 minutes*
#
# This kernel gives the right numbers. Yet the emulator has something to say:


# %%
@cuda.jit
def lean(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = 0.0
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = 1.0 * alpha * acc + beta * C[row, col] if beta != 0 else 1.0 * alpha * acc


# %%
a, b, c = (np.ones((32, 32), np.float32) for _ in range(3))
report = emulate(lean, (1, 8), (32, 4), 32, 32, 32, np.float32(1), a, b, np.float32(0), c)
report.arithmetic

# %% [markdown]
# Numba gives a literal such as `0.0` the type float64, and float64 with float32 is float64. An H200 does
# float64 at half speed; consumer cards at a 64th. Write the kernel again so that no lane computes in
# float64. (Launched as in 01.1.)


# %% id="ex-01-4"
@cuda.jit
def lean(m, n, k, alpha, A, B, beta, C):
    ### BEGIN SOLUTION
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc
    ### STUB
    # pass  # copy the kernel above and mend it
    ### END SOLUTION


check.no_float64(lean)

# %% [markdown]
# ---
# ## Quiz

# %%
see.quiz("01")

# %% [markdown]
# ## Recap
#
# - A **request** is one memory instruction of one warp. It moves whole **sectors** of 32 bytes.
# - Lanes down a column: 32 sectors, an eighth of the bytes used. Lanes on one element: 1 sector, a
#   broadcast.
# - v00 asks for **33 sectors per warp and k step** to do 32 multiply-adds, and stands at 1 % of the
#   machine.
# - `0.` in a kernel is float64.
#
# **Next:** coalescing. It changes which thread takes which element, and nothing else.
