"""Machine code by lines: every instruction is at its line, with what was measured of it."""

import base64
import gzip
import json
import linecache
import re
from dataclasses import replace

import numpy as np
import pytest

from gemm_course import LADDER, records
from gemm_course import widgets as see
from gemm_course.compiler import Compiled, NoCompiler, recorded
from gemm_course.profiles import WAITS, NoProfile, verdict
from gemm_course.profiles import recorded as recorded_profile
from gemm_course.widgets import _machine_code
from gemm_course.widgets._loop_in_words import loop_in_words
from gemm_course.widgets._sources import functions_in, sources_of
from tests.figures.test_machine_code import Read
from tests.unmeasured import MACHINE_CODE, skip_unmeasured
from tests.widgets.small_profile import EXECUTED, HELPER, KERNEL, SOURCES, small_profile


def seen(shown) -> Read:
    """What a cell shows, without the script."""
    return Read(re.sub(r"<(script|style)>.*?</\1>", "", shown._repr_mimebundle_()["text/html"], flags=re.S))


def labels(shown) -> list[str]:
    return [each["aria-label"] for _, each in seen(shown).found if each.get("role") == "option"]


def chosen(shown) -> str:
    (one,) = [each["aria-label"] for _, each in seen(shown).found if each.get("aria-selected") == "true"]
    return one


# --- of a profile -------------------------------------------------------------------------------------------


def test_the_line_where_warps_wait_longest_is_chosen_first():
    shown = see.machine_code(small_profile())
    assert chosen(shown).startswith(
        "line 13: acc += A[p] * A[p]; 7 instructions: 6 multiply-adds, 1 global load"
    )
    assert shown.picture.text.startswith(
        "small: warps wait longest at line 13, 50.0 % of all their time, most for loads from global memory\n"
    )


def test_a_line_where_warps_only_issue_is_not_the_one_that_they_wait_longest_at():
    profile = small_profile()
    samples = {reason: list(counts) for reason, counts in profile.content["samples"].items()}
    samples["not_selected"] = [0] * 11 + [900, 0]  # ready at line 5, for most of the time
    profile = replace(profile, content=profile.content | {"samples": samples})
    assert max(profile.by_line["samples"].items(), key=lambda one: one[1])[0] == (HELPER, 5)
    shown = see.machine_code(profile)
    assert chosen(shown).startswith("line 13: ")
    assert "wait longest at line 13, 5.0 % of all their time" in shown.picture.text


def test_without_waiting_the_title_names_no_line():
    profile = small_profile()
    samples = {"selected": profile.content["samples"]["selected"]}
    profile = replace(profile, content=profile.content | {"samples": samples})
    assert see.machine_code(profile).picture.text.startswith("small: no sampled warp waited\n")


def test_each_line_has_what_the_profile_says_of_it():
    profile = small_profile()
    lines = {label.split(";")[0].split(":")[0]: label for label in labels(see.machine_code(profile))}
    for (_, number), row in profile.by_line.iterrows():
        label = lines[f"line {number}" if number else "no line of the source"]
        assert f"warps executed {int(row['executed']):,} instructions here" in label
        waited = sum(row[name] for name in WAITS if WAITS[name].waits)
        if not row["samples"]:
            assert label.endswith("; no warp was seen here")
        else:
            said = re.search(r"wait here for ([\d.]+) % of .* ready or issue for ([\d.]+) %$", label)
            assert float(said[1]) == pytest.approx(100 * waited / profile.samples)
            assert float(said[2]) == pytest.approx(100 * (row["samples"] - waited) / profile.samples)


def test_why_warps_wait_there_is_told_with_the_instructions():
    picture = see.machine_code(small_profile()).picture
    shown = Read(picture.panels[2]).text.replace("\u00a0", " ")
    assert picture.names[2] == "Instructions of line 13"
    assert (
        "Warps wait here for 50.0 % of their time (for loads from global memory 50.0 %), and are ready or "
        "issue for 24.0 %." in shown
    )
    assert f"To try: {WAITS['global memory'].help}." in shown
    assert f"{560 / EXECUTED:.1%}".replace("%", " %") in shown


