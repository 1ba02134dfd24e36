"""Explorers on the recorded sweep: every stage, legal or not, measured or not, and nothing made up."""

import re
import time

import pytest

from gemm_course import records
from gemm_course import widgets as see
from gemm_course.figures.heatmap import Axis, Cell, heatmap
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.records import tables
from gemm_course.widgets import _costs, _heatmap, _measured, _tiles
from gemm_course.widgets._measured import Choice

STAGES = [stage.name for stage in LADDER]
BLOCK = {"BM": 32, "BN": 32, "BK": 32}


def words(picture) -> str:
    return picture.alt.replace("\u00a0", " ")


@pytest.fixture
def swept(monkeypatch):
    """A sweep of block_tiled with three rows: 8.7 TFLOPS, a faster neighbour, and one that failed."""
    rows = [
        Choice(BLOCK, 8.7, 32, ""),
        Choice({"BM": 32, "BN": 32, "BK": 64}, 9.1, 32, ""),
        Choice({"BM": 32, "BN": 32, "BK": 96}, None, None, "the GPU ran out of patience"),
    ]
    known = {tuple(row.tiles.values()): row for row in rows}
    monkeypatch.setattr(_measured, "_choices", lambda name, on=None: known if name == "block_tiled" else {})
    return LADDER["block_tiled"]


def test_legal_tiles_say_what_they_cost_and_save():
    said = words(_tiles.choice(LADDER["block_tiled"], BLOCK))
    for part in ("can run", "1024 = 32 warps", "8192 bytes", "0.0625 (naive: 2)", "warp-wide FMA (source) 2"):
        assert part in said


def test_loads_count_elements_however_wide_they_are():
    tiles = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8, "PAD": 4}
    said = words(_tiles.choice(LADDER["vectorized"], tiles))
    assert f"global loads per multiply-add {2 / 128:.4g}" in said
    assert f"shared loads per multiply-add {2 / 8:.3g}" in said


@pytest.mark.parametrize("name", ["wmma", "read_ahead"])
def test_what_happens_once_is_counted_once(name):
    """Results that go through shared memory and tiles read ahead are not counted in every step."""
    stage = LADDER[name]
    m, n, k = stage.tiles["BM"], stage.tiles["BN"], 512
    told = _costs._counts(_costs._count(stage, stage.tiles, m, n, k))
    step = stage.tiles["BK"]
    one, two = (_costs._counts(_costs._count(stage, stage.tiles, m, n, depth)) for depth in (step, 2 * step))
    assert _costs._after(k / step, one, two) == told


