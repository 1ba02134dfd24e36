"""tools/build_notebooks.py as a module."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def load_builder(path: Path) -> ModuleType:
    """The module in this file, which is no package's, with what lies beside it."""
    for beside in ("folded_answers", "notebook_links"):
        sys.modules.pop(beside, None)  # of another version
    spec = importlib.util.spec_from_file_location("build_notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


builder = load_builder(ROOT / "tools" / "build_notebooks.py")
