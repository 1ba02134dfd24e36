"""The emulator's house: rooms are introduced, state is declared, tests stand on their own."""

import ast
import re
from pathlib import Path

import lockstep
from lockstep.machine.machine import Machine

OPTIONS = {"counts_only": False, "step_limit": 1, "loop_seconds": 1, "findings": None}
PACKAGE, TESTS = Path(lockstep.__file__).parent, Path(__file__).parent


def test_the_package_introduces_each_of_its_rooms():
    named = set(re.findall(r":mod:`\.(\w+)`", lockstep.__doc__))
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms <= named, f"lockstep/__init__.py does not introduce {sorted(rooms - named)}"


def test_every_public_name_is_there():
    assert all(getattr(lockstep, name) is not None for name in lockstep.__all__)


def assigned_attributes(cls):
    """Attributes that the methods of a class give to themselves, in the source of its module."""
    tree = ast.parse(Path(__import__("sys").modules[cls.__module__].__file__).read_text(encoding="utf-8"))
    (definition,) = [
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    ]
    for node in ast.walk(definition):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                yield node.attr


def test_the_machine_itself_declares_all_its_attributes():
    parts = [cls for cls in Machine.__mro__ if cls.__module__.startswith("lockstep")]
    assigned = {name for part in parts for name in assigned_attributes(part)}
    assert assigned == set(vars(Machine((1, 1, 1), (1, 1, 1), 0, **OPTIONS)))


def test_the_tests_know_nothing_of_the_course():
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(module and module.startswith("gemm_course") for module in modules), path
