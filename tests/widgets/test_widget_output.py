"""Explorers as a widget: a still picture and the course's own script, which asks Python by messages."""

import json

import pytest

from gemm_course import widgets as see
from gemm_course.figures.picture import Picture
from gemm_course.widgets import _calls, _showing, _widget_output
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
    (spec,) = widget.explorers
    about = {key: spec[key] for key in ("call", "own") if key in spec}
    widget._asked(widget, {"number": number, "request": {**about, **request}}, [])


def numbers(draw=lambda n: Picture("<svg/>", f"n is {n}"), **more):
    return Explorer(draw, {"n": ("n", [1, 2], 1)}, **more)


def shown(seen, explorer, call=None):
    _showing.show(explorer, call)
    return seen.shown[-1]


def test_this_is_how_an_explorer_is_shown_elsewhere(seen):
    see.banks()
    still, widget = seen.shown
    assert set(still) == {"text/html", "text/plain"} and "<img" in still["text/html"]
    assert f'id="{widget.still["name"]}"' in still["text/html"]
    assert isinstance(widget, _widget_output.ExplorerWidget)


def test_the_page_needs_no_folder_and_no_network(seen):
    widget = shown(seen, see.banks.makes_explorer(), _calls.Call("banks", "{}"))
    (spec,) = widget.explorers
    assert widget._esm.startswith((STATIC / "explorer.js").read_text()[:200])
    assert "gemm-explorer" in widget._css and spec["frames"] is None
    for text in (widget._esm, widget._css):
        assert "import " not in text.replace("!important", "") and "http" not in text
    json.dumps(spec)


def test_the_first_picture_is_there_at_once(seen):
    widget = shown(seen, numbers())
    assert widget.still["html"].startswith(Picture("<svg/>", "n is 1").html()) and widget.still["fold"] == ""


def test_python_answers_for_what_only_this_kernel_has(seen, answers):
    widget = shown(seen, numbers())
    ask(widget, 7, at=["2"])
    assert answers == [{"number": 7, "answer": {"picture": ["<svg/>", "n is 2"]}}]


def test_python_answers_for_a_call(seen, answers):
    see.walk()
    widget = seen.shown[-1]
    at = [*widget.explorers[0]["at"][:-1], "3"]
    ask(widget, at=at)
    assert answers[0]["answer"]["picture"][1].startswith("Step 3 of ")


def test_a_button_says_what_it_did(seen, answers):
    done = []
    widget = shown(seen, numbers(actions={"do it": lambda n: done.append(n) or "Done."}))
    ask(widget, at=["2"], action="do it")
    assert done == [2] and answers[0]["answer"]["words"] == "Done."


def test_what_python_cannot_draw_is_said(seen, answers):
    def draw(n):
        if n == 2:
            raise RuntimeError("no such picture")
        return Picture("<svg/>", "1")

    widget = shown(seen, numbers(draw))
    ask(widget, at=["2"])
    assert answers == [{"number": 1, "problem": "Python could not draw this: no such picture."}]
