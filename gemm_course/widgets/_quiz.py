"""Asks questions with replies: predictions before a picture, and a short quiz at the end of a chapter.

The questions are in ``questions/*.toml``, one file per notebook. Every choice is a ``<details>`` with its
reply inside, which a browser opens by itself. It needs no kernel and no script, in JupyterLab, on GitHub and
on a page, and is still there when the notebook is opened again.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from IPython.display import display
from markdown_it import MarkdownIt

from gemm_course import road
from gemm_course.second_edition import TOPICS

_FOLDER = Path(__file__).parent / "questions"
_LETTERS = "abcdef"
_MARKDOWN = MarkdownIt("commonmark", {"html": False})
# Without the attribute, JupyterLab would take keys that are typed on a choice as its own.
_CHOICE = (
    '<details style="margin: 2px 0 2px 1em">'
    '<summary style="cursor: pointer" data-lm-suppress-shortcuts="true">'
    "<strong>{letter}</strong> · {text}</summary>"
    '<p style="margin: 2px 0 8px 1.5em">{reply}</p></details>'
)


@cache
def questions(notebook: str) -> dict[str, dict]:
    """Return the questions of a notebook ("welcome") by name. Each has a text, options and a part.

    A notebook of the second edition, which a learner may still have, asks by its number, such as "00".
    """
    topic = TOPICS.get(notebook, notebook)
    known = sorted(file.stem for file in _FOLDER.glob("*.toml"))
    if topic not in known:
        raise ValueError(f"there are no questions on notebook {notebook!r}, but on {', '.join(known)}")
    return tomllib.loads(road.numbered((_FOLDER / f"{topic}.toml").read_text("utf-8")))


def quiz(notebook: str) -> None:
    """Ask the questions at the end of a chapter. ``notebook`` is its topic, such as "welcome"."""
    _ask_part(notebook, "quiz")


def recall(notebook: str) -> None:
    """Ask the questions with which a chapter opens: about chapters before it, without looking back."""
    _ask_part(notebook, "recall")


def predict(name: str) -> None:
    """Ask for a prediction, such as "welcome.branches", before the answer is shown."""
    notebook, _, question = name.partition(".")
    known = questions(notebook)
    if question not in known:
        raise ValueError(
            f"there is no question {name!r}; there are {', '.join(f'{notebook}.{q}' for q in known)}"
        )
    ask(known[question])


def ask(question: dict) -> None:
    """Ask one question. Every choice has its own reply, and the reader may choose again."""
    options = list(zip(_LETTERS, question["options"]))
    choices = "".join(
        _CHOICE.format(letter=letter, text=_html(option["text"]), reply=_html(_said(option)))
        for letter, option in options
    )
    plain = [question["text"], *(f"{letter}: {option['text']}" for letter, option in options)]
    display(
        {
            "text/html": f"<p><strong>{_html(question['text'])}</strong></p>{choices}"
            "<p><small>Open the answer that you choose.</small></p>",
            "text/plain": "\n".join(plain),
        },
        raw=True,
    )


def _ask_part(notebook: str, part: str) -> None:
    for question in questions(notebook).values():
        if question["part"] == part:
            ask(question)


def _html(markdown: str) -> str:
    return _MARKDOWN.renderInline(markdown)


def _said(option: dict) -> str:
    verdict = "✅ **Yes.**" if option.get("right") else "❌ **No.**"
    return f"{verdict} {option['reply']}"
