"""Questions with replies: predictions before a picture, and a short quiz at the end of a chapter.

The questions are in ``questions/*.toml``, one file per notebook. Question and reply are text in the
notebook, so that they are still there when it is opened again without a kernel; only the buttons are
widgets.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import ipywidgets as widgets
from IPython.display import Markdown, display

from gemm_course.widgets._canvas import Canvas, Text

_FOLDER = Path(__file__).parent / "questions"
_LETTERS = "abcdef"


@cache
def questions(notebook: str) -> dict[str, dict]:
    """Return the questions of a notebook ("00") by name. Each has a text, options and a part."""
    with (_FOLDER / f"{notebook}.toml").open("rb") as file:
        return tomllib.load(file)


def quiz(notebook: str) -> None:
    """Ask the questions at the end of a chapter, such as "00"."""
    for question in questions(notebook).values():
        if question["part"] == "quiz":
            ask(question)


def predict(name: str) -> None:
    """Ask for a prediction, such as "00.latency", before the answer is shown."""
    notebook, _, question = name.partition(".")
    ask(questions(notebook)[question])


def ask(question: dict) -> None:
    """Ask one question; every choice gets its own reply, and you may choose again."""
    options = question["options"]
    listed = "\n".join(
        f"- **{letter}** · {option['text']}" for letter, option in zip(_LETTERS, options, strict=False)
    )
    display(Markdown(f"**{question['text']}**\n\n{listed}"))
    buttons = [_button(letter, option) for letter, option in zip(_LETTERS, options, strict=False)]
    display(widgets.HBox(buttons, layout=widgets.Layout(flex_flow="row wrap")))
    canvas = Canvas()
    canvas.show(Text("*Choose an answer.*"))
    for button, option in zip(buttons, options, strict=True):
        button.on_click(lambda _, option=option: canvas.show(Text(_said(option))))


def _button(letter: str, option: dict) -> widgets.Button:
    return widgets.Button(description=letter, tooltip=option["text"], layout=widgets.Layout(width="56px"))


def _said(option: dict) -> str:
    verdict = "✅ **Yes.**" if option.get("right") else "❌ **No.**"
    return f"{verdict} {option['reply']}"
