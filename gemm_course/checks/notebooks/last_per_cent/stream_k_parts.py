"""Checks ``stream_k_parts``: which steps of which tiles a block of stream-K computes."""

from collections.abc import Sequence

from gemm_course.checks.core import Refused
from gemm_course.checks.engines.tables import Slip, table_exercise

SITUATIONS = (
    (5, 3, 8),
    (4, 4, 10),
    (3, 2, 7),
    (7, 2, 16),
    (132, 8, 80),
    (2, 5, 4),
    (6, 6, 5),
    (9, 4, 3),
    (5, 1, 3),
)
# The checker asks about no more blocks than these of each situation.
MOST = 12
CASES = tuple((b, *each) for each in SITUATIONS for b in range(min(each[0], MOST)))


def _read(answer) -> list[tuple[int, int, int]]:
    if isinstance(answer, (str, bytes, dict, set)) or not hasattr(answer, "__iter__"):
        raise Refused(f"Return a list of triples, `[(tile, first, stop), ...]`, not `{answer!r}`.")
    return [_triple(item) for item in answer]


def _triple(item) -> tuple[int, int, int]:
    parts = list(item) if hasattr(item, "__iter__") and not isinstance(item, str) else []
    if len(parts) != 3:
        raise Refused(f"Each part must be a triple, `(tile, first, stop)`; here `{item!r}` is among them.")
    for part in parts:
        if isinstance(part, bool) or not hasattr(part, "__index__"):
            raise Refused(f"Tiles and steps are whole numbers; here `{part!r}` is among them. Use `//`.")
    return tuple(part.__index__() for part in parts)


def _range(block, blocks, tiles, steps) -> tuple[int, int]:
    total = tiles * steps
    return total * block // blocks, total * (block + 1) // blocks


def _cut(at: int, stop: int, steps: int) -> list[tuple[int, int, int]]:
    """Return the steps from ``at`` to ``stop - 1``, cut where tiles end."""
    parts = []
    while at < stop:
        tile, first = divmod(at, steps)
        last = min(steps, first + stop - at)
        parts.append((tile, first, last))
        at += last - first
    return parts


def _right(block, blocks, tiles, steps):
    return _cut(*_range(block, blocks, tiles, steps), steps)


def _rounded_down(block, blocks, tiles, steps):
    each = tiles * steps // blocks
    return _cut(block * each, (block + 1) * each, steps)


