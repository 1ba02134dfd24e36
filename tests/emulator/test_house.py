"""The emulator's house: its modules are introduced, its state is declared, its tests stand on their own."""

import ast
import pkgutil
import re
from collections import Counter
from pathlib import Path

import gemm_course.emulator
from gemm_course.emulator.machine import Machine
from gemm_course.emulator.state import State

PACKAGE, TESTS = Path(gemm_course.emulator.__file__).parent, Path(__file__).parent
OF_THE_LADDER = {"bench_emulator.py"}  # measures the course's own kernels, and tests nothing


def test_the_package_introduces_each_of_its_modules_once():
    named = Counter(re.findall(r":mod:`\.(\w+)`", gemm_course.emulator.__doc__))
    assert named == {module.name: 1 for module in pkgutil.iter_modules([str(PACKAGE)])}


def assigned_attributes(cls):
    """Attributes that the methods of a class give to themselves, in the source of its module."""
    tree = ast.parse((PACKAGE / f"{cls.__module__.split('.')[-1]}.py").read_text(encoding="utf-8"))
    (definition,) = [
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    ]
    for node in ast.walk(definition):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                yield node.attr


def test_the_machines_state_is_declared():
    parts = [cls for cls in Machine.__mro__ if cls.__module__.startswith("gemm_course.emulator")]
    assigned = {name for part in parts if part is not State for name in assigned_attributes(part)}
    assert assigned == set(State.__annotations__)


def test_the_emulators_tests_know_nothing_of_the_ladder():
    for path in sorted(TESTS.rglob("*.py")):
        if path.name not in OF_THE_LADDER:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                modules = [node.module] if isinstance(node, ast.ImportFrom) else []
                modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                assert not any(module and module.startswith("gemm_course.kernels") for module in modules), (
                    path
                )
