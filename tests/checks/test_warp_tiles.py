"""The checkers of `warp_tiles` on other right answers, on half-written ones, and the truths behind them."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import check, compiled
from gemm_course.checks.engines.tiles import tile_choices
from gemm_course.checks.kits import thread_tile_parts
from gemm_course.checks.notebooks.warp_tiles import (
    legal_tiles,
    owner_map,
    runs_of_four,
    stencil_limit,
    stencil_slips,
)
from gemm_course.checks.notebooks.warp_tiles.warp_layout import threads
from gemm_course.kernels import LADDER
from gemm_course.kernels.parts.base import tiles_text
from gemm_course.records import compute_roofs, roofs
from lockstep import wavefronts
from lockstep.intrinsics import u32
from tests.checks.cells import verdict_of
from tests.wrong_solutions.altering import changed, solution
from tests.wrong_solutions.warp_tiles import PUT_LOOP, RUNS, RUNS_ALIKE, WARP_COL, WARP_ROW


def elements_with_divmod(tid, BN, WM, WN, TN, WNITER):
    WMITER = WM * WN // (32 * TN * WNITER)
    WSUBM, WSUBN = WM // WMITER, WN // WNITER
    (warp, lane), across = divmod(tid, 32), WSUBN // TN
    top, left = (warp // (BN // WN)) * WM, (warp % (BN // WN)) * WN
    row, col = divmod(lane, across)
    found = []
    for i in range(WMITER):
        for j in range(WNITER * TN):
            found.append([top + i * WSUBM + row, left + j // TN * WSUBN + col * TN + j % TN])
    return found


def elements_as_an_array(*sizes):
    return np.array(elements_with_divmod(*sizes))


@pytest.mark.parametrize("answer", [elements_with_divmod, elements_as_an_array])
def test_owner_maps_in_other_words_pass(answer):
    verdict = check.owner_map(answer)
    assert verdict.passed, str(verdict)


def test_a_mistake_made_twice_is_named_as_when_it_is_made_once():
    as_wide_as_the_warp = (
        ("(32 * TN * WNITER)", "(32 * TN)"),
        ("WSUBN // TN) *", "WN // TN) *"),
        ("// (WSUBN // TN)", "// (WN // TN)"),
    )
    both_sides = ((WARP_ROW, "warp // (BN // WN) * WN"), (WARP_COL, "warp % (BN // WN) * WM"))
    for exercise, changes, words in (
        ("owner_map", as_wide_as_the_warp, "WNITER is missing"),
        ("runs_of_four", both_sides, "`WN` stands in the place of `WM`"),
    ):
        verdict = verdict_of(changed(solution(exercise), *changes))
        assert not verdict.passed and words in verdict.message, str(verdict)


def test_the_owner_maps_asked_for_cover_their_tiles():
    for tiles in owner_map.TILES:
        stored = (check.owner_map.right(tid, *tiles.values[1:]) for tid in range(threads(tiles)))
        owned = [place for places in stored for place in places]
        assert len(owned) == len(set(owned)) == tiles.BM * tiles.BN


def test_legal_may_answer_false():
    def legal(BM, BN, WM, WN, TM, TN, WNITER):
        return check.legal_tiles.right(BM, BN, WM, WN, TM, TN, WNITER) or False

    assert check.legal_tiles(legal).passed


def test_legal_tiles_by_the_lanes_of_a_row_pass():
    def legal(BM, BN, WM, WN, TM, TN, WNITER):
        WSUBN = WN // WNITER
        if BM % WM or BN % WN or WN % WNITER or WSUBN % TN or not WSUBN // TN or 32 % (WSUBN // TN):
            return 0
        WSUBM = 32 // (WSUBN // TN) * TM
        threads = BM * BN // (WM * WN) * 32
        return 0 if WM % WSUBM or threads > 1024 else threads

    verdict = check.legal_tiles(legal)
    assert verdict.passed, str(verdict)


def test_what_cannot_cover_a_warp_is_what_the_stage_refuses():
    """With TM = 1, the truth of `legal_tiles` and the rules of the course's stage agree, fours aside."""
    stage = LADDER["warp_tiled_tm1"]
    about_fours = ("must be a multiple of 4", "fetched at a time", "registers", "bytes of shared memory")
    for BM, BN, WM, WN, TM, TN, WNITER in legal_tiles.CASES:
        if TM != 1:
            continue
        tiles = {"BM": BM, "BN": BN, "BK": 8, "WM": WM, "WN": WN, "TM": 1, "TN": TN, "WNITER": WNITER}
        broken = [rule for rule in stage.rules(tiles) if not any(words in rule for words in about_fours)]
        legal = check.legal_tiles.right(BM, BN, WM, WN, TM, TN, WNITER)
        if legal:
            assert not broken, tiles_text(tiles)
        else:
            assert stage.rules(tiles), tiles_text(tiles)


