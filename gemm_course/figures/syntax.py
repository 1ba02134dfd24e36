"""Colours Python like an editor, dark enough to be read on every ground that the course gives to code."""

from __future__ import annotations

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from pygments.style import Style
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from gemm_course.figures import colours


class _Dark(Style):
    styles = {  # noqa: RUF012 - pygments reads the class
        Comment: f"italic {colours.OF_CODE['comment']}",
        Keyword: f"bold {colours.OF_CODE['keyword']}",
        Name.Builtin: colours.OF_CODE["keyword"],
        Name.Class: colours.OF_CODE["name"],
        Name.Decorator: colours.OF_CODE["decorator"],
        Name.Function: colours.OF_CODE["name"],
        Number: colours.OF_CODE["number"],
        Operator: colours.OF_CODE["number"],
        Operator.Word: f"bold {colours.OF_CODE['decorator']}",
        String: colours.OF_CODE["text"],
    }


_FORMATTER = HtmlFormatter(style=_Dark, noclasses=True, nowrap=True)


def coloured(source: str) -> list[str]:
    """Return the lines of a Python source as HTML."""
    return highlight(source, PythonLexer(stripnl=False), _FORMATTER).splitlines()
