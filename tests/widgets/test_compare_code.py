"""`see.compare_code`: the same work on both sides, what the loop allows at most, and what it refuses."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from gemm_course import LADDER
from gemm_course import widgets as see
from gemm_course.compiler import CannotCompile, Compiled, NoCompiler, compile, recorded
from gemm_course.compiler.disassembly import SIZE, Instruction
from gemm_course.profiles import recorded as profiled
from gemm_course.profiles import verdict
from tests.unmeasured import MACHINE_CODE, measured_stages

STAGES = [stage.name for stage in measured_stages(MACHINE_CODE)]


def of(name: str, capability=(9, 0)) -> Compiled:
    return recorded(name, capability)


def kernel(*lines: str, name="mine", **more) -> Compiled:
    """A kernel of one loop with these instructions."""
    texts = [*lines, "BRA 0x0", "EXIT"]
    rows = [Instruction(SIZE * place, text, "mine.py", 1) for place, text in enumerate(texts)]
    taken = dict.fromkeys(
        ("registers", "spilled_bytes", "local_bytes", "shared_bytes", "static_shared_bytes"), 0
    )
    return Compiled(name, "", (9, 0), **taken, seconds=None, compiler="made up", rows=rows, **more)


FMA = "FFMA R0, R1, R2, R0"
PRODUCT = "HMMA.16816.F32 R0, R4, R8, R0"


def after_the_kinds(alt: str) -> dict[str, tuple[float, float]]:
    """What an alt text says of each kind, before and after, and of all kinds."""
    told = re.search(r"per [^:]*: (all .*?)\. (?:Few|time|clocks|instructions)", alt)[1]
    found = re.findall(r"([a-zA-Z][a-zA-Z -]*?) ([\d.,]*\d) → ([\d.,]*\d)", told)
    return {kind: tuple(float(value.replace(",", "")) for value in pair) for kind, *pair in found}


def test_the_title_says_what_changed_for_the_same_work_and_the_times():
    plain, wide = of("thread_tiled_2d"), of("vectorized")
    picture = see.compare_code(plain, wide)
    per = [len(code.loop) / code.loop.by_kind["multiply-add"] * 1000 for code in (plain, wide)]
    integer = [
        code.loop.by_kind["integer arithmetic"] / code.loop.by_kind["multiply-add"] * 1000
        for code in (plain, wide)
    ]
    assert picture.alt.startswith(
        f"thread_tiled_2d → vectorized, {' → '.join(times('thread_tiled_2d', 'vectorized'))} ms: "
        f"{per[0]:,.0f} → {per[1]:,.0f} instructions per 1,000 multiply-adds. Largest change: integer "
        f"arithmetic, {integer[0]:.0f} → {integer[1]:.3g}. "
    )


def times(*names: str) -> list[str]:
    """Measured milliseconds, in three digits."""
    return [f"{profiled(name).measured['nanoseconds'] / 1e6:.3g}" for name in names]


@pytest.mark.full(reason="compiles every stage that can be compared")
def test_what_limits_is_told_as_measured():
    alt = see.compare_code("thread_tiled_2d", "vectorized").alt
    for name in ("thread_tiled_2d", "vectorized"):
        assert f"{name}: {verdict(profiled(name)).limit_in_words}" in alt
    row = profiled("vectorized").measured
    assert f"{row['clocks'] * row['issue_slots'] / 100:,.0f}" in alt.split("issue slots taken: ")[1]
    assert f"time, measured: {times('thread_tiled_2d')[0]} ms → {times('vectorized')[0]} ms." in alt


@pytest.mark.full(reason="two large stages are compiled")
def test_where_issuing_is_no_limit_the_title_says_what_is():
    alt = see.compare_code("mma_sync", "wgmma_tma").alt
    assert alt.split(". Before")[0].endswith(
        "ms: the limit is Tensor Cores, not issuing; issuing takes 31 → 22 % of the clocks that the "
        "multiplying needs"
    )
    rows = [profiled(name).measured for name in ("mma_sync", "wgmma_tma")]
    old, new = (row["clocks"] * row["tensor_pipe"] for row in rows)
    assert f"Tensor Cores are busy {old / new:.2f} times as long with mma_sync as with wgmma_tma." in alt
    back = see.compare_code("wgmma_tma", "mma_sync").alt
    assert f"Tensor Cores are busy {old / new:.2f} times as long with mma_sync as with wgmma_tma." in back


def test_a_kernel_of_ones_own_gets_no_time_of_a_stage():
    mine = replace(of("vectorized"), tiles="")
    other = replace(of("vectorized"), tiles=of("vectorized").tiles.replace("BK=32", "BK=8"))
    for unknown in (mine, other):
        alt = see.compare_code(of("thread_tiled_2d"), unknown).alt
        assert "nothing here is a measured time" in alt and " ms" not in alt and "Profiles:" not in alt


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize(("before", "after"), list(pairwise(STAGES)))
def test_the_kinds_add_up_to_all_of_the_loop(before, after):
    one, other = of(before), of(after)
    alt = see.compare_code(one, other).alt
    told = after_the_kinds(alt)
    whole = told.pop("all")
    few = re.search(r"Few: (.*?)\. (?:time|clocks|instructions)", alt)
    small = re.findall(r"([\d.,]*\d)(?: → ([\d.,]*\d))?(?:,|$)", few[1]) if few else []
    for side in (0, 1):
        rest = sum(float((pair[side] or pair[0]).replace(",", "")) for pair in small)
        assert sum(pair[side] for pair in told.values()) + rest == pytest.approx(whole[side], rel=5e-3)
    ratio = re.search(r"instructions in the loop, a clock each: ([\d,]+) → ([\d,]+)", alt)
    assert [int(count.replace(",", "")) for count in ratio.groups()] == [len(one.loop), len(other.loop)]


def test_loops_of_different_lengths_are_compared_for_the_same_work():
    picture = see.compare_code(kernel(FMA, FMA, "LDS R1, [R3]"), kernel(*(FMA, FMA, "LDS R1, [R3]") * 4))
    same = {"multiply-add": (1000, 1000), "shared load": (500, 500)}
    assert after_the_kinds(picture.alt) == {"all": (2000, 1625), "branch": (500, 125), **same}


def test_products_of_one_size_are_counted_each():
    picture = see.compare_code(kernel(PRODUCT, "LDS R1, [R3]"), kernel(PRODUCT, PRODUCT, "LDS R1, [R3]"))
    assert "per Tensor Core product: all 3 → 2, " in picture.alt


@pytest.mark.parametrize(
    ("before", "after"), [("mma_tma", "wgmma_tma"), ("vectorized", "wmma"), ("wmma", "vectorized")]
)
def test_products_of_different_sizes_are_compared_by_their_multiply_adds(before, after):
    picture = see.compare_code(of(before), of(after))
    sizes = {"mma_tma": 2048, "wgmma_tma": 65_536, "vectorized": 32, "wmma": 2048}
    for side, name in enumerate((before, after)):
        loop = of(name).loop
        expected = len(loop) / (loop.by_kind[loop.work] * sizes[name]) * 1e6
        assert after_the_kinds(picture.alt)["all"][side] == pytest.approx(expected, rel=5e-3)
    assert "per million multiply-adds" in picture.alt
    told = "2,048 → 65,536 multiply-adds" if before == "mma_tma" else "a warp does 32 multiply-adds"
    assert told in picture.data and told in picture.alt


def test_fp32_can_reach_the_share_of_multiply_adds():
    alt = see.compare_code(of("warp_tiled"), of("async_copy")).alt
    shares = []
    for name in ("warp_tiled", "async_copy"):
        loop = of(name).loop
        shares.append(100 * sum(row.opcode.startswith("FFMA") for row in loop.rows) / len(loop))
    assert f"at most, of the FP32 peak: {shares[0]:.0f} % → {shares[1]:.0f} %." in alt


def test_where_a_multiply_add_takes_two_clocks_issuing_is_no_limit():
    alt = see.compare_code(of("block_tiled", (8, 0)), of("vectorized", (8, 0))).alt
    loop = of("block_tiled", (8, 0)).loop
    limited = 200 * loop.by_kind["multiply-add"] / len(loop)
    assert f"at most, of the FP32 peak: {limited:.0f} % → 100 %." in alt
    wide = of("vectorized", (8, 0))
    assert "issuing is not the limit; issuing takes " in see.compare_code(wide, of("read_ahead", (8, 0))).alt


def test_tensor_cores_have_no_most_unless_issuing_takes_longer():
    alt = see.compare_code(of("wmma"), of("mma_ring")).alt
    products = [of(name).loop.by_kind["Tensor Core product"] for name in ("wmma", "mma_ring")]
    needed = " → ".join(f"{6 * count}" for count in products)
    assert f"clocks that these need at least, together: {needed}." in alt and "at most" not in alt
    assert "the limit is waiting → Tensor Cores, not issuing" in alt
    slow = kernel(PRODUCT, *["IADD3 R1, R1, R2, RZ"] * 8)  # 10 clocks to issue, 6 for the product
    assert "not issuing" not in see.compare_code(slow, kernel(PRODUCT)).alt
    assert "issuing is not" not in see.compare_code(slow, kernel(PRODUCT)).alt


def test_without_figures_for_a_gpu_there_is_no_limit():
    alt = see.compare_code(of("wmma", (8, 6)), of("mma_swizzled", (8, 6))).alt
    assert "these need" not in alt and "at most" not in alt and "issuing" not in alt


def test_what_does_not_change_is_called_that():
    alt = see.compare_code(kernel(PRODUCT), kernel(PRODUCT)).alt
    assert alt.startswith(
        "before the change → after the change: as many instructions of each kind, per Tensor Core product."
    )


def test_two_tile_choices_are_told_apart_by_their_tiles():
    one = of("vectorized")
    other = replace(one, tiles=one.tiles.replace("BK=32", "BK=8"))
    alt = see.compare_code(one, other).alt
    assert alt.startswith("vectorized BK=32 → vectorized BK=8: as many instructions of each kind")


def test_the_note_says_who_compiled_for_what():
    one, other = of("vectorized", (8, 6)), of("vectorized", (9, 0))
    said = see.compare_code(one, other).alt.split("Compiled for ")[1]
    assert "compute capability 8.6, NVVM" in said and "and compute capability 9.0, NVVM" in said


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setattr(compile, "why_no_compiler", lambda: "NVIDIA's compiler is not installed.")


def test_without_a_compiler_the_record_serves_default_tiles(no_compiler):
    picture = see.compare_code("thread_tiled_2d", LADDER["vectorized"])
    assert picture.alt == see.compare_code(of("thread_tiled_2d"), of("vectorized")).alt
    older = see.compare_code("thread_tiled_2d", "vectorized", compute_capability=(8, 0))
    assert older.alt == see.compare_code(of("thread_tiled_2d", (8, 0)), of("vectorized", (8, 0))).alt
    with pytest.raises(NoCompiler, match="at their default tiles"):
        see.compare_code("vectorized", ("vectorized", {"BK": 16}))


@pytest.mark.full(reason="compiles two choices")
@pytest.mark.compiler
def test_with_a_compiler_any_tiles_can_be_compared():
    alt = see.compare_code("block_tiled", ("block_tiled", {"BK": 32})).alt
    assert alt.startswith("block_tiled BK=64 → block_tiled BK=32: ")


def test_what_cannot_be_compared_is_refused_in_a_sentence():
    with pytest.raises(CannotCompile, match="no stage is called 'vectorised'"):
        see.compare_code("vectorised", "warp_tiled")
    with pytest.raises(
        ValueError, match="copy has no loop with multiply-adds or Tensor Core products to compare"
    ):
        see.compare_code(of("vectorized"), kernel("LDG.E R0, [R2]", name="copy"))
    with pytest.raises(ValueError, match="of which the sizes are not known"):
        see.compare_code(kernel("IMMA.16832.S8.S8 R0, R4, R8, R0"), of("wmma"))