def test_threads_of_legal_tiles_are_those_of_the_launch():
    tiles = {"BM": 64, "BN": 128, "BK": 8, "WM": 32, "WN": 64, "TM": 1, "TN": 8, "WNITER": 2}
    assert LADDER["warp_tiled_tm1"].block(tiles) == (check.legal_tiles.right(64, 128, 32, 64, 1, 8, 2),)


def test_the_table_may_hold_lists_and_floats():
    table = {
        "8 × 4": [[2.0, 1], (2, np.int64(4))],
        "4 × 8": ((1, 2), (2, 8)),
        "4 × 8, runs of four": ((1, 1), (2, 4)),
        "16 × 2, runs of four": ((2, 1), (2, 2)),
    }
    assert check.warp_wavefronts(table).passed
    assert check.warp_wavefronts({layout: np.array(row) for layout, row in table.items()}).passed
    table["16 × 2, runs of four"] = ((2, 1), (2, None))
    assert "Next comes `16 × 2, runs of four`, array B, four" in check.warp_wavefronts(table).message
    table["4 × 8"] = ((1, None), (2, 8))
    verdict = check.warp_wavefronts(table)
    assert verdict.message.startswith("Not yet: what is filled in is right")
    assert "Next comes `4 × 8`, array B, one float" in str(verdict)


NESTED = """        for i in range(0, TM, 4):
            for j in range(0, TN, 4):
                for e in range(4):
                    for f in range(4):
                        row, col = y0 + i * LANE_ROWS + e, x0 + j * LANE_COLS + f
                        put(m, n, alpha, acc[i + e, j + f], beta, C, row, col)
"""


@pytest.mark.compiler
@pytest.mark.full(reason="the compiler is asked twice")
def test_nested_loops_leave_registers_until_all_are_unrolled():
    nested = changed(solution("runs_of_four"), (PUT_LOOP, NESTED))
    verdict = verdict_of(nested)
    assert not verdict.passed and "`acc` is in local memory" in verdict.message
    assert "`for i in unroll(range(0, TM, 4)):`, and so for `j`, `e` and `f`" in verdict.message
    ranges = ("range(0, TM, 4)", "range(0, TN, 4)", "range(4)")
    everywhere = changed(nested, *((each, f"unroll({each})") for each in ranges))
    assert verdict_of(everywhere).passed
    inside = changed(nested, ("range(4)", "unroll(range(4))"))
    assert "`for i in unroll(range(0, TM, 4)):`, and so for `j`, after" in verdict_of(inside).message


def test_what_stops_with_some_tiles_names_them():
    assert (
        "With BM = 32, BN = 64, BK = 4, WM = 16, WN = 64, TM = 4"
        in RUNS["slices_for_two_runs"].verdict().where
    )


