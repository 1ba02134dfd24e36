"""vectorized, one change at a time: right results, and no switch changes other counts than it should."""

import numpy as np
import pytest

from gemm_course import compiled
from gemm_course.kernels import LADDER
from gemm_course.kernels.variants.vectorized_apart import STAGE
from lockstep import emulate

SMALL = {"BM": 32, "BN": 64, "BK": 16, "TM": 4, "TN": 4}
SWITCHES = [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize(("fours", "transposed"), SWITCHES)
@pytest.mark.parametrize("pad", [0, 4])
@pytest.mark.parametrize("shape", [(45, 70, 19), (1, 1, 1), (64, 130, 34), (3, 5, 0)])
def test_the_results_stay_the_same(shape, pad, fours, transposed, emulated):
    tiles = SMALL | {"PAD": pad, "FOURS": fours, "TRANSPOSED": transposed}
    run = emulated(STAGE, *shape, tiles=tiles, alpha=1.5, beta=-0.5)
    assert run.error < 1e-6
    assert run.padding_untouched
    assert run.report.findings == []


@pytest.mark.parametrize(("fours", "transposed"), SWITCHES)
def test_an_old_c_is_not_read_where_beta_is_zero(fours, transposed, emulated):
    run = emulated(STAGE, 33, 66, 17, tiles=SMALL | {"FOURS": fours, "TRANSPOSED": transposed})
    assert run.error < 1e-6
    assert run.padding_untouched


def counted(stage, **tiles) -> dict[str, tuple[int, int, int]]:
    """Requests, sectors and wavefronts by operation and array, for one block and one step of its tiles."""
    tiles = stage.complete(tiles)
    A, B, C = (np.ones(shape, np.float32) for shape in ((128, 32), (32, 128), (128, 128)))
    launch = (stage.kernel(tiles), 1, stage.block(tiles))
    report = emulate(*launch, 128, 128, 32, np.float32(1), A, B, np.float32(0), C)
    kept = report.accesses.query("space != 'local'").itertuples()
    return {f"{row.op} {row.array}": (row.requests, row.sectors, row.wavefronts) for row in kept}


def test_without_both_it_is_thread_tiled_2d_and_with_both_vectorized():
    assert counted(STAGE, FOURS=0, TRANSPOSED=0) == counted(LADDER["thread_tiled_2d"])
    assert counted(STAGE, FOURS=1, TRANSPOSED=1, PAD=4) == counted(LADDER["vectorized"])


def test_fours_are_for_global_memory_and_the_stores_of_tiles():
    plain, fours = counted(STAGE, FOURS=0, TRANSPOSED=0), counted(STAGE, FOURS=1, TRANSPOSED=0)
    for access in ("load A", "load B"):
        assert (fours[access][0], fours[access][1]) == (plain[access][0] // 4, plain[access][1])
    for access in ("store As", "store Bs"):
        assert (fours[access][0], fours[access][2]) == (plain[access][0] // 4, plain[access][2])
    assert fours["store C"][:2] == tuple(count // 4 for count in plain["store C"][:2])
    assert {access: fours[access] for access in ("load As", "load Bs")} == {
        access: plain[access] for access in ("load As", "load Bs")
    }


def test_transposing_by_itself_costs_conflicts_in_the_stores_of_as():
    plain, transposed = counted(STAGE, FOURS=0, TRANSPOSED=0), counted(STAGE, FOURS=0, TRANSPOSED=1, PAD=4)
    assert transposed.pop("store As") == (128, 0, 4 * plain.pop("store As")[2])
    assert transposed == plain


@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.compiler
def test_the_compiler_reads_as_by_fours_either_way():
    """So at the default tiles transposing saves no read; with the same registers, no block is lost either."""
    loops = []
    for fours, transposed in SWITCHES:
        code = compiled(STAGE, tiles={"FOURS": fours, "TRANSPOSED": transposed, "PAD": 4 * transposed})
        assert code.registers == 128 and code.spilled_bytes <= 8
        opcodes = [row.opcode for row in code.loop.rows]
        assert opcodes.count("LDS.128") == 160 and opcodes.count("FFMA") == 2048
        assert opcodes.count("LDG.E.128" if fours else "LDG.E") == (8 if fours else 32)
        loops.append(len(opcodes))
    none, transposed, fours, both = loops
    assert none - transposed < 50 < 300 < none - fours
    assert both == len(compiled("vectorized").loop)
    assert abs(none - len(compiled("thread_tiled_2d").loop)) < 10


def test_switches_are_0_or_1_and_fours_need_multiples_of_four():
    assert "FOURS must be 0 or 1" in STAGE.rules({"FOURS": 2})[0]
    assert any("TN (2)" in rule for rule in STAGE.rules({"TN": 2}))
    assert not any("TN (2)" in rule for rule in STAGE.rules({"TN": 2, "FOURS": 0}))
