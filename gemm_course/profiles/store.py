"""Reads and writes the files of profiles: a table of all, and a file with the instructions of each.

`data/GPU/profile/kernels.csv` has the rows. `NAME.json.xz` beside it has the samples and counts of each
instruction: {"compute_capability": [9, 0], "compiler": ..., "spilled_bytes": ..., "text": [...], "file":
[...], "line": [...], "executed": [...], "threads": [...], "global_sectors": [...], "shared_wavefronts":
[...], "samples": {reason: [...]}, "sources": {file: {line: text}}}. The lists have one entry per instruction,
16 bytes each, in order.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gemm_course.kernels import LADDER, Stage

# Matrices have this many rows and columns unless others are asked for.
USUAL = 4096
FOLDER, TABLE, SUFFIX = "profile", "kernels.csv", ".json.xz"
# There is one profile for each combination of these columns.
KEY = ("stage", "tiles", "m", "n", "k")
# The largest profile of the ladder has some hundred thousand bytes of text.
MOST_BYTES = 50_000_000
COUNTED = ("executed", "threads", "global_sectors", "shared_wavefronts")


def file_name(stage: Stage, tiles: Mapping[str, int], shape: tuple[int, int, int]) -> str:
    """Return the name, without suffix, of a profile's file.

    It consists of the stage, and of tiles and shape unless they are usual.
    """
    default = stage.complete()
    changed = [f"{name}{size}" for name, size in tiles.items() if size != default[name]]
    sizes = list(dict.fromkeys(shape))
    size = [] if sizes == [USUAL] else ["x".join(map(str, sizes if len(sizes) == 1 else shape))]
    return "-".join([stage.name, *changed, *size])


def in_order(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return rows of profiles in the ladder's order, then variants, with usual tiles and shapes first."""
    names = [stage.name for stage in LADDER]

    def place(row: Mapping[str, Any]) -> tuple:
        name = row["stage"]
        known = names.index(name) if name in names else len(names)
        return known, name, len(row["file"]), row["file"]

    return sorted(rows, key=place)


def write(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def is_name(file: str) -> bool:
    """Tell whether this is the name of a profile's file, and no path that leads elsewhere."""
    return Path(file).name == file and "\\" not in file and file.endswith(SUFFIX)


def read(path: Path) -> dict[str, Any]:
    """Return what a profile's file stores. Raise ValueError if it is larger than any profile."""
    text = lzma.LZMADecompressor().decompress(path.read_bytes(), MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise ValueError(f"{path.name} is no profile: it has more than {MOST_BYTES:,} bytes")
    return json.loads(text)
