# %% [markdown]
# # 06 · Which instructions can go?
#
# The kernel of notebook [[thread_tiles_2d.ipynb]] reached 33 TFLOPS with **the square**: tiles of 128 × 128 ×
# 16, and 8 × 8 results per thread. Here are the instructions of its main loop, as compiled:

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32

from gemm_course import check, emulate
from gemm_course import widgets as see
from gemm_course.profiles import recorded
from lockstep.intrinsics import load4, store4, u32

square = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
loop = recorded("thread_tiled_2d", square).code.loop
print(f"{len(loop.rows)} instructions, of which {loop.by_kind['multiply-add']} are multiply-adds")

# %% [markdown]
# One in four is no multiply-add. Each clock that one of these takes is lost for multiplying. **What do most
# of them do?** Load the tiles, store them, read them again, or compute addresses? Say it, then open this.

# %%
others = pd.Series(loop.by_kind).drop("multiply-add")
see.fold(others[others > 0].to_frame("instructions"), first="Choose first, then open this.")

# %% [markdown] tags=["thought"]
# Integer arithmetic and moves: 227. (A *move* copies a register, or puts a number into one.) Many of them
# make addresses. The tiles come by 16 loads and 16 stores of one float each, and every float has an address
# of its own. Compare and select: mostly the guards of these loads. Barrier and fence: the two
# `syncthreads`.

# %% [markdown]
# *Time: about 64 minutes to read, 77 for the exercises, in two sittings; the pause is marked. Comes from
# document 004, kernel v05, and from document 003; the [glossary](glossary.md#document) says what the
# documents are.*
#
# First two questions from memory:

# %%
see.recall("vectorized_access")

# %% [markdown]
# And a bet for [your ladder](glossary.md#ladder). The tiles will be copied four floats at a time, with all
# else as it is. How many TFLOPS will the square reach, after 33?

# %%
see.my_bet("vectorized_access", tflops=...)

# %% [markdown]
# ## Can one instruction move four floats?
#
# In this course two functions do. Each becomes one instruction of the GPU:
#
# - `load4(A, (row, col))` returns `A[row, col]` and its three right neighbours, as a tuple of four.
# - `store4(A, (row, col), four)` stores such a tuple.
#
# Four neighbouring floats that move together we call a *four*. They are 16 bytes, and **a four must begin at
# a multiple of 16 bytes**. If it does not, the GPU stops the kernel: *misaligned address*.
#
# **Break it.** Below, a row of A is 50 floats long, so 200 bytes. Change `row` and `col` until the emulator
# complains of a misaligned access, though the column is a multiple of four. Then find a place that it
# allows, though the column is no multiple of four.


# %%
@cuda.jit
def peek(row, col, A, out):
    store4(out, (0, 0), load4(A, (row, col)))


A = np.zeros((70, 50), np.float32)
row, col = 0, 4
print([each.message for each in emulate(peek, 1, 1, row, col, A, np.zeros((1, 4), np.float32)).findings])

# %% [markdown] tags=["thought"]
# (1, 0): row 1 begins at byte 200, which is no multiple of 16. (1, 2) is two floats further on, at byte 208.
# So the address decides. **If every row is a multiple of four floats long, the column alone decides.** From
# here on, matrices have such rows; the course's `run` makes them longer where they are not.

# %% [markdown]
# ### Exercise [[four_at_once]] · Four at once
# *core · easy · 10 minutes*
#
# One block of THREADS threads copies a tile from `A` to `out`, both BM rows by BK columns. (The rows of `A`
# go on behind the tile; ignore that.) Write `make_copy(BM, BK, THREADS)`, which returns the kernel `(A,
# out)`. Use `load4` and `store4`.
#
# - `tid = cuda.threadIdx.x` numbers the threads.
# - THREADS is a multiple of BK // 4, and BM a multiple of the rows that the block covers at a time.
# - The checker wants a quarter of the requests, and whole sectors.


