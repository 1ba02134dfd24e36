"""tools/build_notebooks.py as a module."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def load_builder(path: Path) -> ModuleType:
    """The module in this file, which is no package's."""
    spec = importlib.util.spec_from_file_location("build_notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


builder = load_builder(ROOT / "tools" / "build_notebooks.py")
