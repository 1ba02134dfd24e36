"""``raised_roof``: other right stages pass, and without a compiler reads are asked for."""

import pytest

from gemm_course import check
from gemm_course.checks.notebooks.own_kernel import raised_roof
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.own_kernel import own_with
from tests.notebooks.builder import source_of
from tests.own_kernel.edits import EPILOGUE

BEGUN = '"BM": 128, "BN": 128, "BK": 32, "TM": 16, "TN": 4'
EIGHT = (BEGUN, BEGUN.replace('"TN": 4', '"TN": 8'))
SQUARE = (BEGUN, '"BM": 128, "BN": 128, "BK": 16, "TM": 16, "TN": 8')
TURNED = (BEGUN, '"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 16')
ROWS = ("THREADS // BK, THREADS // (BN // 4)", "THREADS // (BK // 4), THREADS // (BN // 4)")
FOURS_OF_A = (
    ("r, c = i + tid // BK, tid % BK\n", "r, c = i + tid // (BK // 4), tid % (BK // 4) * 4\n"),
    (
        "As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)",
        "v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros\n"
        "                for e in unroll(range(4)):\n"
        "                    As[r, c + e] = v[e] if k0 + c + e < k else float32(0)",
    ),
    ('width=("BK", t.BK))', 'width=("BK", t.BK), at_once=4)'),
)
needs_compiler = pytest.mark.skipif(why_no_compiler() is not None, reason="needs NVIDIA's compiler")


def fours():
    """The changes of the solution that have to do with fours."""
    changes = source_of("own_kernel").split("# Four floats of B at once.")[1].split("\n)\n")[0]
    return eval(f"[{changes}\n]")


def with_fours_of_a():
    rows = [(old, new.replace(*ROWS)) for old, new in fours()]
    return [*rows, *FOURS_OF_A]


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setattr(raised_roof, "why_no_compiler", lambda: "There is none.")


@needs_compiler
@pytest.mark.many(one_in=4)
@pytest.mark.parametrize(
    "changes",
    [(EIGHT, *fours()), (TURNED, *fours()), (SQUARE, *with_fours_of_a()), (EIGHT, *fours(), *EPILOGUE)],
    ids=["BK 32", "8 by 16", "fours of both", "with an epilogue"],
)
def test_other_right_stages_pass(changes):
    verdict = check.raised_roof(own_with("thread_tiled_2d", *_in_order(changes)))
    assert verdict.passed, str(verdict)


def _in_order(changes):
    """The epilogue's change of STAGE comes last: it and the fours' are on neighbouring lines."""
    return sorted(changes, key=lambda change: change in EPILOGUE)


@needs_compiler
@pytest.mark.parametrize(("changes", "roof"), [((EIGHT,), "50.3"), (tuple(fours()), "52.5")])
def test_one_move_alone_is_not_enough(changes, roof):
    verdict = check.raised_roof(own_with("thread_tiled_2d", *changes))
    assert not verdict.passed and f"allow {roof} TFLOPS" in verdict.message


def test_without_a_compiler_fewer_reads_are_asked_and_it_is_said_what_is_not_known(no_compiler):
    verdict = check.raised_roof(own_with("thread_tiled_2d", EIGHT, *fours()))
    assert verdict.passed, str(verdict)
    assert "0.19 reads of shared memory per multiply-add instead of 0.31" in verdict.message
    assert "1.25 loads and stores per copied float instead of 2.00" in verdict.message
    assert "nobody can say here what its roof is" in verdict.message


def test_without_a_compiler_as_many_reads_as_before_are_refused(no_compiler):
    verdict = check.raised_roof(own_with("thread_tiled_2d", *fours()))
    assert not verdict.passed and "At most 0.20 are asked" in verdict.message


def test_without_a_compiler_the_move_that_the_text_gives_is_not_enough(no_compiler):
    verdict = check.raised_roof(own_with("thread_tiled_2d", SQUARE))
    assert not verdict.passed and "takes 2.00 loads and stores" in verdict.message


def test_a_stage_without_tiles_in_shared_memory_is_refused_as_that():
    verdict = check.raised_roof(own_with("naive_coalesced", ("acc = float32(0)", "acc = float32(0) * 1")))
    assert not verdict.passed and "keep the tiles" in verdict.message


def test_what_is_as_it_began_is_not_tried_yet():
    assert check.raised_roof(own_with("thread_tiled_2d")).message.startswith("Not yet")
    assert check.raised_roof(own_with("thread_tiled_2d", ("tid = u32(", "tid  = u32("))).message.startswith(
        "Not yet"
    )


def test_half_precision_has_another_roof():
    verdict = check.raised_roof(own_with("wmma"))
    assert not verdict.passed and "Tensor Cores" in verdict.message
