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
from tests.notebooks.builder import builder

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / ".course" / "progress"


def numbers(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_what_passed_is_there_once_in_order(folder):
    for number in ("03.2", "00.1", "03.2"):
        assert progress.record(number, folder) == ""
    (folder / "03.2").write_text("2026-11-21T10:00:00\n")
    assert numbers(folder) == ["00.1", "03.2"] and list(progress.passed(folder)) == ["03.2", "00.1"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:]{8}", progress.passed(folder)["00.1"])
    assert progress.record("03.2", folder) == ""
    assert progress.passed(folder)["03.2"] == "2026-11-21T10:00:00", "the first time stays"


WRITER = """
import sys, time
from pathlib import Path
from gemm_course import progress
folder, chapter, starting_gun = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
print("ready", flush=True)
while not starting_gun.exists():
    time.sleep(0.001)
for place in range(1, 41):
    for number in (f"{chapter}.{place}", f"08.{place}"):
        assert progress.record(number, folder) == ""
"""


def test_two_notebooks_and_more_lose_nothing(folder, tmp_path):
    """Also while they take over an earlier file, all at once."""
    before = {f"07.{place}": f"2026-11-21T10:00:{place}" for place in range(10, 60)}
    folder.parent.mkdir()
    earlier_file(folder).write_text("".join(f"{number} {time}\n" for number, time in before.items()))
    starting_gun, chapters = tmp_path / "now", ("00", "01", "02", "03")
    command = [sys.executable, "-c", WRITER, str(folder)]
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
    expected = {f"{chapter}.{place}" for chapter in (*chapters, "08") for place in range(1, 41)}
    found = progress.passed(folder)
    assert set(found) == {*expected, *before} and found.items() >= before.items()
    assert all(found.values()), "every time is known"


def test_a_damaged_file_counts_by_its_name(folder):
    progress.record("00.1", folder)
    (folder / "00.2").write_bytes(b"")  # a full disk, an interruption
    (folder / "00.3").write_bytes(b"\xff\xfe\x00")
    (folder / "notes.txt").write_text("not an exercise")
    assert progress.record("00.2", folder) == ""
    found = progress.passed(folder)
    assert set(found) == {"00.1", "00.2", "00.3"}
    assert found["00.1"] and not found["00.2"] and not found["00.3"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "flat").write_text("a file where a folder should be")
    for folder in (tmp_path / "flat", tmp_path / "flat" / "progress"):
        said = progress.record("00.1", folder)
        assert said.startswith(f"Your progress could not be kept in {folder}") and "exercise counts" in said
        assert progress.passed(folder) == {}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be written here")
def test_a_folder_that_can_only_be_read_still_shows_what_passed(folder):
    progress.record("00.1", folder)
    folder.chmod(0o500)
    assert "Permission denied" in progress.record("00.2", folder)
    assert list(progress.passed(folder)) == ["00.1"]
    folder.chmod(0o700)


# ---- the text file that held progress before ----

EARLIER = "03.2 2026-11-20T10:00:00\n00.1 2026-11-21T10:00:00\n03.2 2026-11-22T10:00:00\n"


def earlier_file(folder: Path) -> Path:
    return folder.parent / "progress.txt"


def test_earlier_progress_is_shown_and_taken_over_once(folder):
    folder.parent.mkdir()
    earlier_file(folder).write_text(EARLIER)
    expected = {"03.2": "2026-11-20T10:00:00", "00.1": "2026-11-21T10:00:00"}
    assert progress.passed(folder) == expected and list(expected) == list(progress.passed(folder))
    assert progress.record("00.1", folder) == progress.record("00.2", folder) == ""
    assert progress.passed(folder).items() > expected.items() and numbers(folder) == ["00.1", "00.2", "03.2"]
    assert not earlier_file(folder).exists()
    assert (folder.parent / "progress_before.txt").read_text() == EARLIER


@pytest.mark.parametrize("damage", [b"00.2 2026-11-21T10:00:00", b"nonsense\n", b"\xff\xfe\n", b"\n"])
def test_of_a_damaged_earlier_file_the_whole_lines_count(folder, damage):
    folder.parent.mkdir()
    earlier_file(folder).write_bytes(EARLIER.encode() + damage)
    said = progress.record("00.3", folder)
    assert "damaged" in said and "progress_before.txt" in said
    assert numbers(folder) == ["00.1", "00.3", "03.2"]
    assert progress.record("00.4", folder) == ""


def test_a_variable_that_names_the_earlier_file_names_the_folder_beside_it(folder, monkeypatch):
    monkeypatch.setenv(progress.VARIABLE, str(earlier_file(folder)))
    assert progress.progress_folder() == folder
    monkeypatch.setenv(progress.VARIABLE, "~/mine")
    assert progress.progress_folder() == Path.home() / "mine"


# ---- whose progress it is ----


class Shell:
    kernel, user_ns = object(), {}

    @classmethod
    def get_ipython(cls):
        return cls


@pytest.fixture
def notebook(monkeypatch, folder, tmp_path):
    """A learner's notebook, so far as this process goes."""
    monkeypatch.setitem(sys.modules, "IPython", Shell)
    monkeypatch.setenv("JPY_SESSION_NAME", "00_welcome.ipynb")
    monkeypatch.setenv(progress.VARIABLE, str(folder))
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def test_a_check_that_passes_is_noted_and_one_that_does_not_is_not(notebook, folder):
    assert not check.idle_lanes(27) and not folder.exists()
    assert check.idle_lanes(1260) and numbers(folder) == ["00.3"]
    assert not check.idle_lanes(27) and list(progress.passed()) == ["00.3"]


def test_a_check_passes_whatever_happens_to_the_file(notebook, folder, capsys):
    folder.parent.write_text("no folder")
    assert check.idle_lanes(1260).passed
    assert capsys.readouterr().out.startswith("Your progress could not be kept")


@pytest.mark.parametrize(
    "place",
    [
        {"JPY_SESSION_NAME": "/home/me/course/notebooks/solutions/00_welcome_solutions.ipynb"},
        {"JPY_SESSION_NAME": "solutions/00_welcome.ipynb"},
        {progress.VARIABLE: progress.OFF},
    ],
)
def test_solutions_and_builds_are_no_progress(notebook, folder, place):
    for name, value in place.items():
        notebook.setenv(name, value)
    assert check.idle_lanes(1260) and not folder.exists()


def test_a_solution_in_another_editor_is_known_by_its_file_or_folder(notebook, folder, tmp_path):
    notebook.setattr(Shell, "user_ns", {"__vsc_ipynb_file__": "/x/solutions/00_welcome.ipynb"})
    assert check.idle_lanes(1260) and not folder.exists()
    (tmp_path / "solutions").mkdir()
    notebook.setattr(Shell, "user_ns", {})
    notebook.chdir(tmp_path / "solutions")
    assert check.idle_lanes(1260) and not folder.exists()


def test_outside_a_notebook_nothing_is_noted(monkeypatch, folder):
    monkeypatch.setenv(progress.VARIABLE, str(folder))
    assert check.idle_lanes(1260) and not folder.exists()


@pytest.mark.many(one_in=2)
@pytest.mark.parametrize(("where", "expected"), [("notebooks", ["00.3"]), ("solutions", None)])
def test_a_real_kernel_notes_it_only_for_learners(tmp_path, folder, where, expected):
    place = tmp_path / where
    place.mkdir()
    cell = nbformat.v4.new_code_cell("from gemm_course import check\ncheck.idle_lanes(1260)")
    book = nbformat.v4.new_notebook(cells=[cell])
    client = NotebookClient(book, kernel_name="python3", resources={"metadata": {"path": str(place)}})
    environment = os.environ | {progress.VARIABLE: str(folder), "PYTHONPATH": str(ROOT)}
    with builder.kernel_of(client, environment):
        client.execute_cell(book.cells[0], 0)
    assert "Passed" in str(book.cells[0].outputs)
    assert (numbers(folder) if folder.exists() else None) == expected


def test_this_very_run_is_no_progress():
    assert progress.progress_folder() is None


def test_the_default_folder_is_ignored_by_git_and_beside_the_course(monkeypatch):
    monkeypatch.delenv(progress.VARIABLE)
    folder = progress.progress_folder()
    assert folder == ROOT / ".course" / "progress"
    if shutil.which("git") and (ROOT / ".git").exists():
        assert subprocess.run(["git", "-C", ROOT, "check-ignore", "-q", folder]).returncode == 0


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_an_update_and_a_reset_leave_it_alone(tmp_path):
    origin, learner = tmp_path / "origin", tmp_path / "learner"
    (origin / "notebooks").mkdir(parents=True)
    shutil.copy2(ROOT / ".gitignore", origin)
    git(origin, "init", "--initial-branch=main")
    commit(origin, "as it was")
    git(tmp_path, "clone", str(origin), str(learner))
    folder = learner / ".course" / "progress"
    progress.record("00.1", folder)
    before = progress.passed(folder)
    commit(origin, "newer")
    (learner / "notebooks" / "00_a.ipynb").write_text("a learner's work")
    assert update(learner).changes == 1
    assert progress.passed(folder) == before
    (learner / "notebooks" / "00_a.ipynb").write_text("more of it")
    assert reset("00", learner)[1] is not None
    assert progress.passed(folder) == before


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
    assert "<caption" in page and page.count('scope="col"') == 3 and page.count('scope="row"') == 2
    assert not re.search(r"(?<!-)color:#|background", page), "the theme's colours, not the page's own"
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for part in ("1 of 3 exercises passed", "00.2", "none yet", "Next: exercise 00.2"):
        assert part in text


@pytest.mark.parametrize(("folder", "way"), [("notebooks", ""), ("notebooks/solutions", "../")])
def test_the_table_leads_to_every_exercise_from_any_notebook(monkeypatch, folder, way):
    monkeypatch.chdir(ROOT / folder)
    page = check.progress()._repr_html_()
    for number in (getattr(check, name).number for name in check.exercises()):
        place = f'href="{way}{{}}.ipynb#cell-id=exercise-{number.replace(".", "-")}">{number}</a>'
        assert any(place.format(name) in page for name in builder.names()), number
    assert page.count("<a ") > 40 and f'<a href="{way}00_welcome.ipynb">00 welcome</a>' in page
    following = re.search(r"<p.*</p>", page)[0]
    assert re.search(r'<a href="[^"]+#cell-id=exercise-\d\d-\d+">exercise \d\d\.\d+</a>', following)


def test_the_table_has_no_links_where_the_notebooks_are_not(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "<a " not in check.progress()._repr_html_()


def test_what_comes_next_is_what_stands_next_in_the_notebook():
    shown = summary(NAMES, {})
    assert shown.chapters[0].open == ["00.2", "00.1"]
    assert shown.following.startswith("Next: exercise 00.2")


def test_all_exercises_are_in_the_table():
    shown = check.progress()
    listed = [number for chapter in shown.chapters for number in (*chapter.passed, *chapter.open)]
    assert sorted(listed) == [getattr(check, name).number for name in check.exercises()]


def test_the_command_shows_the_same_table(folder):
    progress.record("00.1", folder)
    command = [sys.executable, "-m", "gemm_course.cli", "progress"]
    environment = os.environ | {progress.VARIABLE: str(folder)}
    told = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=True, cwd=ROOT
    ).stdout
    assert re.match(r"1 of \d+ exercises passed\n00 welcome +1 of \d+  open: 00.2", told)
    assert "Next: exercise 00.2" in told
