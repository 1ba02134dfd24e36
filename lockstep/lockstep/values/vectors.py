"""Holds the values of vector types such as ``float32x4``."""

from collections.abc import Callable


class Vector:
    """A vector of up to four numbers, named x, y, z and w."""

    words = "a vector"

    def __init__(self, parts: tuple):
        self.parts = parts
        for name, part in zip("xyzw", parts):
            setattr(self, name, part)

    def joined(self, other: "Vector", join: Callable) -> "Vector":
        """Return the vector of ``join(mine, theirs)`` for each pair of numbers."""
        return Vector(tuple(map(join, self.parts, other.parts)))
