"""Silences findings: in one line, by a comment at its end, or in a whole launch, by the argument ``allow``.

``# emulator: allow global_race`` at the end of a line silences findings of that kind in that line. Commas
separate several kinds. ``report.silenced`` still has the silenced findings, with their counts.
"""

import io
import re
import tokenize
from typing import NamedTuple

from lockstep.errors import ArgumentError, UnsupportedKernel
from lockstep.findings import ADVICE, ERRORS, Finding
from lockstep.reading.source import Source

_COMMENT = re.compile(r"#\s*emulator:\s*allow\b(.*)")
KINDS = (*ERRORS, *ADVICE)


class Allowed(NamedTuple):
    """A comment that silences findings of some kinds in its line."""

    function: str
    line: int
    kinds: tuple


def allowed_in(source: Source, function) -> list[Allowed]:
    """Return the silencing comments of a function.

    Raises UnsupportedKernel for a comment that names no kind of finding, or an unknown kind.
    """
    found = []
    for line, comment in _comments(source):
        match = _COMMENT.match(comment)
        if match:
            kinds = tuple(part for part in re.split(r"[,\s]+", match[1]) if part)
            unknown = [kind for kind in kinds if kind not in KINDS]
            if unknown or not kinds:
                raise UnsupportedKernel(_unknown(*unknown), function.__code__.co_filename, line)
            found.append(Allowed(function.__name__, line, kinds))
    return found


def _comments(source: Source):
    """Yield (line, text) of each comment."""
    text, first = "".join(source.lines), source.start
    if "emulator:" not in text:
        return
    if source.lines[0][:1].isspace():
        text, first = "if True:\n" + text, first - 1
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield first + token.start[0] - 1, token.string
    except (tokenize.TokenError, SyntaxError):  # The source is a lambda in the middle of a statement.
        return


def allowed_kinds(allow) -> frozenset:
    """Return the set of kinds in the argument ``allow`` of a launch, which is one kind of finding or several.

    Raises ArgumentError for an unknown kind.
    """
    kinds = (allow,) if isinstance(allow, str) else tuple(allow)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ArgumentError(_unknown(*unknown))
    return frozenset(kinds)


def _unknown(*names) -> str:
    what = f"there is no kind of finding named {names[0]!r}" if names else "allow needs a kind of finding"
    return f"{what}; the kinds are {', '.join(KINDS)}"


class Silencing:
    """The rules by which one launch silences findings. ``kinds``: the kinds in its argument ``allow``."""

    def __init__(self, comments: list[Allowed], kinds: frozenset):
        self.comments, self.kinds = comments, kinds

    def covers(self, finding: Finding) -> bool:
        return finding.kind in self.kinds or any(_fits(comment, finding) for comment in self.comments)

    def unused(self, findings) -> list[Finding]:
        """Return advice about each comment that silences none of these findings."""
        idle = [
            comment for comment in self.comments if not any(_fits(comment, finding) for finding in findings)
        ]
        return [
            Finding(
                kind="unused_allowance",
                line=comment.line,
                message=f"The comment in this line allows {', '.join(comment.kinds)}, but nothing of that "
                "kind is found there: take the comment away.",
                function=comment.function,
            )
            for comment in idle
        ]


def _fits(comment: Allowed, finding: Finding) -> bool:
    here = finding.line == comment.line and finding.function in (None, comment.function)
    return here and finding.kind in comment.kinds
