"""A sweep on a pretended GPU, as a node runs it: pretended_sweep MOST SHARD FOLDER [DIES].

Each choice takes a moment, and its figures follow from its tiles. With DIES, a file, the process kills itself
after some rows the first time: where the file is not there yet.
"""

import os
import signal
import sys
import time
import zlib
from pathlib import Path

from gemm_course.bench.cluster import Shard
from gemm_course.bench.sweep import queue_of
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.records.columns import SWEEP

STAGES = [LADDER["block_tiled"], LADDER["thread_tiled_1d"], LADDER["vectorized"]]
SHAPE = (512, 512, 512)
SECONDS, ROWS_BEFORE_IT_DIES = 0.02, 5
SAME = {
    "m": 512,
    "n": 512,
    "k": 512,
    "reason": "",
    "gpu": "Pretended",
    "date": "2026-01-01",
    "command": "test",
}


def measure(most: int, shard: Shard | None, folder: Path, dies: Path | None = None) -> None:
    """Write the rows of the shard that its file lacks."""
    queue = queue_of(STAGES, SHAPE, folder / "sweep.csv", most, False, shard)
    for written in range(len(queue)):
        if dies is not None and written == ROWS_BEFORE_IT_DIES and not dies.exists():
            dies.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        stage, tiles = queue.take()
        speed = zlib.crc32(f"{stage} {tiles_text(tiles)}".encode()) % 1000 / 10
        time.sleep(SECONDS)
        row = dict.fromkeys(SWEEP.columns) | SAME
        SWEEP.append(
            folder / "sweep.csv", [row | {"stage": stage, "tiles": tiles_text(tiles), "tflops": speed}]
        )


if __name__ == "__main__":
    most, shard, folder, *dies = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    measure(int(most), Shard.read(shard) if shard != "-" else None, Path(folder), *map(Path, dies))
