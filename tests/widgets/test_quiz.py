"""Questions: one right answer each, a reply to every choice, and no two replies alike."""

import xml.etree.ElementTree as ElementTree

import pytest

from gemm_course import road
from gemm_course.widgets import _quiz

NOTEBOOKS = [notebook.topic for notebook in road.ROAD]
ASKING = [path.stem for path in _quiz._FOLDER.glob("*.toml")]
QUESTIONS = [(n, name, q) for n in sorted(ASKING) for name, q in _quiz.questions(n).items()]


def test_there_are_questions_for_every_notebook():
    """For each of the road, and where a side trip has some."""
    assert set(NOTEBOOKS) <= set(ASKING) <= {notebook.topic for notebook in road.NOTEBOOKS}
    for notebook in NOTEBOOKS:
        assert sum(q["part"] == "quiz" for q in _quiz.questions(notebook).values()) >= 3


@pytest.mark.parametrize(
    ("notebook", "name", "question"), QUESTIONS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_one_answer_is_right_and_every_choice_has_its_own_reply(notebook, name, question):
    options = question["options"]
    assert question["part"] in ("quiz", "predict", "recall")
    assert 3 <= len(options) <= len(_quiz._LETTERS)
    assert sum(bool(option.get("right")) for option in options) == 1
    assert (
        len({option["reply"] for option in options})
        == len({option["text"] for option in options})
        == len(options)
    )
    assert all(len(option["reply"]) > 15 for option in options)


def test_later_quizzes_come_back_to_earlier_chapters():
    for notebook in NOTEBOOKS[2:]:  # 01 has only 00 behind it.
        assert any("(From notebook" in q["text"] for q in _quiz.questions(notebook).values())


def test_every_choice_opens_its_own_reply_without_a_script(seen):
    _quiz.predict("welcome.xy")
    (bundle,) = seen.bundles
    root = ElementTree.fromstring(f"<div>{bundle['text/html']}</div>")
    choices = root.findall("details")
    (question,) = (q for n, name, q in QUESTIONS if (n, name) == ("welcome", "xy"))
    assert len(choices) == len(question["options"])
    for choice, option in zip(choices, question["options"], strict=True):
        said, reply = ("".join(choice.find(tag).itertext()) for tag in ("summary", "p"))
        assert option["text"].strip("`") in said and "open" not in choice.attrib
        assert ("Yes." in reply) == bool(option.get("right"))
        assert choice.find("summary").get("data-lm-suppress-shortcuts") == "true"
    assert "<code>(16, 38)</code>" in bundle["text/html"] and "<script" not in bundle["text/html"]
    assert "No." not in bundle["text/plain"], "what is read aloud first does not tell the answer"


def test_a_quiz_asks_all_questions_of_its_part(seen):
    _quiz.quiz("coalesced")
    asked = [q for q in _quiz.questions("coalesced").values() if q["part"] == "quiz"]
    assert len(seen.bundles) == len(asked)


def test_text_of_a_question_is_no_markup(seen):
    options = [{"text": "<b>1</b>", "reply": "a < b", "right": True}, {"text": "2 & 3", "reply": "*no*"}]
    _quiz.ask({"text": "<script>", "options": options})
    html = seen.bundles[0]["text/html"]
    assert "<script" not in html and "<b>" not in html and "2 &amp; 3" in html and "<em>no</em>" in html


def test_a_notebook_of_the_second_edition_gets_its_own_questions():
    """Its number of then, whatever notebook has that number now."""
    assert _quiz.questions("08") is not _quiz.questions("09")
    assert _quiz.questions("08") == _quiz.questions("tensor_cores")
    assert _quiz.questions("09") == _quiz.questions("overlap")


def test_a_question_says_a_notebooks_number():
    assert f"(From notebook {road.notebook('coalesced').number}.)" in str(_quiz.questions("thread_tiles_2d"))
    assert "[[" not in str([question["text"] for _, _, question in QUESTIONS])