# %% id="ex-four_at_once"
def make_copy(BM, BK, THREADS):
    ### BEGIN SOLUTION
    ROWS = THREADS // (BK // 4)

    ### STUB
    ### END SOLUTION
    @cuda.jit
    def copy(A, out):
        ### BEGIN SOLUTION
        tid = cuda.threadIdx.x
        for i in range(0, BM, ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            store4(out, (r, c), load4(A, (r, c)))
        ### END SOLUTION

    return copy


check.four_at_once(make_copy)

# %%
see.predict("vectorized_access.requests")

# %%
counted = "global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors"
see.fold(lambda: see.compare("thread_tiled_2d", "vectorized", square | {"PAD": 0}, *counted))

# %% [markdown]
# **What we now know:** one instruction can move four floats, if they begin at a multiple of 16 bytes.
#
# ## What does a thread read side by side?
#
# Filling the tiles is one half, reading them the other. In step p your thread of notebook
# [[thread_tiles_2d.ipynb]] reads
#
# - `Bs[p, x0]` to `Bs[p, x0 + 7]`: neighbours. If you told it `u32`, the compiler reads them as two fours.
# - `As[y0, p]` to `As[y0 + 7, p]`: one below the other, BK floats apart. No two are neighbours. In the
#   kernel that you write here the loop over p is not written out, so these are eight reads. (In
#   `thread_tiled_2d` it is, and the compiler reads four steps of a row at once.)
#
# So documents 003 and 004 **transpose** A's tile on its way into shared memory. Then `As[p, y0]` to `As[p, y0
# + 7]` are neighbours as well. Does that pay? Keep your doubts until the end.
#
# It has a price. The four floats of one load lie along k. Now they belong into four different *rows* of As:
# after `v = load4(A, (r, c))` it takes `As[c + e, r] = v[e]` for e from 0 to 3. Four loads became one; four
# stores remain, a *scatter*.
#
# Be thread 13, with BK = 16. Which row of A is yours, and which four of it? Where do your floats land in As?
# Say it, then choose the thread and step. (The names are document 003's: innerRowA is a thread's row,
# innerColA its four in this row, rowStrideA the rows that the block covers at a time.)

# %%
see.scatter()

# %% [markdown]
# ### Exercise [[transposing_scatter]] · The transposing scatter
# *core · hard · the heart of this notebook · 20 minutes*
#
# Write `make_transpose(BM, BK, PAD, THREADS)`, which returns a kernel `(A, out)`. Its one block
#
# 1. loads A's tile, BM × BK, by fours, as in [[four_at_once]],
# 2. stores it transposed into a shared array, whose rows are BM + PAD floats long,
# 3. and, when all is there, writes it to `out` (BK rows by BM columns): read by fours, stored by fours.
#
# - A shared array begins at a multiple of 16 bytes if you say so in its third argument:
#   `cuda.shared.array(shape, float32, 16)`.
# - Compute new sizes such as BM + PAD beside the kernel, not in it.
# - THREADS is a multiple of BK // 4 and of BM // 4, and PAD a multiple of 4.


# %% id="ex-transposing_scatter"
def make_transpose(BM, BK, PAD, THREADS):
    ### BEGIN SOLUTION
    A_ROWS, OUT_ROWS = THREADS // (BK // 4), THREADS // (BM // 4)
    WIDTH = BM + PAD

    ### STUB
    ### END SOLUTION
    @cuda.jit
    def transpose(A, out):
        ### BEGIN SOLUTION
        As = cuda.shared.array((BK, WIDTH), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, A_ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[e]
        cuda.syncthreads()
        for i in range(0, BK, OUT_ROWS):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, (p, j)))
        ### END SOLUTION

    return transpose


check.transposing_scatter(make_transpose)

# %% [markdown] tags=["stub"]
# When it passes, look at your own kernel at work: `see.scatter(make_transpose)`.

# %% tags=["solution"] id="own-scatter"
see.scatter(make_transpose)

# %% [markdown]
# **What we now know:** a tile can be turned while it is copied. The loads are fours, the stores single floats
# that go down a column.
#
# ## What does a store down a column cost?
#
# A [bank](glossary.md#bank) serves one word per wavefront (notebook [[shared_memory_tiles.ipynb]]), and a
# column of As may lie in few banks. Padding behind each row moves the rows apart. But now it has a second
# task: **padding may not break alignment.** A row of As that is read by fours must begin at a multiple of 16
# bytes.
#
# ### Exercise [[scatter_padding]] · Two wishes
# *core · medium · 8 minutes*
#
# The array `As` has BK = 16 rows of BM = 128 floats, and 0, 2 or 4 floats of padding behind each. How many
# wavefronts does one store of a warp take, `As[c + e, r] = v[e]` for one e? And which of the three do you
# take, if As is to be read by fours? Work it out on paper.

# %% id="ex-scatter_padding"
### BEGIN SOLUTION
check.scatter_padding(wavefronts=[4, 1, 2], take=4)
### STUB
# check.scatter_padding(wavefronts=[None, None, None], take=None)
### END SOLUTION

# %% [markdown]
# **The hunt.** The picture has three depths BK and five paddings: fifteen ways to store `As[c + e, r] =
# v[e]`. Some take a single wavefront. Find them all, and the rule behind them. Then switch to `load4(As, (p,
# y0))`: in which of them can As still be read by fours?

