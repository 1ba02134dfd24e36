"""What to call kernels beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol


class Named(Protocol):
    """A kernel with its tiles, as in "BM=128 BN=128"; a Compiled or a Profile."""

    @property
    def name(self) -> str: ...

    @property
    def tiles(self) -> str: ...


def labels(kernels: Sequence[Named]) -> list[str]:
    """Their names; where one occurs more than once, with the tile sizes in which its kernels differ."""
    often = Counter(kernel.name for kernel in kernels)
    return [" ".join([one.name, *(_own(one, kernels) if often[one.name] > 1 else ())]) for one in kernels]


def _own(one: Named, kernels: Sequence[Named]) -> list[str]:
    """The sizes of a kernel that not all others of its name have."""
    others = [kernel.tiles.split() for kernel in kernels if kernel.name == one.name]
    return [size for size in one.tiles.split() if any(size not in sizes for sizes in others)]
