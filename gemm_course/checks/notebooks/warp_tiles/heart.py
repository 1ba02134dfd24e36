"""Checks the notebook ``warp_tiles``'s kernels, whose loading is given and whose heart the learner writes."""

from gemm_course.checks.core import Loop, Refused, Written, nothing_yet
from gemm_course.checks.engines import findings
from gemm_course.checks.engines.gemm import GemmTrial
from lockstep import Finding


def check_begun(*trials: GemmTrial) -> None:
    """Raise NothingYet for the stub: the tiles are loaded, and no thread reads them."""
    for trial in trials:
        if trial.shared_reads:
            continue
        if _loaded(trial) <= _of_tiles(trial):
            raise nothing_yet()
        raise Refused(
            "The tiles are loaded and then not used: A and B are read again from global memory. Take a and b "
            "from `As` and `Bs`."
        )


# ---- what the emulator finds -------------------------------------------------------------------------------


def _out_of_bounds(finding: Finding, trial: GemmTrial) -> str | None:
    """Return the message for a tile that is read out of bounds. Both tiles are BK rows high."""
    accesses = trial.report.accesses.query("array == @finding.array")
    if not len(accesses) or set(accesses["space"]) != {"shared"}:
        return None
    if finding.element[0] < trial.tiles.BK:
        why = (
            "`y0` and `x0` are places in the block's tile: neither the block nor `cuda.grid` belongs in them."
        )
        if not any(finding.block or ()):
            why = (
                f"It happens with {trial.tiles}: is it the right array (As has BM columns, Bs has BN), the "
                "right number of elements (TM of As, TN of Bs), the right step from one to the next?"
            )
        return f"`{finding.array}` is read beyond the end of its rows. {why} {finding.message}"
    return (
        f"`{finding.array}` is read outside its bounds. Both tiles are BK rows high: As is transposed, "
        f"`As[p, row]`, and Bs is `Bs[p, column]`. {finding.message}"
    )


def _uninitialised(finding: Finding, trial: GemmTrial) -> str | None:
    name = finding.array
    own = trial.report.accesses.query("space == 'local' and array == @name")
    if own.empty:
        return findings.FINDINGS["uninitialised_read"](finding, trial)
    loaded, stored = (set(own.loc[own["op"] == op, "line"]) for op in ("load", "store"))
    if loaded & stored:
        return (
            f"`clear({name})` is missing: `{name}` is added to before anything was stored in it. Call it "
            f"before the loop over k. {finding.message}"
        )
    if not stored:
        return f"Nothing is ever stored into `{name}`: fill it for each p. {finding.message}"
    return (
        f"The loop that fills `{name}` ends too early, or begins too late: not each of its elements has a "
        f"value for this p. {finding.message}"
    )


FINDINGS = {"out_of_bounds": _out_of_bounds, "uninitialised_read": _uninitialised}


# ---- local memory ------------------------------------------------------------------------------------------


def not_unrolled(trial: GemmTrial, lines: list[int], names: list[str]) -> tuple[str, int] | None:
    """Return how to ask the compiler to unroll constant loops that index an array, if it did not."""
    variables = {*trial.written.parameters, *trial.written.names_set}
    for line in lines:
        loops = _loops_that_index(trial.written, line, names)
        left = [loop for loop in loops if loop.over.text.startswith("range(")]
        if left and not any(loop.over.names & variables for loop in left):
            first, *others = (f"`{loop.variable}`" for loop in left)
            too = f", and so for {' and '.join(filter(None, [', '.join(others[:-1]), *others[-1:]]))}"
            return (
                "Its loops run a constant number of times, but here the compiler does not unroll them all by "
                f"itself. Ask it to: `for {first[1:-1]} in unroll({left[0].over.text}):`"
                f"{too if others else ''}, after `from lockstep.intrinsics import unroll`.",
                line,
            )
    return None


def _loops_that_index(written: Written, line: int, names: list[str]) -> list[Loop]:
    """Return the loops around a line whose variables index one of these arrays there, the outermost first."""
    used = {name for each in written.elements(*names) if each.line == line for name in each.index.names}
    return [loop for loop in written.loops if line in loop.lines[1:] and loop.variable in used]


# ---- lessons -----------------------------------------------------------------------------------------------


def loaded_once(trial: GemmTrial) -> None:
    """Check that a block loads its tiles once, with 128-bit loads."""
    if _loaded(trial) > _of_tiles(trial):
        raise Refused(
            f"The result is right, but {_loaded(trial):,} elements of A and B are loaded where "
            f"{_of_tiles(trial):,} are enough: a tile is loaded once.",
            f"{trial.about}, in the problem {trial.problem}.",
        )


def one_wavefront(trial: GemmTrial) -> None:
    """Check that no read of a tile has a bank conflict."""
    loads = trial.accesses("load").query("wavefronts > ideal_wavefronts")
    if loads.empty:
        return
    worst = loads.iloc[0]
    raise Refused(
        f"The result is right, but as written, one float per lane, reading `{worst['array']}` has a bank "
        f"conflict: {worst['wavefronts']:,} wavefronts where {worst['ideal_wavefronts']:,} are enough. Which "
        "words do the lanes of a warp read at one time? In runs of four they are neighbours.",
        f"{trial.about}. {trial.line(int(worst['line']))}",
    )


def _loaded(trial: GemmTrial) -> int:
    """Return the number of elements of A and B that are loaded from global memory."""
    return trial.total("bytes", "load", "A", "B") // 4


def _of_tiles(trial: GemmTrial) -> int:
    """Return the number of elements of A and B in all tiles of all blocks."""
    q, (BM, BN, _) = trial.problem, trial.tiles.block_tile
    return q.m * q.n * q.k // BM + q.m * q.n * q.k // BN
