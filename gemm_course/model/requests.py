"""Takes one warp's memory requests from the emulator's trace."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep import wavefronts

WARP = 32
# These sizes are in bytes. A bank is one word wide, memory moves sectors, and caches keep track of lines.
WORD, SECTOR, LINE = 4, 32, 128


@dataclass(frozen=True)
class Request:
    """The request of the lanes of one warp in one instruction.

    ``lanes`` holds (lane, element, address in bytes from the start of the array) for every active lane.
    """

    array: str
    op: str
    space: str
    line: int
    bits: int
    lanes: tuple[tuple[int, tuple[int, ...], int], ...]

    @property
    def useful_bytes(self) -> int:
        """The number of different bytes that the lanes asked for. A byte that 32 lanes share counts once."""
        return len({address for _, _, address in self.lanes}) * self.bits // 8

    @property
    def sectors(self) -> frozenset[int]:
        last = self.bits // 8 - 1
        return frozenset(s for _, _, a in self.lanes for s in range(a // SECTOR, (a + last) // SECTOR + 1))

    @property
    def moved_bytes(self) -> int:
        return len(self.sectors) * SECTOR

    @property
    def percent_used(self) -> float:
        return 100 * self.useful_bytes / self.moved_bytes


def requests(
    trace,
    *,
    array: str | None = None,
    op: str | None = None,
    space: str | None = None,
    warp: int | None = None,
):
    """Return the warp requests in the emulator's ``report.trace`` that match the filters, in order."""
    chosen = trace[trace["op"] != "barrier"]
    for column, wanted in (("array", array), ("op", op), ("space", space), ("warp", warp)):
        if wanted is not None:
            chosen = chosen[chosen[column] == wanted]
    found = []
    for _, rows in chosen.groupby(["step", "warp"], sort=True):
        first = rows.iloc[0]
        lanes = tuple(
            zip(rows["lane"].tolist(), rows["element"].tolist(), rows["address"].tolist(), strict=True)
        )
        found.append(
            Request(
                first["array"], first["op"], first["space"], int(first["line"]), int(first["bits"]), lanes
            )
        )
    return found


def wavefronts_of(request: Request) -> int:
    """Return how many wavefronts the emulator counts for this request."""
    words = {lane: address // WORD for lane, _, address in request.lanes}
    return wavefronts([words.get(lane, -1) for lane in range(WARP)], request.bits, request.op)
