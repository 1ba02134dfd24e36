"""Profiles as they are kept: a table with a row for each, and a file with each one's instructions.

`data/GPU/profile/kernels.csv` has the row, `NAME.json.xz` beside it what was sampled and counted per
instruction: {"file": [...], "line": [...], "text": [...], "executed": [...], "threads": [...],
"global_sectors": [...], "shared_wavefronts": [...], "samples": {reason: [...]}, "sources": {file: {line:
text}}}, lists with one entry per instruction, 16 bytes each, in order.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER, TABLE, SUFFIX = "profile", "kernels.csv", ".json.xz"
COUNTED = ("executed", "threads", "global_sectors", "shared_wavefronts")


def file_name(stage: str, tiles: str, default_tiles: str, size: str, usual_size: str) -> str:
    """The name, without its suffix, of the file of a kernel: only what is not usual is in it."""
    parts = [
        stage,
        *([] if tiles == default_tiles else tiles.split()),
        *([] if size == usual_size else [size]),
    ]
    return "-".join(parts)


def write(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read(path: Path) -> dict[str, Any]:
    return json.loads(lzma.decompress(path.read_bytes()))