def test_the_kernel_comes_first_then_what_was_inlined_then_no_line():
    groups = [
        each["aria-label"]
        for _, each in seen(see.machine_code(small_profile())).found
        if each.get("role") == "group"
    ]
    assert groups == [
        f"small, {KERNEL}",
        f"help, {HELPER}",
        "NVIDIA's own code, such as a division of integers",
    ]


def test_it_says_where_it_was_measured():
    said = see.machine_code(small_profile()).picture.text.splitlines()[-1]
    assert said == (
        "small (BM=8), 8 × 8 × 8; measured: NVIDIA H200, driver 580.1, 2026-11-23, Nsight Compute 2025.3; "
        "code: nvJitLink 13.0. Rough, with fewer than 2,500 samples."
    )


FIGURES = {
    "clocks": 100.0,
    "active_clocks": 80.0,
    "issue_slots": 72.0,
    "fma_pipe": 40.0,
    "nanoseconds": 1024.0,
}


def test_above_the_list_is_what_limits_it_and_its_speed():
    profile = small_profile()
    profile = replace(profile, measured={**profile.measured, **FIGURES, "m": 4096, "n": 128, "k": 32})
    said = see.machine_code(profile).picture.text.splitlines()[1]
    first, speed = said.split(" Speed ")
    assert "90 % of the clocks" in first and first == verdict(profile).sentences[0]
    assert speed == "of the profiled launch: 32.8 TFLOPS, 49 % of the FP32 peak of 66.9."
    elsewhere = replace(profile, measured={**profile.measured, "gpu": "NVIDIA Unknown", "clocks": None})
    said = see.machine_code(replace(elsewhere, measured={**elsewhere.measured, "active_clocks": None}))
    assert said.picture.text.splitlines()[1] == "Speed of the profiled launch: 32.8 TFLOPS."
    assert see.machine_code(small_profile()).picture.text.splitlines()[1].startswith("Main loop: ")


def test_tensor_cores_are_compared_with_their_own_peak():
    said = see.machine_code("wgmma_tma").picture.text.splitlines()[1]
    profile = recorded_profile("wgmma_tma")
    share = profile.tflops / 989.5
    assert said.endswith(
        f"{profile.tflops:.3g} TFLOPS, {100 * share:.0f} % of the FP16 Tensor Core peak of 990."
    )


def test_a_kernel_of_your_own_that_was_too_short_for_samples():
    profile = small_profile()
    unseen = {"samples": {"selected": [0] * len(profile.code.rows)}}
    profile = replace(
        profile,
        tiles="",
        measured={**profile.measured, "m": None, "n": None, "k": None},
        content=profile.content | unseen,
    )
    shown = see.machine_code(profile)
    assert chosen(shown).startswith("line 13: ")
    assert shown.picture.text.startswith("small: it ended before a warp was sampled\n")
    assert "\nsmall; measured: NVIDIA H200" in shown.picture.text


def test_lines_that_the_sources_lack_are_shown_without_text():
    profile = small_profile()
    profile = replace(profile, content=profile.content | {"sources": {KERNEL: {"13": SOURCES[KERNEL][13]}}})
    assert [label.split(":")[0] for label in labels(see.machine_code(profile))][:-1] == [
        *("line 11", "line 12", "line 13", "line 5")
    ]


@pytest.mark.many(one_in=9, with_all=3)
@pytest.mark.parametrize("row", records.profiles().to_dict("records"), ids=lambda row: row["file"])
def test_every_recorded_profile_is_shown_in_full(row):
    tiles = records.parse_tiles(row["tiles"])
    profile = recorded_profile(row["stage"], tiles, (row["m"], row["n"], row["k"]))
    said = labels(see.machine_code(profile))
    executed = [re.search(r"executed ([\d,]+) instr", label) for label in said]
    assert sum(int(one[1].replace(",", "")) for one in executed if one) == sum(profile.content["executed"])
    assert len(said) == len(profile.by_line)


# --- which code is shown ------------------------------------------------------------------------------------


