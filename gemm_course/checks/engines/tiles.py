"""Defines the choices of tile sizes with which factories are called."""

from __future__ import annotations


class Tiles:
    """A choice of sizes, such as ``Tiles(BM=64, BN=64, BK=8, TM=8)``; each size is an attribute.

    Choices are equal if their names and sizes are. As text a choice is "BM = 64, BN = 64, BK = 8, TM = 8".
    """

    def __init__(self, **sizes: int):
        self.names, self.values = tuple(sizes), tuple(sizes.values())
        vars(self).update(sizes)

    def __str__(self) -> str:
        return ", ".join(f"{name} = {size}" for name, size in zip(self.names, self.values))

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tiles) and (self.names, self.values) == (other.names, other.values)

    def __hash__(self) -> int:
        return hash((self.names, self.values))

    def __iter__(self):
        return iter(self.values)

    @property
    def block_tile(self) -> tuple[int, int, int]:
        """BM, BN and BK; T three times where tiles are T by T."""
        if self.names == ("T",):
            return 3 * self.values
        return self.BM, self.BN, self.BK

    @property
    def threads(self) -> tuple[int, int]:
        """Threads (x, y) of a block in which each has TM by TN results; the choice must have TM and TN."""
        if not {"TM", "TN"} <= set(self.names):
            raise ValueError(
                f"`threads` follows from BM, BN, TM and TN, but this choice has {self}: compute it"
            )
        return self.BN // self.TN, self.BM // self.TM

    @property
    def depth_name(self) -> str:
        """What the factory calls the depth of its tiles."""
        return "T" if self.names == ("T",) else "BK"


def tile_choices(names: str, *choices: tuple[int, ...]) -> tuple[Tiles, ...]:
    """Return a table of choices: ``tile_choices("BM BN BK TM", (8, 4, 4, 4), (64, 64, 8, 8))``.

    A factory of GEMM kernels is tried on 16 problems with the first choice, so keep that small; the others
    take two problems each. A block must have no more than 1,024 threads.
    """
    return tuple(Tiles(**dict(zip(names.split(), sizes, strict=True))) for sizes in choices)
