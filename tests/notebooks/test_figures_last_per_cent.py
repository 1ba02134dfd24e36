"""What the notebook on scheduling says in figures is what was recorded, or what its model computes."""

import re

import pytest

from gemm_course import records
from gemm_course.checks.notebooks.last_per_cent.best_width import best_width
from gemm_course.checks.notebooks.last_per_cent.last_wave import last_wave
from gemm_course.model.schedule import OVERLAPPED, PER_TILE, SCHEDULES, STREAM_K, schedule
from gemm_course.profiles import recorded
from gemm_course.widgets import _quiz
from gemm_course.widgets._schedule import SIZES, draw
from tests.notebooks.builder import ROOT, source_of


def on_one_line(text: str) -> str:
    lines = text.splitlines()
    return re.sub(r"\s+", " ", " ".join(line.removeprefix("#") for line in lines))


@pytest.fixture
def said() -> str:
    return on_one_line(source_of("last_per_cent")) + str(_quiz.questions("last_per_cent"))


NOTES = on_one_line((ROOT / "gemm_course/kernels/NOTES.md").read_text("utf-8"))


@pytest.mark.parametrize(
    "words",
    [
        "| each further tile's products | 67,000 to 68,100 | 65,600 to 65,900 |",
        "(Without writing anything: 65,550.)",
        "| rounding a tile's results | 1,350 | 465 |",
        "1,300 to 1,500 in which",
        "32 boxes of 2 KB",
        "boxes of 64 × 64, eight per tile",
        "The same launch in clocks, 1.51 GHz",
        "| all | 282,600 | 273,000 |",
        "Sharing costs 24 µs, some 30 steps",
        "33 MB of parts",
        "| 2048³ | 0.942 | 0.709 | 0.666 |",
        "| 5120³ | 0.932 | 0.949 | 0.971 | 1.008 | **1.013** |",
    ],
)
def test_the_notes_say_so_as_well(words):
    assert words in NOTES


def test_the_model_of_the_picture_is_near_the_clocks_that_were_counted():
    assert schedule(4096, 256, OVERLAPPED).clocks == pytest.approx(273_000, rel=0.01)
    assert schedule(8192, 256, OVERLAPPED).clocks == pytest.approx(2_120_000, rel=0.01)
    assert schedule(4096, 256, PER_TILE).clocks == pytest.approx(320_000, rel=0.01)


@pytest.mark.parametrize("kind", SCHEDULES)
def test_nothing_is_computed_twice_or_left_out(kind):
    for size in (1024, 3072, 5120):
        run = schedule(size, 256, kind)
        tile = size // 64 * 1025
        work = sum(s.blocks * (s.end - s.begin) for s in run.stretches if s.what in ("multiplies", "parts"))
        assert work == pytest.approx(run.tiles * tile)
        assert (run.tiles, run.waves, run.last) == last_wave.right(size, size, 128, 256)


def test_the_hunts(said):
    empty = {size: 1 - schedule(size, 256, PER_TILE).tiles / 132 / schedule(size, 256, PER_TILE).waves
             for size in SIZES if size >= 3072}  # fmt: skip
    assert max(empty, key=empty.get) == 3072 and f"{100 * empty[3072]:.0f} % of the places" in said
    gains = {
        size: schedule(size, 256, STREAM_K).clocks / schedule(size, 256, OVERLAPPED).clocks for size in empty
    }
    assert [size for size in (3072, 4096, 5120, 6144) if gains[size] < 1] == [3072, 5120]
    assert [schedule(size, 256, STREAM_K).last for size in (3072, 5120)] == [24, 8]
    assert "at which of 3072, 4096, 5120 and 6144" in said
    assert "3072 and 5120: 24 and 8 tiles are left" in said


def test_the_widths_that_are_chosen():
    assert [best_width.right(s, s) for s in (1024, 2048, 3072, 4096, 8192)] == [64, 256, 192, 256, 192]


