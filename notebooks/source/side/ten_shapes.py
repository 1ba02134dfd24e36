# %% [markdown]
# # [[ten_shapes.ipynb]] · Is it as fast on other shapes?
#
# A side trip from [notebook [[last_per_cent.ipynb]]](last_per_cent.ipynb#cell-id=side-ten_shapes), and back.
# Most figures of the course are for 4096³. Here are ten shapes, six cubes and four others. The kernel is
# `stream_k_fp16`, which chooses its tile by itself.
#
# *Time: about 10 minutes to read, 12 for the exercises. Needs notebook [[last_per_cent.ipynb]].*

# %%
from gemm_course import records
from gemm_course import widgets as see

# %%
TEN = [(s, s, s) for s in (1024, 2048, 3072, 4096, 5120, 8192)]
TEN += [(4096, 14336, 4096), (8192, 1024, 8192), (16384, 16384, 2048), (4096, 4096, 16384)]
ladder = records.ladder().query("stage == 'stream_k_fp16'").set_index(["m", "n", "k"]).loc[TEN]

# %% [markdown]
# ## Which width does it choose?
#
# Copy your `best_width` of exercise [[best_width]] into this cell. The next one shows what it chooses.

# %% id="widths"
STEP = {64: 0.44, 128: 0.54, 192: 0.755, 256: 1.0}


def best_width(m, n):
    ### BEGIN SOLUTION
    def time(BN):
        tiles = -(-m // 128) * -(-n // BN)
        return -(-tiles // 132) * STEP[BN]

    return min(STEP, key=time)
    ### STUB
    # return None  # your best_width
    ### END SOLUTION


# %%
ladder["your BN"] = [best_width(m, n) for m, n, k in TEN]
ladder[["your BN"]]

# %% [markdown]
# Three of the ten have 192. At two of these three the stage takes 256, since it can share tiles. It computes
# full waves of 128 × 256 first, and all 132 SMs share the tiles that are left. So these take their part of a
# wave, and some 30 steps for adding up. A tile has k / 64 steps. **Which two are they?** Compute, for each of
# the three, how many steps of 128 × 256 either way takes. Then open.

# %%
# your code

# %%
ladder["its BN"] = [records.parse_tiles(text)["BN"] for text in ladder.tiles]
see.fold(ladder[["your BN", "its BN"]], first="Choose the two first, then open this.")

# %% [markdown] tags=["thought"]
# The two are 5120³ and 8192³. In steps of 128 × 256:
#
# | | 192, not shared | 256, shared |
# |---|---|---|
# | 3072³ | 109 | 135 |
# | 5120³ | 544 | 515 |
# | 8192³ | 2,029 | 2,016 |
#
# At 5120³ a tile has 80 steps, and 800 tiles are six full waves: 480 steps. The 8 that are left take 8 / 132
# of 80 steps, and 30 for adding up. In tiles of 192 it is nine waves of 80 steps, each 0.755 as long.

# %% [markdown]
# Here is 5120³. Compare *schedule* "stream-K" with "store behind the next tile": what happens to the white?

# %%
see.tiles_over_time(size=5120, kind="store behind the next tile")

# %% [markdown]
# ## Where does it lose?
#
# Its speed is given as a share of cuBLAS, measured in turns with it in one run. **Two bets:** the geometric
# mean of the ten shares, and the shape with the smallest.

# %%
mean = ladder.ratio_to_cublas.prod() ** (1 / len(TEN))
found = ladder[["tflops", "cublas_tflops", "ratio_to_cublas"]].round(3)
see.fold(f"geometric mean {mean:.3f}", found, first="Write down both, then open this.")

# %% [markdown] tags=["thought"]
# 1.00: a draw. The smallest share is 0.93, at 1024³, where the whole product takes 9 microseconds and the
# launch is a good part of it. Then come 2048³ with 0.96 and 3072³ with 0.99.

# %% [markdown]
# ## How fast is the opponent?
#
# cuBLAS does the same work in each of these rows: FP16 matrices of 8192³, FP32 accumulators. It was measured
# in turns with the stage in its row. **Which rows have the lowest figures of cuBLAS?** Look at the stages.

# %%
halves = records.ladder().query("dtype == 'fp16' and m == n == k == 8192 and stage != 'wmma_fp16_acc'")
halves[["stage", "tflops", "cublas_tflops"]].sort_values("cublas_tflops").round(0)

# %% [markdown] tags=["thought"]
# The six lowest stand beside the six fastest stages. Beside a slow stage cuBLAS does up to 726 TFLOPS, beside
# a fast one down to 642, for the same code: 13 % apart. (The correlation of the two columns is −0.93. All
# rows but that of `wmma` are of one day.)
# Notebook [[last_per_cent.ipynb]] has shown that the clock goes down with what is multiplied.

# %% [markdown]
# **What we now know:** a draw over ten shapes, won at the large ones and lost at the smallest. A share of
# cuBLAS belongs to its run: measure in turns, and give the spread. [Back to notebook
# [[last_per_cent.ipynb]].](last_per_cent.ipynb#cell-id=side-ten_shapes)
