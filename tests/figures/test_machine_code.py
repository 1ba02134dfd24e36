"""A line's instructions, a kernel's lines: what is written, counted and said of them."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from gemm_course.compiler.kinds import KINDS
from gemm_course.figures import kind_marks
from gemm_course.figures.code_lines import Function, Line, Machine, Whole, percent, short
from gemm_course.figures.line_panel import RUN, panel, spoken
from gemm_course.figures.machine_code import HEIGHT, Caption, machine_code
from gemm_course.profiles import WAITS

CAPTION = Caption("the <answer>", "of the loop", "where it was measured", limit="the limit")
VOID = {"br", "hr", "img", "input", "meta"}


class Read(HTMLParser):
    """Reads HTML and fails where a tag is closed that was not open; the text, and attributes by tag."""

    def __init__(self, markup: str):
        super().__init__()
        self.open, self.found, self.text = [], [], ""
        self.feed(markup)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def run(opcode: str, kind: str, count: int, *, start=0, in_loop=True, executed=None, waits=None, ready=0):
    rows = (start + 16 * place for place in range(count))
    return [
        Machine(at, f"{opcode} R{at}, R<1>", opcode, kind, in_loop, executed, waits or {}, ready)
        for at in rows
    ]


FMA = Line(7, "    acc += a * b", run("FFMA", "multiply-add", 512))
LOAD = Line(
    6, "    a = A[p] if p < k else 0", run("LDG", "global load", 3, executed=1000, waits={"barrier": 0.1})
)
FUNCTIONS = [
    Function("kernel", "file.py", [Line(5, "def kernel():"), LOAD, FMA]),
    Function("", "of none", [Line(0, "", run("MOV", "move", 1, in_loop=False))]),
]


def whole(*lines):
    return Whole.of(lines)


def test_every_kind_has_a_mark_of_its_own():
    assert list(kind_marks.MARKS) == list(KINDS)
    letters = [letters for letters, _ in kind_marks.MARKS.values()]
    assert len(set(letters)) == len(letters)


def test_no_two_kinds_have_the_same_colour():
    fills = [fill for _, fill in kind_marks.MARKS.values()]
    assert len(set(fills)) == len(fills)


def test_the_legend_explains_each_kind_that_occurs_once():
    shown = Read(kind_marks.legend(["move", "global load", "move"])).text
    assert shown.count(KINDS["move"]) == shown.count(KINDS["global load"]) == 1
    assert KINDS["multiply-add"] not in shown


def test_a_bar_has_a_part_for_each_kind_as_wide_as_its_count():
    parts = [each for _, each in Read(kind_marks.bar({"move": 3, "branch": 0, "global load": 9})).found[1:]]
    assert [part["title"] for part in parts] == ["9 global loads", "3 moves"]
    assert [part["style"].split()[0] for part in parts] == ["flex:9", "flex:3"]


def test_a_run_of_like_instructions_is_one_row_that_opens():
    read = Read(panel(FMA, whole(FMA)))
    assert "FFMA × 512" in read.text
    assert all(one.text in read.text for one in FMA.instructions)
    assert Counter(tag for tag, _ in read.found)["details"] == 1


@pytest.mark.parametrize(("count", "folded"), [(RUN - 1, 0), (RUN, 1)])
def test_few_like_instructions_stay_apart(count, folded):
    line = Line(1, "x", [*run("FFMA", "multiply-add", count), *run("MOV", "move", 1, start=900)])
    read = Read(panel(line, whole(line)))
    assert Counter(tag for tag, _ in read.found)["details"] == folded
    assert all(one.text in read.text for one in line.instructions)


def test_a_run_adds_up_what_was_measured():
    waits = {"barrier": 0.01, "global memory": 0.05}
    line = Line(1, "x", run("LDG", "global load", 5, executed=2_000_000, waits=waits, ready=0.02))
    shown = Read(panel(line, Whole(20_000_000, 0.5, True))).text.replace("\u00a0", " ")
    assert "10.0 M  30.0 % LDG × 5  global memory" in shown
    assert shown.count("6.0 % LDG R") == shown.count("R<1>  global memory") == 5
    assert "Warps executed 10,000,000 instructions here, 50.0 % of all." in shown
    assert (
        "Warps wait here for 30.0 % of their time (for loads from global memory 25.0 %, at barriers 5.0 %), "
        "and are ready or issue for 10.0 %." in shown
    )
    wait = WAITS["global memory"]
    assert f"Mostly global memory: {wait.meaning}. To try: {wait.help}." in shown


def test_the_time_without_waiting_is_told_and_no_reason_made_up():
    line = Line(1, "x", run("FFMA", "multiply-add", 2, executed=5, ready=0.1))
    shown = Read(panel(line, Whole(10, 0.5, True))).text.replace("\u00a0", " ")
    assert "Warps wait here for 0 % of their time, and are ready or issue for 20.0 %." in shown
    assert "Mostly" not in shown and "To try" not in shown


def test_a_bar_has_waiting_dark_and_the_rest_pale():
    waiting = Line(1, "a", run("LDG", "global load", 1, executed=1, waits={"barrier": 0.3}, ready=0.1))
    ready = Line(2, "b", run("FFMA", "multiply-add", 1, executed=1, ready=0.2))
    drawn = Read(machine_code([Function("kernel", "", [waiting, ready])], waiting, CAPTION).markup).found
    bars = [place for place, (_, each) in enumerate(drawn) if each.get("title", "").startswith("waiting ")]
    assert [drawn[place][1]["title"] for place in bars] == [
        "waiting 30.0 %, ready or issuing 10.0 %",
        "waiting 0 %, ready or issuing 20.0 %",
    ]
    widths = [[re.search(r"0 0 (\d+)%", drawn[bar + part][1]["style"])[1] for part in (1, 2)] for bar in bars]
    assert widths == [["75", "25"], ["0", "50"]]


def test_without_measurements_nothing_is_said_of_them():
    said = spoken(FMA, whole(FMA)) + Read(panel(FMA, whole(FMA))).text
    assert "executed" not in said and "wait" not in said
    drawn = Read(machine_code([Function("kernel", "", [FMA])], FMA, CAPTION).markup).text
    assert "executed" not in drawn and "waiting" not in drawn


def test_a_line_that_never_ran_says_so():
    line = Line(1, "x", run("BRA", "branch", 1, executed=0))
    assert "Never executed. No warp was seen here." in Read(panel(line, Whole(9, 0.1, True))).text
    assert "never executed" in spoken(line, Whole(9, 0.1, True))


def test_where_no_loop_counts_none_is_mentioned():
    line = Line(1, "x", run("MOV", "move", 2, in_loop=False))
    assert "loop" not in Read(panel(line, whole(line))).text
    unlooped = machine_code([Function("kernel", "file.py", [line])], line, Caption("x", "", ""))
    assert "loop" not in Read(unlooped.markup).text
    assert "none in the main loop" in Read(panel(line, whole(line, FMA))).text


def test_the_picture_says_in_words_what_it_shows():
    drawn = machine_code(FUNCTIONS, FMA, CAPTION)
    read = Read(drawn.markup)
    options = [attributes for _, attributes in read.found if attributes.get("role") == "option"]
    labels = [option["aria-label"] for option in options]
    assert [label.split(";")[0].split(":")[0] for label in labels] == [
        "line 6",
        "line 7",
        "no line of the source",
    ]
    assert [option["aria-selected"] for option in options] == ["false", "true", "false"]
    for label, line in zip(labels, (LOAD, FMA, FUNCTIONS[1].lines[0]), strict=True):
        said = spoken(line, whole(LOAD, FMA))
        assert label.endswith(said) and said in drawn.text
    assert "the limit" in read.text and "the limit" in drawn.text
    assert "the <answer>" in read.text and "where it was measured" in read.text


def test_a_line_without_instructions_is_shown_and_cannot_be_chosen():
    drawn = machine_code(FUNCTIONS, FMA, CAPTION)
    assert "def kernel():" in Read(drawn.markup).text
    assert len(drawn.panels) == len(drawn.names) == 3


def test_first_comes_the_chosen_line_and_its_height_is_fixed():
    drawn = machine_code(FUNCTIONS, FMA, CAPTION)
    assert drawn.panels[1] in drawn.markup and drawn.panels[0] not in drawn.markup
    scrolling = [each["style"] for _, each in Read(drawn.markup).found if each.get("tabindex") == "0"]
    assert len(scrolling) == 2 and all(f"height:{HEIGHT}px;overflow:auto" in style for style in scrolling)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (524_288, "524 k"),
        (999_999, "1.00 M"),
        (33_554_432, "33.6 M"),
        (2.1475e9, "2.15 G"),
    ],
)
def test_counts_are_shown_in_five_characters(count, shown):
    assert short(count) == shown


@pytest.mark.parametrize(("part", "shown"), [(0, ""), (0.0004, "<0.1 %"), (0.0006, "0.1 %"), (1, "100.0 %")])
def test_parts_are_shown_in_percent(part, shown):
    assert percent(part) == shown