def test_the_widths_as_measured(said):
    asked = records.one_change().query("question == 'width of a tile'")
    share = (asked.tflops / asked.cublas_tflops).groupby([asked.change, asked["size"]]).first()
    for width in (64, 128, 192, 256):
        assert f"| {width} | " + " | ".join(f"{each:.3f}" for each in share[f"BN {width}"]) + " |" in said
    assert "1.8 times" in said and round(share["BN 64", 1024] / share["BN 256", 1024], 1) == 1.8
    for size in (1024, 2048, 3072, 4096, 8192):
        assert share.xs(size, level="size").idxmax() == f"BN {best_width.right(size, size)}"
    assert share["BN 256", 2048] == pytest.approx(share["BN 128", 2048], abs=0.005)


def test_two_parts_cost_where_they_spill():
    asked = records.one_change().query('question == "parts of a tile\'s results"').set_index("change")
    share = asked.tflops / asked.cublas_tflops
    assert asked.local_bytes[asked.local_bytes > 0].to_dict() == {"2 parts": 256}
    assert share.drop("2 parts").between(0.98, 1.01).all() and share["2 parts"] < 0.965


def test_what_persistent_saves_in_clocks(said):
    clocks = {name: recorded(name).measured["clocks"] for name in ("warp_specialised", "persistent")}
    saved = 100 * (1 - clocks["persistent"] / clocks["warp_specialised"])
    assert f"the launch takes {saved:.1f} % fewer clocks" in said


def test_shares_of_cublas(said):
    ladder = records.ladder().query("m == n == k")
    share = ladder.set_index(["stage", "m"]).ratio_to_cublas
    assert f"Measured: {share['persistent', 4096]:.3f}, from {share['warp_specialised', 4096]:.3f}" in said
    assert f"from {0.867:.3f} to {share['stream_k', 3072]:.3f} of cuBLAS at 3072³" in said
    assert f"The ladder's run, below, has {share['stream_k_fp16', 5120]:.3f}" in said
    stages = "persistent", "staged_store", "overlapped_store"
    tflops = ladder.query("m == 4096").set_index("stage").tflops[list(stages)]
    assert "The ladder has {:.0f}, {:.0f} and {:.0f}".format(*tflops) in said
    assert f"hiding it {100 * (tflops[stages[2]] / tflops[stages[1]] - 1):.1f} %" in said
    fp16 = ladder.query("dtype == 'fp16' and m == 8192 and stage != 'wmma_fp16_acc'")
    assert f"up to {fp16.cublas_tflops.max():.0f}, beside a fast one down to 642" in said
    assert round(fp16.cublas_tflops.min()) == 642
    assert round(100 * (fp16.cublas_tflops.max() / fp16.cublas_tflops.min() - 1)) == 13
    assert f"correlation of {fp16.tflops.corr(fp16.cublas_tflops):.2f}" in said
    slowest = fp16.sort_values("cublas_tflops").stage[:6]
    assert set(slowest) == set(fp16.sort_values("tflops").stage[-6:])


def test_the_profiles_without_labels(said):
    columns = [recorded(stage, None).measured for stage in ("overlapped_store", "persistent", "staged_store")]
    for name, words in (("tensor_pipe", "Tensor Cores are busy"), ("l1_data", "shared memory is busy")):
        busy = [f"{each[name] * each['clocks'] / each['active_clocks']:.0f} %" for each in columns]
        assert f"| {words} | {' | '.join(busy)} |" in said
    profile, products = columns[0], 4 * 64 * 1024 * 512 / 528
    assert f"took {profile['clocks'] / 1000:.0f},000 clocks" in said
    assert f"are {100 * products / profile['clocks']:.0f} % of these" in said
    assert f"{100 * products / profile['active_clocks']:.0f} % of those in which an SM had work" in said
    stored = [f"{each['global_store_sectors'] / 1e6:.1f}".replace("0.0", "0") for each in columns]
    assert f"in millions | {' | '.join(stored)} |" in said


def test_the_picture_says_what_it_shows():
    alt = draw("stream-K", 256, 3072).alt
    assert "288 tiles: 3 waves of up to 132, 24 tiles in the last" in alt and "share the steps" in alt
    assert "a second launch" in alt
    assert "27\u00a0% of the places in waves are empty" in draw(PER_TILE, 256, 3072).alt
    assert "16 SMs are idle in the last wave" in draw(PER_TILE, 256, 4096).alt