@pytest.mark.full(reason="a second or more per choice of tiles")
def test_runs_of_four_is_right_on_tiles_that_the_checker_does_not_try(monkeypatch):
    # 64 results per thread at most: the compiler does not write out loops over 128, which leave registers.
    others = tile_choices(
        "BM BN BK WM WN TM TN",
        (32, 128, 4, 32, 64, 4, 16),
        (64, 64, 8, 32, 64, 4, 16),
        (64, 96, 4, 64, 32, 16, 4),
    )
    assert not set(others) & set(runs_of_four.TILES)
    monkeypatch.setattr(runs_of_four, "FACTORY", replace(runs_of_four.FACTORY, tiles=others))
    monkeypatch.setattr(runs_of_four, "TILES", others)
    monkeypatch.setattr(runs_of_four, "SEVERAL", others[1])
    verdict = verdict_of(solution("runs_of_four"))
    assert verdict.passed, str(verdict)


@pytest.mark.full(reason="all problems with all choices of tiles")
def test_lanes_numbered_down_their_columns_are_right_as_well():
    downwards = changed(
        solution("runs_of_four"),
        ("lane // LANE_COLS", "lane % LANE_ROWS"),
        ("lane % LANE_COLS", "lane // LANE_ROWS"),
    )
    verdict = verdict_of(downwards)
    assert verdict.passed and "harmless with these tiles" in str(verdict), str(verdict)
    assert "take 12 per k step" in str(verdict)


@pytest.mark.full(reason="all problems with all choices of tiles")
def test_warps_numbered_down_their_columns_cost_nothing_anywhere():
    downwards = changed(
        solution("runs_of_four"),
        ("warp // (BN // WN)", "warp % (BM // WM)"),
        ("warp % (BN // WN)", "warp // (BM // WM)"),
    )
    verdict = verdict_of(downwards)
    assert verdict.passed and "harmless with these tiles" in str(verdict), str(verdict)
    assert "take 12 per k step" not in str(verdict)


@pytest.mark.parametrize(("rows", "columns", "taken"), [(4, 8, (12, 12)), (8, 4, (12, 12)), (16, 2, (8, 12))])
def test_when_it_is_harmless_to_number_lanes_downwards(rows, columns, taken):
    """Wavefronts of a k step in runs of four, lanes numbered row by row and downwards."""
    for across, right in zip((columns, rows), taken):
        lanes = [divmod(lane, across) for lane in range(32)]
        reads = [[4 * at[side] for at in lanes] for side in (0, 1)]
        assert 2 * sum(wavefronts(words, 128, "load") for words in reads) == right


@pytest.mark.full(reason="compiles the kernel with all tiles")
@pytest.mark.many(one_in=2, with_all=2)
@pytest.mark.compiler
@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("u32(cuda.threadIdx.x)", "is read by one"),
        ("cuda.threadIdx.x", "Passed, but slow: the compiler does not merge"),
    ],
)
def test_the_verdict_says_whether_the_reads_are_merged(index, said):
    verdict = verdict_of(changed(solution("runs_of_four"), ("u32(cuda.threadIdx.x)", index)))
    assert verdict.passed and said in str(verdict), str(verdict)
    assert "harmless" not in str(verdict)


@pytest.mark.full(reason="all problems with all choices of tiles")
def test_one_operand_may_be_read_by_fours():
    alone = "for i in range(TM):\n                    a[i] = As[p, y0 + i // 4 * (4 * LANE_ROWS) + i % 4]"
    fours = "for i in range(0, TM, 4):\n                    a[i], a[i + 1], a[i + 2], a[i + 3] = load4("
    cell = changed(solution("runs_of_four"), (alone, f"{fours}As, (p, y0 + i * LANE_ROWS))"))
    verdict = verdict_of(f"from lockstep.intrinsics import load4\n\n{cell}")
    assert verdict.passed, str(verdict)


