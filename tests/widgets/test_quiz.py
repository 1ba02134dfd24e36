"""Questions: one right answer each, a reply to every choice, and no two replies alike."""

from pathlib import Path

import pytest

from gemm_course.widgets import _quiz

SOURCES = Path(__file__).parents[2] / "notebooks" / "source"
NOTEBOOKS = sorted(path.stem for path in _quiz._FOLDER.glob("*.toml"))
QUESTIONS = [(n, name, q) for n in NOTEBOOKS for name, q in _quiz.questions(n).items()]


def test_there_are_questions_for_every_notebook():
    assert NOTEBOOKS == sorted(path.name[:2] for path in SOURCES.glob("[0-9]*.py"))
    for notebook in NOTEBOOKS:
        assert sum(q["part"] == "quiz" for q in _quiz.questions(notebook).values()) >= 4


@pytest.mark.parametrize(
    ("notebook", "name", "question"), QUESTIONS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_one_answer_is_right_and_every_choice_has_its_own_reply(notebook, name, question):
    options = question["options"]
    assert question["part"] in ("quiz", "predict")
    assert 3 <= len(options) <= len(_quiz._LETTERS)
    assert sum(bool(option.get("right")) for option in options) == 1
    assert (
        len({option["reply"] for option in options})
        == len({option["text"] for option in options})
        == len(options)
    )
    assert all(len(option["reply"]) > 15 for option in options)


def test_later_quizzes_come_back_to_earlier_chapters():
    for notebook in NOTEBOOKS[1:]:
        assert any("(From notebook" in q["text"] for q in _quiz.questions(notebook).values())


def test_a_choice_is_answered_and_may_be_changed(monkeypatch):
    shown, buttons = [], []

    class Handle:
        def update(self, bundle, raw):
            shown.append(bundle["text/plain"])

    def display(thing, **_):
        buttons.extend(getattr(thing, "children", []))
        return Handle()

    for module in ("_quiz", "_canvas"):
        monkeypatch.setattr(f"gemm_course.widgets.{module}.display", display)
    _quiz.predict("00.latency")
    wrong, right = buttons[0], buttons[1]
    wrong.click()
    right.click()
    assert "No." in shown[0] and "Yes." in shown[1]
