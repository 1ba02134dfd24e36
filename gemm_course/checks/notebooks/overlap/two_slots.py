"""Checks ``two_slots``: the next tiles are fetched during the products, then stored into the other slot."""

from gemm_course.checks.core import Refused, exercise, kernel_of, nothing_yet
from gemm_course.checks.engines.lessons import no_float64
from gemm_course.checks.engines.rings import RingTrial, T, TileLoop, refuse_wrong_numbers, try_ring
from lockstep import Finding

ARGUMENTS = ("k", "A", "B", "C")
# The sizes are (m, n, k).
SIZES = ((16, 32, 80), (32, 16, 48), (16, 16, 16))


@exercise(
    start="of the four steps above, which come before the loop over p, and which after it?",
    hints=(
        "Three pieces: the loads come before the loop over p, the stores after it, then one barrier. Tile t "
        "is read from slot `t % 2`.",
        "The other slot is `1 - t % 2`, which is also `(t + 1) % 2`.",
        "After the last tile there is none to fetch: `if t + 1 < tiles:` around the loads and around the "
        "stores. Never around the barrier, although here all threads would agree.",
    ),
)
def two_slots(kernel):
    """A kernel (k, A, B, C) with two slots of tiles: the next tile's loads come before the products."""
    kernel = kernel_of(kernel, ARGUMENTS)
    trials = [try_ring(kernel, ARGUMENTS, *size) for size in SIZES]
    _check_begun(trials[0])
    for trial in trials:
        _check_findings(trial)
        refuse_wrong_numbers(trial)
    _check_loads(trials[0])
    _check_order(trials[0])
    _check_barriers(trials[0])
    no_float64(trials[0])
    return (
        f"Right for {len(SIZES)} sizes: one barrier per tile, and {T} multiply-adds between asking for an "
        "element and needing it."
    )


def _check_begun(trial: RingTrial) -> None:
    """Raise NothingYet for the stub: it fetches only the first tile, and has no barrier in its loop."""
    if trial.lanes("load", "A") <= trial.threads and trial.barriers_per_block <= 1:
        raise nothing_yet()


def _check_findings(trial: RingTrial) -> None:
    if outside := trial.error("out_of_bounds"):
        message = _outside(trial, outside)
        raise Refused(f"{message} {outside.message}", f"{trial.line(outside)}. {trial.about}.")
    race = trial.error("shared_race")
    if not race:
        return trial.refuse_errors()
    if trial.barriers_per_block < trial.tiles:
        message = (
            "A barrier is missing: one per tile, after the stores. It says that the next tile is complete, "
            "and that everybody has finished with this one."
        )
    elif _barriers_before_the_products(trial):
        message = (
            "The barrier stands before the products. So a fast thread stores its next tile into the slot "
            "that a slow one still reads. The barrier must come after the products and the stores."
        )
    elif _stores_into_what_is_read(trial):
        message = (
            "The next tile is stored into the slot that others still read. Read slot `t % 2`, fill the other "
            "one."
        )
    else:
        message = (
            "A barrier stands in the wrong place: it must come after the stores, and before the next tile is "
            "multiplied."
        )
    raise Refused(f"{message} {race.message}", f"{trial.line(race)}. {trial.about}.")


def _outside(trial: RingTrial, finding: Finding) -> str:
    """Return which index leaves its array: the one along k, after the last tile, or the other."""
    m, n, k = trial.shape
    of_a = finding.array == trial.own_name("A")
    if not of_a and finding.array != trial.own_name("B"):
        return f"An index of `{finding.array}` is too large."
    along_k, other, rest = (1, 0, m) if of_a else (0, 1, n)
    if finding.element[other] < rest and finding.element[along_k] >= k:
        return "After the last tile there is none to fetch: ask `t + 1 < tiles` first."
    moves, stays = ("column", "row") if of_a else ("row", "column")
    return (
        f"From tile to tile only the {moves} of `{finding.array}` changes; its {stays} is the thread's own "
        f"`{'row' if of_a else 'col'}`. Are they swapped?"
    )


def _barriers_before_the_products(trial: RingTrial) -> bool:
    barriers = TileLoop(trial).lines("syncthreads")
    return bool(barriers) and max(barriers) < trial.accesses("load")["line"].max()


def _stores_into_what_is_read(trial: RingTrial) -> bool:
    """Tell whether barriers follow the stores. If these still race, they go into the slot that is read."""
    barriers = TileLoop(trial).lines("syncthreads")
    stores = trial.accesses("store")["line"]
    return bool(barriers) and max(barriers) > max(stores)


def _check_loads(trial: RingTrial) -> None:
    # A kernel may load the last tile once more, which does no harm.
    needed = trial.threads * (trial.tiles + 1)
    for name in "AB":
        if trial.lanes("load", name) > needed:
            raise Refused(
                f"The numbers are right, but `{trial.own_name(name)}` is loaded "
                f"{trial.lanes('load', name) / trial.threads:g} times per thread. There are {trial.tiles} "
                "tiles: fetch each once.",
                trial.about + ".",
            )


def _check_order(trial: RingTrial) -> None:
    """Check that loads stand before the products and stores after them, as far as lines tell."""
    loop = TileLoop(trial)
    inside = loop.loop.lines
    reads = trial.accesses("load")["line"].max()
    products = next((each.lines for each in loop.loop.loops if reads in each.lines and each != loop.loop), ())
    loads = [line for name in "AB" for line in trial.accesses("load", name)["line"] if line in inside]
    stores = [line for line in trial.accesses("store")["line"] if line in inside]
    if loads and max(loads) > reads:
        raise Refused(
            "The numbers are right, but the next tile is loaded after this one has been multiplied, so "
            "nothing hides the wait for it. Load it before the loop over p.",
            f"{trial.line(int(max(loads)))}. {trial.about}.",
        )
    between = sorted(set(loads).intersection(products))
    if between:
        raise Refused(
            "The numbers are right, but the next tile is asked for among the products: fewer are left "
            "to hide the wait. Load it before the loop over p.",
            f"{trial.line(int(between[0]))}. {trial.about}.",
        )
    if stores and min(stores) < reads:
        raise Refused(
            "The numbers are right, but the next tile is stored before this one is multiplied. A store needs "
            "its value, so the thread waits for the load there. Keep it in registers, and store after the "
            "loop over p.",
            f"{trial.line(int(min(stores)))}. {trial.about}.",
        )


def _check_barriers(trial: RingTrial) -> None:
    if trial.barriers_per_block > trial.tiles + 1:
        raise Refused(
            f"The numbers are right, but a block waits at {trial.barriers_per_block} barriers for "
            f"{trial.tiles} tiles. With two slots one per tile is enough.",
            trial.about + ".",
        )
