"""Progress: recorded when a learner passes, lost never, and never in the way of a check."""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from gemm_course import check, progress
from gemm_course.checks.core.summary import summary
from gemm_course.commands.reset import reset
from gemm_course.commands.update import update

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / ".course" / "progress.txt"


def numbers(file: Path) -> list[str]:
    return [line.split()[0] for line in file.read_text().splitlines()]


def test_what_passed_is_there_once_in_order(file):
    for number in ("00.1", "03.2", "00.1"):
        assert progress.record(number, file) == ""
    assert list(progress.passed(file)) == numbers(file) == ["00.1", "03.2"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:]{8}", progress.passed(file)["00.1"])


WRITER = """
import sys, time
from pathlib import Path
from gemm_course import progress
file, chapter, starting_gun = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
print("ready", flush=True)
while not starting_gun.exists():
    time.sleep(0.001)
for place in range(1, 41):
    assert progress.record(f"{chapter}.{place}", file) == ""
"""


def test_two_notebooks_and_more_lose_nothing(file, tmp_path):
    starting_gun, chapters = tmp_path / "now", ("00", "01", "02", "03")
    command = [sys.executable, "-c", WRITER, str(file)]
    writers = [
        subprocess.Popen([*command, chapter, str(starting_gun)], stdout=subprocess.PIPE, cwd=ROOT)
        for chapter in chapters
    ]
    for writer in writers:
        assert writer.stdout.readline() == b"ready\n"
    starting_gun.touch()
    assert [writer.wait(60) for writer in writers] == [0] * 4
    for writer in writers:
        writer.stdout.close()
    expected = {f"{chapter}.{place}" for chapter in chapters for place in range(1, 41)}
    assert sorted(numbers(file)) == sorted(expected)
    assert set(progress.passed(file)) == expected


@pytest.mark.parametrize(
    "damage", [b"00.2 2026-11-21T10:00:00", b"nonsense\n", b"\xff\xfe\n", b"\n", b'{"00.2": 1}\n']
)
def test_a_damaged_file_is_kept_aside_and_its_whole_lines_count(file, damage):
    progress.record("00.1", file)
    before = file.read_bytes() + damage
    file.write_bytes(before)
    assert "00.1" in progress.passed(file)
    said = progress.record("00.3", file)
    (aside,) = file.parent.glob("progress_damaged_*.txt")
    assert "damaged" in said and aside.name in said and aside.read_bytes() == before
    assert numbers(file) == ["00.1", "00.3"]
    assert progress.record("00.4", file) == ""


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "flat").write_text("a file where a folder should be")
    said = progress.record("00.1", tmp_path / "flat" / "progress.txt")
    assert said.startswith("Your progress could not be kept in") and "the exercise counts" in said
    (tmp_path / "progress.txt").mkdir()
    assert progress.record("00.1", tmp_path / "progress.txt").startswith("Your progress could not be kept")
    assert progress.passed(tmp_path / "progress.txt") == {}


def test_a_lock_that_is_never_given_back_does_not_hang(file, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)
    progress.record("00.1", file)
    with progress._one_at_a_time(file.with_suffix(".lock")):
        assert "is in use" in progress.record("00.2", file)
    assert progress.record("00.2", file) == ""


