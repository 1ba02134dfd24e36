"""Edits of a file of `gemm-course new`, as a learner makes them: tiles, a bug, a fused epilogue.

`python -m tests.own_kernel.edits FOLDER` writes them into a folder, to be measured.
"""

import sys
from pathlib import Path

from gemm_course.own_kernel.writing import write_new

TILES = [
    ('"BM": 128, "BN": 128, "BK": 32, "TM": 16, "TN": 4', '"BM": 128, "BN": 64, "BK": 16, "TM": 8, "TN": 8')
]
BUG = [("            cuda.syncthreads()\n            for p in", "            for p in")]
STORE = "C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]"
EPILOGUE = [
    ("from numba import cuda, float32\n", "import numpy as np\nfrom numba import cuda, float32\n"),
    ("alpha, A, B, beta, C):\n        As", "alpha, A, B, beta, C, bias):\n        As"),
    (
        STORE,
        "c = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]\n"
        "                    C[row, col] = max(c + bias[col], float32(0))",
    ),
    (
        'document="",',
        'document="",\n    extras={"bias": "n"},\n    epilogue=lambda C, bias: np.maximum(C + bias, 0),',
    ),
]
ALL = {"one_tiles": TILES, "two_bug": BUG, "three_fused": EPILOGUE}


def edit(path: Path, changes) -> Path:
    """Replace each old text of a file by the new; each must be there once."""
    text = path.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)
    return path


def new_file(folder: Path, name: str, start: str = "thread_tiled_2d") -> Path:
    """A file of `gemm-course new` with the edit of that name, if there is one."""
    return edit(write_new(name, folder, start), ALL.get(name, ()))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    print(*(new_file(folder, name) for name in ALL), sep="\n")
