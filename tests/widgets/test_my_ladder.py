"""A learner's own ladder: what it draws of what is kept, what it says, and bets on it."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from gemm_course import launching, records
from gemm_course import widgets as see
from gemm_course.rungs import PARTS, RUNGS, keep, kept, noting, rung_of, store
from gemm_course.widgets import _my_ladder
from tests.checks.cells import checked_cells, verdict_of
from tests.figures.page import faults

AS_WRITTEN = (33, 2, 2, 33 / 32, 0.75, None, 0.25)


@pytest.fixture
def learner(tmp_path, monkeypatch):
    """A learner's notebook whose ladder is empty, on a machine without a GPU."""
    monkeypatch.setenv("GEMM_COURSE_PROGRESS", str(tmp_path / "progress"))
    monkeypatch.setattr(store, "in_a_learners_notebook", lambda: True)
    monkeypatch.setattr(_my_ladder, "gpu_available", lambda: False)
    monkeypatch.setattr(noting, "_passed", {})
    monkeypatch.setattr(_my_ladder, "_timed", {})
    return monkeypatch


def climb(upto: int = len(RUNGS)) -> None:
    for rung, wavefronts in list(zip(RUNGS, AS_WRITTEN, strict=True))[:upto]:
        keep(rung.checker, "counted", {"wavefronts": wavefronts})


def told(picture, name: str) -> str:
    """What the words say of the place with this name."""
    ends = "|".join([*(f"{rung.name}:" for rung in (*RUNGS, *PARTS)), "Wavefronts: what", "A kernel that"])
    return re.search(rf"{name}: (.*?) (?={ends})", picture.alt)[1]


def marks(picture) -> dict[str, int]:
    """How often each mark is drawn in the places' lanes, legend and lines of words."""
    return {"dashed": picture.data.count('stroke-dasharray="4 2"'), "circles": picture.data.count("<circle")}


def test_the_empty_ladder_has_a_place_for_each_notebook_and_gives_nothing_away(learner):
    picture = see.my_ladder()
    assert picture.alt.startswith("My ladder: none of 12 kernels passed. 01 naive: not passed yet.")
    assert all(f"{rung.name}: not passed yet." in picture.alt for rung in (*RUNGS, *PARTS))
    assert "TFLOPS" not in picture.alt and "wavefronts" not in picture.alt.lower()
    assert 'see.my_bet("naive", tflops=...)' in picture.plain.alt
    assert marks(picture) == {"dashed": 0, "circles": 0} and not faults(picture)


def test_a_half_filled_ladder_says_whose_figures_it_shows(learner):
    see.my_bet("tile_kernel", tflops=20)
    see.my_bet("slices", tflops=30)
    climb(4)
    picture = see.my_ladder()
    assert told(picture, "03 shared memory tiles") == (
        "passed. Your bet: 20 TFLOPS. Your kernel as written: at most 8.4 TFLOPS, a bound and no speed. The "
        "ladder’s penny_xu_tile on an H200: 8.2 TFLOPS. Wavefronts: 2 as written, 1.5 measured."
    )
    assert told(picture, "01 naive").startswith("passed. No bet. Your kernel as written: at most 0.51 TFLOPS")
    assert told(picture, "05 thread tiles 2d") == "not passed yet. Your bet: 30 TFLOPS."
    assert "my_bet" not in picture.alt, "a bet on the next kernel is made"
    assert "Your kernel on" not in picture.alt
    assert not faults(picture)


def test_the_full_ladder_bounds_only_what_reads_limit_and_never_with_a_bar(learner):
    climb()
    picture = see.my_ladder()
    bounded = [rung.name[:2] for rung in RUNGS if "at most" in told(picture, rung.name)]
    assert bounded == ["01", "02", "03", "04", "05"]
    assert marks(picture)["dashed"] == 1 + 2 * 5, "in the legend, in each lane and in the words below it"
    assert "At most: 16.7 TFLOPS / wavefronts as written." in picture.alt
    bands = set(re.findall(r'<rect x="8" y="[\d.]+" width="([\d.]+)"', picture.data))
    assert bands == {"424"}, "no rectangle is as long as a speed"
    assert not faults(picture)


