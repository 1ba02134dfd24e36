"""Gives garbage to lanes that read a variable before they set it, when only other lanes have set it.

:mod:`lockstep.types.unset_reads` finds such reads in the source.
"""

from lockstep.errors import KernelStopped, KernelTypeError
from lockstep.findings import Finding, thread_name
from lockstep.memory.garbage import garbage
from lockstep.memory.records import RECORDS
from lockstep.memory.storage import ARRAYS, Unbound, Unknown, unknown
from lockstep.values.dtypes import dtype_of


class Unset:
    """The part of the machine that reads variables that only some lanes have set."""

    def checked(self, site, value, is_set, *lines):
        """Return the value of a variable that some lanes may not have set. ``is_set`` tells which lanes have.

        ``lines``: where it is set. The lanes that have not set it read garbage.
        """
        if is_set is True:
            return value
        if isinstance(value, Unbound):
            value = self._never_set(site, lines)
        if self.log is not None:
            return value
        missing = self.unit.mask if is_set is False else self.unit.mask.where_not(is_set)
        if not missing.any:
            return value
        if isinstance(value, (*ARRAYS, *RECORDS)):
            raise KernelStopped(f"line {self.sites[site].line}: {self._about_unset(site, missing, lines)[0]}")
        self._report_unset(site, missing, lines)
        saved, self.unit.mask = self.unit.mask, missing
        value = self.merge(_garbage_like(value), value)
        self.unit.mask = saved
        return value

    def present(self, site, value, is_none):
        """Return a variable's value, or None if it ``is_none`` in all lanes that read it. They must agree."""
        if is_none is False or self.log is not None:
            return value
        if is_none is True:
            return None
        without = self.unit.mask.where(is_none)
        if not without.any:
            return value
        if not self.unit.mask.where_not(is_none).any:
            return None
        _, block, thread = self.reporter.first_lane(without)
        raise KernelTypeError(
            f"{self.sites[site].op} is None in {thread_name(thread, block)}, which uses it in line "
            f"{self.sites[site].line}, and a value in others: test it with `is None` first"
        )

    def _never_set(self, site, lines):
        """Return a value for a variable that no lane has set, of the type that it would have."""
        kind = self.unset_kinds.get(site)
        if kind is None:
            name = self.sites[site].op
            raise KernelTypeError(f"{name} is used before any thread has set it ({_where(name, lines)})")
        return _of_kind(kind, unknown if self.log is not None else garbage)

    def _about_unset(self, site, missing, lines) -> tuple:
        """Return (a sentence about the first thread that reads what it has not set, its block, itself)."""
        name, (_, block, thread) = self.sites[site].op, self.reporter.first_lane(missing)
        who = thread_name(thread, block)
        sentence = (
            f"{who[0].upper()}{who[1:]} reads {name} without having set it: {_where(name, lines)}, "
            "which this thread has not run. On a GPU its value is undefined."
        )
        return sentence, block, thread

    def _report_unset(self, site, missing, lines):
        at = self.sites[site]

        def make():
            message, block, thread = self._about_unset(site, missing, lines)
            return Finding("unset_variable", at.line, message, None, None, block, [thread], at.function, site)

        self.findings.add(("unset_variable", site), missing.active(self.unit.batch), make)


def _where(name, lines) -> str:
    numbers = list(map(str, lines))
    if len(numbers) == 1:
        return f"{name} is set in line {numbers[0]}"
    return f"{name} is set in lines {', '.join(numbers[:-1])} and {numbers[-1]}"


def _of_kind(kind, make):
    return tuple(_of_kind(part, make) for part in kind) if isinstance(kind, tuple) else make(kind)


def _garbage_like(value):
    """Return garbage of the type of a number, or of a tuple of numbers. An array in it stays what it is."""
    if isinstance(value, tuple):
        parts = map(_garbage_like, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if value is None or isinstance(value, (*ARRAYS, *RECORDS, Unknown)) or dtype_of(value) is None:
        return value
    return garbage(dtype_of(value))
