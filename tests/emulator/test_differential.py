"""The emulator against a plain scalar interpreter of the same kernel: values, and every access counted."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from gemm_course.emulator import emulate
from gemm_course.kernels import LADDER
from tests.emulator import corpus
from tests.emulator.random_kernels import careless_kernels, random_kernels
from tests.emulator.scalar import Launch, NotCovered
from tests.sampling import examples

pytest.importorskip(
    "numba_cuda", reason="asks numba-cuda's type inference, which the built-in numba.cuda lacks"
)

FIGURES = {
    "global": ["requests", "lanes", "bytes", "sectors", "lines"],
    "shared": ["requests", "lanes", "bytes", "wavefronts"],
    "local": ["requests", "lanes", "bytes"],
}
SOUND = corpus.cases("sound")


def emulated_table(report):
    """Counts of a report summed over the places that share a line, space, op, array and width."""
    keys = ["line", "space", "op", "array", "bits"]
    summed = report.accesses.groupby(keys)[sorted(set().union(*FIGURES.values()))].sum()
    return {key: dict(row) for key, row in zip(summed.index, summed.to_dict("records"), strict=True)}


def compare_tables(scalar, emulated):
    assert set(scalar) == set(emulated), f"only one counts {sorted(set(scalar) ^ set(emulated))}"
    different = {}
    for key, expected in scalar.items():
        _, space, op, *_ = key
        names = ["requests", "lanes"] if op == "atomic" else FIGURES[space]
        got = {name: int(emulated[key][name]) for name in names}
        wanted = {name: expected[name] for name in names}
        if got != wanted:
            different[key] = (got, wanted)
    assert not different, "\n".join(f"{key}: {got}, not {wanted}" for key, (got, wanted) in different.items())


def run_both(kernel, grid, block, make_args, shared_bytes=0):
    """(scalar launch, its arguments, report, its arguments)."""
    plain, emulated = make_args(), make_args()
    launch = Launch(kernel, grid, block, plain, shared_bytes).run()
    report = emulate(kernel, grid, block, *emulated, shared_bytes=shared_bytes)
    return launch, plain, report, emulated


@settings(max_examples=examples(80, one_in=5), deadline=None, suppress_health_check=list(HealthCheck))
@given(random_kernels())
def test_random_kernels(random_kernel):
    launch, plain, report, emulated = run_both(
        random_kernel.load(), random_kernel.grid, random_kernel.block, random_kernel.args
    )
    errors = [str(finding) for finding in report.findings if finding.severity == "error"]
    assert not errors, f"{errors}\n{random_kernel.source}"
    for name, wanted, got in zip("x a k n reals wholes bins".split(), plain, emulated, strict=True):
        np.testing.assert_array_equal(got, wanted, err_msg=f"{name}\n{random_kernel.source}")
    try:
        compare_tables(launch.table(), emulated_table(report))
    except AssertionError as difference:
        raise AssertionError(f"{difference}\n{random_kernel.source}") from None
    assert report.barriers == launch.barriers


@settings(max_examples=examples(60, one_in=5), deadline=None, suppress_health_check=list(HealthCheck))
@given(careless_kernels())
def test_findings_of_careless_kernels(careless):
    """Both find the same faults in the same arrays, and every reported race is between the lines it names."""
    launch, _, report, _ = run_both(careless.load(), careless.grid, careless.block, careless.args)
    (certain, possible), told = (
        launch.faults(),
        [found for found in report.findings if found.severity == "error"],
    )
    expected = certain | possible
    accused = {(found.kind, found.array) for found in told}
    assert {(kind, array) for kind, array, _ in certain} <= accused, f"{told}\n{certain}\n{careless.source}"
    for found in told:
        named = {found.line} | ({found.other_line} if found.other_line else set())
        pairs = [lines for kind, array, lines in expected if (kind, array) == (found.kind, found.array)]
        assert any(named <= lines for lines in pairs), f"{found}\n{expected}\n{careless.source}"


@pytest.mark.parametrize("name", SOUND)
def test_sound_corpus(name):
    case = SOUND[name]
    try:
        launch, _, report, emulated = run_both(
            case.kernel, case.grid, case.block, case.make_args, case.shared_bytes
        )
    except NotCovered as missing:
        pytest.skip(f"not covered by the scalar interpreter: {missing}")
    corpus.compare(case, emulated)
    compare_tables(launch.table(), emulated_table(report))
    assert report.barriers == launch.barriers


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


@pytest.mark.many(one_in=4)
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