def test_every_figure_of_the_ladders_kernels_is_a_record(learner):
    climb()
    picture, sweep, profiles = see.my_ladder(), records.sweep(), records.profiles()
    for rung in RUNGS:
        tiles = " ".join(f"{name}={size}" for name, size in rung.tiles.items())
        speed, counters = (
            rows[(rows["stage"] == rung.stage) & (rows["tiles"] == tiles) & (rows["m"] == 4096)].iloc[-1]
            for rows in (sweep, profiles)
        )
        said = told(picture, rung.name)
        assert f"The ladder’s {rung.stage} on an H200: {speed.tflops:.2g} TFLOPS." in said
        reads = counters.shared_load_wavefronts or counters.l1_data / 100 * counters.clocks * 132
        assert f"{reads / 4096**3 * 32:.3g} measured" in said


def test_a_part_of_a_kernel_names_the_kernel_and_its_record_and_has_no_mark(learner):
    climb()
    before = marks(see.my_ladder())
    learner.setattr(_my_ladder, "passed", lambda: {"reads_ahead": "2026-11-28T10:00:00"})
    picture = see.my_ladder()
    speed = records.ladder().query("stage == 'read_ahead' and m == 4096").iloc[-1].tflops
    says = f"08 overlap: passed, a part of read_ahead: {speed:.0f} TFLOPS on an H200."
    assert says in picture.alt
    assert "09 tensor cores: not passed yet." in picture.alt
    assert marks(picture) == before and not faults(picture)


def test_a_part_of_a_kernel_takes_no_bet(learner):
    with pytest.raises(ValueError, match="there are no bets on 'overlap'"):
        see.my_bet("overlap", tflops=50)


def test_counts_that_are_missing_say_what_to_do_and_old_progress_counts(learner):
    learner.setattr(_my_ladder, "passed", lambda: {"coalesced": "2026-11-21T10:00:00"})
    keep("both_switches", "counted", {"wavefronts": None})
    picture = see.my_ladder()
    assert picture.alt.startswith("My ladder: 2 of 12")
    assert "Wavefronts: run your check again, 2 measured." in told(picture, "02 coalesced")
    assert "at most" not in told(picture, "02 coalesced")
    assert "Wavefronts: run your check again, 0.312 measured." in told(picture, "06 vectorized access")
    assert not faults(picture)


def test_without_a_ladder_nothing_is_shown_as_passed(learner):
    climb()
    learner.setattr(_my_ladder, "passed", lambda: {"coalesced": ""})
    learner.setattr(store, "in_a_learners_notebook", lambda: False)
    assert see.my_ladder().alt.startswith("My ladder: none of 12")


def test_another_gpu_without_records_shows_none(learner, tmp_path):
    folder = tmp_path / "rtx_0000"
    folder.mkdir()
    (folder / "ladder.csv").write_text("")
    climb()
    picture = see.my_ladder(on=str(folder))
    assert told(picture, "07 warp tiles") == "passed. No bet. Wavefronts: 0.25 as written, none measured."
    assert "at most" not in picture.alt and "H200" not in picture.alt
    with pytest.raises(ValueError, match="no records of a GPU called nothing"):
        see.my_ladder(on="nothing")


# ---- with a GPU ------------------------------------------------------------------------------------------


def test_kernels_that_passed_here_are_measured_once_and_the_others_are_not(learner):
    launched = []

    class Kernel:
        py_func = None

        def __getitem__(self, launch):
            launched.append(launch)
            return self

    def run(kernel, A, B, backend):
        assert backend == "gpu" and A.shape == B.shape == (4096, 4096) and A.std() > 0.9
        return SimpleNamespace(tflops=40.0)

    learner.setattr(_my_ladder, "gpu_available", lambda: True)
    learner.setattr(_my_ladder, "gpu_facts", lambda: SimpleNamespace(name="NVIDIA GeForce RTX 3060"))
    learner.setattr(_my_ladder, "run", run)
    climb()
    noting._passed["runs_of_four"] = Kernel()
    noting._passed["ragged_fours"] = Kernel()
    for _ in range(2):
        picture = see.my_ladder()
        assert "Your kernel on GeForce RTX 3060: 40 TFLOPS." in told(picture, "07 warp tiles")
        assert "Your kernel on" not in told(picture, "06 vectorized access")
    assert launched == [((32, 32), (256, 1))] and marks(picture)["circles"] == 3
    noting._passed["runs_of_four"] = Kernel()
    see.my_ladder()
    assert len(launched) == 2, "another kernel has passed since"
    learner.setattr(_my_ladder, "gpu_available", lambda: False)
    assert "GeForce RTX 3060: 40 TFLOPS" in see.my_ladder().alt, "it is there the next day"
    assert not faults(see.my_ladder())


