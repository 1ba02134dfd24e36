"""Checks answers that are numbers or small functions, case by case, and names the likely slip."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, wraps
from itertools import takewhile
from typing import Any

import numpy as np

from gemm_course.checks.core import (
    Exercise,
    NothingYet,
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
    """A likely mistake: ``message`` is shown if ``answer`` gives the learner's answer in every case."""

    message: str
    answer: Callable[..., Any]


@dataclass(frozen=True)
class Part:
    """A part of an answer that is judged by itself, such as one of several numbers.

    where: the index of the part in the answer, or None for all of it. slips: likely mistakes in this part.
    """

    name: str
    where: int | slice | None
    slips: Sequence[Slip] = ()

    def of(self, answer: Any) -> Any:
        """Return this part of an answer, or the whole answer if ``where`` is None."""
        return answer if self.where is None else answer[self.where]

    def put_into(self, answer: Any, part: Any) -> Any:
        """Return the answer with another value of this part."""
        if self.where is None:
            return part
        parts = list(answer)
        parts[self.where] = part
        return tuple(parts)


WHOLE = Part("", None)


# ---- readers: an answer -> what is compared; Refused where it is of the wrong kind -------------------------


def a_whole_number(what: str, *, floats: bool = False) -> Callable[[Any], int]:
    """Return a reader of one whole number. what: its name for the learner. floats: accept 64.0 for 64."""
    return lambda answer: whole_number(_whole_if_it_is(answer) if floats else answer, what)


def a_number(answer: Any, name: str = "The answer") -> float:
    """Read any number as a float. name: the number's name for the learner."""
    if isinstance(answer, (bool, np.bool_)) or not isinstance(answer, (int, float, Fraction, np.number)):
        raise Refused(f"{name} must be a number; this is `{answer!r}`.")
    return float(answer)


COUNT_WORDS = {2: "two", 3: "three", 4: "four"}


def whole_numbers(*names: str, floats: bool = False) -> Callable[[Any], tuple[int, ...]]:
    """Return a reader of several whole numbers in this order, such as ``whole_numbers("row", "column")``.

    floats: accept 64.0 for 64.
    """
    return _several(names, lambda part, name: a_whole_number(name, floats=floats)(part))


def numbers(*names: str) -> Callable[[Any], tuple[float, ...]]:
    """Return a reader of several numbers in this order; whole ones become integers."""
    return _several(names, lambda part, name: _whole_if_it_is(a_number(part, f"`{name}`")))


def _whole_if_it_is(value: Any) -> Any:
    """Return an int for a float without a fraction, and anything else as it is."""
    is_float = isinstance(value, (float, np.floating))
    return int(value) if is_float and float(value).is_integer() else value


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


# A place is (row, column).
Place = tuple[int, int]


def places(answer: Any) -> list[Place]:
    """Read a list of places, ``[(row, column), ...]``; any iterable of pairs that keeps an order will do."""
    if isinstance(answer, (set, frozenset)):
        raise Refused("A set forgets the order, and the order counts here. Return a list.")
    if isinstance(answer, (str, bytes, dict)) or not hasattr(answer, "__iter__"):
        raise Refused(f"Return a list of pairs, `[(row, column), ...]`, not `{answer!r}`.")
    items = list(answer)
    if _are_rows_and_columns(answer, items):
        raise Refused(
            f"These are all rows, then all columns: `{_short(answer)}`. Pair them: `zip(rows, columns)`."
        )
    return [_place(item) for item in items]


def _place(item: Any) -> Place:
    if type(item) is tuple and len(item) == 2 and type(item[0]) is type(item[1]) is int:
        # An answer may have a million places, so a plain pair skips the slower checks below.
        return item
    parts = list(item) if isinstance(item, (*_SEQUENCES, Iterator)) else []
    if any(isinstance(part, _SEQUENCES) for part in parts):
        raise Refused(
            f"There is a list inside the list: `{_short(item)}` is one of its items. Each item must be a "
            "pair, `(row, column)`."
        )
    if len(parts) != 2:
        raise Refused(
            f"Return a list of pairs, `[(row, column), ...]`; here `{_short(item)}` is among the items."
        )
    if any(isinstance(part, (float, np.floating)) for part in parts):
        raise Refused(f"Rows and columns are whole numbers; here `{_short(item)}` is among them. Use `//`.")
    if any(isinstance(part, (bool, np.bool_)) or not isinstance(part, (int, np.integer)) for part in parts):
        raise Refused(f"A row and a column are two whole numbers; here `{_short(item)}` is among the items.")
    return int(parts[0]), int(parts[1])


