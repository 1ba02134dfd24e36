"""No listing that stands open above an exercise is its solution: then it would be copied, not written.

Exercises that say "fix this" show most of the solution; what has to be found is not in it.
"""

import ast
import html
import re
from pathlib import Path

import jupytext
import nbformat
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
FOLDED = re.compile(r"<details.*?</details>", re.DOTALL)
SHORT = 12  # letters of a statement that stands in many kernels, such as `acc += a * b`
EXERCISE = re.compile(r"ex-[a-z]\w*")


def _statements(text: str) -> set[str]:
    """Lines of code without their indentation, spaces and comments; short ones say nothing."""
    lines = (re.sub(r"\s", "", line.split("#")[0]) for line in text.splitlines())
    return {line for line in lines if len(line) >= SHORT}


def _shown(cell: nbformat.NotebookNode) -> str:
    """What a learner sees of a cell before anything is opened."""
    seen = [FOLDED.sub("", cell.source)]
    for output in cell.get("outputs", []):
        markup = FOLDED.sub("", output.get("data", {}).get("text/html", ""))
        markup = re.sub(r"</(div|pre|tr|td|p|span class=\"line\")>|<br\s*/?>", "\n", markup)
        seen.append(html.unescape(re.sub(r"<[^>]+>", "", markup)))
    return "\n".join(seen)


def _exercises():
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        solved = nbformat.read(NOTEBOOKS / "solutions" / f"{path.stem}_solutions.ipynb", 4)
        solutions = {cell.id: cell.source for cell in solved.cells}
        above = ""
        for cell in nbformat.read(path, 4).cells:
            if EXERCISE.fullmatch(cell.id) and f"{cell.id}-solution" in solutions:
                left_out = _statements(solutions[f"{cell.id}-solution"]) - _statements(cell.source)
                yield pytest.param(left_out, above, id=cell.id)
            above += _shown(cell) + "\n"


EXERCISES = list(_exercises())


def test_exercises_are_found():
    assert len(EXERCISES) >= 40
    assert sum(len(case.values[0]) >= 3 for case in EXERCISES) >= 15


@pytest.mark.parametrize(("left_out", "above"), EXERCISES)
def test_the_solution_does_not_stand_above_its_exercise(left_out, above):
    printed = left_out & _statements(above)
    assert len(printed) <= 0.75 * len(left_out), (
        f"{len(printed)} of {len(left_out)} statements: {sorted(printed)}"
    )


def test_an_open_listing_is_seen_and_a_folded_one_is_not():
    code = "<pre><span>row = cuda.grid(1) &lt; 3</span>\n</pre>"
    shown = nbformat.v4.new_code_cell(
        "", outputs=[nbformat.v4.new_output("display_data", {"text/html": code})]
    )
    assert "row=cuda.grid(1)<3" in _statements(_shown(shown))
    shown.outputs[0].data["text/html"] = f"<details><summary>later</summary>{code}</details>"
    assert not _statements(_shown(shown))


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("source/**/*.py")), ids=lambda path: path.stem)
def test_code_that_answers_a_question_folds_what_it_shows(path):
    """Tags fold texts only, so code with such a tag has to call ``see.fold`` as its last statement."""
    for cell in jupytext.read(path, fmt="py:percent").cells:
        if cell.cell_type == "code" and {"answer", "thought", "listing"} & set(cell.metadata.get("tags", [])):
            last = ast.unparse(ast.parse(cell.source).body[-1])
            assert last.startswith("see.fold("), cell.source


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_fold_is_all_that_its_cell_shows(path):
    cells = [cell for cell in nbformat.read(path, 4).cells if "see.fold(" in cell.source]
    assert cells
    for cell in cells:
        (output,) = cell.outputs
        assert output.data["text/html"].startswith("<details>"), cell.id
        assert output.data["text/html"].endswith("</details>"), cell.id