@pytest.mark.filterwarnings("ignore:Grid size")
@pytest.mark.parametrize(
    "name", ["naive", "coalesced", "tile_kernel", "thread_columns", "slices", "both_switches"]
)
def test_a_kernel_is_launched_as_its_notebook_launches_it(learner, name):
    """The emulator stands in for the GPU, with matrices of a block or some."""

    def run(kernel, A, B, backend):
        done = launching.run(kernel, A, B, backend="emulator")
        assert done.block[:2] == rung_of(name).block
        np.testing.assert_allclose(done.C, A @ B, rtol=1e-3, atol=1e-3)
        return SimpleNamespace(tflops=1.5)

    learner.setattr(_my_ladder, "gpu_available", lambda: True)
    learner.setattr(_my_ladder, "gpu_facts", lambda: SimpleNamespace(name="NVIDIA H200"))
    learner.setattr(_my_ladder, "run", run)
    learner.setattr(_my_ladder, "SIZE", 128)
    assert verdict_of(checked_cells("solution")[name]).passed
    assert "Your kernel on H200: 1.5 TFLOPS." in see.my_ladder().alt


@pytest.mark.gpu
def test_a_learners_kernel_is_measured_on_this_gpu(learner):
    learner.setattr(_my_ladder, "gpu_available", lambda: True)
    assert verdict_of(checked_cells("solution")["coalesced"]).passed
    assert re.search(r"Your kernel on [^:]+: [\d.]+ TFLOPS\.", told(see.my_ladder(), "02 coalesced"))
    assert kept("coalesced").measured > 0.1


def test_a_kernel_that_fails_on_the_gpu_leaves_the_ladder_whole(learner, capsys):
    def run(*_, **__):
        raise RuntimeError("an illegal address")

    learner.setattr(_my_ladder, "gpu_available", lambda: True)
    learner.setattr(_my_ladder, "run", run)
    noting._passed["naive"] = {(128, 128): None}
    learner.setattr(_my_ladder.Rung, "kernel", lambda rung, answer: {((128, 128), (32, 32)): None})
    climb(1)
    assert see.my_ladder().alt.startswith("My ladder: 1 of 12")
    assert capsys.readouterr().out == "Your naive was not measured here: an illegal address\n"


# ---- bets --------------------------------------------------------------------------------------------------


def test_a_bet_is_kept_changed_until_the_kernel_passes_and_then_closed(learner, capsys):
    def said(*bet, **named) -> str:
        see.my_bet(*bet, **named)
        return capsys.readouterr().out.strip()

    assert said("naive", tflops=...) == said("naive")
    assert said("naive").startswith("Write your bet as a number of TFLOPS, such as see.my_bet(")
    assert said("naive", tflops=5) == "Your bet on naive: 5 TFLOPS, for the ladder's kernel on an H200."
    assert said("naive", tflops=0.7).startswith("Your bet on naive: 0.7 TFLOPS")
    climb(2)
    closed = "Your bet on naive: 0.7 TFLOPS. Your kernel has passed, and bets are closed."
    assert said("naive", tflops=0.5) == closed and kept("naive").bet == 0.7
    assert said("naive", tflops=0.7).startswith("Your bet on naive: 0.7 TFLOPS, for"), "the cell runs again"
    assert said("coalesced", tflops=3).startswith("You made no bet. Your kernel has passed")
    assert said("coalesced") == "You made no bet." and kept("coalesced").bet is None


@pytest.mark.parametrize("bet", [0, -1, float("nan"), float("inf"), True, "20", 10**6, [20]])
def test_what_is_no_bet_is_refused_in_a_sentence(learner, bet):
    with pytest.raises(ValueError, match="a bet is a number of TFLOPS, above 0"):
        see.my_bet("naive", tflops=bet)
    assert kept("naive").bet is None


def test_a_bet_on_an_unknown_kernel_names_those_that_there_are(learner):
    with pytest.raises(ValueError, match=r"'warp_tile'; did you mean warp_tiles\? There are"):
        see.my_bet("warp_tile", tflops=3)


def test_where_nothing_is_kept_a_bet_says_so(learner, capsys):
    learner.setenv("GEMM_COURSE_PROGRESS", "off")
    see.my_bet("naive", tflops=5)
    assert capsys.readouterr().out == "Bets are kept in your own notebooks only.\n"
