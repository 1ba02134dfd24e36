# %% [markdown]
# # [[one_read_too_many.ipynb]] · When do fours do harm?
#
# A side trip from
# [notebook [[vectorized_access.ipynb]]](vectorized_access.ipynb#cell-id=side-one_read_too_many), and back.
# Three kernels move four floats at once: document 004's v05, an early kernel of its author in C++, and the
# course's own, `vectorized`. What do the fours bring to each?
#
# *Time: about 17 minutes to read, 10 for the exercises. Needs notebook [[vectorized_access.ipynb]] up to
# exercise [[ragged_fours]].*

# %%
from gemm_course import check
from gemm_course import widgets as see
from gemm_course.checks.kits import document_v05

# %% [markdown]
# ## Which read leaves its array?
#
# This is a kernel after document 004's v05, with the zeros of [[ragged_fours]] and small tiles: 32 × 32 × 8,
# and 4 × 4 results per thread. Its results are those of NumPy, for any m, n and k. (It asks nowhere whether
# beta is 0, so C must be finite. And it stores whole fours, into the padding too, as the document allows.)
# Yet one of its accesses to global memory leaves its array.

# %%
see.source(document_v05())

# %% [markdown]
# ### Exercise [[stray_read]] · A read that nobody notices
# *stretch · medium · 10 minutes*
#
# Which access is it? A matrix C of 1 × 1 shows it. And what is the smallest C, by m · n, for which it does
# **not** happen? The document's rows are padded to multiples of 16 floats, and the padding belongs to the
# array. Answer with the array and what is done to it, such as `("A", "load")`, and with `(m, n)`.

# %% id="ex-stray_read"
### BEGIN SOLUTION
check.stray_read(access=("C", "load"), shape=(32, 17))
### STUB
# check.stray_read(access=(None, None), shape=(None, None))
### END SOLUTION

# %% [markdown]
# Why does no test notice it? What was read is never stored. The course's kernel asks first:

# %% tags=["listing"]
from gemm_course.kernels.parts.results import store_four

see.fold(see.source(store_four), first="Write the exercise first, then open this.")

# %% [markdown]
# **What we now know:** results can be right, and an access wrong. The emulator looks at every access.
#
# ## What do fours bring another kernel?
#
# Document 004's author wrote each of his kernels twice, in C++: with single loads of the tiles, and by fours.
# His v02 is like your tiles of notebook [[shared_memory_tiles.ipynb]]: blocks of 32 × 32 threads, tiles of 32
# × 32.

# %%
see.predict("one_read_too_many.v02")

# %%
see.fold(lambda: see.vectorized_peers("v02", "v04"), first="Choose first, then open this.")

# %% [markdown]
# Two things came with the fours:
#
# 1. **Idle threads.** A tile of A has 256 fours, and a block 1,024 threads. Three in four wait at the
#    barrier. "We waste a lot of threads", says a comment in the source.
# 2. **The zeros** past k. The author counts how many of the four lie past k, and clears so many in a loop.
#    How often it runs is known only at run time. A register has no address, so in C++ the four go to local
#    memory (notebook [[thread_tiles_1d.ipynb]]).
#
# You may change one thing in the kernel, and measure again. Which change tells the two apart, and which of
# them matters more?

# %% [markdown] tags=["thought"]
# Leave the zeros out: as many threads are idle as before. (4096 is a multiple of 32, so results stay right.)
#
# | v02, TFLOPS | single loads | fours, as written | clearing unrolled | no clearing |
# |---|---|---|---|---|
# | 32 registers in all four | 8.1 | 5.8 | 6.9 | 7.8 |
#
# The clearing explains 2.0 of the 2.3 TFLOPS lost. The last 0.3 may be the idle threads. Unrolled, the four
# stay in registers, but it still costs instructions. (So that nothing else differs, each form was held to 32
# registers. Without that, single loads reach 9.2.)

# %% [markdown]
# **What we now know:** do not ask whether fours help. Ask what they cost in instructions and in local memory.
#
# ## Tall or wide?
#
# Back to `vectorized`. With 16 × 4 results a thread reads 16 elements of As and 4 of Bs per step, with 4 × 16
# it is the other way round. 20 both times, all by fours. Which is faster, or are they equal? Think of 16
# lanes side by side: which of them share what they read?

# %%
see.fold(lambda: see.heatmap("vectorized", "TM", "TN", others="best"), first="Choose first, then open this.")

# %% [markdown] tags=["thought"]
# Tall wins. It reads more of As, where the lanes of a row share every word. Wide ones read more of Bs, where
# the lanes' pieces lie 16 floats apart and meet in the same banks. (The map is kind to them: each cell has
# its own best block, and for 4 × 16 that is one in which only two lanes lie side by side.)

# %% [markdown]
# The best that was measured is taller and larger still: 128 × 256 × 32 with 16 × 8 results per thread, 42
# TFLOPS.
#
# ## The way back
#
# Fours did harm three times: as a read outside of C, as a loop over a four that has no address, and as reads
# of Bs that meet in the same banks. [Back to notebook
# [[vectorized_access.ipynb]]](vectorized_access.ipynb#cell-id=side-one_read_too_many).
