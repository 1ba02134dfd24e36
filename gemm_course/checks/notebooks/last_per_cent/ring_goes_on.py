"""Checks ``ring_goes_on``: two roles that take tile after tile, while slot and parity never start again."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from gemm_course.checks.core import Loop, Refused, Written, device_function_of, exercise, nothing_yet
from gemm_course.checks.engines.trial import Trial, try_kernel
from gemm_course.checks.kits.staying_blocks import staying_blocks
from lockstep import Finding
from lockstep.intrinsics import tensor_map

SIDE, THREADS = 64, 160
BOX_BYTES = SIDE * SIDE * 2
ARGUMENTS = ("k", "tile_cols", "tiles", "A", "B", "C")
ROLES = {
    "produce": ("full", "empty", "As", "Bs", "A", "B", "tiles", "tile_cols", "steps", "slots"),
    "consume": ("full", "empty", "As", "Bs", "C", "acc", "tiles", "tile_cols", "steps", "slots"),
}
# Each case is (SLOTS, blocks) and (m, n, k). No number of steps is a multiple of 2 SLOTS.
CASES = (
    ((2, 2), (128, 192, 192)),
    ((3, 1), (64, 128, 320)),
    ((4, 3), (128, 128, 192)),
    ((2, 4), (64, 192, 64)),
)


@exercise(
    start="write the loop over this block's tiles around the steps, in both roles.",
    hints=(
        "The loop: `tile = cuda.blockIdx.x`, `while tile < tiles:`, and `tile += cuda.gridDim.x` at its end.",
        "Tiles are numbered row by row: tile t is in row `t // tile_cols` and in column `t % tile_cols`.",
        "Which lines of a role belong to a tile, and which to the whole block? A tile begins with its steps, "
        "and in `consume` with `clear(acc)`. The ring was there before.",
        "`slot, parity = 0, 0` stays above the loop over tiles, in both roles. They only change where the "
        "ring does: from slot to slot.",
    ),
)
def ring_goes_on(produce, consume):
    """Two device functions, (full, empty, As, Bs, A, B, ...) and (full, empty, As, Bs, C, acc, ...)."""
    roles = {
        name: device_function_of(given, ROLES[name])
        for name, given in (("produce", produce), ("consume", consume))
    }
    for sizes, shape in CASES:
        _try(roles, *sizes, *shape)
    return (
        "Right with 2, 3 and 4 slots, and with 3, 5 and 1 steps per tile: the ring goes on from tile to "
        "tile. So the producer asks for the next tile's first steps while this one's results are stored."
    )


def _try(roles: dict[str, Any], SLOTS: int, blocks: int, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    tile_cols, tiles = n // SIDE, m // SIDE * (n // SIDE)
    maps = tensor_map(A, (m, k), (SIDE, SIDE)), tensor_map(B, (k, n), (SIDE, SIDE))
    about = (
        f"With {SLOTS} slots, {blocks} block{'s' * (blocks > 1)}, {tiles} tiles and {k // SIDE} steps each"
    )
    try:
        trial = try_kernel(
            staying_blocks(SLOTS, roles["produce"], roles["consume"]),
            ARGUMENTS,
            blocks,
            THREADS,
            k,
            tile_cols,
            tiles,
            *maps,
            np.full((m, n), np.nan, np.float32),
            about=about,
            own=roles["consume"],
            shared_bytes=SLOTS * 2 * BOX_BYTES,
            step_limit=2000,
        )
    except Refused as refused:
        if not refused.message.startswith("The kernel does not come to an end"):
            raise
        raise Refused(f"{_why_it_stands(roles)} {refused.message}".strip(), f"{about}.") from None
    exact = A.astype(float) @ B
    _check_begun(trial, roles, blocks, tiles)
    if trial.report.errors:
        finding = trial.report.errors[0]
        raise Refused(f"{_why_it_is_found(finding, roles)} {finding.message}".strip(), f"{about}.")
    _check_numbers(trial, roles, exact, blocks, tile_cols)
    _check_nobody_stops(roles)


def _check_begun(trial: Trial, roles: dict[str, Any], blocks: int, tiles: int) -> None:
    """Raise NothingYet for the roles as they are handed out: each block computes its first tile."""
    if any(_loops_over_tiles(Written(role)) for role in roles.values()):
        return
    stored = {(row // SIDE, col // SIDE) for row, col in np.argwhere(trial.touched("C"))}
    if len(stored) == blocks < tiles and trial.lanes("store", "C") == blocks * SIDE * SIDE:
        raise nothing_yet()


def _loops_over_tiles(written: Written) -> bool:
    """Tell whether there is a loop around the loop over steps, or one loop over all steps of all tiles."""
    return any(len(loop.loops) > 1 for loop in written.loops) or "gridDim" in written.text


def _why_it_is_found(finding: Finding, roles: dict[str, Any]) -> str:
    consume = Written(roles["consume"])
    if finding.kind == "uninitialised_read" and not consume.calls("clear"):
        return "Nobody calls `clear(acc)`: a tile's sums begin with whatever is in the registers."
    if finding.kind == "global_race":
        return (
            "Two blocks compute the same tile. A block begins with tile `cuda.blockIdx.x` and goes on by "
            "`cuda.gridDim.x`."
        )
    if finding.kind == "out_of_bounds":
        if _stores_the_next(consume):
            return "`store` comes behind the line that moves on to the next tile, and gets that tile's place."
        return (
            "A tile is ordered or stored that is not there: `while tile < tiles`, row `tile // tile_cols`, "
            "column `tile % tile_cols`."
        )
    return _why_it_stands(roles)


def _check_nobody_stops(roles: dict[str, Any]) -> None:
    """Refuse a producer that cannot run ahead into the next tile."""
    written = {name: Written(role) for name, role in roles.items()}
    for name, role in written.items():
        if barriers := role.calls("syncthreads"):
            raise Refused(
                f"C is right, but in `{name}` the whole block meets at a barrier: so the producer cannot ask "
                "for the next tile while this one is stored. The ring's own barriers are enough.",
                barriers[0].where,
            )
    produce = written["produce"]
    inner = [loop for loop in produce.loops if len(loop.loops) == 1]
    waits = [
        wait for wait in produce.calls("mbarrier_wait") if not any(wait in loop.calls() for loop in inner)
    ]
    if waits and any(len(loop.loops) > 1 for loop in produce.loops):
        raise Refused(
            "C is right, but at the end of a tile the producer waits until its slots are empty. Go on: the "
            "next step's own wait for `empty` is enough.",
            waits[0].where,
        )


# ---- why the roles do not agree ----------------------------------------------------------------------------


def _why_it_stands(roles: dict[str, Any]) -> str:
    single = [name for name, role in roles.items() if not _loops_over_tiles(Written(role))]
    if len(single) == 1:
        return f"`{single[0]}` still computes one tile: it needs the loop over tiles as well."
    again = [name for name, role in roles.items() if _starts_again(Written(role))]
    if len(again) == 2:
        return (
            "Slot and parity start again with each tile, in both roles, and the barriers do not: with a "
            "number of steps that is no multiple of twice the slots they are in another phase by then. Set "
            "both once, above the loop over tiles."
        )
    if again:
        other = next(name for name in roles if name not in again)
        return (
            f"In `{again[0]}` slot and parity start again with each tile, and in `{other}` they go on: after "
            "the first tile the two wait for each other in different slots. Set both once, above the loop "
            "over tiles."
        )
    for name, role in roles.items():
        if _flips_per_tile(Written(role)):
            return (
                f"In `{name}` the parity changes with each tile. It belongs to a time round the ring: change "
                "it where `slot` goes back to 0, and only there."
            )
    walks = [_walk(Written(role)) for role in roles.values()]
    if stays := [name for name, walk in zip(roles, walks, strict=True) if not walk]:
        return f"`{stays[0]}` never moves on to another tile: `tile += cuda.gridDim.x` ends the loop's body."
    if walks[0] != walks[1]:
        return (
            f"The two roles take different tiles: `produce` goes by `{walks[0]}`, `consume` by "
            f"`{walks[1]}`. Both must take `cuda.blockIdx.x`, then every `cuda.gridDim.x`-th."
        )
    return ""


def _starts_again(written: Written) -> bool:
    """Tell whether the loop over tiles sets a variable to 0 outside of the loop over steps."""
    return any(value.number == 0 for _, value in _set_per_tile(written))


def _flips_per_tile(written: Written) -> bool:
    """Tell whether the loop over tiles changes the parity outside of the loop over steps."""
    waits = (wait.argument(2, "parity") for wait in written.calls("mbarrier_wait"))
    parities = {name for given in waits if given is not None for name in given.names}
    return bool(parities & {name for name, _ in _set_per_tile(written)})


def _set_per_tile(written: Written) -> Iterator[tuple[str, Any]]:
    """Yield (variable, value) of what the outer loop sets, and no loop in it does."""
    outer = max(written.loops, key=lambda loop: len(loop.lines), default=None)
    if outer is None:
        return
    inner = {line for loop in outer.loops if loop != outer for line in loop.lines}
    for target, value in outer.assignments:
        if target.line in inner:
            continue
        pairs = zip(target.items, value.items) if target.items and value.items else [(target, value)]
        yield from ((name.text, each) for name, each in pairs)
    yield from ((target.text, target.around[0]) for target in outer.updated if target.line not in inner)


def _walk(written: Written) -> str:
    """Return by what the loop over tiles moves on, as text, "" if by nothing."""
    outer = max(written.loops, key=lambda loop: len(loop.lines), default=None)
    if outer is None:
        return ""
    found = re.findall(r"(\w+) \+= ([\w.]+)", outer.text)
    of_tiles = [by for name, by in found if not outer.variable and name in outer.over.names] or [
        by for _, by in found if by.startswith("cuda")
    ]
    return of_tiles[0] if of_tiles else (outer.over.text if outer.variable else _moved_otherwise(outer))


def _moved_otherwise(loop: Loop) -> str:
    """Return another value that the variable of a `while` is given in its loop, as text."""
    given = [value for target, value in loop.assignments if target.text in loop.over.names]
    return given[0].text if given else ""


def _stores_the_next(written: Written) -> bool:
    """Tell whether the results are stored below the line that moves the tile on."""
    stores = [call.line for call in written.calls("store")]
    moves = [target.line for target in written.updated if target.text in _tile_names(written)]
    return bool(stores and moves) and max(stores) > max(moves)


def _tile_names(written: Written) -> set[str]:
    return {target.text for target, value in written.assignments if "cuda.blockIdx.x" in value.texts}


# ---- what came out -----------------------------------------------------------------------------------------


def _check_numbers(trial: Trial, roles, exact: np.ndarray, blocks: int, tile_cols: int) -> None:
    C = trial.after["C"]
    wrong = ~np.isclose(C, exact, rtol=1e-3, atol=1e-2)
    if not wrong.any():
        if trial.lanes("store", "C") > C.size:
            raise Refused(
                "C is right, but tiles are stored more than once. Each belongs to one block, which stores it "
                "once, behind its last step.",
                f"{trial.about}.",
            )
        return
    where = trial.first_wrong("C", wrong, exact)
    if (why := _why_it_stands(roles)) and not np.isnan(C).any():
        raise Refused(why, where)
    if np.isnan(C).any():
        walk = _walk(Written(roles["consume"]))
        how = f": a block goes on by `{walk}`" if walk and "gridDim" not in walk else ""
        raise Refused(
            f"Some tiles are never stored{how}. A block takes every `cuda.gridDim.x`-th tile, as long as "
            "`tile < tiles`.",
            where,
        )
    tiles = range(C.size // SIDE**2)

    def tile(matrix: np.ndarray, row: int, col: int) -> np.ndarray:
        """Return a tile, with zeros where the matrix has none."""
        part = matrix[row * SIDE : (row + 1) * SIDE, col * SIDE : (col + 1) * SIDE]
        return part if part.size else np.zeros((SIDE, SIDE))

    def summed(t: int) -> np.ndarray:
        return sum(tile(exact, *divmod(each, tile_cols)) for each in range(t % blocks, t + 1, blocks))

    def swapped(t: int) -> np.ndarray:
        return tile(exact, t % tile_cols, t // tile_cols)

    for message, predicted in (
        ("A tile's sums begin with those of the tile before: `clear(acc)` belongs to each tile.", summed),
        (
            "Row and column of a tile are swapped in `order`: row `tile // tile_cols`, column `tile % "
            "tile_cols`.",
            swapped,
        ),
    ):
        pairs = ((tile(C, *divmod(t, tile_cols)), predicted(t)) for t in tiles)
        if all(np.allclose(got, right, rtol=1e-3, atol=1e-2) for got, right in pairs):
            raise Refused(message, where)
    raise Refused(
        "The roles agree, but the numbers are wrong: which tile does each of them compute? Row `tile // "
        "tile_cols`, column `tile % tile_cols`, and the steps from 0 on.",
        where,
    )