_SEQUENCES = (list, tuple, np.ndarray)


def _are_rows_and_columns(answer: Any, items: list) -> bool:
    """Return whether these are two long lists in place of many pairs; two lists of two may be pairs."""
    if len(items) != 2 or not all(isinstance(item, _SEQUENCES) for item in items):
        return False
    if len(items[0]) != len(items[1]) or any(isinstance(part, _SEQUENCES) for item in items for part in item):
        return False
    arrays = isinstance(answer, tuple) and all(isinstance(item, np.ndarray) for item in items)
    return arrays or len(items[0]) != 2


def _short(value: Any) -> str:
    """Return a value as a message shows it; a long list is cut short."""
    if isinstance(value, list) and len(value) > 4 and len(str(value)) > 60:
        return f"{str(value[:4])[:-1]}, ...]"
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:60]} ..."


# ---- the exercise ------------------------------------------------------------------------------------------


def _as_it_is(answer: Any) -> Any:
    return answer


def _not_all_right(cases: Sequence[tuple], answers: Sequence) -> str:
    return "Not all answers are right."


def names_without_effect(*parameters: str) -> Callable[[Sequence[tuple], Sequence], str]:
    """Return an ``otherwise`` for tables: it names the parameters that have no effect on the answers.

    The right answer must depend on all of the parameters. A parameter is judged only if some cases differ in
    that one alone.
    """

    def otherwise(cases: Sequence[tuple], answers: Sequence) -> str:
        given = dict(zip(cases, answers))
        idle = [name for place, name in enumerate(parameters) if _is_idle(given, place)]
        if not idle or not answers:
            return "Not all answers are right."
        named = " and ".join(f"`{name}`" for name in idle)
        return f"Your answer is the same whatever {named} {'is' if len(idle) == 1 else 'are'}."

    return otherwise


def _is_idle(answers: dict[tuple, Any], place: int) -> bool:
    """Return whether there are cases that differ at this place alone, and all of these have equal answers."""
    seen: dict[tuple, Any] = {}
    for case, answer in answers.items():
        others = (*case[:place], *case[place + 1 :])
        if seen.setdefault(others, answer) != answer:
            return False
    return len(seen) < len(answers)


def _none_in_some(case: tuple, truth: Any) -> str:
    return (
        "The function returned None in this case, and an answer in others. Does every path end in a `return`?"
    )


def table_exercise(
    number: str = "",
    *,
    start: str,
    hints: tuple[str, ...],
    cases: Sequence[tuple],
    passed: str | Callable[[Callable], str],
    slips: Sequence[Slip] = (),
    parts: Sequence[Part] = (),
    read: Callable[[Any], Any] = _as_it_is,
    show: Callable[[tuple], str] | None = None,
    difference: Callable[[tuple, Any, Any], str] | None = None,
    otherwise: Callable[[Sequence[tuple], Sequence], str | None] = _not_all_right,
    if_none: Callable[[tuple, Any], str] = _none_in_some,
) -> Callable[[Callable], Exercise]:
    """Return a decorator that makes an exercise of the function that answers each case rightly.

    The learner's function must give the same answers.

    number, start, hints: as in :func:`exercise`. passed: the message for a pass, or a function of the right
    answer that returns it. slips: likely mistakes in the whole answer. parts: parts of the answer that are
    judged one by one, each with its own slips. read, show, difference, otherwise, if_none: as in
    :func:`hold_to_table`.

    The checker has the name and the docstring of the decorated function; the docstring should begin with the
    learner's call. The checker keeps the function as ``right`` and all slips as ``slips``.
    """
    compared = {"read": read, "show": show, "difference": difference, "if_none": if_none}

    def make(right: Callable) -> Exercise:
        right = _remembering(right)
        parameters = tuple(inspect.signature(right).parameters)

        def prove(function):
            function_of(function, parameters)
            if parts and slips:
                hold_to_table(function, cases, right, slips, otherwise=lambda *_: None, **compared)
            for part in parts or (Part("", None, slips),):
                hold_to_table(function, cases, right, part.slips, otherwise=otherwise, part=part, **compared)
            return passed if isinstance(passed, str) else passed(right)

        prove.__name__, prove.__doc__ = right.__name__, right.__doc__
        checker = exercise(number, start=start, hints=hints)(prove)
        checker.right = right
        of_parts = (_in_whole_answer(slip, part, right) for part in parts for slip in part.slips)
        checker.slips = (*slips, *of_parts)
        return checker

    return make


