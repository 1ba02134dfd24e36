"""Checks ``ring_suspects``: which of four rings has which bug, told by what goes wrong and when."""

from collections.abc import Mapping
from typing import Any

from gemm_course.checks.core import Refused, exercise, nothing_yet
from gemm_course.checks.kits.rings_on_trial import BUGS

WORDS = {
    "none": "no bug, and waits too much",
    "wait": "never waits for its copies",
    "barrier": "has no barrier in its loop",
    "slot": "fills a slot too early",
}
# The keys are (ring, wrong bug). Only the first mistake is named, so later rings need few messages.
WHY_NOT = {
    ("W", "wait"): "W is right with one tile. Who never waits cannot be right even then.",
    ("W", "barrier"): "W has no finding with one tile. Without a barrier others' elements are read at once, "
    "with the first tile.",
    ("W", "none"): "W has findings with two tiles and wrong numbers with four.",
    ("X", "wait"): "X is always right and has no finding: it waits more than enough.",
    ("X", "barrier"): "X has no finding. Without a barrier there is a race, even where numbers are right.",
    ("Y", "wait"): "Y's numbers are right. If nobody waited, old values would be read.",
}


@exercise(
    start="which ring is right with one tile, with two and with four? Begin with the one without findings.",
    hints=(
        "One ring has no finding at all. That is the one without a bug.",
        "With one tile no slot is used twice. So a ring that goes wrong only later has a bug with slots.",
        "Two are left. If nobody waits, the copies have not come, and the numbers are wrong. If "
        "everybody waits but nobody meets, a thread reads what others may not have yet: a race, with right "
        "numbers if you are lucky.",
    ),
)
def ring_suspects(bugs):
    """A dict from "W", "X", "Y" and "Z" to "none", "wait", "barrier" or "slot"."""
    given = _read(bugs)
    for name, right in BUGS.items():
        if given[name] != right:
            raise Refused(f"{WHY_NOT[name, given[name]]} So it is not `{given[name]!r}`.")
    told = "; ".join(f"{name} {WORDS[bug]}" for name, bug in BUGS.items())
    return f"All four found: {told}."


def _read(bugs: Any) -> dict[str, str]:
    if not isinstance(bugs, Mapping):
        raise Refused(f'The answer must be a dict such as {{"W": "none", ...}}; this is `{bugs!r}`.')
    missing = [name for name in BUGS if name not in bugs]
    if missing:
        raise Refused(f"There is no answer for {missing[0]}: the dict needs W, X, Y and Z.")
    if all(bugs[name] is None or bugs[name] is Ellipsis for name in BUGS):
        raise nothing_yet()
    for name in BUGS:
        if not isinstance(bugs[name], str) or bugs[name] not in WORDS:
            kinds = ", ".join(f'"{word}"' for word in WORDS)
            raise Refused(f"{name} must be one of {kinds}; this is `{bugs[name]!r}`.")
    twice = next((word for word in WORDS if [bugs[name] for name in BUGS].count(word) > 1), None)
    if twice:
        raise Refused(f'Each occurs once, but "{twice}" is given to several rings.')
    return {name: bugs[name] for name in BUGS}
