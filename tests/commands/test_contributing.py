"""What CONTRIBUTING.md says about the documents' kernels is what there is."""

import importlib
import re
from pathlib import Path

import pytest

from gemm_course import check
from gemm_course.kernels import LADDER
from tests.notebooks.builder import builder

ROOT = Path(__file__).parents[2]
BEYOND = "beyond the documents"
RESULTS = "tests/kernels/test_results.py"  # runs every stage of the ladder


def rows() -> list[list[str]]:
    """Return the cells of the table "Every kernel of the documents"."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## Every kernel of the documents")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def module_of(file: str):
    return importlib.import_module(file.strip("`").removesuffix(".py").replace("/", "."))


def listed(cell: str) -> list[str]:
    return [part.strip(" `") for part in cell.split(",")]


ROWS = rows()
every_row = pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])


def test_every_stage_that_comes_from_a_document_has_its_row():
    named = {(row[0], module_of(row[1]).__name__.rpartition(".")[2]) for row in ROWS}
    for stage in LADDER:
        if stage.document != BEYOND:
            home = stage.build.func.__module__ if hasattr(stage.build, "func") else stage.build.__module__
            assert (stage.document, home.rpartition(".")[2]) in named, stage.name


def test_all_five_documents_are_there():
    assert {row[0][:3] for row in ROWS} == {f"00{number}" for number in range(5)}
    assert {f"004: v0{number}" for number in range(8)} <= {row[0] for row in ROWS}


@every_row
def test_the_file_is_the_kernel_of_that_document(row):
    assert module_of(row[1]).STAGE.document == row[0]


@every_row
def test_the_notebooks_exist_and_speak_of_the_document(row):
    for number in listed(row[2]):
        (source,) = (ROOT / "notebooks" / "source").glob(f"{number}_*.py")
        text = source.read_text(encoding="utf-8")
        assert re.search(rf"[Dd]ocuments? (00\d (and|or) )?{row[0][:3]}", text), source.name
        for kind in builder.KINDS:
            assert builder.target(source.stem, kind).exists()
    assert any(module_of(row[1]).STAGE.name in path.read_text(encoding="utf-8") for path in sources(row[2]))


def sources(cell: str) -> list[Path]:
    return [
        path for number in listed(cell) for path in (ROOT / "notebooks" / "source").glob(f"{number}_*.py")
    ]


@every_row
def test_the_exercises_exist_in_those_notebooks(row):
    known = {getattr(check, name).number for name in check.exercises()}
    for number in listed(row[3]):
        assert number in known and number[:2] in listed(row[2])
        assert any(f"Exercise {number}" in path.read_text(encoding="utf-8") for path in sources(row[2]))


@every_row
def test_the_tests_exist_and_reach_the_kernel(row):
    stage, files = module_of(row[1]).STAGE.name, listed(row[4])
    for file in files:
        assert (ROOT / file).exists(), file
    if stage in LADDER:
        assert RESULTS in files and "LADDER" in (ROOT / RESULTS).read_text(encoding="utf-8")
    else:
        assert any(stage in (ROOT / file).read_text(encoding="utf-8") for file in files)