def _remembering(right: Callable) -> Callable:
    """Return the function with its answers remembered, if its arguments can be looked up (arrays cannot)."""
    remembered = cache(right)

    @wraps(right)
    def answer(*case):
        try:
            hash(case)
        except TypeError:
            return right(*case)
        return remembered(*case)

    return answer


def _in_whole_answer(slip: Slip, part: Part, right: Callable) -> Slip:
    """Return a slip for the whole answer: this part has the mistake, and all other parts are right."""
    return Slip(slip.message, lambda *case: part.put_into(right(*case), slip.answer(*case)))


def hold_to_table(
    function: Callable,
    cases: Sequence[tuple],
    right: Callable[..., Any],
    slips: Sequence[Slip] = (),
    *,
    read: Callable[[Any], Any] = _as_it_is,
    show: Callable[[tuple], str] | None = None,
    difference: Callable[[tuple, Any, Any], str] | None = None,
    otherwise: Callable[[Sequence[tuple], Sequence], str | None] = _not_all_right,
    if_none: Callable[[tuple, Any], str] = _none_in_some,
    part: Part = WHOLE,
) -> None:
    """Call ``function`` with each case; raise Refused unless it always answers as ``right`` does.

    read: turns an answer into what is compared, or raises Refused where it is of the wrong kind. show: a case
    in words. difference: (case, answer, right answer) -> where they differ first, a sentence. otherwise:
    (cases, answers) -> what is wrong where no slip fits, or None to accept it. if_none: (case, right answer)
    -> what is wrong where this case has no answer and others have. part: compare this part of answers alone.
    """
    show = show or (lambda case: f"{name_of(function)}({', '.join(map(repr, case))})")
    truths = [part.of(right(*case)) for case in cases]
    outcomes = _outcomes(function, cases, read, part)
    answers = list(takewhile(_is_answer, outcomes))
    first = _first_wrong(answers, truths)
    if first is None and len(answers) == len(cases):
        return
    # A wrong answer explains more than a later failure, so a failure is told only if no answer is wrong.
    if first is None:
        some = any(map(_is_answer, outcomes))
        failed = len(answers) if some else len(outcomes) - 1
        refused = outcomes[failed]
        if some and isinstance(refused, NothingYet):
            refused = Refused(if_none(cases[failed], truths[failed]))
        refused.where = refused.where or f"In `{show(cases[failed])}`."
        raise refused
    case, answer, truth = cases[first], answers[first], truths[first]
    named = f"{part.name} = " if part.name else ""
    where = f"First wrong case: `{show(case)}` gives {named}{_short(answer)}, right is {_short(truth)}."
    if difference:
        where = difference(case, answer, truth)
        where = f"{part.name}: {where}" if part.name else where
    for slip in slips:
        if _gives(slip, cases, answers):
            raise Refused(slip.message, where)
    if message := otherwise(cases, answers):
        raise Refused(message, where)


def _gives(slip: Slip, cases: Sequence[tuple], answers: Sequence) -> bool:
    """Return whether a slip gives these answers; False if it fails in some case."""
    try:
        return all(slip.answer(*case) == answer for case, answer in zip(cases, answers))
    except Exception:
        # A learner must never see the failure of a slip.
        return False


def _outcomes(function: Callable, cases: Sequence[tuple], read: Callable[[Any], Any], part: Part) -> list:
    """Return the answer or the NothingYet of each case. Any other Refused ends the list."""
    outcomes = []
    for case in cases:
        try:
            outcomes.append(part.of(call(function, *_fresh(case), read=read)))
        except NothingYet as nothing:
            # The next cases tell a stub from a function that answers only some cases.
            outcomes.append(nothing)
        except Refused as refused:
            return [*outcomes, refused]
    return outcomes


def _fresh(case: tuple) -> tuple:
    """Return the case with copies of its lists, as a learner's function may sort or empty what it gets."""
    return tuple(list(given) if isinstance(given, list) else given for given in case)


def _is_answer(outcome: Any) -> bool:
    return not isinstance(outcome, Refused)


def _first_wrong(answers: Sequence, truths: Sequence) -> int | None:
    return next((i for i, (answer, truth) in enumerate(zip(answers, truths)) if answer != truth), None)


def hold_to_number(answer: Any, right: int, known: dict[int, str], otherwise: str) -> None:
    """Raise Refused unless ``answer`` is ``right``. known: wrong numbers and what each stands for."""
    if isinstance(answer, bool) or not isinstance(answer, (int, float, np.integer, np.floating)):
        raise Refused(f"The answer must be a number; this is `{answer!r}`.")
    if answer == right:
        return
    raise Refused(known.get(answer, otherwise), f"Your number: {answer}.")
