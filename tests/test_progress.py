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

from gemm_course import check, progress, road
from gemm_course.checks.core.summary import summary
from gemm_course.commands.reset import reset
from gemm_course.commands.update import update
from gemm_course.second_edition import EXERCISES, GONE
from tests.notebooks.builder import builder

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / ".course" / "progress"


def kept(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_what_passed_is_there_once_in_order(folder):
    for name in ("reverse", "where", "reverse"):
        assert progress.record(name, folder) == ""
    (folder / "reverse").write_text("2026-11-21T10:00:00\n")
    assert kept(folder) == ["reverse", "where"] and list(progress.passed(folder)) == ["reverse", "where"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:]{8}", progress.passed(folder)["where"])
    assert progress.record("reverse", folder) == ""
    assert progress.passed(folder)["reverse"] == "2026-11-21T10:00:00", "the first time stays"


WRITER = """
import sys, time
from pathlib import Path
from gemm_course import progress
folder, chapter, starting_gun = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
print("ready", flush=True)
while not starting_gun.exists():
    time.sleep(0.001)
for place in range(1, 41):
    for name in (f"mine_{chapter}_{place}", f"ours_{place}"):
        assert progress.record(name, folder) == ""
"""


def test_two_notebooks_and_more_lose_nothing(folder, tmp_path):
    """Also while they take over what earlier editions kept, all at once."""
    before = {name: f"2026-11-21T10:00:{place}" for place, name in enumerate(EXERCISES.values(), 10)}
    folder.mkdir(parents=True)
    for place, (number, name) in enumerate(EXERCISES.items()):
        if place % 2:
            (folder / number).write_text(f"{before[name]}\n")
        else:
            with earlier_file(folder).open("a") as file:
                file.write(f"{number} {before[name]}\n")
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
    expected = {f"mine_{chapter}_{place}" for chapter in chapters for place in range(1, 41)}
    expected |= {f"ours_{place}" for place in range(1, 41)}
    found = progress.passed(folder)
    assert set(found) == {*expected, *before} and found.items() >= before.items()
    assert all(found.values()), "every time is known"
    assert set(kept(folder)) == set(found), "no file has a number"


def test_a_damaged_file_counts_by_its_name(folder):
    progress.record("where", folder)
    (folder / "roof").write_bytes(b"")  # a full disk, an interruption
    (folder / "naive").write_bytes(b"\xff\xfe\x00")
    (folder / "notes.txt").write_text("not an exercise")
    assert progress.record("roof", folder) == ""
    found = progress.passed(folder)
    assert set(found) == {"where", "roof", "naive"}
    assert found["where"] and not found["roof"] and not found["naive"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "flat").write_text("a file where a folder should be")
    for folder in (tmp_path / "flat", tmp_path / "flat" / "progress"):
        said = progress.record("where", folder)
        assert said.startswith(f"Your progress could not be kept in {folder}") and "exercise counts" in said
        assert progress.passed(folder) == {}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be written here")
def test_a_folder_that_can_only_be_read_still_shows_what_passed(folder):
    progress.record("where", folder)
    folder.chmod(0o500)
    assert "Permission denied" in progress.record("roof", folder)
    assert list(progress.passed(folder)) == ["where"]
    folder.chmod(0o700)


# ---- progress as the second edition kept it: a file for each number ----


def second_edition(folder: Path, times: dict[str, str]) -> None:
    """Write progress as the second edition did."""
    folder.mkdir(parents=True)
    for number, time in times.items():
        (folder / number).write_text(f"{time}\n", encoding="ascii")


def test_every_exercise_of_the_second_edition_has_a_name_of_today():
    assert len(EXERCISES) == len(set(EXERCISES.values())) == 69
    assert set(EXERCISES.values()) <= {*check.exercises(), *GONE}
    assert not set(check.exercises()) & set(GONE)


def test_an_older_notebook_is_told_where_an_exercise_went(monkeypatch, capsys):
    monkeypatch.setitem(GONE, "counted_by_hand", "is told in notebook [[naive.ipynb]]")
    check.counted_by_hand(lambda m: 2 * m, hint=True)
    told = "check.counted_by_hand belongs to an older course. What it asked is told in notebook 01.\n"
    assert capsys.readouterr().out == told
    with pytest.raises(AttributeError, match="no_such_exercise"):
        check.no_such_exercise  # noqa: B018


def test_where_each_exercise_that_is_gone_went():
    assert all(road.numbered(told) and not told.endswith(".") for told in GONE.values())


def test_progress_of_the_second_edition_counts_before_anything_is_written(folder):
    times = {number: f"2026-11-20T10:00:{place:02}" for place, number in enumerate(sorted(EXERCISES)[:50])}
    second_edition(folder, times)
    assert progress.passed(folder) == {EXERCISES[number]: time for number, time in times.items()}
    assert kept(folder) == sorted(times), "reading writes nothing"


def test_the_next_pass_takes_it_over_once(folder):
    second_edition(folder, {"03.3": "2026-11-20T10:00:00", "05.4": "2026-11-21T10:00:00"})
    before = progress.passed(folder)
    assert progress.record("where", folder) == ""
    assert kept(folder) == ["outer_product", "tile_kernel", "where"]
    assert progress.passed(folder).items() > before.items()
    assert progress.record("tile_kernel", folder) == "" and progress.passed(folder).items() > before.items()


def test_08_and_09_are_those_of_then(folder):
    """Whatever notebooks have these numbers now, the files with numbers were written before."""
    second_edition(folder, {"08.1": "2026-11-20T10:00:00", "09.3": "2026-11-21T10:00:00"})
    expected = {"warp_product": "2026-11-20T10:00:00", "any_ring": "2026-11-21T10:00:00"}
    assert progress.passed(folder) == expected
    progress.record("where", folder)
    assert progress.passed(folder).items() > expected.items()


def test_of_two_passes_the_first_stays(folder):
    """A learner may have gone back to the second edition for a while."""
    second_edition(folder, {"03.3": "2026-11-25T10:00:00", "03.2": "2026-11-20T10:00:00", "03.1": ""})
    for name in ("tile_kernel", "reverse", "first_loads"):
        (folder / name).write_text("2026-11-22T10:00:00\n")
    expected = dict.fromkeys(("tile_kernel", "first_loads"), "2026-11-22T10:00:00")
    expected["reverse"] = "2026-11-20T10:00:00"
    assert progress.passed(folder) == expected
    progress.record("where", folder)
    assert progress.passed(folder).items() > expected.items()
    assert kept(folder) == ["first_loads", "reverse", "tile_kernel", "where"]


def test_an_interruption_loses_nothing(folder, monkeypatch):
    times = {number: f"2026-11-20T10:00:{place:02}" for place, number in enumerate(sorted(EXERCISES)[:50])}
    second_edition(folder, times)
    before, renamed = progress.passed(folder), Path.replace
    left = iter(range(20))

    def interrupted(path, target):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return renamed(path, target)

    with monkeypatch.context() as changed:
        changed.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            progress.record("fused_epilogue", folder)
    assert progress.passed(folder) == before and len(kept(folder)) == 50
    progress.record("fused_epilogue", folder)
    assert progress.passed(folder).items() > before.items()


def test_a_damaged_file_of_the_second_edition_counts_by_its_number(folder):
    second_edition(folder, {"00.2": "", "77.7": "2026-11-20T10:00:00"})
    assert progress.passed(folder) == {"blocks_for": "", "77.7": "2026-11-20T10:00:00"}
    progress.record("where", folder)
    assert kept(folder) == ["77.7", "blocks_for", "where"], "a number that may be a teacher's stays"


# ---- the text file that held progress before that ----

EARLIER = "03.2 2026-11-20T10:00:00\n00.1 2026-11-21T10:00:00\n03.2 2026-11-22T10:00:00\n"


def earlier_file(folder: Path) -> Path:
    return folder.parent / "progress.txt"


def test_earlier_progress_is_shown_and_taken_over_once(folder):
    folder.parent.mkdir()
    earlier_file(folder).write_text(EARLIER)
    expected = {"reverse": "2026-11-20T10:00:00", "where": "2026-11-21T10:00:00"}
    assert progress.passed(folder) == expected and list(expected) == list(progress.passed(folder))
    assert progress.record("where", folder) == progress.record("roof", folder) == ""
    assert progress.passed(folder).items() > expected.items() and kept(folder) == ["reverse", "roof", "where"]
    assert not earlier_file(folder).exists()
    assert (folder.parent / "progress_before.txt").read_text() == EARLIER


@pytest.mark.parametrize("damage", [b"00.2 2026-11-21T10:00:00", b"nonsense\n", b"\xff\xfe\n", b"\n"])
def test_of_a_damaged_earlier_file_the_whole_lines_count(folder, damage):
    folder.parent.mkdir()
    earlier_file(folder).write_bytes(EARLIER.encode() + damage)
    said = progress.record("roof", folder)
    assert "damaged" in said and "progress_before.txt" in said
    assert kept(folder) == ["reverse", "roof", "where"]
    assert progress.record("naive", folder) == ""


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
    assert not check.best_block((32, 8)) and not folder.exists()
    assert check.best_block((16, 16)) and kept(folder) == ["best_block"]
    assert not check.best_block((32, 8)) and list(progress.passed()) == ["best_block"]


def test_a_check_passes_whatever_happens_to_the_file(notebook, folder, capsys):
    folder.parent.write_text("no folder")
    assert check.best_block((16, 16)).passed
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
    assert check.best_block((16, 16)) and not folder.exists()


def test_a_solution_in_another_editor_is_known_by_its_file_or_folder(notebook, folder, tmp_path):
    notebook.setattr(Shell, "user_ns", {"__vsc_ipynb_file__": "/x/solutions/00_welcome.ipynb"})
    assert check.best_block((16, 16)) and not folder.exists()
    (tmp_path / "solutions").mkdir()
    notebook.setattr(Shell, "user_ns", {})
    notebook.chdir(tmp_path / "solutions")
    assert check.best_block((16, 16)) and not folder.exists()


def test_outside_a_notebook_nothing_is_noted(monkeypatch, folder):
    monkeypatch.setenv(progress.VARIABLE, str(folder))
    assert check.best_block((16, 16)) and not folder.exists()


@pytest.mark.many(one_in=2)
@pytest.mark.parametrize(("where", "expected"), [("notebooks", ["best_block"]), ("solutions", None)])
def test_a_real_kernel_notes_it_only_for_learners(tmp_path, folder, where, expected):
    place = tmp_path / where
    place.mkdir()
    cell = nbformat.v4.new_code_cell("from gemm_course import check\ncheck.best_block((16, 16))")
    book = nbformat.v4.new_notebook(cells=[cell])
    client = NotebookClient(book, kernel_name="python3", resources={"metadata": {"path": str(place)}})
    environment = os.environ | {progress.VARIABLE: str(folder), "PYTHONPATH": str(ROOT)}
    with builder.kernel_of(client, environment):
        client.execute_cell(book.cells[0], 0)
    assert "Passed" in str(book.cells[0].outputs)
    assert (kept(folder) if folder.exists() else None) == expected


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
    progress.record("where", folder)
    before = progress.passed(folder)
    commit(origin, "newer")
    (learner / "notebooks" / "00_welcome.ipynb").write_text("a learner's work")
    assert update(learner).changes == 1
    assert progress.passed(folder) == before
    (learner / "notebooks" / "00_welcome.ipynb").write_text("more of it")
    assert reset("00", learner)[1] is not None
    assert progress.passed(folder) == before


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(root: Path, content: str) -> None:
    (root / "notebooks" / "00_welcome.ipynb").write_text(content)
    git(root, "add", "--all")
    git(root, "commit", "-m", content)


# ---- how it is shown ----

NUMBERS = {name: road.number_of(name) for name in road.EXERCISES}
FIRST, SECOND = road.EXERCISES[:2]
TRIP = road.notebook("kernel5")
TRIPS = sum(len(each.exercises) for each in road.SIDE_TRIPS)
ROAD = [name for notebook in road.ROAD for name in notebook.exercises]


def test_the_table_says_what_is_done_what_is_open_and_what_comes_next():
    shown = str(summary(NUMBERS | {"our_tiles": "50.1"}, dict.fromkeys([FIRST, TRIP.exercises[1]], "")))
    heading, first, *others, following = shown.splitlines()
    own, side = (next(line for line in others if line.startswith(each)) for each in ("50 ", TRIP.number))
    assert heading == f"Passed: road 1 of {len(ROAD)}, own exercises 0 of 1, side trips 1 of {TRIPS}"
    assert re.match(rf"00 welcome +1 of {len(road.ROAD[0].exercises)}  open: 00\.2, 00\.3", first)
    assert re.fullmatch(r"50 +0 of 1  open: 50\.1", own)
    assert re.fullmatch(rf"{TRIP.number} kernel5 +1 of 2  open: {TRIP.number}\.a", side)
    assert following == f"Next: exercise 00.2, check.{SECOND} in notebooks/00_welcome.ipynb."


def test_the_road_comes_before_side_trips():
    done = dict.fromkeys(ROAD, "")
    told = summary(NUMBERS, done).following
    first = road.SIDE_TRIPS[0].number
    assert told.startswith(f"The road is complete. A side trip, if you like: exercise {first}.a, check.")
    assert summary(NUMBERS | {"ours": "50.1"}, done).following == "Next: exercise 50.1, check.ours."
    assert summary(NUMBERS, dict.fromkeys(NUMBERS, "")).following == "All exercises are passed."


def test_the_table_reads_well_aloud_and_on_a_dark_theme():
    shown = summary(NUMBERS, {FIRST: "2026-11-21T10:00:00"})
    page = shown._repr_html_()
    assert "<caption" in page and page.count('scope="col"') == 3
    assert page.count('scope="row"') == sum(bool(each.exercises) for each in road.NOTEBOOKS)
    assert not re.search(r"(?<!-)color:#|background", page), "the theme's colours, not the page's own"
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for part in (shown.heading, "00.2", "none yet", "Next: "):
        assert part in text


@pytest.mark.parametrize(("folder", "way"), [("notebooks", ""), ("notebooks/solutions", "../")])
def test_the_table_leads_to_every_exercise_from_any_notebook(monkeypatch, folder, way):
    monkeypatch.chdir(ROOT / folder)
    page = check.progress()._repr_html_()
    for name in check.exercises():
        file, number = road.notebook_of(name).name, road.number_of(name)
        assert f'href="{way}{file}.ipynb#cell-id=exercise-{name}">{number}</a>' in page
    assert page.count("<a ") > 40 and f'<a href="{way}00_welcome.ipynb">00 welcome</a>' in page
    following = re.search(r"<p.*</p>", page)[0]
    link = f'<a href="{way}00_welcome.ipynb#cell-id=exercise-{FIRST}">exercise 00.1</a>, check.{FIRST}'
    assert link in following


def test_the_table_has_no_links_where_the_notebooks_are_not(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "<a " not in check.progress()._repr_html_()


def test_all_exercises_are_in_the_table():
    listed = [each.name for chapter in check.progress().chapters for each in chapter.exercises]
    assert listed == check.exercises()


def test_the_command_shows_the_same_table(folder):
    """With progress of the second edition, which kept the first exercise of today as 00.2."""
    second_edition(folder, {"00.2": "2026-11-20T10:00:00"})
    command = [sys.executable, "-m", "gemm_course.cli", "progress"]
    environment = os.environ | {progress.VARIABLE: str(folder)}
    told = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=True, cwd=ROOT
    ).stdout
    start = rf"Passed: road 1 of \d+, side trips 0 of {TRIPS}\n00 welcome +1 of \d+  open: 00.2"
    assert re.match(start, told)
    assert "Next: exercise 00.2" in told