# %% id="hunt"
see.wavefronts()

# %% [markdown] tags=["thought"]
# Three: BK = 8 with 4 floats, 16 with 2, 32 with 1. There BK · padding is 32. Take BK = 16 with 2 floats:
#
# - A warp holds eight rows of A: eight neighbouring banks.
# - Four lanes share a row. They store into rows 0, 4, 8 and 12 of As, and a row has 130 words. So they begin
#   in banks 0, 8, 16 and 24. Each brings its eight neighbours, and every bank has one word.
# - Unpadded, all four begin in bank 0.
#
# Only BK = 8 can also be read by fours: 1 and 2 floats of padding break the alignment.

# %% [markdown]
# Four floats of padding halve these wavefronts. And the time? The square was measured with 4 floats of
# padding and with none: **the same speed, both.** Every element of As is stored once, and read by sixteen
# threads. So from here on the square has no padding.
#
# **What we now know:** padding has to keep rows at multiples of 16 bytes. Fewer conflicts in a store that is
# rare bring nothing that could be measured.
#
# *A good place for a pause. The second sitting takes about 70 minutes.*
#
# ## What lies behind the end of a row?
#
# Say k is 50. `run` makes a row of A 52 floats long, the next multiple of four, and its last four begins at
# column 48. It holds columns 48 and 49, and two floats of padding. Reading these is allowed. But
# **anything** may be in them; in this course's tests it is NaN.
#
# "Bs is zero for these k, so the product is zero" is what everyone thinks first. Try it:

# %%
0 * float("nan")

# %% [markdown]
# So zeros have to be stored into As, for every element past k:
#
# - A four that begins past k, or in a row past m, is not loaded at all.
# - A four that begins before k is loaded, and each of its elements past k becomes a zero.
#
# (The tile of B is simpler: rows past k are zeros, and a NaN behind the end of a row only reaches results in
# columns from n on, which are never stored.)
#
# ### Exercise [[ragged_fours]] · Where the matrix ends
# *core · hard · 24 minutes*
#
# A whole kernel calls your `fetch` for each tile of A, and does all the rest. Write `make_fetch(BM, BK,
# THREADS)`. It returns a **device function**, one that the threads of a kernel call, under
# `@cuda.jit(device=True)`. Begin with the first loop of your [[transposing_scatter]].
#
# - The tile begins at `A[row0, k0]`, and comes into As transposed, for **any** m and k.
# - `tid` numbers all threads of the block. Take it as it is: the block is two-dimensional.
# - A load may stand in a choice: `v = load4(...) if ... else zeros`. Then `zeros` is a tuple of four as well,
#   each written `float32(0)`: a bare 0 beside them would make them float64.
# - THREADS is as in [[four_at_once]].