@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.compiler
@pytest.mark.parametrize(("index", "reads"), [("u32(cuda.threadIdx.x)", 4), ("cuda.threadIdx.x", 16)])
def test_unsigned_indices_are_what_merges_the_reads(index, reads):
    cell = changed(solution("runs_of_four"), ("u32(cuda.threadIdx.x)", index)).split("check.")[0]
    space = {"cuda": cuda, "float32": float32, "u32": u32, "thread_tile_parts": thread_tile_parts}
    exec(cell, space)
    kernel = space["make_runs_of_four"](128, 128, 16, 32, 64, 8, 8)
    A = np.zeros((4, 4), np.float32)
    found = compiled(kernel, 4, 4, 4, np.float32(1), A, A, np.float32(0), A)
    opcodes = found.instructions["opcode"]
    per_k_step = opcodes[opcodes.str.startswith("LDS")].value_counts().to_dict()
    assert per_k_step == {"LDS.128" if reads == 4 else "LDS": reads}


def test_without_a_read_the_verdict_does_not_ask_for_what_is_there():
    begun = re.sub(r"a\[i\] = .*|b\[j\] = .*|put\(.*", "pass", solution("runs_of_four"))
    verdict = verdict_of(begun)
    assert verdict.message.startswith("Not yet") or not verdict.passed
    assert "may be right already" in str(verdict)


@pytest.mark.many(one_in=8)
@pytest.mark.parametrize("name", RUNS_ALIKE)
def test_another_way_to_the_same_mistake_gets_its_message(name):
    verdict = RUNS_ALIKE[name].verdict()
    assert not verdict.passed
    assert RUNS_ALIKE[name].words in verdict.message, str(verdict)


# ---- stencil -----------------------------------------------------------------------------------------------


