# %% [markdown]
# # [[coalesced.ipynb]] · Which thread should take which element?
#
# In notebook [[naive.ipynb]] the 32 lanes of a warp stood along a column of C. For every step along k, L1
# needed 33 [wavefronts](glossary.md#wavefront): it delivered 32 floats of A one after the other, and one of
# B.
#
# Nothing forces a warp to stand there. In the list below, `elements[lane]` is the row and the column of the
# element of C that a lane computes. **Choose 32 other elements, and get below 5 wavefronts.**

# %%
from numba import cuda, float32

from gemm_course import check
from gemm_course import widgets as see


def wavefronts(addresses):  # a right answer to exercise [[l1_queue]]
    floats = {address // 4 for address in addresses}
    places = [each % 32 for each in floats]
    return max(places.count(place) for place in places)


def sectors(addresses):
    return len({address // 32 for address in addresses})


def step(elements, length=4096):
    """Print what a step along k costs a warp. The rows of A, B and C are `length` floats long."""
    assert len(set(elements)) == 32, "there are 32 lanes, and each needs an element of its own"
    A = [4 * length * row for row, column in elements]  # the addresses of A[row, 0]
    B = [4 * column for row, column in elements]  # and of B[0, column]
    print(f"wavefronts: {wavefronts(A)} for A + {wavefronts(B)} for B")
    print(f"sectors:    {sectors(A)} for A + {sectors(B)} for B")


# %%
elements = [(lane, 0) for lane in range(32)]  # change this line, and run it again
step(elements)

# %% [markdown]
# How few wavefronts are possible? Try two lists at least before you open this.

# %% [markdown] tags=["thought"]
# **One for A and one for B**, with all 32 elements in one row: `[(0, lane) for lane in range(32)]`. All lanes
# read the same float of A. Their 32 floats of B are neighbours, so each has a place of its own. (With a
# second row, A takes two: in rows of 4096 floats, floats one above the other have the same place.)

# %% [markdown]
# *Time: about 40 minutes to read, 27 for the exercises. Comes from document 004, kernel v01; the
# [glossary](glossary.md#document) says what the documents are.*
#
# First two questions from memory, without looking back:

# %%
see.recall("coalesced")

# %% [markdown]
# And a bet for your ladder. In blocks of 32 × 32, the kernel of notebook [[naive.ipynb]] reached 0.50 TFLOPS
# on an H200. How many will it reach with its warps along rows, and nothing else changed? Write a number in
# place of the dots.

# %%
see.my_bet("coalesced", tflops=...)

# %% [markdown]
# ## How do you turn a kernel?
#
# The lanes of a warp differ in `threadIdx.x` first: x is the *fast* index. In notebook [[naive.ipynb]] x
# counted rows of C. Let it count **columns**. The grid turns as well: blocks along x then lie over the
# columns.
#
# Where the addresses of a request fall together into few sectors, the access is **coalesced**.
#
# ### Exercise [[coalesced]] · Turn it
# *core · medium · the most useful habit of all · 10 minutes*
#
# Write the kernel of [[naive]] again, from memory if you can, with neighbouring lanes side by side in a row
# of C.
#
# - **x runs over the columns**: `coalesced[(ceil(n / x), ceil(m / y)), (x, y)](m, n, k, alpha, A, B, beta,
#   C)`.
# - Blocks may have any shape. The checker begins with (32, 8), because a square hides swapped sizes.
# - Add in float32. A right result is not enough: the checker counts sectors as well.


# %% id="ex-coalesced"
@cuda.jit
def coalesced(m, n, k, alpha, A, B, beta, C):
    ### BEGIN SOLUTION
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]
    ### END SOLUTION


check.coalesced(coalesced)

# %% [markdown]
# The course's own kernel is `naive_coalesced`, document 004's v01. A block of it has `BM` rows and `BN`
# columns. It is launched the old way: `blockIdx.x` still counts blocks down the rows, and only `threadIdx` is
# turned. That is enough, since a warp's lanes differ in `threadIdx` alone.

# %% tags=["listing"]
see.fold(see.diff("naive_uncoalesced", "naive_coalesced"), first="Write the exercise first, then open this.")

# %% [markdown]
# In [[no_float64]] you took one fault out of the `matmul` of Numba's manual. It begins with `i, j =
# cuda.grid(2)`, and ends with `C[i, j] = tmp`. Which line would you change now?

# %% [markdown] tags=["thought"]
# The first: `j, i = cuda.grid(2)`. In the manual x is `i`, which counts rows.

# %% [markdown]
# **What we now know:** neighbouring lanes should read neighbours in memory. So let x count columns.
#
# ## How many times as fast?
#
# In a step along k, 33 wavefronts have become 2, and 33 sectors 5. L1's roof, 16.7 TFLOPS / wavefronts, rises
# from 0.51 to 8.4. Do you still believe in your bet?

# %%
see.predict("coalesced.speedup")

# %% [markdown]
# ## Do fewer bytes travel now?
#
# In eight steps along k, a warp of `naive_uncoalesced` asks L1 for 8 · 33 = 264 sectors, and one of
# `naive_coalesced` for 40. But the sector of a float of A holds the floats of the next steps as well. So how
# many **different** sectors does each warp touch in eight steps? Guess two numbers.
#
# Then open the picture, and count: a line under it tells how many are different, in one matrix. Add up A and
# B for each kernel.

# %%
see.fold(
    lambda: see.warp_and_memory("naive_uncoalesced", "naive_coalesced"),
    first="Guess two numbers first, then open this.",
)

# %% [markdown] tags=["thought"]
# | | asked of L1 | different |
# |---|---|---|
# | `naive_uncoalesced` | 256 + 8 | 32 + 8 = 40 |
# | `naive_coalesced` | 8 + 32 | 1 + 32 = 33 |
#
# Nearly as many. L1 keeps a sector until its other floats are wanted, and other warps find it there, too.
# On the H200, `naive_uncoalesced` asked L1 for 71 · 10⁹ sectors, and L1 read 0.67 · 10⁹ from L2, the cache
# behind it. (71 · 10⁹ is 33 in each of the warps' 4096³ / 32 steps.)

# %% [markdown]
# **What we now know:** what ran out in notebook [[naive.ipynb]] were not bytes, but L1's clocks, one for each
# wavefront. Your kernel stays below its new roof. What stops it now?
#
# ## Who adds which elements of a row?
#
# Another task, the same question: add up each row of A, with **one warp for one row**. On a CPU with 32 cores
# you would cut a row of 1024 floats into 32 chunks, one for each core. If lanes do so, their first request
# costs this:

# %%
addresses = [4 * 32 * lane for lane in range(32)]  # lane l begins at element 32 * l
wavefronts(addresses), sectors(addresses)

# %% [markdown]
# Change the first line until the second shows `(1, 4)`. And which element should a lane read next?
#
# ### Exercise [[partial_sums]] · Row sums
# *core · medium · its loop returns in notebook [[shared_memory_tiles.ipynb]] · 12 minutes*
#
# The kernel is launched as `partial_sums[rows, 32](A, out)`: block b has row b, and its 32 threads are one
# warp.
#
# - Lane l adds its share of the row, and stores the sum into `out[row, l]`. NumPy adds these 32 numbers
#   afterwards.
# - Rows may have any length. A lane without elements stores 0.
# - Load each element once, and add in float32. If each row begins where a sector begins, a request must
#   touch 4 sectors.


# %% id="ex-partial_sums"
@cuda.jit
def partial_sums(A, out):
    ### BEGIN SOLUTION
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    acc = float32(0)
    for col in range(lane, A.shape[1], 32):
        acc += A[row, col]
    out[row, lane] = acc
    ### END SOLUTION


check.partial_sums(partial_sums)

# %% [markdown]
# **What we now know:** a CPU cuts chunks, a GPU deals cards: one element to each lane, then the next 32.
#
# *A good place for a pause. About 30 minutes are left.*
#
# ## Which patch needs the fewest sectors?
#
# Back to the product. A warp's 32 elements are a patch of C. It needs a strip of A, the rows to its left,
# and a strip of B, the columns above it. A patch of r rows has 32 / r columns. What does it cost in
# sectors? Write it as a formula in r, sectors of A + sectors of B. Then check it with the cell, at 32 columns
# and at another width.

# %%
columns = 32
step([(lane // columns, lane % columns) for lane in range(32)])

# %% [markdown]
# ### Exercise [[best_block]] · The cheapest patch
# *core · easy · 5 minutes*
#
# `naive_coalesced` with 256 threads per block: in which block does a step of a warp touch the fewest
# **sectors** of A and B together? Give it as code does, `(x, y)`. And say why: what does a row of the patch
# cost, and what 8 columns?

# %% id="ex-best_block"
### BEGIN SOLUTION
# r rows cost r sectors of A, 32 / r columns 4 / r of B, at least one: together fewest with 2 rows.
check.best_block((16, 16))
### STUB
# check.best_block(None)
### END SOLUTION

# %% [markdown]
# Your block touches fewer sectors than 32 × 32. Is it faster?

# %%
see.predict("coalesced.patch")

# %% [markdown] tags=["thought"]
# **What we now know:** a sector fewer and a wavefront more, and the speed is the same. Sectors do not tell
# it, and L1's roof alone does not either.

# %% [markdown]
# ## Which profile is which?
#
# Four kernels were profiled on an H200. L1 was busy in 61, 78, 93 and 99 % of the clocks. Which is whose? You
# know their speeds, and can count their wavefronts. At its roof, 16.7 TFLOPS / wavefronts, a kernel keeps L1
# busy in all clocks; at half of it, in half of them.
#
# Blocks are rows × columns of C: in 2 × 128, a warp has 32 of the 128 columns. Write `busy`, and fill in what
# is missing. Each profile belongs to one kernel.

# %% id="mystery"
kernels = {  # measured TFLOPS, and wavefronts of a step for A and B together
    "naive_uncoalesced, 32 × 32": (0.50, 33),
    ### BEGIN SOLUTION
    "naive_coalesced, 16 × 16": (5.2, 3),
    "naive_coalesced, 32 × 32": (5.2, 2),
    "naive_coalesced, 2 × 128": (6.6, 2),
    ### STUB
    # "naive_coalesced, 16 × 16": (None, None),
    # "naive_coalesced, 32 × 32": (None, None),
    # "naive_coalesced, 2 × 128": (6.6, None),
    ### END SOLUTION
}


def busy(tflops, wavefronts):
    """Return in how many per cent of the clocks L1 is busy."""
    ### BEGIN SOLUTION
    return round(100 * tflops / (16.7 / wavefronts))
    ### STUB
    # return None
    ### END SOLUTION


for kernel, figures in kernels.items():
    if all(figures) and (share := busy(*figures)) is not None:
        near = [profile for profile in (61, 78, 93, 99) if abs(profile - share) < 2]
        doubt = "in per cent? " if share <= 1 else "more than all clocks? " if share > 100 else ""
        found = f"profile of {near[0]} %" if near else f"no profile: {doubt}Look at `busy` and the figures"
        print(f"{kernel}: {share:.4g} %, {found}")

# %% [markdown] tags=["thought"]
# | kernel, block | wavefronts of A + B | L1, by your count | by the profile |
# |---|---|---|---|
# | `naive_uncoalesced`, 32 × 32 | 32 + 1 | 99 % | 99 % |
# | `naive_coalesced`, 16 × 16 | 2 + 1 | 93 % | 93 % |
# | `naive_coalesced`, 32 × 32 | 1 + 1 | 62 % | 61 % |
# | `naive_coalesced`, 2 × 128 | 1 + 1 | 79 % | 78 % |

# %% [markdown]
# **What we now know:** a speed and a count tell how busy L1 is, without a profiler.
#
# ## What stops it now?
#
# In blocks of 16 × 16 L1 is busy nearly all the time. Is it the limit?
#
# **A limit shows when you take its work away.** So put 8 floats of padding behind each row. Count a step as
# it is, and then with `length=4104`. Where has a wavefront gone?

# %%
step([(lane // 16, lane % 16) for lane in range(32)], length=4096)

# %%
see.predict("coalesced.padded")

# %% [markdown]
# And 32 × 32? 2 × 128 makes as many wavefronts, runs the same instructions, and is a quarter faster. So what
# stops 32 × 32: wavefronts, instructions, the memory behind L1, or none of these? Choose, then look at its
# profile.

# %%
see.fold(lambda: see.limits(("naive_coalesced", {"BM": 32, "BN": 32})))

# %% [markdown] tags=["thought"]
# None of these. 2 × 128 makes as many wavefronts and runs the same instructions in less time, and L2 is
# busy in 8 % of the clocks. What is left is waiting. A load takes its time even where nobody stands in
# line. Until its float is there, the warp has nothing to multiply. (2 × 128 waits 59 % of a warp's time
# instead of 68.) So a busy part need not be the one that is waited for, as in
# 16 × 16.
#
# (The picture's 5.04 TFLOPS are of a launch under the profiler, alone and a little slower.)

# %% [markdown]
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a kernel whose neighbouring lanes read neighbouring floats. A step takes 2 wavefronts in place
#   of 33.
# - **It reached** 5.2 TFLOPS on an H200, 10 times as many as before.
# - **What stops it now** is no busy part: warps wait for their loads, two for each multiply-add. Notebook
#   [[shared_memory_tiles.ipynb]] takes most of them away.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("coalesced")
