"""A stage that no record knows is put into the ladder: every picture is drawn, and says what to run."""

import dataclasses
import re

import pytest

from gemm_course import LADDER, records
from gemm_course import widgets as see
from gemm_course.compiler import NoCompiler, recorded
from gemm_course.figures.picture import Picture
from gemm_course.profiles import NoProfile
from gemm_course.profiles import recorded as profiled
from gemm_course.widgets import _block_resources, _card, _showing
from tests.unmeasured import ON_A_GPU, why_unmeasured

MADE_UP = {"thread_tiled_2d": "made_up", "staged_store": "made_up_fp16"}  # by the stage that it copies
NO_COMPILER = "There is no compiler here."
PICTURES = {
    "ladder": (lambda new, old: see.ladder(), "bench"),
    "tflops": (lambda new, old: see.tflops(old, new), "bench"),
    "tflops, alone": (lambda new, old: see.tflops(new), "bench"),
    "roofline": (lambda new, old: see.roofline(new), "bench"),
    "roofline, limits": (lambda new, old: see.roofline(old, limits=new), "bench"),
    "roofline, stages": (lambda new, old: see.roofline(old, new), "bench"),
    "tiles": (lambda new, old: see.tiles(new), "sweep"),
    "heatmap": (lambda new, old: see.heatmap(new, "BM", "BN"), "sweep"),
    "heatmap, best": (lambda new, old: see.heatmap(new, "BM", "BN", others="best"), "sweep"),
    "counts": (
        lambda new, old: see.counts(new, (64, 64, 64), global_load_sectors=1),
        "counters",
    ),
    "limits": (lambda new, old: see.limits(new), "profile"),
    "limits, ladder": (lambda new, old: see.limits(), "profile"),
    "waits": (lambda new, old: see.waits(old, new), "profile"),
    "waits, ladder": (lambda new, old: see.waits(), "profile"),
    "card": (lambda new, old: see.card(LADDER[old]), "bench"),
}


@pytest.fixture(params=MADE_UP)
def names(request, monkeypatch):
    """The names of a stage that is in the ladder but in no record, and of the one that it copies."""
    old, new = request.param, MADE_UP[request.param]
    stages = {}
    for stage in LADDER:
        stages[stage.name] = stage
        if stage.name == old:
            stages[new] = dataclasses.replace(stage, name=new, after=old, document="beyond the documents")
    monkeypatch.setattr(LADDER, "_stages", stages)
    monkeypatch.setattr(_showing, "show", lambda explorer, call: explorer)
    monkeypatch.setattr(_block_resources, "why_no_compiler", lambda: NO_COMPILER)
    monkeypatch.setattr(_card, "compiled", refuse)
    return new, old


def refuse(*_, **__):
    raise NoCompiler(NO_COMPILER)


def alt(shown) -> str:
    """The words of a picture, or of all of an explorer's kinds of pictures at its start."""
    if isinstance(shown, Picture):
        return shown.alt
    start = shown.controls.start()
    kinds = shown.controls.by_name["show"].offered({}) if "show" in start else []
    states = [{**start, "show": kind.value} for kind in kinds] or [start]
    return " ".join(shown.picture(state).alt for state in states)


@pytest.mark.many(one_in=8)
@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_says_that_it_is_not_measured_yet_and_which_command_measures_it(names, picture):
    draw, command = PICTURES[picture]
    told = re.search(
        r"not measured on an H200 yet: on that machine, .*?`(?:gemm-course|python -m measuring) (.*?)`",
        alt(draw(*names)),
    )
    assert told, "the picture does not say it"
    verb, *stages = told[1].split()
    assert verb == command and names[0] in stages


def test_what_needs_no_record_is_drawn(names):
    new, old = names
    for shown in (see.occupancy(new), see.diff(old, new), see.source(new)):
        assert shown is not None
    said = alt(see.occupancy(new))
    assert f"{new}, BM=128" in said and "At most" in said and NO_COMPILER in said


def test_records_have_nothing_of_it_and_say_so(names):
    new, _ = names
    assert records.best_tiles(new) is None and recorded(new, (9, 0)) is None
    with pytest.raises(NoProfile, match=f"no profile was recorded of {new}"):
        profiled(new)
    said = why_unmeasured(LADDER[new], *ON_A_GPU)
    assert said.startswith(f"{new} is not in data/h200/ladder.csv, ")
    assert all(f"`gemm-course {verb} {new}" in said for verb in ("bench", "sweep", "profile"))
    assert f"`python -m measuring counters {new}" in said
