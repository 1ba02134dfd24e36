# %% [markdown]
# # [[ten_shapes.ipynb]] · Is it as fast on other shapes?
#
# A side trip from [notebook [[last_per_cent.ipynb]]](last_per_cent.ipynb#cell-id=side-ten_shapes), and back.
#
# *Time: about 15 minutes to read, 10 for the exercises. Needs notebook [[last_per_cent.ipynb]].*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32, int32

from gemm_course import check, own, records
from gemm_course import widgets as see
from lockstep.intrinsics import mbarrier_wait

# %% [markdown]
# ### Ten shapes
#
# `stream_k_fp16` chooses width and sharing by a rule like yours. **Two bets:** the geometric mean of its
# shares of cuBLAS over these ten, and the shape where it is worst.

# %%
from types import SimpleNamespace

from gemm_course.kernels.c07_stream_k_fp16 import steps_if_shared, steps_in_waves

TEN = [(s, s, s) for s in (1024, 2048, 3072, 4096, 5120, 8192)]
TEN += [(4096, 14336, 4096), (8192, 1024, 8192), (16384, 16384, 2048), (4096, 4096, 16384)]
ladder = records.ladder().query("stage == 'stream_k_fp16'").set_index(["m", "n", "k"]).loc[TEN]
tiles = [SimpleNamespace(**records.parse_tiles(text)) for text in ladder.tiles]
ladder["BN"] = [t.BN for t in tiles]
shared = [steps_if_shared(t, *s) < steps_in_waves(t, *s) for t, s in zip(tiles, ladder.index)]
ladder["shared"] = [
    "no" if not yes else "yes" if t.CUT == 1 else f"cut in {t.CUT}" for t, yes in zip(tiles, shared)
]
see.fold(
    f"geometric mean {np.exp(np.log(ladder.ratio_to_cublas).mean()):.3f}",
    ladder[["BN", "shared", "tflops", "cublas_tflops", "ratio_to_cublas"]].round(3),
    first="Answer first, then open this.",
)

# %% [markdown] tags=["thought"]
# A draw, in Python: 1.00. Worst is the smallest, 0.93 at 1024³. That is 9 microseconds in all.

# %% [markdown]
# ### The opponent moves
#
# cuBLAS does the same work each time: FP16 matrices, FP32 accumulators. Here are its TFLOPS at 8192³, each
# measured in turns with the stage in the same row. **What do the low ones have in common?**

# %%
halves = records.ladder().query("dtype == 'fp16' and m == n == k == 8192 and stage != 'wmma_fp16_acc'")
halves[["stage", "tflops", "cublas_tflops"]].sort_values("cublas_tflops").round(0)

# %% [markdown] tags=["thought"]
# The six lowest ran beside the six fastest stages: a correlation of -0.93. Beside a slow neighbour cuBLAS
# does up to 726, beside a fast one down to 642, 13 % apart for the same code. It looks as if the neighbour
# had used up the heat that the GPU may make. A suspicion: nobody recorded power or temperature in these
# runs.
#
# What follows is certain: **a share of cuBLAS belongs to its run.** Measure in turns, give the spread, and do
# not fight for the last per cent with one measurement.
