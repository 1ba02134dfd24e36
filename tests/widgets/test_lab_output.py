"""Explorers that the browser draws: what an output holds, and what Python answers in a fresh kernel."""

import html
import json
import subprocess
import sys

import pytest

from gemm_course import widgets as see
from gemm_course.kernels import LADDER
from gemm_course.kernels.variants.kernel5_draft import STAGE as DRAFT
from gemm_course.widgets import _calls, _frames, _lab_output, asked
from gemm_course.widgets._calls import call_of
from tests.notebooks.builder import ROOT


@pytest.fixture(autouse=True)
def in_the_courses_lab(monkeypatch):
    monkeypatch.setenv("GEMM_COURSE_LAB", "1")


def shown(seen, function, *args, **kwargs):
    """The bundle and the spec of an explorer."""
    assert function(*args, **kwargs) is None
    bundle = seen.bundles[-1]
    return bundle, bundle[_lab_output.MIME]


def ask(spec, at=None, **more):
    about = {key: spec[key] for key in ("call", "own") if key in spec}
    return asked.answer(json.dumps({**about, "at": at or spec["at"], **more})).data


def test_an_output_has_a_spec_a_still_and_words(seen):
    bundle, spec = shown(seen, see.grid, 4)
    assert set(bundle) == {_lab_output.MIME, "text/html", "text/plain"}
    assert spec["call"] == ["grid", {"rows": 4}]
    labels = ["block (x × y)", "blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"]
    assert [control["label"] for control in spec["controls"]] == labels
    assert bundle["text/html"].startswith('<img class="gemm-picture"')
    assert bundle["text/plain"] in html.unescape(bundle["text/html"])
    assert "Run this cell to get controls" in bundle["text/html"]
    assert json.loads(json.dumps(spec)) == spec


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "call", "slug"),
    [
        (see.fragment, (), {"by": "element"}, {}, "fragment"),
        (see.fragment, ("lane",), {}, {"by": "lane"}, "fragment-by_lane"),
        (see.occupancy, (), {"tiles": {"BM": 64}}, {"tiles": {"BM": 64}}, "occupancy-tiles__BM_64"),
        (see.roofline, (), {}, {}, "roofline"),
        (see.roofline, ("wmma", "mma_ring"), {}, {"*": ["wmma", "mma_ring"]}, "roofline-wmma-mma_ring"),
        (
            see.warp_and_memory,
            (LADDER["naive_coalesced"],),
            {"widths": True},
            {"subject": "naive_coalesced", "widths": True},
            "warp_and_memory-subject_naive_coalesced-widths",
        ),
        (see.coverage, (LADDER["vectorized"],), {}, {"subject": "vectorized"}, "coverage-subject_vectorized"),
        (see.coverage, (DRAFT,), {}, {"subject": "kernel5_draft"}, "coverage-subject_kernel5_draft"),
        (see.grid, (4,), {}, {"rows": 4}, "grid-rows_4"),
        (see.addresses, (5, 12), {}, {"columns": 12}, "addresses-columns_12"),
    ],
)
def test_a_call_is_written_down_with_what_differs_from_the_defaults(function, args, kwargs, call, slug):
    written = call_of(function.makes_explorer, args, kwargs)
    assert (json.loads(written.arguments), written.slug) == (call, slug)
    assert written.explorer().controls.start() == function.makes_explorer(*args, **kwargs).controls.start()


def test_a_fresh_kernel_draws_any_state_without_a_cell_having_been_run(seen):
    _, spec = shown(seen, see.warp_and_memory, "naive_coalesced", widths=True)
    question = {"call": spec["call"], "at": ["load B", "333", "2", "4"]}
    code = (
        "import sys, json; from gemm_course.widgets.asked import answer;"
        "print(json.dumps(answer(sys.stdin.read()).data))"
    )
    child = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    source, alt = json.loads(child.stdout)["picture"]
    assert source.startswith("<svg") and "sectors" in alt
    assert [source, alt] == ask(spec, question["at"])["picture"]


def test_a_learners_own_function_is_asked_by_name_while_its_kernel_lives(seen, monkeypatch):
    def elements(tid, BN, WM, WN, TN, WNITER):
        return [(tid // 8, tid % 8)]

    _, spec = shown(seen, see.owners, elements)
    assert "call" not in spec and spec.get("frames") is None
    assert "picture" in ask(spec)
    monkeypatch.setattr(_calls, "_own", {})
    answer = ask(spec)
    assert list(answer) == ["words"] and "Run the cells up to this one again" in answer["words"]


def test_only_the_last_own_functions_are_held(seen, monkeypatch):
    monkeypatch.setattr(_calls, "_HELD", 3)
    names = [_calls.keep(object()) for _ in range(5)]
    assert len(set(names)) == 5
    for name in names[:2]:
        with pytest.raises(_calls.Gone):
            _calls.kept(name)
    assert _calls.kept(names[-1]) is not None


@pytest.mark.parametrize(
    "call", [["no_such_explorer", {}], ["counts", {}], ["quiz", {"notebook": "00"}], ["__getattr__", {}]]
)
def test_nothing_but_explorers_can_be_called(call):
    assert asked.answer(json.dumps({"call": call, "at": []})).data == {"words": asked.CHANGED}


def test_an_option_that_is_gone_is_said(seen):
    _, spec = shown(seen, see.banks)
    assert ask(spec, ["As[ty, p]", "0", "7 × 7"]) == {"words": asked.CHANGED}


def test_a_button_answers_with_words_and_the_new_picture(seen):
    _, spec = shown(seen, see.occupancy, "thread_tiled_2d")
    assert spec["actions"] == ["compile these tiles"]
    answer = ask(spec, action="compile these tiles")
    assert answer["words"] and answer["picture"][1].startswith("2 blocks fit")
    assert "words" not in ask(spec, action="something else")


def test_a_picture_that_is_returned_stays_one(seen):
    picture = see.roofline("naive_uncoalesced")
    assert picture.alt and not seen.shown


def test_numbers_in_equal_steps_are_short():
    assert _lab_output._short(tuple("012345")) == {"from": 0, "step": 1, "count": 6}
    assert _lab_output._short(("4", "8", "16")) == ["4", "8", "16"]
    assert _lab_output._short(("01", "02", "03")) == ["01", "02", "03"]
    assert _lab_output._short(("0",)) == ["0"]


def test_the_height_of_any_picture_is_known():
    picture = see.banks.makes_explorer().picture({"access": "As[ty, p]", "pad": 0, "block": (32, 32)})
    assert 50 < _frames.height(picture) < 700
    assert _frames.height(see.tflops("naive_uncoalesced")) > 100
