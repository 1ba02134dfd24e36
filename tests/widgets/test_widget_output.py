"""Explorers as a widget: a still picture and the course's own script, which asks Python by messages."""

import json

import pytest

from gemm_course import widgets as see
from gemm_course.figures.picture import Picture
from gemm_course.widgets import _calls, _widget_output
from gemm_course.widgets._explorer import Explorer
from gemm_course.widgets._frames import STATIC


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    """No JupyterLab of the course."""
    monkeypatch.delenv("GEMM_COURSE_LAB", raising=False)


@pytest.fixture
def answers(monkeypatch):
    """What the widget sends to the page."""
    sent = []
    monkeypatch.setattr(_widget_output.ExplorerWidget, "send", lambda self, content: sent.append(content))
    return sent


def ask(widget, number=1, **request):
    about = {key: widget.spec[key] for key in ("call", "own") if key in widget.spec}
    widget._asked(widget, {"number": number, "request": {**about, **request}}, [])


def numbers(**more):
    return Explorer(lambda n: Picture("<svg/>", f"n is {n}"), {"n": ("n", [1, 2], 1)}, **more)


def test_this_is_how_an_explorer_is_shown_elsewhere(seen):
    see.banks()
    still, widget = seen.shown
    assert set(still) == {"text/html", "text/plain"} and "<img" in still["text/html"]
    assert f'id="{widget.first["name"]}"' in still["text/html"]
    assert isinstance(widget, _widget_output.ExplorerWidget)


def test_the_page_needs_no_folder_and_no_network(seen):
    widget = _widget_output.show(see.banks.makes_explorer(), _calls.Call("banks", "{}"))
    assert widget._esm.startswith((STATIC / "explorer.js").read_text()[:200])
    assert "gemm-explorer" in widget._css and widget.spec["frames"] is None
    for text in (widget._esm, widget._css):
        assert "import " not in text.replace("!important", "") and "http" not in text
    json.dumps(widget.spec)


def test_the_first_picture_is_there_at_once(seen):
    widget = _widget_output.show(numbers(), None)
    assert widget.first["still"] == {"source": "<svg/>", "alt": "n is 1"}


def test_python_answers_for_what_only_this_kernel_has(seen, answers):
    widget = _widget_output.show(numbers(), None)
    ask(widget, 7, at=["2"])
    assert answers == [{"number": 7, "answer": {"picture": ["<svg/>", "n is 2"]}}]


def test_python_answers_for_a_call(seen, answers):
    see.walk()
    widget = seen.shown[-1]
    at = [*widget.spec["at"][:-1], "3"]
    ask(widget, at=at)
    assert answers[0]["answer"]["picture"][1].startswith("Step 3 of ")


def test_a_button_says_what_it_did(seen, answers):
    done = []
    widget = _widget_output.show(numbers(actions={"do it": lambda n: done.append(n) or "Done."}), None)
    ask(widget, at=["2"], action="do it")
    assert done == [2] and answers[0]["answer"]["words"] == "Done."


def test_what_python_cannot_draw_is_said(seen, answers):
    def draw(n):
        if n == 2:
            raise RuntimeError("no such picture")
        return Picture("<svg/>", "1")

    widget = _widget_output.show(Explorer(draw, {"n": ("n", [1, 2], 1)}), None)
    ask(widget, at=["2"])
    assert answers == [{"number": 1, "problem": "Python could not draw this: no such picture."}]
