"""What both kernels of notebook 07 are held to whose loading is given: the heart is the learner's."""

from gemm_course.checks.core import Refused, nothing_yet
from gemm_course.checks.engines.gemm import GemmTrial


def check_begun(*trials: GemmTrial) -> None:
    """In the stub the tiles are loaded, and no thread reads them."""
    for trial in trials:
        if trial.shared_reads:
            continue
        if _loaded(trial) <= _of_tiles(trial):
            raise nothing_yet()
        raise Refused(
            "The tiles are loaded and then not used: A and B are read again from global memory. Take a and b "
            "from `As` and `Bs`."
        )


def loaded_once(trial: GemmTrial) -> None:
    """A block loads its tiles once, with 128-bit loads."""
    if _loaded(trial) > _of_tiles(trial):
        raise Refused(
            f"The result is right, but {_loaded(trial):,} elements of A and B are loaded where "
            f"{_of_tiles(trial):,} are enough: a tile is loaded once.",
            f"{trial.about}, in the problem {trial.problem}.",
        )


def one_wavefront(trial: GemmTrial) -> None:
    """No read of a tile has a bank conflict."""
    loads = trial.accesses("load").query("wavefronts > ideal_wavefronts")
    if loads.empty:
        return
    worst = loads.iloc[0]
    raise Refused(
        f"The result is right, but reading `{worst['array']}` has a bank conflict: {worst['wavefronts']:,} "
        f"wavefronts where {worst['ideal_wavefronts']:,} are enough. Which words do the lanes of a warp "
        "read at one time?",
        f"{trial.about}. {trial.line(int(worst['line']))}",
    )


def _loaded(trial: GemmTrial) -> int:
    """Elements of A and B that are loaded from global memory."""
    return trial.total("bytes", "load", "A", "B") // 4


def _of_tiles(trial: GemmTrial) -> int:
    """Elements of A and B that all tiles of all blocks have."""
    q, (BM, BN, _) = trial.problem, trial.tiles.block_tile
    return q.m * q.n * q.k // BM + q.m * q.n * q.k // BN
