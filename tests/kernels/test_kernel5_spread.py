"""Kernel 5 with padded rows and spread columns: the same results, and what each change does to the counts."""

import numpy as np
import pytest

from gemm_course.kernels import LADDER
from gemm_course.kernels.variants.kernel5_spread import STAGE
from lockstep import emulate

SMALL = {"BM": 32, "BN": 64, "BK": 16, "TM": 4, "TN": 8}
DOCUMENT = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}


@pytest.mark.parametrize("spread", [0, 1])
@pytest.mark.parametrize("pad", [0, 1, 4])
@pytest.mark.parametrize("shape", [(45, 70, 19), (1, 1, 1), (64, 130, 33), (3, 5, 0)])
def test_the_results_stay_the_same(shape, pad, spread, emulated):
    run = emulated(STAGE, *shape, tiles=SMALL | {"PAD": pad, "SPREAD": spread}, alpha=1.5, beta=-0.5)
    assert run.error < 1e-6
    assert run.padding_untouched
    assert run.report.findings == []


def per_request(column: str, stage=STAGE, **changes) -> dict[str, float]:
    """Sectors or wavefronts per request by operation and array, for one block of document 000's shape."""
    tiles = DOCUMENT | changes
    A, B, C = (np.ones(shape, np.float32) for shape in ((128, 16), (16, 128), (128, 128)))
    launch = (stage.kernel(tiles), 1, stage.block(tiles))
    report = emulate(*launch, 128, 128, 16, np.float32(1), A, B, np.float32(0), C)
    kept = report.accesses.query("space != 'local'")
    return {f"{row.op} {row.array}": getattr(row, column) / row.requests for row in kept.itertuples()}


def test_without_the_changes_it_is_kernel5():
    for column in ("sectors", "wavefronts"):
        plain = per_request(column, LADDER["kernel5"])
        assert per_request(column, PAD=0, SPREAD=0) == plain
    wavefronts = per_request("wavefronts", LADDER["kernel5"])
    assert (wavefronts["load As"], wavefronts["load Bs"]) == (2, 4)
    assert per_request("sectors", LADDER["kernel5"])["load B"] == 32


@pytest.mark.parametrize(("pad", "a"), [(0, 2), (1, 1), (2, 1), (3, 1), (4, 2), (8, 2)])
def test_padding_fixes_as_where_it_is_no_multiple_of_four_and_never_bs(pad, a):
    wavefronts = per_request("wavefronts", PAD=pad, SPREAD=0)
    assert (wavefronts["load As"], wavefronts["load Bs"]) == (a, 4)


def test_spread_columns_fix_bs_and_coalesce_b_and_c():
    wavefronts, sectors = (per_request(column, PAD=0, SPREAD=1) for column in ("wavefronts", "sectors"))
    assert (wavefronts["load As"], wavefronts["load Bs"]) == (2, 1)
    assert (sectors["load B"], sectors["store C"]) == (4, 4)


def test_the_width_of_a_padded_row_is_a_constant_for_the_compiler():
    """Numba refuses a shape that is computed inside the kernel."""
    assert "A_WIDTH" in STAGE.kernel().py_func.__code__.co_freevars
    assert STAGE.rules({"SPREAD": 2}) and not STAGE.rules({"PAD": 0, "SPREAD": 0})
