"""Folds: whatever a cell shows is one closed ``<details>``, in the course's JupyterLab and elsewhere."""

import json
import re

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import HTML, display
from IPython.utils.capture import capture_output
from traitlets.config import Config

from gemm_course import widgets as see
from gemm_course.widgets._lab_output import FOLD, MIME

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(autouse=True)
def in_the_courses_lab(monkeypatch):
    monkeypatch.setenv("GEMM_COURSE_LAB", "1")


@pytest.fixture
def cell():
    """A function that returns what a cell shows: what it prints, and its outputs by MIME type."""
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))

    def run(statement):
        with capture_output() as captured:
            statement()
        return captured.stdout, [output.data for output in captured.outputs]

    yield run
    shell.clear_instance()


def folded(cell, *contents, **more):
    """The one output of a cell that folds ``contents``."""
    printed, (output,) = cell(lambda: see.fold(*contents, **more))
    assert printed == ""
    return output


def parts(output):
    """The parts of a fold's HTML."""
    line, *found = output["text/html"].removesuffix("</details>").split('<div class="gemm-part">')
    assert re.fullmatch(r"<details><summary [^>]*>[^<]*</summary>", line)
    return [each.removesuffix("</div>") for each in found]


def test_a_fold_is_closed_and_says_what_comes_first(cell):
    output = folded(cell, {"answer": 42}, first="Answer first.")
    assert ">Answer first.</summary>" in output["text/html"] and " open" not in output["text/html"]
    assert output["text/plain"] == "Answer first.\n\n{'answer': 42}"
    assert ">Choose your answer first, then open this.<" in folded(cell, 1)["text/html"]


def test_what_is_printed_displayed_and_returned_is_in_the_fold(cell):
    def content():
        display(HTML("<b>shown</b>"))
        print("1 < 2")
        return pd.Series([7]).to_frame("returned")

    printed, shown, returned = parts(folded(cell, content))
    assert "1 &lt; 2" in printed and shown == "<b>shown</b>" and "<th>returned</th>" in returned


def test_several_things_are_behind_one_line_in_their_order(cell):
    words, listing, quiz = parts(
        folded(cell, "It's so.", see.source("block_tiled"), lambda: see.predict("00.intensity"))
    )
    assert "It&#x27;s so.\n" in words and "cuda" in listing and "Open the answer that you choose" in quiz


def test_an_image_that_is_no_html_is_shown(cell):
    def image():
        display({"image/png": "aGk=\n", "text/plain": "<Figure>"}, raw=True)

    assert parts(folded(cell, image)) == ['<img alt="&lt;Figure&gt;" src="data:image/png;base64,aGk=">']


def test_what_an_update_replaced_is_gone(cell):
    def progress():
        handle = display(HTML("half"), display_id=True)
        handle.update(HTML("all"))
        done = display(HTML("a bar"), display_id=True)
        done.update({"text/plain": ""}, raw=True)

    assert parts(folded(cell, progress)) == ["all"]


def test_an_explorer_keeps_its_controls(cell):
    output = folded(cell, lambda: see.block(), "Look at warps.")
    (_, (alone,)) = cell(see.block)
    assert output[FOLD] == {
        "first": "Choose your answer first, then open this.",
        "explorers": [alone[MIME], None],
    }
    assert parts(output)[0] == alone["text/html"] and alone["text/plain"] in output["text/plain"]
    json.dumps(output)


def test_without_an_explorer_it_is_html_that_needs_no_script(cell):
    assert set(folded(cell, 1)) == {"text/html", "text/plain"}


def test_elsewhere_the_fold_is_one_widget_with_the_same_fold_as_its_still(cell, monkeypatch):
    monkeypatch.delenv("GEMM_COURSE_LAB")
    _, (still, widget) = cell(lambda: see.fold("words", lambda: see.block(), first="Think."))
    assert re.match(r'<div id="gemm-still-\w+"><details><summary', still["text/html"])
    assert FOLD not in still and MIME not in still and WIDGET in widget
    _, (alone,) = cell(lambda: see.fold("words"))
    assert set(alone) == {"text/html", "text/plain"}


def test_after_a_fold_an_explorer_is_shown_as_before(cell, monkeypatch):
    monkeypatch.delenv("GEMM_COURSE_LAB")
    with pytest.raises(ZeroDivisionError):
        cell(lambda: see.fold(lambda: 1 / 0))
    _, (_, widget) = cell(see.block)
    assert WIDGET in widget


def test_an_explorer_that_was_shown_already_is_refused(cell):
    with pytest.raises(ValueError, match="pass a value, or a function"):
        cell(lambda: see.fold(see.block()))


def test_a_console_shows_the_content_below_the_line(capsys):
    see.fold("It is 42.")
    assert "It is 42." in capsys.readouterr().out
