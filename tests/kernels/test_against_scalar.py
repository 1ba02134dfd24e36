"""The ladder on the emulator and in a plain scalar interpreter: values, and every access counted."""

import numpy as np
import pytest

from gemm_course.kernels import LADDER
from lockstep_tests.scalar import NotCovered
from lockstep_tests.tables import compare_tables, emulated_table, run_both

pytest.importorskip(
    "numba_cuda", reason="asks numba-cuda's type inference, which the built-in numba.cuda lacks"
)


def smallest(stage):
    """The legal tiles with the least work for one block."""
    return min(stage.legal_choices(), key=lambda tiles: np.prod([max(size, 1) for size in tiles.values()]))


def product(stage, m, n, k, tiles):
    """The arguments of a stage's kernel, of small whole numbers, rows as long as the stage requires."""
    elements = stage.alignment // stage.itemsize
    random = np.random.default_rng(m)
    widths = (-(-width // elements) * elements for width in (k, n, n))
    A, B, C = (random.integers(-4, 5, shape).astype(stage.dtype) for shape in zip((m, k, m), widths))
    return stage.arguments(m, n, k, np.float32(2), A, B, np.float32(0.5), C, tiles=tiles)


@pytest.mark.many(one_in=27, with_all=3)
@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
def test_stages_of_the_ladder(stage):
    tiles, size = smallest(stage), (9, 11, 6)
    geometry = stage.kernel(tiles), stage.grid(*size[:2], tiles), stage.block(tiles)
    try:
        launch, plain, report, emulated = run_both(
            *geometry, lambda: product(stage, *size, tiles), stage.shared_bytes(tiles)
        )
    except NotCovered as missing:
        pytest.skip(f"not covered by the scalar interpreter: {missing}")
    assert report.ok, [str(finding) for finding in report.findings]
    np.testing.assert_array_equal(emulated[-1], plain[-1])
    m, n, k, alpha, A, B, beta, C = product(stage, *size, tiles)
    np.testing.assert_array_equal(emulated[-1][:m, :n], (alpha * (A[:, :k] @ B) + beta * C)[:m, :n])
    compare_tables(launch.table(), emulated_table(report))
    assert report.barriers == launch.barriers