def _rounded_up(block, blocks, tiles, steps):
    total, each = tiles * steps, -(-tiles * steps // blocks)
    return _cut(min(block * each, total), min((block + 1) * each, total), steps)


def _whole_tiles(block, blocks, tiles, steps):
    return [(tile, 0, steps) for tile in range(block, tiles, blocks)]


def _not_cut(block, blocks, tiles, steps):
    at, stop = _range(block, blocks, tiles, steps)
    return [(at // steps, at % steps, at % steps + stop - at)] if at < stop else []


def _first_part(block, blocks, tiles, steps):
    at, stop = _range(block, blocks, tiles, steps)
    return [(at // steps, at % steps, min(steps, at % steps + stop - at))]


def _two_tiles(block, blocks, tiles, steps):
    return _right(block, blocks, tiles, steps)[:2]


def _divided_by_tiles(block, blocks, tiles, steps):
    right = _right(block, blocks, tiles, steps)
    return [((tile * steps + first) // tiles, first, stop) for tile, first, stop in right]


def _each_tile_split(block, blocks, tiles, steps):
    return [(tile, steps * block // blocks, steps * (block + 1) // blocks) for tile in range(tiles)]


SLIPS = (
    Slip(
        "The remainder is lost: `total // blocks` steps for each block leave the last steps to nobody. Round "
        "the ends of the ranges instead: `total * block // blocks`.",
        _rounded_down,
    ),
    Slip(
        "Every block takes the rounded-up number of steps, so the last ones get few or none. Here ranges "
        "differ by one step at most: from `total * block // blocks` to `total * (block + 1) // blocks`.",
        _rounded_up,
    ),
    Slip(
        "Those are whole tiles, as a persistent block takes them. Stream-K shares out steps: lay the "
        "steps of "
        "all tiles end to end, and cut the row into equal ranges.",
        _whole_tiles,
    ),
    Slip(
        "A range that goes on in the next tile must be cut there: a tile has steps 0 to `steps - 1` only.",
        _not_cut,
    ),
    Slip(
        "That is split-K: each tile cut into as many parts as there are blocks. In stream-K the steps of all "
        "tiles are one row, and a block has one range of it.",
        _each_tile_split,
    ),
    Slip(
        "Steps are counted within their tile: each tile begins at step 0 again.",
        lambda *case: [
            (tile, tile * case[3] + first, tile * case[3] + stop) for tile, first, stop in _right(*case)
        ],
    ),
    Slip(
        "`stop` is one past the part's last step, as in `range(first, stop)`.",
        lambda *case: [(tile, first, stop - 1) for tile, first, stop in _right(*case)],
    ),
    Slip(
        "The third number must be where the part stops, not how many steps it has.",
        lambda *case: [(tile, first, stop - first) for tile, first, stop in _right(*case)],
    ),
    Slip(
        "Only the first tile of the range is there. A range may go on in the next tile.",
        lambda *case: _right(*case)[:1],
    ),
    Slip(
        "Only the range's first tile is there, and it is there even if the range is empty. Go on in the "
        "next tile "
        "while steps are left: `while at < stop`.",
        _first_part,
    ),
    Slip(
        "Only the first two tiles of a range are there. A range may span more: go on while steps are left.",
        _two_tiles,
    ),
    Slip(
        "A part that ends where its tile ends stops at `steps`, not at 0: no remainder for `stop`.",
        lambda *case: [(tile, first, stop % case[3]) for tile, first, stop in _right(*case)],
    ),
    Slip(
        "Step `at` of the row is in tile `at // steps`: divide by the steps of a tile, not by the number "
        "of tiles.",
        _divided_by_tiles,
    ),
)


def _what_is_wrong(cases: Sequence[tuple], answers: Sequence) -> str:
    if all(
        [part for part in parts if part[1] < part[2]] == _right(*case) for case, parts in zip(cases, answers)
    ):
        return "There is a part without steps: where `first` would be `stop`, nothing is left to compute."
    given = dict(zip(cases, answers))
    whole = [[part for part in parts if part[1] < part[2]] for parts in answers]
    if whole == [_two_tiles(*case) for case in cases]:
        return (
            "Only the first two tiles of a range are there, with parts that have no steps. A range may span "
            "more tiles: go on `while at < stop`."
        )
    if all(sorted(parts) == _right(*case) for case, parts in zip(cases, answers)):
        return "The parts are right, but not in order: return them as they follow in the row of steps."
    for blocks, tiles, steps in (each for each in SITUATIONS if each[0] <= MOST):
        mine = [given.get((b, blocks, tiles, steps), []) for b in range(blocks)]
        done = [
            (tile, step) for parts in mine for tile, a, z in parts for step in range(a, min(z, a + steps))
        ]
        missing = {(tile, step) for tile in range(tiles) for step in range(steps)} - set(done)
        if len(done) != len(set(done)):
            return "Some steps are computed twice: they would be added twice."
        if missing:
            tile, step = min(missing)
            return f"With {blocks} blocks nobody computes step {step} of tile {tile}."
    if any(first >= stop for parts in answers for _, first, stop in parts):
        return "There is a part without steps: it has to be left out."
    return "Each step has one block, but not the one that the text gives it."


@table_exercise(
    start="how many steps have all tiles together? Block b's range begins at `total * b // blocks`.",
    hints=(
        "`at` and `stop` are the ends of the block's range, in steps of all tiles laid end to end.",
        "Step `at` belongs to tile `at // steps`; within it, it is step `at % steps`.",
        "A part ends where the tile ends or where the range does, whichever is first: `min(steps, first + "
        "stop - at)`. Then go on from there, `while at < stop`.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=_read,
    otherwise=_what_is_wrong,
    passed=f"Right in {len(SITUATIONS)} situations, also where blocks outnumber steps. With 132 "
    f"blocks, 8 tiles "
    "and 80 steps each block has 4 or 5 steps, and 4 blocks work on two tiles.",
)
def stream_k_parts(block, blocks, tiles, steps):
    """stream_k_parts(block, blocks, tiles, steps) -> [(tile, first, stop), ...], a part each."""
    return _right(block, blocks, tiles, steps)
