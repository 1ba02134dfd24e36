"""The package: cheap to import, complete in what it offers, able to do without numba-cuda."""

import os
import pkgutil
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import find_spec

import grimp
import pytest

import gemm_course
import lockstep.intrinsics

ROOT = gemm_course.__path__[0] + "/.."
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(gemm_course.__path__, "gemm_course.")
    if not module.name.endswith("__main__")
)
HEAVY = ("numba", "numpy", "pandas", "matplotlib", "ipywidgets", "typer", "jupyterlab")


def python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": ROOT}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_importing_the_package_loads_nothing_heavy():
    loaded = python("import sys, gemm_course; print(*sys.modules)").split()
    assert "gemm_course" in loaded
    assert not set(HEAVY) & set(loaded)


def test_pandas_is_loaded_with_the_first_counts_alone():
    loaded = python("import sys, gemm_course.checks; print(*sys.modules)").split()
    assert "lockstep.launching.report" in loaded
    assert "pandas" not in loaded


def test_every_module_can_be_imported(subtests):
    """Those for nbgrader run where it is: tests/grading/test_outcomes.py."""
    for name in sorted(set(MODULES) - {"gemm_course.grading.preprocessors", "gemm_course.grading.files"}):
        with subtests.test(name):
            import_module(name)


@pytest.mark.parametrize("name", gemm_course.__all__)
def test_every_name_offered_can_be_imported_and_is_listed(name):
    assert name in dir(gemm_course)
    assert getattr(gemm_course, name) is not None


def test_the_emulators_old_names_still_lead_to_it():
    """Notebooks and files that learners wrote before the emulator had a package of its own."""
    import lockstep as emulator
    from lockstep import intrinsics

    assert all(getattr(emulator, name) is getattr(lockstep, name) for name in lockstep.__all__)
    assert all(
        getattr(intrinsics, name) is getattr(lockstep.intrinsics, name)
        for name in lockstep.intrinsics.__all__
    )


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        gemm_course.nonsense  # noqa: B018


def test_no_module_takes_the_place_of_a_name_offered():
    assert not {f"gemm_course.{name}" for name in gemm_course.__all__} & set(MODULES)


def test_no_module_imports_itself_by_way_of_others():
    graph = grimp.build_graph("gemm_course")
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, with the circle


def test_numba_cuda_is_used_where_it_is_installed():
    from numba import cuda

    assert ("numba_cuda" in cuda.__file__) == (find_spec("numba_cuda") is not None)
