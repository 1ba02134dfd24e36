"""The road: every exercise is on it once, every name in a text is known, numbers follow from the order."""

import re
from pathlib import Path

import pytest

from gemm_course import check, road
from gemm_course.checks import Exercise
from tests.notebooks.builder import ROOT, builder

NOTEBOOKS = ROOT / "notebooks"
OURS = {
    name for name in check.exercises() if getattr(check, name).__module__.startswith("gemm_course.checks.")
}


def test_every_exercise_is_on_the_road_or_on_a_side_trip():
    assert not OURS - set(road.EXERCISES), "gemm_course/road.py lists these exercises in no notebook"
    assert not set(road.EXERCISES) - OURS, "gemm_course/road.py lists these names, and no checker has them"
    assert len(set(road.EXERCISES)) == len(road.EXERCISES), "gemm_course/road.py lists an exercise twice"


def test_the_order_is_that_of_the_text():
    for notebook in road.NOTEBOOKS:
        source = builder.source_of(notebook.topic).read_text("utf-8")
        asked = tuple(builder.links.EXERCISE.findall(source.replace("\n# ###", "\n###")))
        assert asked == notebook.exercises, f"{notebook.topic}: gemm_course/road.py has another order"


def test_every_source_is_a_notebook_of_the_road_and_files_have_different_names():
    assert set((NOTEBOOKS / "source").rglob("*.py")) == {
        builder.source_of(notebook.topic) for notebook in road.NOTEBOOKS
    }
    assert len({notebook.number for notebook in road.NOTEBOOKS}) == len(road.NOTEBOOKS), "one side trip each"
    assert len({notebook.topic for notebook in road.NOTEBOOKS}) == len(road.NOTEBOOKS)


def test_numbers_are_places():
    assert [notebook.number for notebook in road.ROAD[:3]] == ["00", "01", "02"]
    assert road.number_of(road.ROAD[3].exercises[1]) == "03.2"
    trip = road.notebook("kernel5")
    beside = road.notebook(trip.beside).number
    assert (trip.name, road.number_of(trip.exercises[1])) == (f"S{beside}_{trip.topic}", f"S{beside}.b")


def test_a_notebook_that_moves_takes_its_side_trip_and_every_number_along(monkeypatch):
    """Whatever the order: a text that names them is right."""
    place = [each.topic for each in road.ROAD].index("thread_tiles_2d")
    order = [road.ROAD[place], *road.ROAD[:place], *road.ROAD[place + 1 :]]
    text = "[[outer_product]], [[no_conflicts]], [it](kernel5.ipynb), [[naive]] of [[naive.ipynb]]"
    monkeypatch.setattr(road, "ROAD", tuple(order))
    assert road.numbered(text) == "00.1, S00.b, [it](S00_kernel5.ipynb), 02.1 of 02"
    assert check.outer_product.number == "00.1"
    assert check.outer_product(None).heading.endswith("Exercise 00.1")
    assert f"exercise {road.number_of('slices')}," in check.coalesced_b(None).message


@pytest.mark.parametrize(
    "text", ["[[no_such_exercise]]", "[[no_such.ipynb]]", "[a](no_such.ipynb#cell-id=x)"]
)
def test_an_unknown_name_fails_the_build_with_a_sentence(text):
    with pytest.raises(ValueError, match=r"there is no (exercise|notebook) 'no_such"):
        builder.assemble(f"# %% [markdown]\n# See {text}.\n", "learner")


def test_a_message_may_quote_code_that_looks_like_a_name():
    assert (
        road.numbered_where_known("`A[[row]]`, not [[where]]") == f"`A[[row]]`, not {road.number_of('where')}"
    )


def test_every_name_in_the_courses_code_is_known():
    """Messages, hints and questions: names that are not known would be shown in brackets."""
    files = [*(ROOT / "gemm_course" / "checks").rglob("*.py"), *(ROOT / "gemm_course").rglob("*.toml")]
    found = sum(len(re.findall(r"\[\[\w+(?:\.ipynb)?\]\]", road_text(path))) for path in files)
    assert found > 30


def road_text(path: Path) -> str:
    text = path.read_text("utf-8")
    road.numbered(text)
    return text


def test_an_exercise_that_the_road_does_not_know_is_named_by_its_name():
    def new_one(answer):
        return ""

    assert Exercise("", "x", ("a", "b"), new_one).number == "new_one"
    assert Exercise("50.1", "x", ("a", "b"), new_one).number == "50.1"


def test_nothing_but_titles_has_a_number():
    """In no source of a notebook, and in no message: numbers are put in when they are built or shown."""
    number = re.compile(
        r"\b[Ee]xercises?\s+\d\d\.\d|\b[Nn]otebooks?\s+\d\d\b|ex(ercise)?-\d\d-\d|\]\(\d\d_\w+\.ipynb"
    )
    places = ("notebooks/source", "gemm_course/checks", "gemm_course/widgets", "gemm_course/figures")
    files = [path for place in places for path in (ROOT / place).rglob("*.*")]
    texts = {path.name: path.read_text("utf-8") for path in files if path.suffix in (".py", ".toml", ".md")}
    found = {name: number.search(text) for name, text in texts.items()}
    assert {name: each[0] for name, each in found.items() if each} == {}
