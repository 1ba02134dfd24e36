"""Attempts: kept only where a learner wants it, without code or names, and added up for a class."""

import json

import pytest

from gemm_course import attempts, check, progress, road
from gemm_course.commands.attempts import show, switched, written
from gemm_course.commands.errors import CourseError

BLOCK = f"{road.number_of('best_block')} best_block"
RIGHT, WRONG = (16, 16), (32, 8)


@pytest.fixture
def learner(tmp_path, monkeypatch):
    """A learner's notebook with a folder of its own."""
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "progress"))
    monkeypatch.setattr(attempts, "in_a_learners_notebook", lambda: True)
    return tmp_path / "attempts.jsonl"


def test_nothing_is_kept_until_it_is_switched_on(learner):
    check.best_block(WRONG)
    assert not learner.exists() and "--on" in show([])
    switched(True)
    check.best_block(WRONG)
    assert learner.exists()
    switched(False)
    check.best_block(WRONG)
    assert not learner.exists()


def test_what_is_kept_is_the_exercise_the_verdict_and_a_sentence(learner):
    switched(True)
    for answer in (None, (32, 8), (8, 32), (16, 16), (128, 2)):
        check.best_block(answer)
    kept = [json.loads(line) for line in learner.read_text().splitlines()]
    assert [each["passed"] for each in kept] == [False, False, True, False], "a blank is no attempt"
    assert all(set(each) == {"exercise", "passed", "told", "time"} for each in kept)
    found = attempts.summary(learner)["best_block"]
    assert (found.learners, found.passed, found.attempts) == (1, 1, 3), "what comes after the pass is play"
    assert sum(found.told.values()) == 2
    assert f"{BLOCK}  passed, 3 attempts" in show([])


def test_only_a_learners_own_notebook_counts(learner, monkeypatch):
    switched(True)
    monkeypatch.setattr(attempts, "in_a_learners_notebook", lambda: False)
    check.best_block(WRONG)
    assert learner.read_text() == ""


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("Two blocks store C[3, 5]. Line 12.", "Two blocks store C[#, #]."),
        ("no end", "no end"),
        ("At 1,260.5 clocks: too many", "At # clocks:"),
    ],
)
def test_the_same_mistake_counts_as_the_same(message, kept):
    assert attempts.first_sentence(message) == kept


def test_a_class_is_added_up_from_files_that_learners_write(learner, tmp_path):
    switched(True)
    files = []
    for number, answers in enumerate(([WRONG, RIGHT], [WRONG, WRONG], [RIGHT])):
        learner.write_text("")
        for answer in answers:
            check.best_block(answer)
        files.append(tmp_path / f"{number}.json")
        written(files[-1])
        assert "time" not in files[-1].read_text()
    said = show(files)
    assert said.startswith("3 learners") and f"{BLOCK}  2 of 3 passed, 5 attempts" in said
    assert said.splitlines()[2].strip().startswith("3 x ")


def test_what_is_no_summary_is_named(learner, tmp_path):
    for text in ("[]", "{damaged", '{"00.1": {"learners": 1}}', '{"00.1": 3}'):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(CourseError, match=r"x\.json is no summary"):
            show([tmp_path / "x.json"])
    with pytest.raises(CourseError, match="No attempts are kept"):
        written(tmp_path / "y.json")
    switched(True)
    with pytest.raises(CourseError, match="exists already"):
        written(tmp_path / "x.json")


@pytest.mark.parametrize(
    "claim",
    [
        {"00.3": {"learners": 1000, "passed": 1000, "attempts": 1000, "told": {}}},
        {"00.3": {"learners": 1, "passed": 2, "attempts": 2, "told": {}}},
        {"00.3": {"learners": 1, "passed": 1, "attempts": -3, "told": {}}},
        {"00.3": {"learners": 1, "passed": 0, "attempts": 2, "told": {"x": 900}}},
        {"\x1b[2J": {"learners": 1, "passed": 1, "attempts": 1, "told": {}}},
    ],
)
def test_one_file_tells_of_one_learner(claim, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(claim))
    with pytest.raises(CourseError, match="is no summary of attempts"):
        show([tmp_path / "a.json"])


def test_a_terminal_obeys_no_message(tmp_path):
    entry = {
        "learners": 1,
        "passed": 0,
        "attempts": 1,
        "told": {"\x1b]0;mine\x07 not\n00.4 all passed" * 99: 1},
    }
    (tmp_path / "a.json").write_text(json.dumps({"00.3": entry}))
    shown = show([tmp_path / "a.json"])
    assert "\x1b" not in shown and "\x07" not in shown and len(shown.splitlines()) == 3
    assert len(shown) < 700


def test_a_summary_is_small(tmp_path):
    (tmp_path / "a.json").write_bytes(b" " * 1_000_001)
    with pytest.raises(CourseError, match="more than 1,000,000 bytes"):
        show([tmp_path / "a.json"])


def test_damaged_lines_are_passed_over_and_an_unwritable_file_breaks_no_check(learner):
    switched(True)
    check.best_block(WRONG)
    with learner.open("a") as file:
        file.write("half a li\n{}\n3\n")
    assert attempts.summary(learner)["best_block"].attempts == 1
    learner.unlink()
    learner.mkdir()
    assert check.best_block(RIGHT)


def test_with_progress_switched_off_nothing_can_be_switched_on(monkeypatch):
    monkeypatch.setenv(progress.VARIABLE, progress.OFF)
    with pytest.raises(CourseError, match="switched off"):
        switched(True)


EARLIER = [
    {"exercise": "08.2", "passed": False, "told": "Not # wavefronts.", "time": "2026-11-20T10:00:00"},
    {"exercise": "08.2", "passed": True, "told": "", "time": "2026-11-20T10:01:00"},
    {"exercise": "09.2", "passed": True, "told": "", "time": "2026-11-20T10:02:00"},
    {"exercise": "50.1", "passed": True, "told": "", "time": "2026-11-20T10:03:00"},
]


def test_attempts_of_the_second_edition_are_read(learner):
    """By the exercises of then: its 08 and 09 are Tensor Cores and overlap, whatever they are now."""
    learner.write_text("".join(json.dumps(each) + "\n" for each in EARLIER))
    found = attempts.summary(learner)
    assert {name: tried.attempts for name, tried in found.items()} == {
        "padding_wavefronts": 2,
        "ring_places": 1,
        "50.1": 1,
    }
    check.best_block(WRONG)
    assert next(iter(attempts.summary(learner))) == "best_block", "in the order of the road"


def test_summaries_of_both_editions_are_added_up(tmp_path):
    entry = {"learners": 1, "passed": 1, "attempts": 2, "told": {}}
    for file, name in (("a", "05.4"), ("b", "outer_product")):
        (tmp_path / f"{file}.json").write_text(json.dumps({name: entry}))
    said = show([tmp_path / "a.json", tmp_path / "b.json"])
    assert f"{road.number_of('outer_product')} outer_product  2 of 2 passed, 4 attempts" in said
