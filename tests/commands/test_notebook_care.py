"""`gemm-course update` and `reset`: newer and fresh notebooks, and nothing of the learner's is lost."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gemm_course import road
from gemm_course.commands.errors import CourseError
from gemm_course.commands.fresh import remember_fresh
from gemm_course.commands.places import notebook as notebook_of
from gemm_course.commands.reset import reset
from gemm_course.commands.update import update

IDENTITY = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
ONE, TWO, THREE = (f"notebooks/{notebook.name}.ipynb" for notebook in road.ROAD[1:4])
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, check=True, capture_output=True)


def write(root: Path, **contents: str) -> None:
    for name, content in contents.items():
        path = root / {"one": ONE, "two": TWO, "three": THREE, "lock": "uv.lock"}.get(name, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)


def commit(root: Path, **contents: str) -> None:
    write(root, **contents)
    git(root, "add", "--all")
    git(root, "commit", "-m", "a change")


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    root = tmp_path / "origin"
    root.mkdir()
    git(root, "init", "--initial-branch=main")
    commit(root, one="one", two="two", lock="1", script="1")
    return root


@pytest.fixture
def learner(origin: Path, tmp_path: Path) -> Path:
    git(tmp_path, "clone", str(origin), "learner")
    return tmp_path / "learner"


def kept(root: Path) -> list[str]:
    return sorted(path.read_text() for path in (root / "notebooks" / "kept").glob("*.ipynb"))


def test_reset_brings_the_fresh_notebook_and_keeps_the_old(learner):
    write(learner, one="my work")
    path, copy = reset("01", learner)
    assert path == learner / ONE and path.read_text() == "one"
    assert copy.read_text() == "my work"
    assert copy.parent == learner / "notebooks" / "kept" and copy.name.startswith("01_naive_20")


def test_reset_takes_the_number_as_people_write_it(learner):
    assert reset("2", learner)[0] == learner / TWO
    assert reset("coalesced", learner)[0] == learner / TWO


@pytest.mark.parametrize("number", ["S05", "s5", "kernel5"])
def test_a_side_trip_is_found_by_its_number_too(tmp_path, number):
    for notebook in (road.notebook("thread_tiles_2d"), road.notebook("kernel5")):
        (tmp_path / f"{notebook.name}.ipynb").touch()
    assert notebook_of(number, tmp_path) == tmp_path / "S05_kernel5.ipynb"


def test_reset_of_a_fresh_notebook_keeps_nothing(learner):
    assert reset("01", learner) == (learner / ONE, None)
    assert kept(learner) == []


def test_two_resets_in_a_row_keep_both_states(learner):
    for work in ("first", "second", "third"):
        write(learner, one=work)
        reset("01", learner)
    assert kept(learner) == ["first", "second", "third"]


@pytest.mark.parametrize("number", ["07", "x", "../01"])
def test_reset_of_no_notebook_names_those_there_are(learner, number):
    with pytest.raises(CourseError, match="there are: 01, 02"):
        reset(number, learner)


def test_reset_works_for_a_course_that_came_as_an_archive(learner):
    shutil.rmtree(learner / ".git")
    remember_fresh(learner)
    write(learner, one="my work")
    remember_fresh(learner)
    assert reset("01", learner)[1].read_text() == "my work"
    assert (learner / ONE).read_text() == "one"


def test_reset_without_anything_to_go_by_touches_nothing(learner):
    shutil.rmtree(learner / ".git")
    write(learner, one="my work")
    with pytest.raises(CourseError, match="new download"):
        reset("01", learner)
    assert (learner / ONE).read_text() == "my work"


def test_update_brings_what_is_new_and_keeps_edited_notebooks(origin, learner):
    write(learner, one="my one", two="my two")
    commit(origin, one="newer one", three="three")
    done = update(learner)
    assert (done.changes, done.packages) == (1, False)
    assert (learner / ONE).read_text() == "newer one" and (learner / THREE).read_text() == "three"
    assert (learner / TWO).read_text() == "my two"
    assert kept(learner) == ["my one"] == [copy.read_text() for copy in done.kept]


def test_update_with_nothing_new(learner):
    write(learner, one="my one")
    assert update(learner).changes == 0
    assert (learner / ONE).read_text() == "my one" and kept(learner) == []


def test_update_says_when_packages_follow(origin, learner):
    commit(origin, lock="2")
    assert update(learner).packages


def test_update_puts_back_a_notebook_that_was_deleted(origin, learner):
    (learner / ONE).unlink()
    commit(origin, one="newer one")
    update(learner)
    assert (learner / ONE).read_text() == "newer one"


def test_update_keeps_a_notebook_the_learner_wrote_where_a_new_one_comes(origin, learner):
    write(learner, three="my own three")
    commit(origin, three="three")
    update(learner)
    assert (learner / THREE).read_text() == "three"
    assert kept(learner) == ["my own three"]


def test_update_keeps_an_edited_notebook_that_goes_away(origin, learner):
    write(learner, one="my one")
    git(origin, "rm", ONE)
    commit(origin, two="newer two")
    update(learner)
    assert not (learner / ONE).exists()
    assert kept(learner) == ["my one"]


def state(root: Path) -> dict[str, str]:
    return {
        path.name: path.read_text() for path in root.rglob("*") if path.is_file() and ".git" not in path.parts
    }


def test_update_stops_before_other_edited_files_and_changes_nothing(origin, learner):
    write(learner, script="mine", one="my one")
    commit(origin, script="newer", one="newer one")
    before = state(learner)
    with pytest.raises(CourseError, match="script"):
        update(learner)
    assert state(learner) == before


def test_reset_goes_back_to_the_course_behind_commits_of_ones_own(learner):
    """nbgitpuller commits a learner's work before it merges."""
    commit(learner, one="my one")
    write(learner, one="my one, later")
    assert reset("01", learner)[1].read_text() == "my one, later"
    assert (learner / ONE).read_text() == "one"


