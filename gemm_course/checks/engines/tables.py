"""Answers that are numbers or small functions: compared case by case, the likely slip named."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemm_course.checks.core import (
    Exercise,
    Refused,
    call,
    exercise,
    function_of,
    name_of,
    nothing_yet,
    whole_number,
)


@dataclass(frozen=True)
class Slip:
    """A likely mistake: ``message`` names it where ``answer`` always gives what the learner's does."""

    message: str
    answer: Callable[..., Any]


@dataclass(frozen=True)
class Part:
    """Some of an answer's numbers, judged by themselves: their name, their place, their slips."""

    name: str
    where: int | slice | None
    slips: Sequence[Slip] = ()

    def of(self, answer: Any) -> Any:
        """This part of an answer; all of it where ``where`` is None."""
        return answer if self.where is None else answer[self.where]


WHOLE = Part("", None)


# ---- readers: an answer -> what is compared; Refused where it is of the wrong kind -------------------------


def a_whole_number(what: str) -> Callable[[Any], int]:
    """A reader of one whole number; ``what`` it is, in words."""
    return lambda answer: whole_number(answer, what)


def a_number(answer: Any) -> float:
    """Read any number as a float."""
    if isinstance(answer, (bool, np.bool_)) or not isinstance(answer, (int, float, np.number)):
        raise Refused(f"The answer must be a number; this is `{answer!r}`.")
    return float(answer)


COUNT_WORDS = {2: "two", 3: "three", 4: "four"}


def whole_numbers(*names: str) -> Callable[[Any], tuple[int, ...]]:
    """A reader of several whole numbers in this order, such as ``whole_numbers("row", "column")``."""
    return _several(names, whole_number)


def numbers(*names: str) -> Callable[[Any], tuple[float, ...]]:
    """The same of any numbers; whole ones are read as integers."""
    return _several(names, lambda part, name: _whole_if_it_is(a_number(part)))


def _whole_if_it_is(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _several(names: Sequence[str], read_part: Callable[[Any, str], Any]) -> Callable[[Any], tuple]:
    def read(answer: Any) -> tuple:
        if not isinstance(answer, (tuple, list, np.ndarray)) or len(answer) != len(names):
            raise Refused(
                f"The answer must be {COUNT_WORDS[len(names)]} numbers, `({', '.join(names)})`; this "
                f"is `{answer!r}`."
            )
        if all(part is None or part is Ellipsis for part in answer):
            raise nothing_yet()
        return tuple(read_part(part, name) for part, name in zip(answer, names))

    return read


Place = tuple[int, int]  # row and column


def places(answer: Any) -> list[Place]:
    """Read a list of places, ``[(row, column), ...]``; any iterable of pairs will do."""
    if isinstance(answer, (str, bytes, dict)) or not hasattr(answer, "__iter__"):
        raise Refused(f"Return a list of pairs, `[(row, column), ...]`, not `{answer!r}`.")
    try:
        pairs = [(row, column) for row, column in answer]
    except (TypeError, ValueError):
        raise Refused(
            f"Return a list of pairs, `[(row, column), ...]`; this is `{str(answer)[:60]}`."
        ) from None
    for pair in pairs:
        if not all(isinstance(number, (int, np.integer)) and not isinstance(number, bool) for number in pair):
            raise Refused(f"Rows and columns are whole numbers; here `{pair}` is among them. Use `//`.")
    return [(int(row), int(column)) for row, column in pairs]


# ---- the exercise ------------------------------------------------------------------------------------------


def table_exercise(
    number: str,
    *,
    start: str,
    hints: tuple[str, ...],
    cases: Sequence[tuple],
    passed: str | Callable[[Callable], str],
    slips: Sequence[Slip] = (),
    parts: Sequence[Part] = (),
    **compared: Any,
) -> Callable[[Callable], Exercise]:
    """Make an exercise of the right answer, a function; the learner's has to give the same for each case.

    number, start, hints: as in :func:`exercise`. passed: what is said then, or (right answer) -> that. slips:
    likely mistakes in the whole answer; where it has several parts, each has its own besides. compared:
    read, show, difference and otherwise of :func:`hold_to_table`. The right function's docstring is the
    checker's; the checker's ``right`` is it.
    """

    def make(right: Callable) -> Exercise:
        parameters = tuple(inspect.signature(right).parameters)

        def prove(function):
            function_of(function, parameters)
            if parts and slips:
                slips_alone = {**compared, "otherwise": lambda cases, answers: None}
                hold_to_table(function, cases, right, slips, **slips_alone)
            for part in parts or (Part("", None, slips),):
                hold_to_table(function, cases, right, part.slips, part=part, **compared)
            return passed if isinstance(passed, str) else passed(right)

        prove.__name__, prove.__doc__ = right.__name__, right.__doc__
        checker = exercise(number, start=start, hints=hints)(prove)
        checker.right = right
        return checker

    return make


def hold_to_table(
    function: Callable,
    cases: Sequence[tuple],
    right: Callable[..., Any],
    slips: Sequence[Slip] = (),
    *,
    read: Callable[[Any], Any] = lambda answer: answer,
    show: Callable[[tuple], str] | None = None,
    difference: Callable[[tuple, Any, Any], str] | None = None,
    otherwise: Callable[[Sequence[tuple], Sequence], str | None] = lambda cases, answers: (
        "Not all answers are right."
    ),
    part: Part = WHOLE,
) -> None:
    """Call ``function`` with each case; raise Refused unless it always answers as ``right`` does.

    read: turns an answer into what is compared, or raises Refused where it is of the wrong kind. show: a case
    in words. difference: (case, answer, right answer) -> where they differ first, a sentence. otherwise:
    (cases, answers) -> what is wrong where no slip fits, or None to accept it. part: compare this part of the
    answer alone.
    """
    show = show or (lambda case: f"{name_of(function)}({', '.join(map(repr, case))})")
    truths, answers = [part.of(right(*case)) for case in cases], []
    for case in cases:
        try:
            answers.append(part.of(read(call(function, *case))))
        except Refused as refused:
            if _first_wrong(answers, truths) is None:
                refused.where = refused.where or f"In `{show(case)}`."
                raise
            break  # an earlier answer was wrong already, and says more than this failure
    first = _first_wrong(answers, truths)
    if first is None:
        return
    case, answer, truth = cases[first], answers[first], truths[first]
    named = f"{part.name} = " if part.name else ""
    where = f"First wrong case: `{show(case)}` gives {named}{answer}, right is {truth}."
    if difference:
        where = difference(case, answer, truth)
        where = f"{part.name}: {where}" if part.name else where
    for slip in slips:
        if all(slip.answer(*case) == answer for case, answer in zip(cases, answers)):
            raise Refused(slip.message, where)
    if message := otherwise(cases, answers):
        raise Refused(message, where)


def _first_wrong(answers: Sequence, truths: Sequence) -> int | None:
    return next((i for i, (answer, truth) in enumerate(zip(answers, truths)) if answer != truth), None)


def hold_to_number(answer: Any, right: int, known: dict[int, str], otherwise: str) -> None:
    """Raise Refused unless ``answer`` is ``right``; ``known``: wrong numbers and what they stand for."""
    if isinstance(answer, bool) or not isinstance(answer, (int, float, np.integer, np.floating)):
        raise Refused(f"The answer must be a number; this is `{answer!r}`.")
    if answer == right:
        return
    raise Refused(known.get(answer, otherwise), f"Your number: {answer}.")
