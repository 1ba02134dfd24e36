"""Offers what a notebook shows: explorers, charts, sources and quizzes.

Notebooks write ``from gemm_course import widgets as see``. Each name is loaded when it is first used. Where a
call fails, a notebook shows a sentence instead of a traceback (`_errors_in_words.py`).
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "addresses": "threads",
    "as_compiled": "as_compiled",
    "block": "threads",
    "grid": "threads",
    "banks": "banks",
    "branch": "branch",
    "card": "card",
    "diff": "code",
    "source": "code",
    "strips": "strips",
    "coverage": "coverage",
    "filling": "coverage",
    "fold": "fold",
    "counts": "charts",
    "phases": "phases",
    "queue": "queue",
    "race": "race",
    "roofline": "roofline",
    "tflops": "charts",
    "fragment": "fragments",
    "padding": "fragments",
    "heatmap": "heatmap",
    "ladder": "ladder",
    "limits": "limits",
    "machine": "machine",
    "machine_code": "machine_code",
    "multiply": "multiply",
    "my_bet": "my_ladder",
    "my_ladder": "my_ladder",
    "occupancy": "occupancy",
    "overlap": "overlap",
    "owners": "owners",
    "predict": "quiz",
    "quiz": "quiz",
    "recall": "quiz",
    "vectorized_peers": "peers",
    "compare": "compare",
    "compare_code": "compare_code",
    "row_lengths": "row_lengths",
    "scatter": "scatter",
    "wavefronts": "wavefronts",
    "registers": "registers",
    "swizzle": "swizzle",
    "tile_banks": "tile_banks",
    "tiles_over_time": "schedule",
    "tiles": "tiles",
    "waits": "waits",
    "turns": "turns",
    "two_colours": "two_colours",
    "unrolled": "unrolled",
    "walk": "walk",
    "warp_and_memory": "warp_and_memory",
    "warp_reads": "warp_reads",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = getattr(import_module(f"{__name__}._{_HOMES[name]}"), name)
    # What fails in a fold is the cell's own code, or has its sentence already.
    return made if name == "fold" else import_module(f"{__name__}._errors_in_words").spoken(name, made)


def __dir__() -> list[str]:
    return __all__
