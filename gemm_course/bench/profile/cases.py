"""Which kernels are profiled beside the ladder at its default tiles and the usual size."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """A profile that a figure or a text of the course needs.

    stage: a name of LADDER, or of a variant. tiles: sizes to change from the defaults, as in "BM=64 BN=64",
    or "". sizes: m = n = k of each launch. why: what shows it.
    """

    stage: str
    tiles: str
    sizes: tuple[int, ...]
    why: str


ASKED: tuple[Asked, ...] = ()
