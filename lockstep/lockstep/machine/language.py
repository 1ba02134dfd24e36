"""Carries out the rest of Python's syntax: ``is``, ``in``, chained comparisons, exceptions."""

import builtins
import os

import numpy as np

from lockstep.errors import KernelRaised, KernelTypeError, raised_as, remember_exception
from lockstep.findings import thread_name
from lockstep.memory.storage import DeviceArray, Unknown
from lockstep.values import lanes
from lockstep.values.dtypes import dtype_of
from lockstep.values.enums import Member

from .iterables import check_one_type
from .words import kind_of

# Two variables hold the same array if the arrays agree in all these attributes.
_IDENTITY = ("storage", "dtype", "layout", "shape", "strides", "pattern", "offset")


class Language:
    """The part of the machine that carries out the rest of Python's syntax."""

    # ---- comparisons ----

    def chain(self, first, *links):
        """Evaluate ``a < b < c < d``: each value once, in the lanes in which all comparisons before it hold.

        A link takes the value before it; it returns its own and whether the two compare.
        """
        saved, value, outcome = self.unit.mask, first, True
        for link in links:
            value, step = link(value)
            step = self.truth(step)
            outcome = step if outcome is True else self._both("&", outcome, step)
            if step is False:
                break
            if step is not True:
                self.unit.mask = self.unit.mask.where(step)
            if not self.unit.mask.any:
                break
        self.unit.mask = saved
        return outcome

    def compare_tuples(self, op, a, b):
        """Return ``a op b`` for tuples: the first position at which they differ decides."""
        if op in ("==", "!="):
            equal = len(a) == len(b)
            for x, y in zip(a, b):
                equal = self.and_(self.compare("==", x, y), lambda equal=equal: equal)
            return equal if op == "==" else self.not_(equal)
        outcome = lanes.COMPARE[op](len(a), len(b)).item()
        for x, y in reversed(list(zip(a, b))):
            equal = self.and_(self.compare("==", x, y), lambda outcome=outcome: outcome)
            outcome = self.or_(self.compare(op[0], x, y), lambda equal=equal: equal)
        return outcome

    def identical(self, a, b):
        """Return ``a is b``: for None and arrays whether they are the same, for values of one type ``a ==
        b``.
        """
        if a is None or b is None:
            return a is b
        if isinstance(a, DeviceArray) and isinstance(b, DeviceArray):
            return a is b or all(getattr(a, name) == getattr(b, name) for name in _IDENTITY)
        if isinstance(a, Member) and isinstance(b, Member):
            return a == b
        if isinstance(a, (DeviceArray, tuple)) or isinstance(b, (DeviceArray, tuple)):
            return False
        return self.compare("==", a, b) if dtype_of(a) == dtype_of(b) else False

    def contained(self, value, values):
        """Return ``value in values`` for a tuple."""
        if isinstance(values, tuple):
            check_one_type(values)
            outcome = False
            for other in values:
                equal = self.compare("==", value, other)
                outcome = equal if outcome is False else self.or_(outcome, lambda equal=equal: equal)
            return outcome
        raise KernelTypeError(
            f"the emulator supports `in` for tuples, not for {kind_of(values)}: write a loop"
        )

    # ---- calls ----

    @staticmethod
    def starred(values) -> tuple:
        """Return the values of ``*values`` in a call."""
        if not isinstance(values, tuple):
            raise KernelTypeError(f"only a tuple can be passed with * in a kernel, not {kind_of(values)}")
        return values

    # ---- exceptions ----

    def assert_(self, site, condition, *arguments):
        """Carry out ``assert condition, text``. While only counting, a condition on data not loaded holds."""
        if isinstance(condition, Unknown):
            return
        condition = self.truth(condition)
        if condition is True:
            return
        saved = self.unit.mask
        self.unit.mask = saved if condition is False else saved.where_not(condition)
        self.raise_(site, "AssertionError", arguments)
        self.unit.mask = saved

    def raise_where(self, here, site, kind, text):
        """Carry out ``raise kind(text)`` for the active lanes in which ``here`` holds."""
        if not here.any():
            return
        saved = self.unit.mask
        if here.ndim:
            self.unit.mask = saved.where(lanes.from_values(here))
        self.raise_(site, kind, (text,), written=False)
        self.unit.mask = saved

    def raise_(self, site, kind, arguments, key=None, written=True):
        """Carry out ``raise kind(*arguments)``, which stops the kernel if a thread reaches it.

        ``key`` is the name under which :mod:`lockstep.errors` remembers the class; None for one of Python's.
        ``written``: whether the source has the ``raise`` or ``assert``, and not code that Numba adds.
        """
        if not self.unit.mask.any:
            return
        thread, block = self._first_place()
        name, at = thread_name(thread, block), self.sites[site]
        what = f"{kind}: {', '.join(map(str, arguments))}" if arguments else kind
        sentence = f"{name[0].upper()}{name[1:]} raises {what} in line {at.line}."
        if not self.debug:
            sentence += (
                " On a GPU, a kernel that is compiled without debug=True does not tell: the thread just ends "
                "there."
            )
            raise KernelRaised(sentence)
        arguments = _as_numba(thread, block, at if written else None, arguments)
        key = key or remember_exception(getattr(builtins, kind))
        raise raised_as(key, f"{sentence} ({arguments[0]})", arguments)

    def _first_place(self) -> tuple:
        """Return (thread, block) of the first active lane."""
        active = True if self.unit.mask.array is None else self.unit.mask.array
        shape = np.broadcast_shapes(np.shape(active), self.chunk.geometry.shape)
        exists = self.chunk.geometry.all_threads.array
        here = np.broadcast_to(active, shape) & (True if exists is None else exists)
        *_, row, column, linear = (int(axis[0]) for axis in here.nonzero())
        return self.chunk.geometry.thread_coordinates(linear), self.chunk.block_coordinates(row, column)

    kind_of = staticmethod(kind_of)


def _as_numba(thread, block, at, arguments) -> tuple:
    """Return the arguments of the exception that Numba raises on the host, where it names z first.

    ``at``: the site of the ``raise``, or None for code without one, whose place Numba does not know.
    """
    where = ""
    if at is not None:
        where = f"In function {at.function!r}, file {os.path.abspath(at.file)}, line {at.line}, "
    first = f"{where}tid={list(reversed(thread))} ctaid={list(reversed(block))}"
    return (f"{first}: {arguments[0]}", *arguments[1:]) if arguments else (first,)


def same_tuple(like: tuple, values) -> tuple:
    """Return a tuple of ``values``, or a named tuple if ``like`` is one."""
    return type(like)(*values) if hasattr(like, "_fields") else tuple(values)
