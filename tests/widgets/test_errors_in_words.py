"""A sentence in place of a traceback, and a traceback where the course itself is at fault."""

import inspect
import re

import pytest
from IPython.core.interactiveshell import InteractiveShell
from numba import cuda, float32
from traitlets.config import Config

from gemm_course import widgets as see
from gemm_course.figures.words import TITLE
from gemm_course.widgets import _canvas, _charts, _errors_in_words, _warp_and_memory

SIZE = (64, 64, 64)
NO_HISTORY = Config(HistoryManager={"enabled": False})


@cuda.jit
def empty(m, n, k, alpha, A, B, beta, C):
    pass


@cuda.jit
def with_a_typo(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        C[row, col] = alfa * A[row, 0]  # noqa: F821


@cuda.jit
def of_two(A, C):
    C[0, 0] = A[0, 0]


@cuda.jit
def endless(m, n, k, alpha, A, B, beta, C):
    p = 0
    while p < k:
        A[0, 0]


@cuda.jit
def endless_for_tall_blocks(m, n, k, alpha, A, B, beta, C):
    C[cuda.threadIdx.y, cuda.threadIdx.x] = A[0, 0]
    p = 0
    while p < k and cuda.blockDim.x == 256:
        A[0, 0]


def dividing_by_zero(m, n, k):
    return m // (n - n)


def of_a_helper(m, n, k):
    return dividing_by_zero(m, n, k)


def of_a_square(n):
    return n


def elements_of_nothing(tid, BN, WM, WN, TN, WNITER):
    return [(tid // (BN - BN), 0)]


def as_fractions(tid, BN, WM, WN, TN, WNITER):
    return [(tid / 2, 0)]


def no_kernel_yet(BM, BK, PAD, threads):
    return None


def no_loads_yet(BM, BK, PAD, threads):
    @cuda.jit
    def transpose(A, out):
        cuda.syncthreads()

    return transpose


def of_computed_size(BM, BK, PAD, threads):
    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BK, BM + PAD), float32)
        As[cuda.threadIdx.x, 0] = A[0, 0]

    return transpose


def fetching_with_a_typo(BM, BN, BK, TM, TN):
    @cuda.jit(device=True)
    def fetch(m, n, k, k0, A, B, As, Bs):
        As[cuda.threadIdx.y, cuda.threadIdx.x] = A[rwo, 0]  # noqa: F821

    return fetch


def no_layout_yet(BM, BN, BK, WM, WN, TM, TN):
    return None


LEARNERS = {
    "a typo": (
        lambda: see.warp_and_memory(with_a_typo),
        r"alfa is not defined.*\(Line \d+: `C\[row, col\] = alfa",
    ),
    "other parameters": (lambda: see.warp_and_memory(of_two), "of_two takes 2 arguments"),
    "an endless loop": (lambda: see.warp_and_memory(endless), r"still running.*`while p < k:`"),
    "a failing formula": (
        lambda: see.counts("naive_coalesced", SIZE, global_load_requests=dividing_by_zero),
        r"`dividing_by_zero` stopped with ZeroDivisionError: .*\(Line \d+: `return m // \(n - n\)`\)",
    ),
    "a formula that calls one": (
        lambda: see.counts("naive_coalesced", SIZE, global_load_requests=of_a_helper),
        "`dividing_by_zero` stopped with",
    ),
    "a formula of n": (
        lambda: see.counts("naive_coalesced", SIZE, global_load_requests=of_a_square),
        r"`of_a_square` must take \(m, n, k\); yours takes \(n\)",
    ),
    "a failing map": (lambda: see.owners(elements_of_nothing), "`elements_of_nothing` stopped with ZeroDiv"),
    "half elements": (lambda: see.owners(as_fractions), r"whole numbers; it gives `\[\(0\.0, 0\)\]`"),
    "no layout": (lambda: see.owners(no_layout_yet), r"`no_layout_yet\(64, .*\)` returns nothing yet"),
    "no kernel": (lambda: see.scatter(no_kernel_yet), "returns nothing yet"),
    "no loads": (lambda: see.scatter(no_loads_yet), "No thread loads an element of `A`"),
    "a computed size": (lambda: see.scatter(of_computed_size), r"`BM \+ PAD` is computed inside the kernel"),
    "a typo in fetch": (lambda: see.coverage(fetching_with_a_typo), r"rwo is not defined.*= A\[rwo, 0\]"),
    "not written yet": (lambda: see.coverage(None), "Nothing to draw yet"),
    "another's factory": (lambda: see.coverage(no_layout_yet), r"must take \(BM, BN, BK, TM, TN\); yours"),
}


@pytest.fixture
def displayed(monkeypatch):
    texts = []
    monkeypatch.setattr(
        _canvas, "display", lambda bundle, **_: texts.append(bundle.get("text/plain", "")) if bundle else None
    )
    return texts


@pytest.mark.parametrize("case", LEARNERS)
def test_a_learners_half_written_code_is_a_sentence_and_the_cell_has_run(case, displayed):
    call, words = LEARNERS[case]
    assert call() is None
    assert len(displayed) == 1 and re.search(words, displayed[0])
    assert "Traceback" not in displayed[0] and displayed[0].count("\n") == 0


CANNOT_BE_RIGHT = {
    "a name misspelt": ('see.warp_and_memory("naive")', "no stage is called 'naive'"),
    "a letter wrong": ('see.tiles("vectorised")', r"did you mean vectorized\?$"),
    "an unknown keyword": ('see.roofline("wmma", shred=1)', "unexpected keyword argument 'shred'"),
    "too little": ('see.diff("vectorized")', "missing a required argument: 'after'"),
    "two that exclude each other": ('see.roofline(until="wmma", limits="wmma")', "leave out the stages"),
    "a kernel for a name": ("see.tflops(min)", "must be a name in quotes"),
    "a number for a kernel": ("see.source(3)", "a kernel is needed, or a stage's name"),
    "an unknown count": ('see.counts("wmma", (64,) * 3, loads=1)', "there is no count called loads"),
    "a size for a shape": ('see.counts("wmma", 64, global_load_requests=1)', r"three numbers, \(m, n, k\)"),
    "an unknown notebook": ('see.quiz("77")', "no questions on notebook '77'"),
    "an unknown prediction": (
        'see.predict("welcome.nothing")',
        "no question 'welcome.nothing'; there are welcome",
    ),
    "no rows": ("see.grid(rows=0)", "rows must be from 1 to"),
    "called too early": ("see.owners([1, 2])", "Pass the function itself"),
}


@pytest.mark.parametrize("case", CANNOT_BE_RIGHT)
def test_a_call_that_cannot_be_right_fails_with_one_sentence(case, capsys):
    call, words = CANNOT_BE_RIGHT[case]
    with pytest.raises((ValueError, TypeError, KeyError)) as caught:
        eval(call, {"see": see})
    (sentence,) = caught.value._render_traceback_()
    assert re.search(words, sentence, re.IGNORECASE) and sentence.startswith(
        f"see.{call[4 : call.index('(')]}: "
    )
    shell = InteractiveShell(config=NO_HISTORY)
    shell.user_ns["see"] = see
    assert not shell.run_cell(call).success, "whoever runs all cells must notice"
    printed = capsys.readouterr()
    assert (
        re.search(words, printed.out + printed.err, re.IGNORECASE)
        and "Traceback" not in printed.out + printed.err
    )


def test_a_fault_of_the_course_keeps_its_traceback(monkeypatch, capsys):
    monkeypatch.setattr(_charts, "_agreement", lambda counted: counted[7])
    shell = InteractiveShell(config=NO_HISTORY)
    shell.user_ns["see"] = see
    assert not shell.run_cell("see.counts('naive_coalesced', (64,) * 3, global_load_requests=1)").success
    assert "Traceback" in capsys.readouterr().out


def test_a_fault_of_the_course_is_not_blamed_on_the_kernel_that_a_learner_handed_over(monkeypatch, displayed):
    monkeypatch.setattr(_warp_and_memory, "requests", divmod)
    with pytest.raises(TypeError, match="divmod") as caught:
        see.warp_and_memory(endless_for_tall_blocks)
    assert not displayed and not hasattr(caught.value, "_render_traceback_")
    with pytest.raises(TypeError, match="divmod"):
        _errors_in_words.or_words(_warp_and_memory.draw)([endless_for_tall_blocks], 0, ("load", "A"))


def test_what_fails_later_is_a_picture_of_the_sentence():
    def draw(block):
        return _warp_and_memory.draw([endless_for_tall_blocks], 0, ("store", "C"), block=block)

    assert not _errors_in_words.or_words(draw)((32, 32)).alt.startswith(TITLE)
    picture = _errors_in_words.or_words(draw)((256, 1))
    assert picture.alt.startswith(TITLE) and "still running after 1,000 iterations" in picture.alt


def test_every_name_is_spoken_and_keeps_its_signature_and_words():
    for name in set(see.__all__) - {"fold"}:  # which passes on what fails in it
        function = getattr(see, name)
        assert function.__wrapped__.__doc__ == function.__doc__
        assert inspect.signature(function) == inspect.signature(function.__wrapped__)
