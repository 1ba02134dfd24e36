"""tools/build_notebooks.py as a module."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from gemm_course import road

ROOT = Path(__file__).resolve().parents[2]


def load_builder(path: Path) -> ModuleType:
    """The module in this file, which is no package's, with what lies beside it."""
    for beside in ("folded_answers", "notebook_links"):
        sys.modules.pop(beside, None)  # of another version
    spec = importlib.util.spec_from_file_location("build_notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def source_of(topic: str) -> str:
    """The source of the notebook on a topic, with numbers for the names in it, as a reader sees them."""
    return road.numbered(builder.source_of(topic).read_text("utf-8"))


builder = load_builder(ROOT / "tools" / "build_notebooks.py")
