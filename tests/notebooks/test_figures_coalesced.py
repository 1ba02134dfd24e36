"""Figures in the words of notebook 02 are those of the records, and its counts those of the emulator."""

import re

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import emulate, records
from gemm_course.model.gpus import GPUS
from gemm_course.profiles import recorded
from gemm_course.profiles.verdict import verdict
from gemm_course.widgets import _quiz, _warp_and_memory
from tests.notebooks.builder import source_of

H200 = GPUS["H200"]
SQUARE, FLAT, EVEN = "BM=32 BN=32", "BM=2 BN=128", "BM=16 BN=16"
ROOF = H200.multiprocessors * H200.clock_mhz * 1e6 * 64 / 1e12  # at one wavefront per step
ROW, LINE = 4096, 32  # floats
TEXT = re.sub(r"\s+", " ", source_of("coalesced").replace("\n# ", " "))


def asked(question: str) -> str:
    return str(_quiz.questions("coalesced")[question])


def swept(stage: str, tiles: str) -> float:
    return records.sweep().set_index(["stage", "tiles"])["tflops"][stage, tiles]


def profile(stage: str, tiles: str = SQUARE):
    rows = records.profiles().set_index(["stage", "m", "tiles"])
    return rows.loc[(stage, ROW, tiles)]


def wavefronts_of_a(rows: int, columns: int, length: int = ROW) -> int:
    """Wavefronts for the load of A by a warp that covers so many rows."""
    places = [row * length % LINE for row in range(rows)]
    return max(map(places.count, places))


# ---- the functions of the notebook -------------------------------------------------------------------------


def of_the_notebook() -> dict:
    """The functions of the first cell with code, which print and return what a step costs."""
    (cell,) = re.findall(r"^def wavefronts.*?(?=^# %%)", source_of("coalesced"), re.DOTALL | re.MULTILINE)
    names: dict = {}
    exec(cell, names)
    return names


