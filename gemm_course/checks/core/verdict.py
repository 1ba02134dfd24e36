"""Shows a checker's verdict: passed or not yet, the first thing that is wrong, hints that open one by one."""

import html
import re
from dataclasses import dataclass

from gemm_course.figures.colours import EDGE, INK, OPEN, OPEN_PALE, PAPER, PASSED, PASSED_PALE

# Each of these gives the colours of ground, text, heading and edge. QUIET takes the page's own colours.
GREEN, AMBER = (PASSED_PALE, INK, PASSED, PASSED), (OPEN_PALE, INK, OPEN, OPEN)
QUIET = ("transparent", "inherit", "inherit", EDGE)
NOT_YET, NOT_TRIED = "Not yet", "Not tried yet"


@dataclass(frozen=True, repr=False)
class Verdict:
    """The answer to one attempt at an exercise.

    message: what was proved, or the first thing that is wrong, in words; `code` in backquotes. where: the
    place of it (element, block, thread, line), or "". hints: two to four, from a nudge to nearly the answer.
    begun: False where there is no answer yet, as in a notebook that was just opened.
    """

    number: str
    name: str
    passed: bool
    message: str
    hints: tuple[str, ...] = ()
    where: str = ""
    begun: bool = True

    @property
    def heading(self) -> str:
        said = "Passed" if self.passed else NOT_YET if self.begun else NOT_TRIED
        return f"{said} · Exercise {self.number}"

    @property
    def _words(self) -> str:
        """The message without the "Not yet" that the heading says already."""
        said = re.match(rf"{NOT_YET}[:.] ?", self.message)
        if said is None:
            return self.message
        rest = self.message[said.end() :]
        return rest[:1].upper() + rest[1:]

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        parts = [self.heading, self._words, self.where]
        if self.hints and not self.passed:
            parts.append(
                f"{len(self.hints)} hints, one at a time: check.{self.name}(...).hints[0], then hints[1]"
                if len(self.hints) > 1
                else f"One hint: check.{self.name}(...).hints[0]"
            )
        return "\n".join(filter(None, parts))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        ground, text, heading, edge = GREEN if self.passed else AMBER if self.begun else QUIET
        return (
            f'<div style="border-left:6px solid {edge};background:{ground};color:{text};padding:8px 12px;'
            f'font-size:14px;line-height:1.45;max-width:52em">'
            f'<div style="color:{heading};font-weight:700">{_symbol(self.passed)} {html.escape(self.heading)}'
            "</div>"
            f"<div>{_marked(self._words, self._inner)}</div>{self._where_html()}{self._hints_html()}</div>"
        )

    @property
    def _inner(self) -> str:
        """The colours of the boxes within a verdict: code and hints."""
        return f"background:{PAPER};color:{INK}" if self.begun else "color:inherit"

    def _where_html(self) -> str:
        if not self.where:
            return ""
        shown = _marked(self.where, self._inner)
        return f'<div style="margin-top:6px;font-size:13px;color:{INK}">{shown}</div>'

    def _hints_html(self) -> str:
        if self.passed:
            return ""
        return "".join(
            f'<details style="margin-top:6px;{self._inner};padding:4px 8px">'
            f'<summary style="cursor:pointer;color:inherit">Hint {number}</summary>'
            f"{_marked(hint, self._inner)}</details>"
            for number, hint in enumerate(self.hints, 1)
        )


def _symbol(passed: bool) -> str:
    return "✓" if passed else "○"


def _marked(text: str, colours: str) -> str:
    """Return text as HTML: `code` in backquotes, *words* between asterisks stressed, new lines kept."""
    style = f"{colours};padding:0 3px;white-space:pre-wrap"
    parts = html.escape(text).split("`")
    for number, part in enumerate(parts):
        if number % 2:
            parts[number] = f'<code style="{style}">{part}</code>'
        else:
            parts[number] = re.sub(r"\*(\S[^*]*)\*", r"<em>\1</em>", part).replace("\n", "<br>")
    return "".join(parts)