@pytest.fixture
def a_profile_of_vectorized(monkeypatch):
    """A profile is recorded of one stage, at its default tiles and compute capability 9.0."""

    def one(stage, tiles=None, gpu=None):
        if getattr(stage, "name", stage) != "vectorized" or tiles:
            raise NoProfile("none")
        return small_profile()

    monkeypatch.setattr(_machine_code, "recorded", one)
    monkeypatch.setattr(
        _machine_code,
        "compiled",
        lambda stage, *_, compute_capability, **__: replace(
            small_profile().code, name=f"compiled for {compute_capability}"
        ),
    )


@pytest.mark.parametrize(
    ("subject", "asked", "words"),
    [
        ("vectorized", {}, "small: warps wait longest"),
        (LADDER["vectorized"], {"compute_capability": (9, 0)}, "small: warps wait longest"),
        ("vectorized", {"compute_capability": "sm_90"}, "small: warps wait longest"),
        ("vectorized", {"compute_capability": "8.6"}, "compiled for 8.6: line 13 became 7 of 13"),
        ("vectorized", {"tiles": {"TN": 8}}, "compiled for (9, 0): line 13"),
        ("kernel5", {}, "compiled for (9, 0): line 13"),
    ],
)
def test_a_recorded_profile_is_preferred(subject, asked, words, a_profile_of_vectorized):
    text = see.machine_code(subject, **asked).picture.text
    assert text.startswith(words)
    assert ("was not measured of this code" in text) == words.startswith("compiled")


def test_what_cannot_be_compiled_is_a_sentence(monkeypatch):
    def none(*_, **__):
        raise NoCompiler("NVIDIA's compiler is not installed: install the extra.")

    monkeypatch.setattr(_machine_code, "compiled", none)
    shown = see.machine_code("vectorized", compute_capability="8.6")
    assert shown._repr_mimebundle_()["text/plain"] == "NVIDIA's compiler is not installed: install the extra."


def test_a_stage_that_is_not_there_is_a_sentence():
    said = see.machine_code("vectorised").words
    assert said.startswith("no stage is called 'vectorised'") and said.endswith("did you mean vectorized?")


# --- of machine code alone ----------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
@pytest.mark.many(one_in=7, with_all=3)
def test_every_instruction_of_a_stage_is_at_its_line(stage):
    skip_unmeasured(stage, MACHINE_CODE)
    code = recorded(stage, (9, 0))
    shown = see.machine_code(code)
    counts = [int(re.search(r"; ([\d,]+) instruction", label)[1].replace(",", "")) for label in labels(shown)]
    assert sum(counts) == len(code)
    assert len(counts) == len(code.by_line)
    told = "".join(Read(panel).text for panel in shown.picture.panels)
    assert sum(f"{one.address:x} {one.text}" in told for one in code.rows) == len(code)


def test_without_a_profile_the_line_with_most_of_the_loop_is_chosen():
    code = recorded("vectorized", (9, 0))
    shown = see.machine_code(code)
    line = code.loop.instructions["line"].mode()[0]
    assert chosen(shown).startswith(
        f"line {line}: acc[i, j] += a[i] * b[j]; 2,048 instructions: 2,048 multiply-adds"
    )
    assert "warps executed" not in shown.picture.text


def test_sources_are_those_of_the_functions_that_instructions_name():
    code = recorded("vectorized", (9, 0))
    found = sources_of(code)
    assert set(found) == {one.file for one in code.rows}
    kernel = LADDER["vectorized"].kernel().py_func.__code__
    (own,) = functions_in(found["gemm_course/kernels/a08_vectorized.py"])
    assert own[0] == "vectorized" and own[1][0] == kernel.co_firstlineno
    assert "store_four" in [name for name, _ in functions_in(found["gemm_course/kernels/parts/results.py"])]


def test_functions_side_by_side_are_told_apart():
    text = "@jit\ndef one(a):\n    def inner():\n        pass\n    return a\ndef two(a):\n    a = 1\n\nx = 3"
    lines = dict(enumerate(text.splitlines(), 4))
    del lines[11]
    assert functions_in(lines) == [("one", [4, 5, 6, 7, 8]), ("two", [9, 10]), ("", [12])]
    text = "@jit(\n    fastmath=True,\n)\n@other\ndef one(a):\n    return a\n@jit\ndef two(a):\n    a = 1"
    lines = dict(enumerate(text.splitlines(), 1))
    assert functions_in(lines) == [("one", [1, 2, 3, 4, 5, 6]), ("two", [7, 8, 9])]


