"""What is kept of a rung: there for other notebooks too, never half, and off where it must be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from gemm_course import check, progress
from gemm_course.kernels import LADDER
from gemm_course.places import BROUGHT
from gemm_course.rungs import RUNGS, Kept, keep, kept, ladder_folder, store
from tests.checks.cells import IMPORTS, checked_cells, verdict_of
from tests.notebooks.builder import builder

ROOT = Path(__file__).resolve().parents[2]
PATH = os.pathsep.join(map(str, (ROOT, ROOT / "lockstep")))
WRITER = """
import sys, time
from pathlib import Path
from gemm_course.rungs import keep, store
store.in_a_learners_notebook = lambda: True
print("ready", flush=True)
while not Path(sys.argv[2]).exists():
    time.sleep(0.001)
for tflops in range(1, 201):
    assert keep("naive", "bet", {"tflops": tflops}) and keep(sys.argv[1], "counted", {"wavefronts": tflops})
"""


def test_every_rung_has_a_notebook_a_checker_and_a_kernel_with_these_tiles():
    assert len({rung.checker for rung in RUNGS}) == len(RUNGS)
    for rung in RUNGS:
        assert rung.checker in check.exercises()
        assert (BROUGHT / f"{rung.name.replace(' ', '_')}.ipynb").is_file()
        assert LADDER[rung.stage].complete(rung.tiles) == rung.tiles
    names = [rung.name for rung in RUNGS]
    assert names == sorted(names) and names[0] == "01 naive"


def test_what_is_kept_is_there_beside_progress_each_in_a_file_of_its_own(folder):
    assert kept("naive") == Kept() and not folder.exists()
    assert keep("naive", "counted", {"wavefronts": 33.0}) and keep("naive", "bet", {"tflops": 5})
    assert keep("naive", "measured", {"tflops": 0.5, "gpu": "H200"})
    assert kept("naive") == Kept(True, 33.0, 5.0, 0.5, "H200")
    assert sorted(file.name for file in folder.iterdir()) == ["naive.bet", "naive.counted", "naive.measured"]
    assert folder == progress.progress_folder().with_name("ladder")
    assert keep("naive", "bet", {"tflops": 7}) and kept("naive").bet == 7


@pytest.mark.parametrize(
    "damage", [b"", b"\xff\xfe\x00", b'{"tflops": ', b"[1]", b"3", b'{"tflops": "5"}', b'{"tflops": NaN}']
)
def test_a_damaged_file_counts_as_if_it_were_not_there_and_can_be_written_again(folder, damage):
    keep("naive", "counted", {"wavefronts": 33.0})
    for what in ("bet", "measured"):
        (folder / f"naive.{what}").write_bytes(damage)
    assert kept("naive") == Kept(passed=True, wavefronts=33.0)
    assert keep("naive", "bet", {"tflops": 7}) and kept("naive").bet == 7


@pytest.mark.parametrize("value", [{"tflops": 5}, {"tflops": 5, "gpu": 3}, {"tflops": -5, "gpu": "H200"}])
def test_a_speed_counts_only_with_the_gpu_that_it_is_of(folder, value):
    keep("naive", "measured", value)
    assert kept("naive") == Kept()


def test_a_place_that_cannot_be_written_keeps_nothing_and_leaves_nothing(folder, monkeypatch):
    folder.parent.mkdir()
    folder.write_text("a file where a folder should be")
    assert not keep("naive", "bet", {"tflops": 5}) and kept("naive") == Kept()
    folder.unlink()
    (folder / "naive.bet").mkdir(parents=True)  # No file can take its place.
    assert not keep("naive", "bet", {"tflops": 5})
    assert [file.name for file in folder.iterdir()] == ["naive.bet"]


def test_two_notebooks_lose_nothing_and_no_reader_sees_half_a_file(folder, tmp_path):
    keep("naive", "bet", {"tflops": 1})
    starting_gun, names = tmp_path / "now", ("coalesced", "tile_kernel")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, name, str(starting_gun)], stdout=subprocess.PIPE, cwd=ROOT
        )
        for name in names
    ]
    for writer in writers:
        assert writer.stdout.readline() == b"ready\n"
    starting_gun.touch()
    while any(writer.poll() is None for writer in writers):
        assert kept("naive").bet
    assert [writer.wait(60) for writer in writers] == [0, 0]
    for writer in writers:
        writer.stdout.close()
    assert [kept(name).wavefronts for name in ("naive", *names)] == [None, 200, 200] and kept(
        "naive"
    ).bet == 200
    assert sorted(file.name for file in folder.iterdir()) == [
        "coalesced.counted",
        "naive.bet",
        "tile_kernel.counted",
    ]


@pytest.mark.parametrize("why", ["off", "solutions"])
def test_nothing_is_kept_or_shown_where_progress_is_off_or_in_solutions(folder, monkeypatch, why):
    folder.mkdir(parents=True)
    (folder / "naive.counted").write_text(json.dumps({"wavefronts": 33}))
    assert kept("naive").passed
    if why == "off":
        monkeypatch.setenv(progress.VARIABLE, progress.OFF)
    else:
        monkeypatch.setattr(store, "in_a_learners_notebook", lambda: False)
    assert ladder_folder() is None and kept("naive") == Kept()
    assert verdict_of(checked_cells("solution")["coalesced"]).passed
    assert not keep("naive", "bet", {"tflops": 5})
    assert [file.name for file in folder.iterdir()] == ["naive.counted"]


def test_a_kernel_that_passes_in_one_notebook_stands_in_another(tmp_path):
    """In two real kernels, one after the other. The second one counts nothing."""
    passes = checked_cells("solution")["coalesced"]
    cells = (
        f"{IMPORTS}from gemm_course import widgets as see\nsee.my_bet('coalesced', tflops=8)\n{passes}",
        "from gemm_course import widgets as see\nsee.my_ladder()",
    )
    shown = [run_in_a_kernel(cell, tmp_path) for cell in cells]
    assert "Your bet on coalesced: 8 TFLOPS" in shown[0] and "Passed" in shown[0]
    assert "02 coalesced: passed. Your bet: 8 TFLOPS. Your kernel as written: at most 8.4 TFLOPS" in shown[1]


def run_in_a_kernel(cell: str, folder: Path) -> str:
    """Run a cell in a new kernel of a learner's notebook, and return its outputs as text."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    client = NotebookClient(book, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    environment = os.environ | {progress.VARIABLE: str(folder / "progress"), "PYTHONPATH": PATH}
    with builder.kernel_of(client, environment):
        client.execute_cell(book.cells[0], 0)
    return str(book.cells[0].outputs)


def test_this_very_run_has_no_ladder():
    assert ladder_folder() is None
