"""The stored frames are what Python draws now, for every call in the notebooks."""

import importlib.util
from functools import cache

import pytest

from gemm_course.figures.picture import Picture
from gemm_course.widgets import _frames
from gemm_course.widgets._calls import Call
from gemm_course.widgets._lab_output import described
from tests.notebooks.builder import ROOT

_spec = importlib.util.spec_from_file_location("build_frames", ROOT / "tools" / "build_frames.py")
frames_builder = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(frames_builder)

SLUGS = list(_frames._index())  # a call itself costs an explorer, and the names alone do not
AGAIN = "run: python tools/build_frames.py {name}"
ALL_TOGETHER = 5_000_000  # bytes
COMPARED = 3  # frames of each explorer


@cache
def calls() -> dict[str, Call]:
    """The calls of explorers in the notebooks, by slug."""
    found = frames_builder.calls()
    by_slug = {call.slug: call for call in found}
    assert len(by_slug) == len(found), "two calls have the same slug"
    return by_slug


def test_every_call_in_the_notebooks_has_frames_and_nothing_else_has():
    stored = {path.stem for path in _frames.FRAMES.glob("*.js")}
    assert stored == set(calls()) == set(SLUGS), "run: python tools/build_frames.py"


@pytest.mark.many(one_in=14, with_all=4)
@pytest.mark.parametrize("slug", SLUGS)
def test_stored_frames_are_what_python_draws(slug):
    call = calls()[slug]
    explorer, found = call.explorer(), _frames.stored(slug)
    again = AGAIN.format(name=call.name)
    assert _frames.known(slug)["controls"] == described(explorer.controls), again
    states = explorer.states_to_store()
    drawn = 0
    for state in states[:: max(1, len(states) // COMPARED)]:
        picture = explorer.picture(state)
        if isinstance(picture.data, str):
            key = ",".join(map(str, explorer.controls.places(state)))
            assert found.get(key) == (picture.data, picture.alt), f"{state}: {again}"
            drawn += 1
    assert drawn or not found


def test_all_frames_together_are_small():
    assert sum(path.stat().st_size for path in _frames.FRAMES.iterdir()) < ALL_TOGETHER


def test_frames_come_back_as_they_were():
    pictures = {
        (0, 1): Picture('<svg viewBox="0 0 10 5"><g>α</g></svg>', "one", 20),
        (1, 0): Picture('<svg viewBox="0 0 10 9"><g>β</g></svg>', "two", 20),
    }
    back = _frames.unpacked(_frames.packed(pictures))
    assert back == {"0,1": (pictures[0, 1].data, "one"), "1,0": (pictures[1, 0].data, "two")}
    entry = _frames.spec([], pictures.values())
    assert (entry["width"], entry["height"]) == (20, 18)


def test_a_script_can_be_read_back(tmp_path):
    text = _frames.packed({(): Picture("<svg/>", 'said "so"')})
    (tmp_path / "x-y.js").write_text(_frames.script("x-y", "v1", text))
    assert _frames.stored("x-y", tmp_path) == {"": ("<svg/>", 'said "so"')}


def test_calls_are_found_in_sources(tmp_path):
    (tmp_path / "1.py").write_text(
        'see.banks()\nsee.fragment(by="lane")\nsee.coverage(mine)\nsee.counts("naive", 1)\n'
        'see.heatmap("wmma", "BK", "PAD", others="best")\nsee.banks()\n# see.walk()\n'
    )
    assert [call.slug for call in frames_builder.calls(tmp_path)] == ["banks", "fragment-by_lane"]