def own_place_then_halo(T):
    S = T + 2

    @cuda.jit
    def kernel(src, weights, dst):
        rows, columns = src.shape
        tile = cuda.shared.array((S, S), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        j, i = cuda.grid(2)
        last_y, last_x = y == T - 1, x == T - 1
        for down in range(-1, 2):
            for right in range(-1, 2):
                # A thread at the block's edge fetches the halo beside it, one in the corner three places.
                beyond_y = down == 0 or (down < 0 and y == 0) or (down > 0 and last_y)
                beyond_x = right == 0 or (right < 0 and x == 0) or (right > 0 and last_x)
                if beyond_y and beyond_x:
                    r, c = i + down, j + right
                    if r >= 0 and r < rows and c >= 0 and c < columns:
                        tile[y + 1 + down, x + 1 + right] = src[r, c]
                    else:
                        tile[y + 1 + down, x + 1 + right] = 0
        cuda.syncthreads()
        if i >= rows or j >= columns:
            return
        total = float32(0)
        for k in range(9):
            total += weights[k // 3, k % 3] * tile[y + k // 3, x + k % 3]
        dst[i, j] = total

    return kernel


def strides_in_both_directions(T):
    S, P = T + 2, T + 3

    @cuda.jit
    def kernel(A, w, out):
        tile = cuda.shared.array((S, P), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        top, left = cuda.blockIdx.y * T - 1, cuda.blockIdx.x * T - 1
        for r in range(ty, S, T):
            for c in range(tx, S, T):
                inside = 0 <= top + r < A.shape[0] and 0 <= left + c < A.shape[1]
                tile[r, c] = A[top + r, left + c] if inside else float32(0)
        cuda.syncthreads()
        if top + 1 + ty < out.shape[0] and left + 1 + tx < out.shape[1]:
            acc = w[0, 0] * tile[ty, tx] + w[0, 1] * tile[ty, tx + 1] + w[0, 2] * tile[ty, tx + 2]
            acc += w[1, 0] * tile[ty + 1, tx] + w[1, 1] * tile[ty + 1, tx + 1]
            acc += w[1, 2] * tile[ty + 1, tx + 2] + w[2, 0] * tile[ty + 2, tx]
            out[top + 1 + ty, left + 1 + tx] = (
                acc + w[2, 1] * tile[ty + 2, tx + 1] + w[2, 2] * tile[ty + 2, tx + 2]
            )

    return kernel


def flat_tile_and_weights_in_shared_memory(T):
    S = T + 2
    ALL = S * S

    @cuda.jit
    def kernel(A, w, out):
        m, n = A.shape
        tile, weights = cuda.shared.array(ALL, float32), cuda.shared.array(9, float32)
        tid = cuda.threadIdx.y * T + cuda.threadIdx.x
        if tid < 9:
            weights[tid] = w[tid // 3, tid % 3]
        e = tid
        while e < ALL:
            r, c = cuda.blockIdx.y * T + e // S - 1, cuda.blockIdx.x * T + e % S - 1
            tile[e] = float32(0)
            if not (r < 0 or c < 0 or r >= m or c >= n):
                tile[e] = A[r, c]
            e += T * T
        cuda.syncthreads()
        acc = float32(0)
        for a in range(3):
            for b in range(3):
                acc += weights[a * 3 + b] * tile[(cuda.threadIdx.y + a) * S + cuda.threadIdx.x + b]
        j, i = cuda.grid(2)
        if i < m and j < n:
            out[i, j] = acc

    return kernel


def cleared_before_it_is_filled(T):
    S = T + 2

    @cuda.jit
    def kernel(A, w, out):
        m, n = A.shape
        tile = cuda.shared.array((S, S), float32)
        tid = cuda.threadIdx.x + cuda.threadIdx.y * T
        for e in range(tid, S * S, T * T):
            tile[e // S, e % S] = 0
        cuda.syncthreads()
        for e in range(S * S - 1 - tid, -1, -T * T):
            r, c = cuda.blockIdx.y * T + e // S - 1, cuda.blockIdx.x * T + e % S - 1
            if min(r, c) >= 0 and r < m and c < n:
                tile[e // S, e % S] = A[r, c]
        cuda.syncthreads()
        j, i = cuda.grid(2)
        acc = float32(0)
        if i < m and j < n:
            for b in range(2, -1, -1):
                for a in range(2, -1, -1):
                    acc += w[a, b] * tile[cuda.threadIdx.y + a, cuda.threadIdx.x + b]
            out[i, j] = acc

    return kernel


def rows_of_the_tile_by_rows_of_threads(T):
    S = T + 2

    @cuda.jit
    def kernel(A, w, out):
        tile = cuda.shared.array((S, S), float32)
        acc = cuda.local.array(1, float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + ty, cuda.blockIdx.x * T + tx
        for down in range(0, S - ty, T):
            for right in range(0, S - tx, T):
                r, c = row + down - 1, col + right - 1
                known = r >= 0 and c >= 0 and r < A.shape[0] and c < A.shape[1]
                tile[ty + down, tx + right] = A[r, c] if known else float32(0.0)
        cuda.syncthreads()
        acc[0] = float32(0)
        for i in range(-1, 2):
            for j in range(-1, 2):
                acc[0] += w[i + 1, j + 1] * tile[ty + 1 + i, tx + 1 + j]
        if row < A.shape[0] and col < A.shape[1]:
            out[row, col] = acc[0]

    return kernel


@pytest.mark.parametrize(
    "factory",
    [
        own_place_then_halo,
        strides_in_both_directions,
        flat_tile_and_weights_in_shared_memory,
        cleared_before_it_is_filled,
        rows_of_the_tile_by_rows_of_threads,
    ],
)
def test_other_right_stencils_pass(factory):
    verdict = check.stencil(factory)
    assert verdict.passed, str(verdict)


def test_a_stencil_loads_each_blocks_elements_and_its_halo():
    # With T = 32 nine blocks cover 96 × 96: each side is 96 and two for each of two seams. The threads of a
    # kernel without a tile make nine loads each, but for those past the four edges of A.
    message = verdict_of(solution("stencil")).message
    assert "10,000 loads from A instead of 81,796" in message
    assert (96 + 2 * 2) ** 2 == 10_000 and (3 * 96 - 2) ** 2 == 81_796
    assert "asks for 2 wavefronts" in message


def test_the_sums_are_those_of_shifted_copies():
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((5, 7)), rng.standard_normal((3, 3))
    around = np.pad(A, 1)
    shifted = (w[a, b] * around[a : a + 5, b : b + 7] for a in range(3) for b in range(3))
    assert np.allclose(stencil_slips.sums(A, w), sum(shifted))


def test_no_two_mistakes_in_a_stencil_give_the_same_sums():
    rng = np.random.default_rng(1)
    A, w = rng.uniform(1, 2, (12, 12)), rng.uniform(1, 2, (3, 3))
    made = [stencil_slips.sums(A, w), *(sums for _, sums in stencil_slips.mix_ups(A, w, 4))]
    for place, sums in enumerate(made):
        assert not any(np.allclose(sums, other, rtol=1e-4) for other in made[:place])


# ---- stencil_limit -----------------------------------------------------------------------------------------


def by_cases(side, wavefronts):
    flop = 2 * side * side
    dram, l1 = flop / 8 * 4.55, 16.7 / wavefronts
    if dram <= l1 and dram <= 64.8:
        return [8.0, flop / 8, dram, "dram"]
    if l1 <= 64.8:
        return [8.0, flop / 8, l1, "L1 and shared memory"]
    return [8.0, flop / 8, 64.8, "arithmetic"]


def by_sorting(side, wavefronts):
    roofs = [(64.8, "FP32"), (np.float64(16.7) / wavefronts, "shared memory"), (4.55 * side**2 / 4, "DRAM ")]
    return 8, np.float64(side**2) / 4, *sorted(roofs)[0]


def in_times(side, wavefronts):
    flop = 2 * side**2
    times = {"DRAM": 8 / 4.55, "L1": flop * wavefronts / 16.7, "FP32": flop / 64.8}
    limit = max(times, key=times.get)
    return np.int64(8), flop / 8, flop / times[limit], limit


def by_bandwidth_in_bytes(side, wavefronts):
    tflops = np.array([4.55e12 / 8 * 2 * side**2, 16.7e12 / wavefronts, 64.8e12])
    return 8, 0.25 * side**2, tflops.min() / 1e12, ("DRAM", "L1", "FP32")[tflops.argmin()]


def with_numpys_names(side, wavefronts):
    roofs = [4.55 * side * side / 4, 16.7 / wavefronts, 64.8]
    return (8, Fraction(side * side, 4), min(roofs), np.array(["dram", "l1", "fp32"])[np.argmin(roofs)])


@pytest.mark.parametrize("answer", [by_cases, by_sorting, in_times, by_bandwidth_in_bytes, with_numpys_names])
def test_other_right_forecasts_pass(answer):
    verdict = check.stencil_limit(answer)
    assert verdict.passed, str(verdict)


def test_each_part_limits_some_of_the_stencils():
    answers = {case: check.stencil_limit.right(*case) for case in stencil_limit.CASES}
    assert {limit for *_, limit in answers.values()} == set(stencil_limit.LIMITS)
    assert answers[3, 2] == (8, 2.25, 8.35, "L1") and answers[3, 1] == (8, 2.25, 10.24, "DRAM")
    for side, per_step in answers:
        lowest, second, _ = sorted((4.55 * side**2 / 4, 16.7 / per_step, 64.8))
        assert second > 1.01 * lowest, "the name must not hang on the last digit"


def test_the_roofs_are_those_on_record():
    dram = roofs("h200").query("memory == 'DRAM'")["tb_s"].item()
    fp32 = compute_roofs("h200").query("unit == 'FP32'")["tflops"].item()
    assert stencil_limit.DRAM == pytest.approx(dram, abs=0.005)
    assert stencil_limit.FP32 == pytest.approx(fp32, abs=0.05)
    # 132 SMs at 1.98 GHz take a wavefront per clock, and a multiply-add of a warp is 64 FLOP.
    assert stencil_limit.L1 == pytest.approx(132 * 1.98e9 * 64 / 1e12, abs=0.05)