def test_a_file_system_without_locks_is_no_hindrance(file, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(progress, "_lock", refuse)
    if progress.fcntl:
        assert progress.record("00.1", file) == "" and numbers(file) == ["00.1"]


class Shell:
    kernel, user_ns = object(), {}

    @classmethod
    def get_ipython(cls):
        return cls


@pytest.fixture
def notebook(monkeypatch, file, tmp_path):
    """A learner's notebook, so far as this process goes."""
    monkeypatch.setitem(sys.modules, "IPython", Shell)
    monkeypatch.setenv("JPY_SESSION_NAME", "00_welcome.ipynb")
    monkeypatch.setenv(progress.VARIABLE, str(file))
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def test_a_check_that_passes_is_noted_and_one_that_does_not_is_not(notebook, file):
    assert not check.idle_lanes(27) and not file.exists()
    assert check.idle_lanes(28) and numbers(file) == ["00.3"]
    assert not check.idle_lanes(27) and list(progress.passed()) == ["00.3"]


def test_a_check_passes_whatever_happens_to_the_file(notebook, file, capsys):
    file.parent.write_text("no folder")
    assert check.idle_lanes(28).passed
    assert capsys.readouterr().out.startswith("Your progress could not be kept")


@pytest.mark.parametrize(
    "place",
    [
        {"JPY_SESSION_NAME": "/home/me/course/notebooks/solutions/00_welcome.ipynb"},
        {"JPY_SESSION_NAME": "solutions/00_welcome.ipynb"},
        {progress.VARIABLE: progress.OFF},
    ],
)
def test_solutions_and_builds_are_no_progress(notebook, file, place):
    for name, value in place.items():
        notebook.setenv(name, value)
    assert check.idle_lanes(28) and not file.exists()


def test_a_solution_in_another_editor_is_known_by_its_file_or_folder(notebook, file, tmp_path):
    notebook.setattr(Shell, "user_ns", {"__vsc_ipynb_file__": "/x/solutions/00_welcome.ipynb"})
    assert check.idle_lanes(28) and not file.exists()
    (tmp_path / "solutions").mkdir()
    notebook.setattr(Shell, "user_ns", {})
    notebook.chdir(tmp_path / "solutions")
    assert check.idle_lanes(28) and not file.exists()


def test_outside_a_notebook_nothing_is_noted(monkeypatch, file):
    monkeypatch.setenv(progress.VARIABLE, str(file))
    assert check.idle_lanes(28) and not file.exists()


@pytest.mark.parametrize(("folder", "expected"), [("notebooks", ["00.3"]), ("solutions", None)])
def test_a_real_kernel_notes_it_only_for_learners(tmp_path, folder, expected):
    place, file = tmp_path / folder, tmp_path / "progress.txt"
    place.mkdir()
    cell = nbformat.v4.new_code_cell("from gemm_course import check\ncheck.idle_lanes(28)")
    book = nbformat.v4.new_notebook(cells=[cell])
    client = NotebookClient(book, kernel_name="python3", resources={"metadata": {"path": str(place)}})
    environment = os.environ | {progress.VARIABLE: str(file), "PYTHONPATH": str(ROOT)}
    with client.setup_kernel(env=environment):
        client.execute_cell(book.cells[0], 0)
    assert "Passed" in str(book.cells[0].outputs)
    assert (numbers(file) if file.exists() else None) == expected


def test_this_very_run_is_no_progress():
    assert progress.progress_file() is None


def test_the_default_file_is_ignored_by_git_and_beside_the_course():
    assert progress.FILE == ROOT / ".course" / "progress.txt"
    if shutil.which("git") and (ROOT / ".git").exists():
        assert subprocess.run(["git", "-C", ROOT, "check-ignore", "-q", progress.FILE]).returncode == 0


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_an_update_and_a_reset_leave_it_alone(tmp_path):
    origin, learner = tmp_path / "origin", tmp_path / "learner"
    (origin / "notebooks").mkdir(parents=True)
    shutil.copy2(ROOT / ".gitignore", origin)
    git(origin, "init", "--initial-branch=main")
    commit(origin, "as it was")
    git(tmp_path, "clone", str(origin), str(learner))
    file = learner / ".course" / "progress.txt"
    progress.record("00.1", file)
    before = file.read_bytes()
    commit(origin, "newer")
    (learner / "notebooks" / "00_a.ipynb").write_text("a learner's work")
    assert update(learner).commits == 1
    assert file.read_bytes() == before
    (learner / "notebooks" / "00_a.ipynb").write_text("more of it")
    assert reset("00", learner)[1] is not None
    assert file.read_bytes() == before


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(root: Path, content: str) -> None:
    (root / "notebooks" / "00_a.ipynb").write_text(content)
    git(root, "add", "--all")
    git(root, "commit", "-m", content)


# ---- how it is shown ----

NAMES = {"00.1": "where", "00.2": "blocks_for", "03.1": "first_loads"}


def test_the_table_says_what_is_done_what_is_open_and_what_comes_next():
    shown = summary(NAMES, {"00.1": "2026-11-21T10:00:00"})
    assert str(shown).splitlines() == [
        "1 of 3 exercises passed",
        "00 welcome                1 of 2  open: 00.2",
        "03 shared memory tiles    0 of 1  open: 03.1",
        "Next: exercise 00.2, check.blocks_for in notebooks/00_welcome.ipynb.",
    ]
    assert str(summary(NAMES, dict.fromkeys(NAMES, ""))).endswith("All exercises are passed.")


def test_the_table_reads_well_aloud_and_on_a_dark_theme():
    page = summary(NAMES, {"00.1": "2026-11-21T10:00:00"})._repr_html_()
    assert "<caption" in page and page.count('scope="col"') == 4 and page.count('scope="row"') == 2
    assert "background:#FFFFFF;color:#1F2328" in page
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for part in ("1 of 3 exercises passed", "00.2", "none yet", "Next: exercise 00.2"):
        assert part in text


def test_all_exercises_are_in_the_table_in_order():
    shown = check.progress()
    listed = [number for chapter in shown.chapters for number in (*chapter.passed, *chapter.open)]
    assert listed == [getattr(check, name).number for name in check.exercises()]


def test_the_command_shows_the_same_table(file):
    progress.record("00.1", file)
    command = [sys.executable, "-m", "gemm_course.cli", "progress"]
    environment = os.environ | {progress.VARIABLE: str(file)}
    told = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=True, cwd=ROOT
    ).stdout
    assert re.match(r"1 of \d+ exercises passed\n00 welcome +1 of 6  open: 00.2", told)
    assert "Next: exercise 00.2" in told