# %% id="ex-ragged_fours"
def make_fetch(BM, BK, THREADS):
    ### BEGIN SOLUTION
    ROWS = THREADS // (BK // 4)

    ### STUB
    ### END SOLUTION
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        ### BEGIN SOLUTION
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(0, BM, ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
            for e in range(4):
                As[c + e, r] = v[e] if k0 + c + e < k else float32(0)
        ### END SOLUTION

    return fetch


check.ragged_fours(make_fetch)

# %% [markdown]
# **What we now know:** a four may end where the matrix does not. What lies past the end has to be replaced,
# float by float, because 0 · NaN is NaN.

# %% [markdown] id="side-one_read_too_many"
# Side trip, 25 minutes: document 004's v05 passes every test, and reads what is not there. [When do fours do
# harm?](one_read_too_many.ipynb) It leads back to this line.

# %% [markdown]
# ## Can you put it all together?
#
# Now build the kernel, with a switch for each half. FOURS: do the copies move fours? TRANSPOSED: does A's
# tile lie on its side? `make_copies` gives you three device functions that obey both:
#
# - `fetch_a(m, k, A, row0, k0, As, tid)` brings the tile of A that begins at `A[row0, k0]`. Its element (r,
#   c) goes to `As[r, c]`, or to `As[c, r]` if TRANSPOSED. With both switches on, it does what your `fetch`
#   does.
# - `fetch_b(k, n, B, k0, col0, Bs, tid)` brings the tile of B that begins at `B[k0, col0]`.
# - `put(m, n, alpha, beta, C, row, col, acc)` stores a thread's results, the first at `C[row, col]`.
#
# ### Exercise [[both_switches]] · Both switches
# *core · medium · 15 minutes*
#
# Fill the five gaps: As' shape, the two tiles, the two calls, the reads, and the call of `put`. The rest is
# notebook [[thread_tiles_2d.ipynb]]'s [[outer_product]].
#
# - Reads stay plain loops: where a thread reads neighbours, the compiler makes fours of them. It does so only
#   with `u32` around thread numbers: of a `u32` it knows that it is never negative, and a negative index
#   would count from the end.
# - Both tiles begin at a multiple of 16 bytes.
# - Without FOURS, BK may be any number. The checker tries all four forms.

# %%
from gemm_course.checks.kits import make_copies


# %% id="ex-both_switches"
def make_vectorized(BM, BN, BK, TM, TN, FOURS, TRANSPOSED):
    fetch_a, fetch_b, put = make_copies(BM, BN, BK, TM, TN, FOURS, TRANSPOSED)
    ### BEGIN SOLUTION
    SHAPE = (BK, BM) if TRANSPOSED else (BM, BK)
    ### STUB
    # SHAPE = ...  # your code: the shape of As
    ### END SOLUTION

    @cuda.jit
    def vectorized(m, n, k, alpha, A, B, beta, C):
        ### BEGIN SOLUTION
        As = cuda.shared.array(SHAPE, float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        ### STUB
        # # your code: As and Bs
        ### END SOLUTION
        tx, ty = u32(cuda.threadIdx.x), u32(cuda.threadIdx.y)
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        tid, y0, x0 = ty * (BN // TN) + tx, ty * TM, tx * TN
        acc = cuda.local.array((TM, TN), float32)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        for k0 in range(0, k, BK):
            ### BEGIN SOLUTION
            fetch_a(m, k, A, row0, k0, As, tid)
            fetch_b(k, n, B, k0, col0, Bs, tid)
            ### STUB
            # # your code: fill both tiles
            ### END SOLUTION
            cuda.syncthreads()
            for p in range(BK):
                ### BEGIN SOLUTION
                for i in range(TM):
                    a[i] = As[p, y0 + i] if TRANSPOSED else As[y0 + i, p]
                for j in range(TN):
                    b[j] = Bs[p, x0 + j]
                ### STUB
                # # your code: read TM elements of As into a, and TN of Bs into b
                ### END SOLUTION
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
        ### BEGIN SOLUTION
        put(m, n, alpha, beta, C, row0 + y0, col0 + x0, acc)
        ### STUB
        # # your code: store the results
        ### END SOLUTION

    return vectorized


check.both_switches(make_vectorized)

# %% [markdown]
# Did `u32` do what was said? Compile your kernel with it and without, and watch the reads. Then, with it,
# set TRANSPOSED to False: how many wavefronts does a step take now? (This needs the compiler, but no GPU:
# `python3 course.py doctor` says whether it is here.)

# %%
# see.as_compiled(make_vectorized, tiles=square | {"FOURS": True, "TRANSPOSED": True})

# %% [markdown]
# The course's kernel is `vectorized`, document 004's v05. This is what changed since `thread_tiled_2d`:

# %% tags=["listing"]
see.fold(see.diff("thread_tiled_2d", "vectorized"), first="Write the exercise first, then open this.")

# %% [markdown]
# **What we now know:** the kernel is whole again, and each half can be switched off.
#
# ## Which half paid?
#
# The course has a kernel with these two switches as well. With neither it is `thread_tiled_2d`, at 33
# TFLOPS. With both it is `vectorized`, at 38.

# %%
see.predict("vectorized_access.halves")

# %% [markdown]
# Look for a reason in your own kernel. How many wavefronts do the stores into shared memory take, in each of
# the four forms? Here is one block with one pair of tiles. (In the course's kernel, whose loop over p is
# written out, the reads of these tiles take 8 · 16 · 20 = 2,560 in all four
# forms: 8 warps, 16 steps, 20 wavefronts.)

# %% id="stores"
A, B, C = np.zeros((128, 16), np.float32), np.zeros((16, 128), np.float32), np.zeros((128, 128), np.float32)


def stores(FOURS, TRANSPOSED):
    kernel = make_vectorized(**square, FOURS=FOURS, TRANSPOSED=TRANSPOSED)
    report = emulate(kernel, 1, (16, 16), 128, 128, 16, float32(1), A, B, float32(0), C)
    return report.total("wavefronts", space="shared", op="store")


### BEGIN SOLUTION
for forms in [(False, False), (False, True), (True, False), (True, True)]:
    print(forms, stores(*forms))
### STUB
# # your code: print the four numbers
### END SOLUTION

# %% [markdown] tags=["thought"]
# | the course's kernel, square | TFLOPS | wavefronts of these stores | spilled bytes |
# |---|---|---|---|
# | neither | 33 | 128 | 0 |
# | TRANSPOSED only | 30 | 1,088 | 0 |
# | FOURS only | 35 | 128 | 56 |
# | both | 38 | 320 | 0 |
#
# TRANSPOSED alone: 16 lanes hold a row of A, and store it down a column of As, 128 floats apart, all in one
# bank. That is 16 wavefronts for a store. With FOURS four lanes share a row, and it is 4.
#
# FOURS alone: the compiler does not get along with 128 registers, and spills. So this form has a handicap of
# its own. **The halves do not add up.**
#
# And what does transposing bring? In your kernel it saves reads: compiled, a step takes 32 wavefronts without
# it, and 20 with it. In the course's kernel the loop over p is written out, so it takes 20 in all four forms.

# %% [markdown]
# ## Where did the instructions go?
#
# **Three loops without a name.** *Neither* is the first. The others are *TRANSPOSED only*, *FOURS only* and
# *both*. Which is which, and how do you know?
#
# | main loop of | global loads | shared stores | integer arithmetic and moves |
# |---|---|---|---|
# | neither | 16 | 16 | 227 |
# | loop 1 | 4 | 10 | 44 |
# | loop 2 | 16 | 16 | 212 |
# | loop 3 | 4 | 4 | 60 |

# %% [markdown] tags=["thought"]
# Loop 2 still loads singly: *TRANSPOSED only*. Loop 3 stores all by fours: *FOURS only*. Loop 1 loads by
# fours, but 8 of its stores are the scatter into As, and 2 are Bs by fours: *both*.
#
# The last column answers this notebook's question. Of the integer arithmetic and moves, both switches
# together remove four in five, FOURS alone three in four.

# %% [markdown]
# **What we now know:** fours take instructions away, and pay. Transposed alone is slower, and both together
# are fastest. What transposing brings depends on the loop over p: if that is written out, the reads were
# fours already.
#
# ## What stops it now?
#
# In notebook [[thread_tiles_2d.ipynb]] shared memory was busy in 72 % of the clocks, and instructions were
# issued in 69 % of the possible places, the *issue slots*. Since then one in seven instructions of the loop
# has gone. A step's reads still take 20 wavefronts. Which of the two is busier now, and how busy?

# %%
see.fold(
    lambda: see.limits(("thread_tiled_2d", square), ("vectorized", square | {"PAD": 0})),
    first="Choose your answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# Shared memory, in 89 % of the clocks. It was 72 %. The kernel is faster, 38 TFLOPS after 33, and each step
# wants its 20 wavefronts as before. And the scatter adds 192 to the 2,688 wavefronts of a block's tile.
# Together that makes 72 % · 38 / 33 · 2,880 / 2,688 = 89 %. Is that the limit? Take wavefronts away, and
# look.

# %% [markdown]
# Now the tiles are yours. Most choices were measured with a padding of 4, so set it first. Then set BM to
# 64 and TN to 4: that is level with the square. **One more notch of one slider brings 40 TFLOPS.** Which
# one? Watch the *wavefronts per warp-wide FMA*: per multiply-add of a whole warp, with the reads as the
# source has them.

# %%
see.tiles(
    "vectorized",
    tiles={"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8, "PAD": 0},
    tells_best=False,
)

# %% [markdown] tags=["thought"]
# TM 16: 40 TFLOPS. The line falls from 0.75 to 0.5. Compiled, by fours:
#
# | TM × TN | wavefronts of a step | for multiply-adds | each | TFLOPS |
# |---|---|---|---|---|
# | 8 × 8 | 20 | 64 | 0.31 | 38 |
# | 8 × 4 | 8 | 32 | 0.25 | 38 |
# | 16 × 4 | 12 | 64 | 0.19 | 40 |
#
# The second line takes fewer wavefronts than the first, and is not faster. So wavefronts are not all.

# %% [markdown]
# ## What have you made?
#
# Write three lines before you open ours: *I made ... It reached ... What stops it now ...*

# %% [markdown] tags=["thought"]
# - **I made** a kernel that copies its tiles by fours, with A's tile on its side, for matrices of any size.
# - **It reached** 38 TFLOPS on an H200, after 33: the same bytes by fewer instructions.
# - **What stops it now** may be shared memory, which is busy in 89 % of the clocks. Notebook
#   [[warp_tiles.ipynb]] moves the lanes of a warp until a step takes 12 wavefronts instead of 20.

# %%
see.my_ladder()

# %% [markdown]
# ## Three questions about other kernels

# %%
see.quiz("vectorized_access")
