"""Explorers made of ipywidgets: the widgets follow each other, and the picture follows them."""

import pytest

from gemm_course import widgets as see
from gemm_course.figures.picture import Picture
from gemm_course.widgets import _sliders
from gemm_course.widgets._explorer import Explorer, StepThrough


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    """No JupyterLab of the course."""
    monkeypatch.delenv("GEMM_COURSE_LAB", raising=False)


def panel(explorer):
    return _sliders.show(explorer, None)


def test_moving_a_slider_replaces_the_picture_and_its_words(seen):
    shown = panel(Explorer(lambda n: Picture("<svg/>", f"n is {n}"), {"n": ("n", [1, 2], 1)}))
    shown.chosen["n"].value = 2
    assert [bundle["text/plain"] for bundle in seen.updates] == ["n is 2"]
    assert 'alt="n is 2"' in seen.updates[0]["text/html"]


def test_choices_follow_those_above(seen):
    shown = panel(
        Explorer(
            lambda wide, x: Picture("<svg/>", f"{x} of {wide}"),
            {"wide": ("wide", [2, 8], 8), "x": ("x", lambda chosen: range(chosen["wide"]), 6)},
        )
    )
    shown.chosen["wide"].value = 2
    assert shown.state == {"wide": 2, "x": 1} and shown.chosen["x"].value == 1
    assert [bundle["text/plain"] for bundle in seen.updates] == ["1 of 2"], "drawn once"
    shown.chosen["wide"].value = 8
    assert [text for text, _ in shown.chosen["x"].options] == [str(x) for x in range(8)]


def test_a_sequence_moves_both_ways_and_stops_at_its_ends(seen):
    story = StepThrough(
        lambda step, length: Picture("<svg/>", f"step {step}"),
        lambda length: length,
        {"length": ("length", [3, 2], 3)},
    )
    shown = panel(story)
    back, forth, _ = _buttons(seen)
    for _ in range(5):
        forth.click()
    assert shown.state["step"] == 2
    shown.chosen["length"].value = 2
    assert shown.state["step"] == 1 and seen.updates[-1]["text/plain"] == "step 1"
    for _ in range(5):
        back.click()
    assert shown.state["step"] == 0


def _buttons(seen):
    (box,) = [thing for thing in seen.shown if hasattr(thing, "children")]
    return box.children[-1].children


def test_a_button_says_what_it_did_and_the_picture_is_drawn_anew(seen):
    done = []
    shown = panel(
        Explorer(
            lambda n: Picture("<svg/>", f"{len(done)} times"),
            {"n": ("n", [1], 1)},
            actions={"do it": lambda n: done.append(n) or "Done."},
        )
    )
    shown.buttons["do it"].click()
    assert "Done." in [bundle["text/plain"] for bundle in seen.bundles]
    assert seen.updates[-1]["text/plain"] == "1 times"


def test_every_widget_has_the_name_of_its_control(seen):
    explorer = see.walk.makes_explorer()
    shown = panel(explorer)
    labels = [control.label for control in explorer.controls.all]
    assert [widget.description for widget in shown.chosen.values()] == labels and all(labels)


def test_this_is_how_an_explorer_is_shown_elsewhere(seen):
    see.banks()
    assert any(hasattr(thing, "children") for thing in seen.shown)
    (bundle,) = seen.bundles
    assert set(bundle) == {"text/html", "text/plain"}