CELL = """%%time
def mine(x):
    x[0] = 1"""


def test_a_cell_that_is_no_python_still_shows_the_lines_that_became_instructions(monkeypatch):
    monkeypatch.setitem(
        linecache.cache, "<cell>", (len(CELL), None, CELL.splitlines(keepends=True), "<cell>")
    )
    code = small_profile().code
    code = replace(code, rows=[replace(one, file="<cell>", line=3) for one in code.rows])
    assert sources_of(code) == {"<cell>": {3: "    x[0] = 1"}}


@pytest.mark.compiler
def test_your_own_kernel_is_shown_from_its_source():
    from numba import cuda

    def mine(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = 2 * x[i] + 1

    shown = see.machine_code(mine, np.zeros(4, np.float32))
    assert any("x[i] = 2 * x[i] + 1" in label for label in labels(shown))
    assert "There is no loop with multiply-adds." in shown.picture.text
    assert "takes 1 argument (x); 0 were given" in see.machine_code(mine).words


# --- the main loop ------------------------------------------------------------------------------------------


def test_the_peak_is_bounded_by_the_share_of_multiply_adds():
    code = recorded("vectorized", (9, 0))
    assert loop_in_words(code) == (
        "Main loop: 2,048 of 2,379 instructions are multiply-adds: at most 86 % of the FP32 peak, "
        "since a scheduler issues one instruction per clock."
    )


def test_where_a_multiply_add_takes_two_clocks_others_fit_in_between():
    said = loop_in_words(recorded("vectorized", (8, 0)))  # 64 lanes per multiprocessor
    assert "multiply-adds, which take 2 clocks each; a scheduler issues one instruction per clock" in said
    assert "at most" not in said
    naive = recorded("naive_coalesced", (8, 0))
    assert f"at most {200 * naive.loop.share:.0f} % of the FP32 peak" in loop_in_words(naive)


def test_tensor_cores_have_a_sentence_of_their_own():
    code = recorded("wgmma_tma", (9, 0))
    all_of_it = len(code.loop)
    clocks = 4 * (64 * 256 * 16) // 4 // 512  # four Tensor Cores, each of 512 multiply-adds per clock
    assert loop_in_words(code, 0.617) == (
        f"Main loop: 4 of {all_of_it} instructions are Tensor Core products, which take a Tensor "
        f"Core at least {clocks} clocks; a scheduler issues one instruction per clock, so that all "
        f"{all_of_it} fit into that time. Measured: Tensor Cores were busy in 62 % of the clocks."
    )
    unknown = replace(recorded("wmma", (8, 6)), compute_capability=(12, 0))
    assert loop_in_words(unknown).endswith("instructions are Tensor Core products, each of many clocks.")


def with_opcode(code: Compiled, opcode: str) -> Compiled:
    return replace(code, rows=[replace(one, text=one.text.replace("FFMA", opcode)) for one in code.rows])


def test_there_is_no_bound_where_the_clocks_are_not_known():
    code = small_profile().code
    assert "at most 67 % of the FP32 peak" in loop_in_words(code)
    bare = "Main loop: 6 of 9 instructions are multiply-adds."
    assert loop_in_words(with_opcode(code, "DFMA")) == loop_in_words(with_opcode(code, "HFMA2")) == bare
    assert loop_in_words(with_opcode(code, "MOV")) == "There is no loop with multiply-adds."


# --- what is saved with a notebook --------------------------------------------------------------------------


def test_the_script_carries_the_instructions_of_every_line():
    shown = see.machine_code(small_profile())
    html = shown._repr_mimebundle_()["text/html"]
    packed = re.search(r"wire\(root, '([^']+)'\)", html)[1]
    panels, names = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert panels == list(shown.picture.panels) and names == list(shown.picture.names)
    assert html.count("<script>") == html.count("</script>") == 1


def test_the_same_code_is_the_same_output():
    first, second = (see.machine_code(small_profile())._repr_mimebundle_() for _ in range(2))
    assert first == second
