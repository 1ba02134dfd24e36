"""Answers that are numbers or small functions: compared case by case, the likely slip named."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .exercise import Refused
from .learner import call, name_of


@dataclass(frozen=True)
class Slip:
    """A likely mistake: ``message`` names it where ``answer`` always gives what the learner's does."""

    message: str
    answer: Callable[..., Any]


def hold_to_table(
    function: Callable,
    cases: Sequence[tuple],
    right: Callable[..., Any],
    slips: Sequence[Slip] = (),
    *,
    read: Callable[[Any], Any] = lambda answer: answer,
    show: Callable[[tuple], str] | None = None,
    part: str = "",
) -> None:
    """Call ``function`` with each case; raise Refused unless it always answers as ``right`` does.

    read: turns an answer into what is compared, or raises Refused where it is of the wrong kind. show: a case
    in words. part: the names of what is compared, where it is not all of the answer.
    """
    show = show or (lambda case: f"{name_of(function)}({', '.join(map(repr, case))})")
    answers = []
    for case in cases:
        try:
            answers.append(read(call(function, *case)))
        except Refused:
            if _first_wrong(cases, answers, right) is None:
                raise
            break  # an earlier answer was wrong already, and says more than this failure
    first = _first_wrong(cases, answers, right)
    if first is None:
        return
    case = cases[first]
    named = f"{part} = " if part else ""
    where = f"First wrong case: `{show(case)}` gives {named}{answers[first]}, right is {right(*case)}."
    for slip in slips:
        if all(slip.answer(*case) == answer for case, answer in zip(cases, answers)):
            raise Refused(slip.message, where)
    raise Refused("Not all answers are right.", where)


def _first_wrong(cases, answers, right) -> int | None:
    pairs = enumerate(zip(cases, answers))
    return next((number for number, (case, answer) in pairs if answer != right(*case)), None)


def hold_to_number(answer: Any, right: int, known: dict[int, str], otherwise: str) -> None:
    """Raise Refused unless ``answer`` is ``right``; ``known``: wrong numbers and what they stand for."""
    if isinstance(answer, bool) or not isinstance(answer, (int, float, np.integer, np.floating)):
        raise Refused(f"A number is wanted, not `{answer!r}`.")
    if answer == right:
        return
    raise Refused(known.get(answer, otherwise), f"Your number: {answer}.")
