"""Reads cases from a Python file, whose launches are to be counted."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from gemm_course.bench.profile.sources import Case


def module_cases(path: Path, only: Sequence[str] = ()) -> list[Case]:
    """Return CASES of a Python file, or those whose names contain one of the words.

    Raise ValueError if the file does not exist or has none.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    sys.path.insert(0, str(Path.cwd()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    known = list(getattr(module, "CASES", ()))
    if not known:
        raise ValueError(f"{path} has no CASES")
    found = [case for case in known if not only or any(word in case.name for word in only)]
    if not found:
        raise ValueError(f"{path} has no case called {' or '.join(only)}")
    return [
        Case(case.name, case.kernel, case.grid, case.block, case.make_args, getattr(case, "shared_bytes", 0))
        for case in found
    ]