@pytest.mark.parametrize(
    ("columns", "length", "waves", "sectors"),
    [
        (1, 4096, (32, 1), (32, 1)),
        (32, 4096, (1, 1), (1, 4)),
        (16, 4096, (2, 1), (2, 2)),
        (16, 4104, (1, 1), (2, 2)),
        (8, 4096, (4, 1), (4, 1)),
    ],
)
def test_what_a_step_costs(columns, length, waves, sectors, capsys):
    step = of_the_notebook()["step"]
    step([(lane // columns, lane % columns) for lane in range(32)], length=length)
    shown = [tuple(map(int, re.findall(r"\d+", line))) for line in capsys.readouterr().out.splitlines()]
    assert shown == [waves, sectors]
    assert wavefronts_of_a(32 // columns, columns, length) == waves[0]


def test_a_list_with_an_element_twice_is_refused_in_words():
    with pytest.raises(AssertionError, match="an element of its own"):
        of_the_notebook()["step"]([(0, 0)] * 32)


def test_the_first_request_of_chunks_and_of_neighbours():
    names = of_the_notebook()
    both = names["wavefronts"], names["sectors"]
    assert [count([4 * 32 * lane for lane in range(32)]) for count in both] == [32, 32]
    assert [count([4 * lane for lane in range(32)]) for count in both] == [1, 4] and "`(1, 4)`" in TEXT


# ---- speeds ------------------------------------------------------------------------------------------------


def test_how_much_faster_the_order_alone_makes_it():
    before, now = (swept(stage, SQUARE) for stage in ("naive_uncoalesced", "naive_coalesced"))
    assert f"reached {before:.2f} TFLOPS on an H200" in TEXT
    assert f"**It reached** {now:.1f} TFLOPS on an H200, {now / before:.0f} times" in TEXT
    assert f"rises from {ROOF / 33:.2f} to {ROOF / 2:.1f}" in TEXT
    assert f"{ROOF:.1f} TFLOPS / wavefronts" in TEXT
    assert f"'{now / before:.0f} times', 'right': True" in asked("speedup")
    assert f"{round(33 / 5, 1)}: that goes by sectors" in asked("speedup")


def test_the_speed_of_16_by_16():
    even, square = (swept("naive_coalesced", tiles) for tiles in (EVEN, SQUARE))
    assert f"{even:.1f}" == f"{square:.1f}" == "5.2"
    said = asked("patch")
    assert "`naive_coalesced` in blocks of 32 × 32 reaches 5.2 TFLOPS" in said
    assert f"{5.2 * 5 / 4:.1f}: it touches fewer" in said and f"{5.2 * 2 / 3:.1f}: more wavefronts" in said
    assert f"{ROOF / 3:.1f}: L1's roof for its wavefronts" in said
    assert f"5.2 is well below {ROOF / 2:.1f}" in said
    busy = verdict(recorded("naive_coalesced", records.parse_tiles(SQUARE))).busy
    assert f"L2 is busy in {100 * busy['L2']:.0f} % of the clocks" in TEXT


def test_l1_was_not_the_limit_of_16_by_16():
    rows = records.row_lengths().set_index(["stage", "n", "tiles", "leading_dimension"])["tflops"]
    before, padded = (rows["naive_coalesced", ROW, EVEN, ROW + extra] for extra in (0, 8))
    said = asked("padded")
    assert f"{padded:.2f} instead of {before:.2f} TFLOPS" in said
    assert f"'{padded / before:.2f} times', 'right': True" in said
    assert (wavefronts_of_a(2, 16), wavefronts_of_a(2, 16, ROW + 8)) == (2, 1)
    assert (
        f"busy in {verdict(recorded('naive_coalesced', {'BM': 16, 'BN': 16})).share:.0%}".replace("%", " %")
        in said
    )


# ---- profiles ----------------------------------------------------------------------------------------------

MYSTERY = [
    ("naive_uncoalesced", SQUARE, 32),
    ("naive_coalesced", EVEN, 2),
    ("naive_coalesced", SQUARE, 1),
    ("naive_coalesced", FLAT, 1),
]


@pytest.mark.parametrize(("stage", "tiles", "of_a"), MYSTERY)
def test_the_mystery_profiles(stage, tiles, of_a):
    sizes = records.parse_tiles(tiles)
    rows, columns = sizes["BM"], sizes["BN"]
    row, tflops = profile(stage, tiles), swept(stage, tiles)
    shown = f"{tflops:.2f}" if tflops < 1 else f"{tflops:.1f}"
    assert f'"{stage}, {rows} × {columns}": ({shown}, {of_a + 1})' in TEXT
    of_a_step = row.l1_data / 100 * row.clocks / (row.global_load_requests / 2 / H200.multiprocessors)
    assert round(of_a_step) == of_a + 1
    busy = verdict(recorded(stage, sizes)).busy["L1 and shared memory"]
    yours = float(shown) * (of_a + 1) / 16.7
    cells = f"| `{stage}`, {rows} × {columns} | {of_a} + 1 | {yours:.0%} | {busy:.0%} |".replace("%", " %")
    assert cells in TEXT


def test_the_question_of_the_mystery_names_their_shares():
    shares = sorted(
        round(100 * verdict(recorded(stage, records.parse_tiles(tiles))).busy["L1 and shared memory"])
        for stage, tiles, _ in MYSTERY
    )
    assert f"L1 was busy in {', '.join(map(str, shares[:-1]))} and {shares[-1]} % of the clocks" in TEXT


def mystery(*changes: tuple[str, str]) -> list[str]:
    """Run the solved cell of the mystery with these changes, and return the lines that it prints."""
    (cell,) = re.findall(
        r'^# %% id="mystery"\n(.*?)(?=^# %%)', source_of("coalesced"), re.DOTALL | re.MULTILINE
    )
    cell = re.sub(r"^ *### STUB.*?(?=^ *### END)", "", cell, flags=re.DOTALL | re.MULTILINE)
    for old, new in changes:
        assert old in cell
        cell = cell.replace(old, new)
    printed: list[str] = []
    exec(cell, {"print": lambda *words: printed.append(" ".join(map(str, words)))})
    return printed


def test_the_mystery_finds_the_profile_of_each_kernel():
    assert [re.search(r"profile of (\d+)", line)[1] for line in mystery()] == ["99", "93", "61", "78"]
    exact = mystery(("round(100 * tflops / (16.7 / wavefronts))", "100 * tflops * wavefronts / 16.7"))
    assert [re.search(r"profile of (\d+)", line)[1] for line in exact] == ["99", "93", "61", "78"]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (("round(100 * tflops / (16.7 / wavefronts))", "tflops / (16.7 / wavefronts)"), 4),  # no per cent
        (
            ("round(100 * tflops / (16.7 / wavefronts))", "100 * tflops / 16.7"),
            4,
        ),  # the roof of one wavefront
        (("(5.2, 3)", "(5.2, 4)"), 1),  # sectors
        (("(5.2, 2)", "(5.2, 5)"), 1),
        (("(6.6, 2)", "(6.6, 5)"), 1),
        (("(6.6, 2)", "(6.6, 3)"), 1),
    ],
)
def test_the_mystery_has_no_profile_for_what_is_wrong(change, wrong):
    assert sum("no profile" in line for line in mystery(change)) == wrong


def test_the_mystery_is_silent_where_nothing_is_written():
    assert mystery(("round(100 * tflops / (16.7 / wavefronts))", "None")) == []


def test_no_part_limits_32_by_32_and_warps_wait():
    found = verdict(recorded("naive_coalesced", records.parse_tiles(SQUARE)))
    assert found.waiting and "warps wait for their loads" in TEXT
    assert recorded("naive_coalesced", records.parse_tiles(SQUARE)).tflops < swept("naive_coalesced", SQUARE)
    flat = verdict(recorded("naive_coalesced", records.parse_tiles(FLAT)))
    said = f"2 × 128 waits {100 * flat.waited:.0f} % of a warp's time instead of {100 * found.waited:.0f}."
    assert said in TEXT and flat.wait == found.wait


def test_2_by_128_makes_the_same_requests_and_is_faster():
    square, flat = (profile("naive_coalesced", tiles) for tiles in (SQUARE, FLAT))
    assert square.global_load_requests == flat.global_load_requests
    assert square.global_load_sectors == flat.global_load_sectors
    assert flat.warp_instructions == pytest.approx(square.warp_instructions, rel=0.01)
    faster = swept("naive_coalesced", FLAT) / swept("naive_coalesced", SQUARE)
    assert faster == pytest.approx(1.25, abs=0.03) and "and is a quarter faster" in TEXT


# ---- sectors -----------------------------------------------------------------------------------------------


def test_the_sectors_of_eight_steps():
    """Those that the picture counts, added up as the text asks."""
    for kernel, stage in enumerate(("naive_uncoalesced", "naive_coalesced")):
        alt = [
            _warp_and_memory.draw(
                [_warp_and_memory.LADDER[name] for name in ("naive_uncoalesced", "naive_coalesced")],
                7,
                ("load", array),
                kernel,
            ).alt
            for array in "AB"
        ]
        counts = [re.search(r"(\d+) sectors? asked of L1, (\d+) different", each) for each in alt]
        (asked_a, different_a), (asked_b, different_b) = (map(int, each.groups()) for each in counts)
        different = f"{different_a} + {different_b} = {different_a + different_b}"
        assert f"| `{stage}` | {asked_a} + {asked_b} | {different} |" in TEXT
        assert f"{asked_a + asked_b}" in ("264", "40")
    assert "8 · 33 = 264 sectors, and one of `naive_coalesced` for 40" in TEXT


def test_the_sectors_of_the_h200():
    row = profile("naive_uncoalesced")
    asked_of_l1, from_l2 = row.global_load_sectors / 1e9, row.l2_read_sectors / 1e9
    assert f"asked L1 for {asked_of_l1:.0f} · 10⁹ sectors, and L1 read {from_l2:.2f} · 10⁹ from L2" in TEXT


# ---- kernels of the quiz -----------------------------------------------------------------------------------


@cuda.jit
def transposing(A, out):
    col, row = cuda.grid(2)
    out[col, row] = A[row, col]


@cuda.jit
def real_parts(A, out):
    i = cuda.threadIdx.x
    out[i] = A[2 * i]


@cuda.jit
def of_rows(A, B, C, k):
    col, row = cuda.grid(2)
    acc = float32(0)
    for p in range(k):
        acc += A[row, p] * B[col, p]
    C[row, col] = acc


@cuda.jit
def of_rows_turned(A, B, C, k):
    row, col = cuda.grid(2)
    acc = float32(0)
    for p in range(k):
        acc += A[row, p] * B[col, p]
    C[row, col] = acc


def sectors_per_request(kernel, *arguments, threads=(32, 32)) -> dict[tuple[str, str], float]:
    report = emulate(kernel, (1, 1), threads, *arguments)
    rows = report.accesses.groupby(["op", "array"])[["sectors", "requests"]].sum()
    return (rows["sectors"] / rows["requests"]).to_dict()


def ones() -> np.ndarray:
    return np.ones((32, 32), np.float32)


@pytest.mark.parametrize(
    ("kernel", "of_a", "of_b", "of_c"),
    [
        (of_rows, 1, 32, 4),
        (of_rows_turned, 32, 1, 32),
    ],
)
def test_the_products_of_the_quiz(kernel, of_a, of_b, of_c):
    counts = sectors_per_request(kernel, ones(), ones(), ones(), 32)
    assert counts == {("load", "A"): of_a, ("load", "B"): of_b, ("store", "C"): of_c}


def test_the_transposition_of_the_quiz():
    assert sectors_per_request(transposing, ones(), ones()) == {("load", "A"): 4, ("store", "out"): 32}
    assert f"16.7 / 33 = {16.7 / 33:.2f}" in asked("unseen")


def test_the_real_parts_of_the_quiz():
    counts = sectors_per_request(real_parts, np.ones(64, np.float32), ones()[0], threads=(32, 1))
    assert counts["load", "A"] == 8
    assert of_the_notebook()["wavefronts"]([8 * lane for lane in range(32)]) == 2
    assert "'8 sectors, 2 wavefronts', 'right': True" in asked("complex")
