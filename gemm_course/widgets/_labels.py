"""Names kernels that are shown side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol


class Named(Protocol):
    """A kernel with its tiles as text, such as "BM=128 BN=128". It is a Compiled or a Profile."""

    @property
    def name(self) -> str: ...

    @property
    def tiles(self) -> str: ...


def labels(kernels: Sequence[Named]) -> list[str]:
    """Return the kernels' names. A name that occurs twice also gets the tile sizes that differ."""
    often = Counter(kernel.name for kernel in kernels)
    return [" ".join([one.name, *(_own(one, kernels) if often[one.name] > 1 else ())]) for one in kernels]


def _own(one: Named, kernels: Sequence[Named]) -> list[str]:
    """Return the tile sizes of a kernel that some other kernel of its name does not share."""
    others = [kernel.tiles.split() for kernel in kernels if kernel.name == one.name]
    return [size for size in one.tiles.split() if any(size not in sizes for sizes in others)]
