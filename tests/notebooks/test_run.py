"""Every notebook runs from top to bottom without a GPU, quickly, and every picture in it has words."""

import re

import nbformat
import pytest

from gemm_course import road
from tests.notebooks.builder import ROOT, builder

NOTEBOOKS = builder.names()
IMAGE = re.compile(r"<img [^>]*>")


def run(name: str, kind: str):
    """Run a fresh build of a notebook where it belongs, and return it."""
    notebook = builder.whole(name, kind)
    builder.run(notebook, ROOT / "notebooks")
    return notebook


def _texts(notebook) -> list[tuple[str, str]]:
    """Return (cell id, text) of all outputs, rich ones as HTML if they have it."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            found.append(
                (cell.id, output.get("text") or data.get("text/html") or data.get("text/plain") or "")
            )
    return found


@pytest.mark.long
@pytest.mark.full(reason="runs every exercise in its notebook; quick runs try solutions one by one")
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_solutions_pass_every_check(name):
    notebook = run(name, "solutions")
    answers = {
        cell: text for cell, text in _texts(notebook) if cell.endswith("-solution") and cell.startswith("ex-")
    }
    assert len(answers) == len(road.notebook(name).exercises)
    assert not [cell for cell, text in answers.items() if "Passed" not in text]


@pytest.mark.long
@pytest.mark.many(one_in=13, with_all=13)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_learners_reach_the_end_and_are_told_that_nothing_is_tried_yet(name):
    notebook = run(name, "learner")
    answers = {cell: text for cell, text in _texts(notebook) if cell.startswith("ex-")}
    assert len(answers) == len(road.notebook(name).exercises)
    assert not [cell for cell, text in answers.items() if "Not tried yet" not in text]


@pytest.mark.parametrize("kind", ["learner", "solutions"])
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_ships_has_outputs_without_errors_and_words_for_every_picture(name, kind):
    notebook = nbformat.read(builder.target(name, kind), 4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert outputs, "the notebook was not run"
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    assert "widgets" not in notebook.metadata
    assert not [mime for o in outputs for mime in o.get("data", {}) if mime in builder.NEEDS_A_KERNEL]
    pictures = [image for _, text in _texts(notebook) for image in IMAGE.findall(text)]
    assert pictures
    assert not [image[:60] for image in pictures if not re.search(r'alt="[^"]{20,}"', image)]
    assert not [mime for o in outputs for mime in o.get("data", {}) if mime.startswith("image/")]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_code_cells_are_short(name):
    cells = [c for c in builder.whole(name, "learner").cells if c.cell_type == "code"]
    lengths = sorted(len(cell.source.splitlines()) for cell in cells)
    assert lengths[len(lengths) // 2] <= 3
