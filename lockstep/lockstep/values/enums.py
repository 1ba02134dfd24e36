"""Defines the members of enums. Numba computes with those of an IntEnum, and only compares all others."""

from dataclasses import dataclass

import numpy as np


class EnumNumber(np.int64):
    """A member of an IntEnum: an int64 that has a ``value``, and is no literal."""

    __slots__ = ()

    @property
    def value(self) -> int:
        return int(self)


@dataclass(frozen=True)
class Member:
    """A member of an enum that is no IntEnum. ``kind`` is the class, ``value`` a number."""

    kind: type
    value: complex

    @property
    def words(self) -> str:
        return f"a member of the enum {self.kind.__name__}"

    @property
    def record_kind(self) -> tuple:
        return Member, self.kind, type(self.value)
