"""What controls offer, which states there are, and what the browser is told of them."""

import pytest

from gemm_course.figures.picture import Picture
from gemm_course.widgets._explorer import Explorer, StepThrough
from gemm_course.widgets._lab_output import described
from gemm_course.widgets._states import RANGE, SEGMENTS, STEPS, Control, Controls


def controls(**described):
    return Controls([Control(name, *each) for name, each in described.items()])


BOX = {
    "wide": ("wide", [2, 8], 8),
    "colour": ("colour", ["red", "green"], "red"),
    "x": ("x", lambda chosen: range(chosen["wide"]), 6),
}


def test_what_is_not_offered_any_more_becomes_the_last_that_is():
    box = controls(**BOX)
    assert box.start() == {"wide": 8, "colour": "red", "x": 6}
    assert box.fitted({**box.start(), "wide": 2}) == {"wide": 2, "colour": "red", "x": 1}
    assert box.fitted({**box.start(), "wide": 2, "x": 0})["x"] == 0


def test_a_state_can_be_named_by_its_texts():
    box = controls(shape=("shape", [("2 × 3", (2, 3)), ("3 × 2", (3, 2))], (3, 2)), **BOX)
    state = box.start()
    assert box.texts(state) == ["3 × 2", "8", "red", "6"] and box.places(state) == (1, 1, 0, 6)
    assert box.of_texts(box.texts(state)) == state
    with pytest.raises(ValueError, match="x does not offer 7"):
        box.of_texts(["3 × 2", "2", "red", "7"])


def test_a_table_has_what_an_option_depends_on_and_nothing_else():
    box = controls(**BOX)
    table = box.table(box.by_name["x"])
    assert table.of == ("wide",)
    assert table.rows == {(0,): ("0", "1"), (1,): tuple("01234567")}
    assert box.table(box.by_name["wide"]).rows == {(): ("2", "8")}


def test_what_is_read_without_need_is_not_in_the_table():
    box = controls(**BOX, y=("y", lambda chosen: range(chosen["wide"] + 0 * chosen["x"]), 0))
    assert box.table(box.by_name["y"]).of == ("wide",)


def test_options_may_depend_on_options_that_depend_on_others():
    box = controls(**BOX, y=("y", lambda chosen: range(chosen["x"] + 1), 0))
    assert box.table(box.by_name["y"]).rows == {(x,): tuple("01234567"[: x + 1]) for x in range(8)}
    box = controls(**BOX, y=("y", lambda chosen: range(chosen["wide"] - chosen["x"]), 0))
    assert box.table(box.by_name["y"]).of == ("wide", "x")


def test_categories_are_buttons_and_what_is_ordered_is_a_slider():
    shapes = [(f"{x} × 1", (x, 1)) for x in range(30)]
    box = controls(
        colour=("colour", ["red", "green"], "red"),
        number=("number", [1, 2], 1),
        named=("all or none", [("none", 0), ("all", 1)], 0),
        some=("blocks", [0, 1, 2, ("all", 99)], 0),
        few=("few", shapes[:10], (0, 1)),
        many=("many", shapes, (0, 1)),
    )
    kinds = [box.kind(control) for control in box.all]
    assert kinds == [SEGMENTS, RANGE, SEGMENTS, RANGE, SEGMENTS, RANGE]


def test_all_states_are_stored_if_they_are_few():
    explorer = Explorer(lambda **_: Picture("<svg/>", "x"), BOX)
    assert len(explorer.states_to_store()) == 2 * (2 + 8)


def test_of_many_states_those_near_the_start_are_stored():
    tens = {name: (name, range(10), 4) for name in "abcd"}
    explorer = Explorer(lambda **_: Picture("<svg/>", "x"), tens, stored=120)
    stored = explorer.states_to_store()
    assert len(stored) == 37 + 81
    moved = [tuple(name for name in "abcd" if state[name] != 4) for state in stored]
    assert set(moved) == {(), ("a",), ("b",), ("c",), ("d",), ("a", "b")}


def test_a_sequence_has_as_many_steps_as_its_other_controls_say():
    story = StepThrough(
        lambda step, length: Picture("<svg/>", f"step {step} of {length}"),
        lambda length: length,
        {"length": ("length", [3, 2], 3)},
        first=2,
    )
    start = story.controls.start()
    assert start == {"length": 3, "step": 2} and story.picture(start).alt == "step 2 of 3"
    assert story.controls.fitted({"length": 2, "step": 2})["step"] == 1
    step = described(story.controls)[1]
    assert (step["kind"], step["of"]) == (STEPS, [0])
    assert step["rows"] == {"0": {"from": 1, "step": 1, "count": 3}, "1": ["1", "2"]}


def test_an_explorer_draws_a_picture_once_until_a_button_changes_something():
    drawn = []
    explorer = Explorer(
        lambda n: drawn.append(n) or Picture("<svg/>", "x"),
        {"n": ("n", [1, 2], 1)},
        actions={"again": lambda n: f"{n} again"},
    )
    for n in (1, 2, 1):
        explorer.picture({"n": n})
    assert drawn == [1, 2]
    assert explorer.act("again", {"n": 1}) == "1 again"
    explorer.picture({"n": 1})
    assert drawn == [1, 2, 1]