def test_a_larger_bk_takes_no_fewer_wavefronts_of_a_tensor_core_kernel():
    tiles = {"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 32, "PAD": 8}
    shallow, deep = (_costs.cost(LADDER["wmma"], tiles | {"BK": BK}).wavefronts for BK in (16, 64))
    assert deep == pytest.approx(shallow, rel=0.01)
    more_padding = _costs.cost(LADDER["wmma"], tiles | {"PAD": 16}).wavefronts
    assert more_padding > 2 * shallow


def test_illegal_tiles_name_every_rule_and_the_nearest_choice():
    stage, chosen = LADDER["block_tiled"], {"BM": 128, "BN": 64, "BK": 8}
    said = words(_tiles.choice(stage, chosen))
    assert "cannot run" in said and "nearest" in said
    for rule in stage.rules(chosen):
        assert rule in said
    assert "cannot run" in words(_tiles.around(stage, chosen))
    assert "cannot run" in words(_tiles.on_roofline(stage, chosen))


def test_measured_tflops_belong_to_exactly_these_tiles(swept):
    assert "8.7 TFLOPS; best: 9.1 with BM=32 BN=32 BK=64" in words(_tiles.choice(swept, BLOCK))
    assert "8.7 TFLOPS measured" in words(_tiles.on_roofline(swept, BLOCK))
    other = {"BM": 16, "BN": 16, "BK": 16}
    assert "not measured" in words(_tiles.choice(swept, other))
    assert "best: " in words(_tiles.on_roofline(swept, other))


def test_a_choice_that_failed_says_why(swept):
    said = words(_tiles.choice(swept, {"BM": 32, "BN": 32, "BK": 96}))
    assert "the GPU ran out of patience" in said


def test_neighbours_are_one_step_away_and_the_faster_one_is_named(swept):
    near = words(_tiles.around(swept, {"BM": 32, "BN": 16, "BK": 64}))
    assert near.startswith("These tiles were not measured")
    assert "BN 32 9.1 (the best)" in near and "BN 8 not measured" in near
    assert "others that were measured: BN 32, BK 32 8.7" in near
    cannot = words(_tiles.around(swept, BLOCK)).split("cannot run: ")[1]
    assert cannot.startswith("BM 64, BN 64, BK 24, BK 48")


def test_the_answer_names_a_faster_neighbour(swept):
    stage = swept
    can = [("BK 64", {**BLOCK, "BK": 64}), ("BM 16", {**BLOCK, "BM": 16})]
    assert _tiles._answer(stage, BLOCK, can) == "8.7 TFLOPS; one step, BK 64, reaches 9.1"
    assert _tiles._answer(stage, {**BLOCK, "BK": 64}, [("BK 32", BLOCK)]).endswith(
        "no measured step along one slider is faster"
    )


def test_every_neighbour_is_one_slider_step_from_the_choice():
    stage = LADDER["warp_tiled"]
    for _, tiles in _tiles.one_step_away(stage, stage.tiles):
        assert _measured.steps(stage, stage.tiles, tiles) == 1
    low = {size: options[0] for size, options in stage.options.items()}
    assert len(list(_tiles.one_step_away(stage, low))) == len(low)


def test_the_heat_map_shows_what_was_measured_and_says_what_was_not(swept):
    said = words(_heatmap.with_fixed_sizes(swept, "BM", "BK", BLOCK))
    assert said.startswith("BM=32 BK=32: 8.7 TFLOPS; the best of 2 measured here has 9.1")
    assert "24: cannot run, 32: 8.7, 48: cannot run, 64: 9.1, 96: not measured" in said
    assert "Fixed: BN=32" in said and "The best here is BM 32, BK 64" in said
    row = next(part for part in said.split(". ") if part.startswith("BM 128"))
    assert row.count("cannot run") == len(swept.options["BK"])


def test_a_heat_map_of_the_best_takes_the_best_of_the_others(swept):
    said = words(see.heatmap("block_tiled", "BM", "BN", others="best"))
    assert said.startswith("block_tiled is fastest with BM=32 BN=32: 9.1 TFLOPS")
    assert "BM 32: BN 4: not measured, 8: not measured, 16: not measured, 32: 9.1" in said


def test_cells_have_a_mark_besides_their_colour():
    cells = {(1, 1): Cell(5.0), (1, 2): Cell(2.5), (2, 1): Cell(), (2, 2): Cell(legal=False)}
    picture = heatmap(Axis("TM", (1, 2)), Axis("TN", (1, 2)), lambda *at: cells[at], "title", chosen=(1, 2))
    for mark in (">5 ★<", ">2.5<", ">?<", ">✗<", "these tiles", "not measured", "cannot run"):
        assert mark in picture.data
    assert "The best here is TM 1, TN 1. Chosen: TM 1, TN 2." in picture.alt


@pytest.mark.parametrize(
    ("sizes", "words"),
    [(("TM", "TM"), "twice"), (("TM", "XY"), "no choice of XY"), (("WARP", "TN"), "no choice of WARP")],
)
def test_a_heat_map_refuses_sizes_it_cannot_use(sizes, words):
    with pytest.raises(ValueError, match=words):
        see.heatmap("warp_tiled", *sizes)
    with pytest.raises(ValueError, match="fixed"):
        see.heatmap("warp_tiled", "TM", "TN", others="average")


@pytest.mark.many(one_in=14, with_all=2)
@pytest.mark.parametrize("name", STAGES)
def test_every_stage_is_drawn_legal_illegal_measured_or_not(name):
    stage, sliders = LADDER[name], _tiles.sliders(LADDER[name])
    low = {size: options[0] for size, (_, options, _) in sliders.items()}
    high = {size: options[-1] for size, (_, options, _) in sliders.items()}
    down, across = next(iter(sliders)), list(sliders)[-1]
    for chosen in (stage.tiles, low, high, stage.legal_choices()[-1]):
        for draw in (_tiles.choice, _tiles.around, _tiles.on_roofline):
            assert len(draw(stage, chosen).alt) > 40
        assert len(_heatmap.with_fixed_sizes(stage, down, across, chosen).alt) > 40
    assert len(see.heatmap(name, down, across, others="best").alt) > 40


@pytest.mark.many(one_in=14, with_all=2)
@pytest.mark.parametrize("name", STAGES)
def test_every_step_of_every_slider_changes_every_picture(name):
    stage = LADDER[name]
    size = list(_tiles.sliders(stage))[-1]
    first, second = ({**stage.tiles, size: value} for value in stage.options[size][:2])
    for draw in (_tiles.choice, _tiles.around, _tiles.on_roofline):
        assert draw(stage, first).alt != draw(stage, second).alt
        assert draw(stage, first).data != draw(stage, second).data


@pytest.mark.parametrize("name", STAGES)
def test_no_number_is_shown_that_was_not_recorded(name):
    stage, known = LADDER[name], records.sweep()
    known = known[(known["stage"] == name) & known["tflops"].notna()]
    texts = set(known["tiles"])
    for chosen in stage.legal_choices()[:: max(1, len(stage.legal_choices()) // 40)]:
        shown = _measured.speed(stage, chosen)
        assert (shown is not None) == (tiles_text(chosen) in texts)
    best = _measured.best(stage)
    assert best is None if known.empty else best.tflops == known["tflops"].max()


def test_a_stage_that_was_never_measured_says_so(monkeypatch):
    monkeypatch.setattr(_measured, "_choices", lambda name, on=None: {})
    monkeypatch.setattr(_measured, "source", lambda stage, on=None: "")
    stage = LADDER["warp_tiled"]
    for draw in (_tiles.choice, _tiles.around, _tiles.on_roofline):
        assert re.search("not measured|has not been measured yet", words(draw(stage, stage.tiles)))
    assert "has not been measured yet" in words(see.heatmap("warp_tiled", "TM", "TN", others="best"))


def test_rows_of_a_stage_that_has_changed_its_sizes_are_left_out(monkeypatch):
    rows = records.sweep().head(0).copy()
    rows.loc[0, ["stage", "tiles", "tflops", "reason", "m", "n", "k"]] = (
        *("block_tiled", "BM=32 BN=32 OLD=1", 5.0, ""),
        *(4096, 4096, 4096),
    )
    monkeypatch.setattr(_measured, "_sweep", lambda on=None: rows)
    assert _measured._choices.__wrapped__("block_tiled") == {}


def test_sliders_have_the_sweep_in_little_more_time_than_it_takes_to_read_it():
    """In seconds of the processor, in turn, the best of several: the same on a busy machine."""
    ours, reading = [], []
    for _ in range(7):
        for remembered in (_measured._sweep, _measured._choices):
            remembered.cache_clear()
        tables._kept.clear()
        ours.append(seconds_of(lambda: _measured.best(LADDER["warp_tiled"])))
        tables._kept.clear()
        reading.append(seconds_of(records.sweep))
    assert min(ours) < 3 * min(reading), (ours, reading)


def seconds_of(action):
    start = time.process_time()
    action()
    return time.process_time() - start
