"""Makes checkers of functions that return what they proved, or raise Refused and say what is wrong."""

import functools
import inspect
import os
import sys
from collections.abc import Callable
from weakref import WeakKeyDictionary

from gemm_course import road
from gemm_course.attempts import note_attempt
from gemm_course.progress import note_pass
from gemm_course.rungs import note_kernel

from .printing import few_lines
from .verdict import NOT_YET, Verdict

# nbgrader sets this variable while it grades. The graded kernel imports the course before it runs a cell.
_GRADED = "NBGRADER_EXECUTION" in os.environ
# The right answers of table exercises. They are no attributes, which `dir` would show.
_RIGHT: WeakKeyDictionary["Exercise", Callable] = WeakKeyDictionary()


class Refused(Exception):
    """A refusal of an answer, which says what is wrong, in one or two sentences, and where."""

    def __init__(self, message: str, where: str = ""):
        super().__init__(message)
        self.message, self.where = message, where


class NothingYet(Refused):
    """A refusal where there is no answer yet, as in a stub, which says where to start."""

    def __init__(self, start: str):
        super().__init__(f"{NOT_YET}: {start}")


class Exercise:
    """A checker, which returns a :class:`Verdict` on a learner's answer, whatever the answer does.

    own_number: the number that a teacher gave an exercise of their own; "" for the course's exercises.
    """

    def __init__(self, own_number: str, start: str, hints: tuple[str, ...], prove: Callable[..., str]):
        self.own_number, self.name = own_number, prove.__name__
        self.start, self.hints = start, hints
        # Table exercises set `slips`, likely mistakes with their answers, and `right`.
        self.slips: tuple = ()
        self._prove = prove
        functools.update_wrapper(self, prove)

    @property
    def number(self) -> str:
        """The exercise's number, such as "05.1"; its name if neither the road nor a teacher gives it one."""
        if self.own_number:
            return self.own_number
        return road.number_of(self.name) if self.name in road.EXERCISES else self.name

    @property
    def right(self) -> Callable | None:
        """The function with the right answer, or None. While a notebook is graded, only checkers have it."""
        if _GRADED and not sys._getframe(1).f_globals.get("__name__", "").startswith("gemm_course.checks."):
            raise AttributeError("the right answer is not to be had while a notebook is graded")
        return _RIGHT.get(self)

    @right.setter
    def right(self, function: Callable) -> None:
        _RIGHT[self] = function

    def __repr__(self) -> str:
        return f"<check.{self.name}, exercise {self.number}>"

    def __call__(self, *answer, **named) -> Verdict:
        __tracebackhide__ = True
        try:
            if all(_is_blank(value) for value in (*answer, *named.values())):
                raise NothingYet(self.start)
            self._check_call(answer, named)
            with few_lines():
                proved = self._prove(*answer, **named)
            verdict = self._verdict(True, proved)
        except NothingYet as refused:
            message = refused.message if refused.message != f"{NOT_YET}: " else f"{NOT_YET}: {self.start}"
            return self._verdict(False, message, begun=False)
        except Refused as refused:
            return self._verdict(False, refused.message, refused.where)
        if problem := note_pass(self.name):
            print(problem)
        note_kernel(self.name, *answer, *named.values())
        return verdict

    def _check_call(self, answer: tuple, named: dict) -> None:
        wanted = inspect.signature(self._prove)
        try:
            wanted.bind(*answer, **named)
        except TypeError as error:
            call = f"check.{self.name}({', '.join(wanted.parameters)})"
            raise Refused(f"The call is `{call}`; {error}.") from None

    def _verdict(self, passed: bool, message: str, where: str = "", begun: bool = True) -> Verdict:
        message, hints = road.numbered_where_known(message), tuple(map(road.numbered, self.hints))
        if begun:
            note_attempt(self.name, passed, message)
        return Verdict(self.number, self.name, passed, message, hints, where, begun)


def exercise(number: str = "", *, start: str, hints: tuple[str, ...]):
    """Make a checker of a function that returns what it proved, in one sentence, or raises :class:`Refused`.

    number: that of a teacher's own exercise, "50.1" to "99.99". The course's exercises have none here: theirs
    comes from the road. start: where to begin, said to a learner who has not written anything. hints: two to
    four, from a nudge to nearly the answer. Messages, start and hints may name what the road knows, as in
    "[[outer_product]]".
    """
    if not 2 <= len(hints) <= 4:
        raise ValueError(f"an exercise has {len(hints)} hints; two to four are needed")
    return functools.partial(Exercise, number, start, hints)


def nothing_yet() -> NothingYet:
    """Return the error for a learner who has not begun; the verdict then says the exercise's ``start``."""
    return NothingYet("")


def _is_blank(value) -> bool:
    return value is None or value is Ellipsis