def test_reset_after_a_merge_brings_what_the_course_has_now(origin, learner):
    commit(learner, one="my one")
    commit(origin, two="newer two", three="three")
    git(learner, "pull", "--no-rebase", "--strategy-option=ours")
    commit(learner, two="my two")
    reset("02", learner)
    assert (learner / TWO).read_text() == "newer two" and (learner / ONE).read_text() == "my one"


def test_update_merges_with_commits_of_ones_own_and_keeps_edited_notebooks(origin, learner):
    commit(learner, one="my one", mine="a file of mine")
    commit(origin, one="newer one", two="newer two")
    done = update(learner)
    assert done.changes == 1 and kept(learner) == ["my one"]
    assert [(learner / name).read_text() for name in (ONE, TWO, "mine")] == [
        "newer one",
        "newer two",
        "a file of mine",
    ]
    assert update(learner).changes == 0


def test_update_with_commits_of_ones_own_and_nothing_newer(learner):
    commit(learner, one="my one")
    assert update(learner).changes == 0
    assert (learner / ONE).read_text() == "my one"


def test_update_merges_where_an_edited_and_committed_notebook_goes_away(origin, learner):
    commit(learner, one="my one")
    git(origin, "rm", ONE)
    commit(origin, two="newer two")
    update(learner)
    assert not (learner / ONE).exists() and kept(learner) == ["my one"]
    assert (learner / TWO).read_text() == "newer two"


@pytest.mark.parametrize("committed", [False, True])
def test_two_notebooks_that_swap_their_numbers_keep_what_was_written(origin, learner, committed):
    swapped = [path.replace("01_naive", "02_naive").replace("02_coal", "01_coal") for path in (ONE, TWO)]
    (commit if committed else write)(learner, one="my one")
    for old, new in zip((ONE, TWO), swapped):
        git(origin, "mv", old, new)
    commit(origin, three="newer three")
    update(learner)
    assert kept(learner) == ["my one"]
    there = {path.name: path.read_text() for path in (learner / "notebooks").glob("*.ipynb")}
    assert there["02_naive.ipynb"] == "one" and there["01_coalesced.ipynb"] == "two"
    assert not {"01_naive.ipynb", "02_coalesced.ipynb"} & set(there)


def test_a_merge_that_fails_leaves_everything_as_it_was(origin, learner):
    commit(learner, one="my one")
    commit(origin, one="newer one")
    before = state(learner)
    hook = learner / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    (learner / ".git" / "MERGE_HEAD").write_text("0" * 40)  # another merge is at work
    with pytest.raises(CourseError, match="could not be merged"):
        update(learner)
    now = state(learner)
    assert {name: now[name] for name in before} == before


def test_a_clone_of_another_user_is_told_in_gits_own_words(learner, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    for command in (lambda: reset("01", learner), lambda: update(learner)):
        with pytest.raises(CourseError, match=r"dubious ownership.*safe\.directory"):
            command()
    remember_fresh(learner)  # which `lab` asks for: it opens all the same


def test_update_without_the_network_is_one_sentence(origin, learner):
    origin.rename(origin.with_name("gone"))
    with pytest.raises(CourseError, match="No newer course can be fetched"):
        update(learner)


def test_update_needs_a_clone(tmp_path):
    with pytest.raises(CourseError, match="git clone"):
        update(tmp_path)


def test_a_course_inside_another_repository_is_no_clone(learner):
    inner = learner / "inner"
    inner.mkdir()
    with pytest.raises(CourseError, match="git clone"):
        update(inner)


def test_an_update_that_fails_halfway_leaves_the_notebooks_as_they_were(origin, learner):
    write(learner, one="my one", three="my own three")
    commit(origin, one="newer one", three="three")
    (learner / ".git" / "index.lock").touch()  # another git at work: nothing can be checked out
    with pytest.raises(CourseError, match="git checkout did not work"):
        update(learner)
    assert (learner / ONE).read_text() == "my one" and (learner / THREE).read_text() == "my own three"
