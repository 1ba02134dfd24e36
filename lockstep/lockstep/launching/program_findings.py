"""Adds to findings what only the whole program shows: the call of a library, and a barrier not called.

A program cannot change Numba's ``cuda.random`` or another installed package. What goes wrong in there, such
as a read beyond the random states, comes from the program's call.
"""

import ast
import os
import sysconfig
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lockstep.findings import ADVICE, Finding, Findings

_FOR_LACK_OF_A_BARRIER = ("shared_race", "global_race", "uninitialised_read")
_BARRIERS = ("syncthreads", "syncwarp", "threadfence", "threadfence_block", "threadfence_system", "sync")
_CURES = {
    (
        "random.py",
        "out_of_bounds",
    ): "Each thread needs a random state: create as many as there are threads.",
    ("random.py", "global_race"): (
        "Threads that share a random state draw the same numbers, or lose some: give each thread its own."
    ),
}


@cache
def in_library(file: str) -> bool:
    """Return whether a source file belongs to Python or to an installed package."""
    return file.startswith(_folders())


@cache
def _folders() -> tuple[str, ...]:
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    # An editable install of Numba lies elsewhere, and is a library as well.
    for name in ("numba", "numba_cuda"):
        spec = find_spec(name)
        paths += [] if spec is None else spec.submodule_search_locations
    return tuple(str(Path(path)) + os.sep for path in paths)


def uncalled_barriers(definition: ast.FunctionDef) -> list[str]:
    """Return a sentence about each barrier or fence that a function names in a line and does not call."""
    named = [node for node in ast.walk(definition) if isinstance(node, ast.Expr)]
    texts = {node.lineno: ast.unparse(node.value) for node in named if not isinstance(node.value, ast.Call)}
    return [
        f"`{text}` in line {line} does nothing, because it is not called: write `{text}()`."
        for line, text in texts.items()
        if text.split(".")[-1] in _BARRIERS
    ]


class FindingsOfProgram(Findings):
    """Findings of one launch; those in a library's functions are placed at the program's call.

    ``calling()`` returns the site of the program's call into a library that is being executed, or None.
    ``sites`` maps the number of a site to it. ``uncalled`` has a sentence about each barrier that is named in
    a line of its own and not called.
    """

    def __init__(self, silencing, calling: Callable[[], int | None], sites: dict, uncalled: list[str]):
        super().__init__(silencing)
        self._calling, self._sites, self._uncalled = calling, sites, uncalled

    def add(self, key, count, make):
        """Add a finding as :class:`Findings` does. Advice about a library's code is left out."""
        site = self._calling()
        if site is None:
            super().add(key, count, lambda: self._with_uncalled(make()))
        elif key[0] not in ADVICE:
            super().add((*key, site), count, lambda: self._at_the_call(make(), self._sites[site]))

    def _with_uncalled(self, finding: Finding) -> Finding:
        if self._uncalled and finding.kind in _FOR_LACK_OF_A_BARRIER:
            finding.message = " ".join([finding.message, *self._uncalled])
        return finding

    def _at_the_call(self, finding: Finding, call) -> Finding:
        inner = self._sites[finding.site]
        file = Path(inner.file).name
        told = [finding.message, _CURES.get((file, finding.kind), "")]
        told.append(f"It happens in line {inner.line} of {file}, in {inner.function}, which this line calls.")
        message = " ".join(filter(None, told))
        place = {"line": call.line, "function": call.function, "file": call.file}
        earlier = {"other_line": None, "other_function": None, "other_file": None}
        return replace(finding, message=message, **place, **earlier)
