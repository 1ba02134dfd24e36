"""Keeps the machine code of the ladder's stages at their default tiles in data/machine_code.

`stages.csv` has a row for each stage and compute capability. `STAGE.txt.xz` has the stage's instructions for
all compute capabilities, in one file because they are similar. It is text. "== 9.0" begins a compute
capability, and "@ file" and ": 47" name the file and the line of the source for the instructions that follow.
All other lines are instructions, 16 bytes each.
"""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import lzma
import platform
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from gemm_course.compiler.disassembly import SIZE, Instruction
from gemm_course.compiler.kinds import KINDS
from gemm_course.compiler.limits import shown, why_not
from gemm_course.compiler.result import Compiled
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.records import DATA
from gemm_course.records.columns import MACHINE_CODE, MACHINE_INSTRUCTIONS
from gemm_course.records.files import MACHINE_CODE as FOLDER

# These are the compute capabilities of the A100, of the RTX 3090 and its kin, and of the H100 and H200.
RECORDED = ((8, 0), (8, 6), (9, 0))
TABLE = "stages.csv"
_PACKAGES = {
    "nvvm": ("nvidia-nvvm", "nvidia-cuda-nvcc-cu12"),
    "nvjitlink": ("nvidia-nvjitlink", "nvidia-nvjitlink-cu12"),
    "nvdisasm": ("nvidia-cuda-nvdisasm",),
    "numba": ("numba",),
    "numba_cuda": ("numba-cuda",),
}
_NAMES = {"nvvm": "NVVM", "nvjitlink": "nvJitLink", "numba_cuda": "numba-cuda"}


def versions() -> dict[str, str]:
    """Return the versions that decide what a kernel compiles to, and nvdisasm's.

    The version is "" for a tool that is not a package.
    """
    found = {name: next(filter(None, map(_version, packages)), "") for name, packages in _PACKAGES.items()}
    return {**found, "python": ".".join(platform.python_version_tuple()[:2])}


def compiler_text(versions: dict[str, str]) -> str:
    """Return versions in words, such as "NVVM 13.4.92, nvJitLink 13.5.37, numba-cuda 0.30.4"."""
    return ", ".join(f"{name} {versions[key]}" for key, name in _NAMES.items() if versions[key])


def recorded(stage: Stage | str, compute_capability: tuple[int, int], data: Path = DATA) -> Compiled | None:
    """Return what a stage compiled to at its default tiles, from the record, or None if it is not there.

    Raise KeyError for a name that no stage has.
    """
    stage = LADDER[stage] if isinstance(stage, str) else stage
    capability = shown(compute_capability)
    row = _rows(data / FOLDER / TABLE).get((stage.name, capability))
    if row is None:
        return None
    code = _read(data / FOLDER / f"{stage.name}.txt.xz")[capability]
    return Compiled(
        name=stage.name,
        tiles=row["tiles"],
        compute_capability=compute_capability,
        registers=row["registers"],
        spilled_bytes=row["spilled_bytes"],
        local_bytes=row["local_bytes"],
        shared_bytes=row["shared_bytes"],
        static_shared_bytes=row["static_shared_bytes"],
        seconds=None,
        compiler=f"{compiler_text(row)}, {row['date']}",
        rows=code,
    )


def record(
    stages: Iterable[Stage],
    compile_one: Callable[[Stage, tuple[int, int]], Compiled],
    command: str,
    data: Path = DATA,
    advance: Callable[[Stage], None] = lambda stage: None,
) -> list[dict[str, Any]]:
    """Compile stages at their default tiles, write what is new into the record, and return the stages' rows.

    ``compile_one`` takes (stage, compute capability) and returns a Compiled. A row that says the same as
    before stays, with its date. A stage that is no longer in the ladder is dropped. ``advance`` is called
    after each stage.
    """
    folder = data / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    rows = {key: row for key, row in _rows(folder / TABLE).items() if key[0] in LADDER}
    new: dict[tuple[str, str], dict] = {}
    for stage in stages:
        found = {shown(one): compile_one(stage, one) for one in RECORDED if not why_not(stage, None, one)}
        for capability, code in found.items():
            key = stage.name, capability
            new[key] = _kept(rows.get(key), _row(stage, capability, code, command))
        _write(folder / f"{stage.name}.txt.xz", {text: code.rows for text, code in found.items()})
        advance(stage)
    rows |= new
    order = {stage.name: place for place, stage in enumerate(LADDER)}
    MACHINE_CODE.write(
        folder / TABLE, [rows[key] for key in sorted(rows, key=lambda key: (order[key[0]], key[1]))]
    )
    _rows.cache_clear()
    for file in folder.glob("*.txt.xz"):
        if file.name.removesuffix(".txt.xz") not in LADDER:
            file.unlink()
    return list(new.values())


def _row(stage: Stage, capability: str, code: Compiled, command: str) -> dict[str, Any]:
    by_kind = [*code.by_kind.values()]
    in_loop = [*code.loop.by_kind.values()] if code.loop else [0] * len(KINDS)
    return {
        "stage": stage.name,
        "tiles": tiles_text(stage.complete()),
        "compute_capability": capability,
        "registers": code.registers,
        "spilled_bytes": code.spilled_bytes,
        "local_bytes": code.local_bytes,
        "static_shared_bytes": code.static_shared_bytes,
        "shared_bytes": code.shared_bytes,
        "instructions": len(code),
        "loop_instructions": sum(in_loop),
        **dict(zip(MACHINE_INSTRUCTIONS, by_kind, strict=True)),
        **dict(zip((f"loop_{kind}" for kind in MACHINE_INSTRUCTIONS), in_loop, strict=True)),
        **versions(),
        "date": datetime.date.today().isoformat(),
        "command": command,
    }


def _kept(old: dict | None, new: dict) -> dict:
    """Return the old row if kernel and versions are the same in it, or else the new one."""
    about = new.keys() - {"date", "command"}
    return old if old is not None and all(old[name] == new[name] for name in about) else new


@functools.lru_cache(maxsize=8)
def _rows(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["stage"], row["compute_capability"]): row for row in MACHINE_CODE.rows(path)}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


# --- the instructions ---------------------------------------------------------------------------------------


def _write(path: Path, codes: dict[str, Iterable[Instruction]]) -> None:
    """Write the instructions of each compute capability, unless the file holds them already."""
    text = "".join(f"{line}\n" for capability, rows in codes.items() for line in _lines(capability, rows))
    if not path.exists() or lzma.decompress(path.read_bytes()).decode() != text:
        path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def _lines(capability: str, rows: Iterable[Instruction]) -> Iterator[str]:
    yield f"== {capability}"
    file, line = "", 0
    for row in rows:
        if row.file != file:
            yield f"@ {row.file}"
        if row.line != line:
            yield f": {row.line}"
        file, line = row.file, row.line
        yield row.text


@functools.lru_cache(maxsize=8)
def _read(path: Path) -> dict[str, list[Instruction]]:
    codes: dict[str, list[Instruction]] = {}
    for text in lzma.decompress(path.read_bytes()).decode().splitlines():
        if text.startswith("== "):
            rows, file, line = codes.setdefault(text[3:], []), "", 0
        elif text.startswith("@ "):
            file = text[2:]
        elif text.startswith(": "):
            line = int(text[2:])
        else:
            rows.append(Instruction(len(rows) * SIZE, text, file, line))
    return codes
