"""A learner's copy of the notebooks, where the course's own folder is not theirs."""

import os
import stat
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from gemm_course import places, progress
from gemm_course.commands import copying, doctor, lab
from gemm_course.commands.errors import CourseError
from gemm_course.commands.reset import reset
from gemm_course.commands.update import update

ROOT = Path(__file__).parents[2]
FIRST = "00_welcome.ipynb"


@pytest.fixture
def brought(tmp_path, monkeypatch) -> Path:
    """What an install brings: two notebooks, a page and a picture."""
    folder = tmp_path / "install" / "notebooks"
    for name in (
        FIRST,
        "01_naive.ipynb",
        "glossary.md",
        "pictures/one.png",
        "solutions/01_naive_solutions.ipynb",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    for name in (
        "source/01_naive.py",
        "kept/01_naive_2026.ipynb",
        ".ipynb_checkpoints/01_naive-checkpoint.ipynb",
        "mine.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("not for others")
    monkeypatch.setattr(places, "BROUGHT", folder)
    monkeypatch.setattr(places, "COURSE", folder.parent)
    return folder


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A home with nothing in it, and nothing that says where the learner's folder is."""
    folder = tmp_path / "home"
    (folder / "Documents").mkdir(parents=True)
    for name in (places.VARIABLE, progress.VARIABLE, "XDG_STATE_HOME", "XDG_DOCUMENTS_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def not_mine(brought, monkeypatch) -> Path:
    """The install cannot be written: by the file system's word, since root could all the same."""
    real = os.access
    inside = str(brought.parent)
    refused = lambda path, mode: real(path, mode) and not str(path).startswith(inside)  # noqa: E731
    monkeypatch.setattr(places.os, "access", refused)
    return brought.parent


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_copy_has_what_a_learner_needs_and_nothing_of_others(brought, tmp_path):
    assert copying.copy_into(tmp_path / "mine")
    assert files(tmp_path / "mine" / "notebooks") == {
        FIRST,
        "01_naive.ipynb",
        "glossary.md",
        "pictures/one.png",
        "solutions/01_naive_solutions.ipynb",
    }
    assert copying.is_copy(tmp_path / "mine") and not copying.newer_files(tmp_path / "mine")
    assert not copying.copy_into(tmp_path / "mine"), "what is there stays"


def test_a_folder_with_other_notebooks_is_left_alone(brought, tmp_path):
    (tmp_path / "thesis" / "notebooks").mkdir(parents=True)
    with pytest.raises(CourseError, match="choose another folder"):
        copying.copy_into(tmp_path / "thesis")
    assert files(tmp_path / "thesis") == set()


def test_a_folder_where_a_file_lies_is_a_sentence(brought, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CourseError, match="cannot be written"):
        copying.copy_into(tmp_path / "file")


def test_a_copy_that_is_interrupted_leaves_nothing(brought, tmp_path, monkeypatch):
    def interrupted(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(copying.shutil, "copyfile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        copying.copy_into(tmp_path / "mine")
    assert files(tmp_path / "mine") == set()


def test_update_of_a_copy_keeps_what_was_edited(brought, tmp_path):
    mine = tmp_path / "mine"
    copying.copy_into(mine)
    for name in (FIRST, "01_naive.ipynb"):
        (mine / "notebooks" / name).write_text(f"my {name}")
    (brought / FIRST).write_text("newer")
    (brought / "02_coalesced.ipynb").write_text("new")
    assert set(copying.newer_files(mine)) == {FIRST, "02_coalesced.ipynb"}
    done = update(mine)
    assert (done.changes, len(done.kept), done.packages) == (2, 1, False)
    assert done.kept[0].read_text() == f"my {FIRST}" and done.kept[0].parent == mine / "notebooks" / "kept"
    now = {
        name: (mine / "notebooks" / name).read_text()
        for name in (FIRST, "01_naive.ipynb", "02_coalesced.ipynb")
    }
    assert now == {FIRST: "newer", "01_naive.ipynb": "my 01_naive.ipynb", "02_coalesced.ipynb": "new"}
    assert update(mine).changes == 0


def test_a_notebook_that_has_another_number_now_does_not_stay_behind(brought, tmp_path):
    """Its old file is removed; what a learner wrote into it is kept."""
    mine = tmp_path / "mine"
    for name in ("08_tensor_cores.ipynb", "09_overlap.ipynb"):
        (brought / name).write_text(name)
    copying.copy_into(mine)
    (mine / "notebooks" / "08_tensor_cores.ipynb").write_text("my answers")
    for old, new in (("08_tensor_cores", "09_tensor_cores"), ("09_overlap", "08_overlap")):
        (brought / f"{old}.ipynb").rename(brought / f"{new}.ipynb")
    assert [copy.read_text() for copy in update(mine).kept] == ["my answers"]
    there = {path.name for path in (mine / "notebooks").glob("*.ipynb")}
    assert there == {FIRST, "01_naive.ipynb", "08_overlap.ipynb", "09_tensor_cores.ipynb"}
    assert update(mine).changes == 0


def test_a_copy_that_forgot_what_came_keeps_everything_that_differs(brought, tmp_path):
    mine = tmp_path / "mine"
    copying.copy_into(mine)
    (mine / ".course" / "brought.json").write_text("{damaged")
    (mine / "notebooks" / FIRST).write_text("my own")
    assert [copy.read_text() for copy in update(mine).kept] == ["my own"]
    assert (mine / "notebooks" / FIRST).read_text() == FIRST


def test_reset_in_a_copy_brings_the_installs_notebook(brought, tmp_path):
    mine = tmp_path / "mine"
    copying.copy_into(mine)
    (mine / "notebooks" / "01_naive.ipynb").write_text("my own")
    assert reset("1", mine)[1].read_text() == "my own"
    assert (mine / "notebooks" / "01_naive.ipynb").read_text() == "01_naive.ipynb"


def test_a_course_of_ones_own_keeps_everything_beside_itself(brought, home):
    assert places.learners_folder() == brought.parent
    assert places.state_folder() == brought.parent / ".course"


def test_an_install_that_cannot_be_written_sends_everything_home(not_mine, home):
    folder = places.learners_folder()
    assert folder == home / "Documents" / "gemm-course"
    assert home in places.state_folder().parents and not_mine not in places.state_folder().parents
    lab._prepare(folder)
    assert places.state_folder() == folder / ".course"
    assert progress.record("where", progress.progress_folder()) == ""
    assert list(progress.passed()) == ["where"]
    assert not (not_mine / ".course").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows tells no owner")
def test_the_second_user_of_a_writable_folder_gets_a_copy(brought, home, monkeypatch):
    (brought.parent / ".course").mkdir()
    owner = (brought.parent / ".course").stat().st_uid
    monkeypatch.setattr(places.os, "geteuid", lambda: owner + 1)
    assert places.learners_folder() == home / "Documents" / "gemm-course"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows tells no owner")
def test_a_folder_that_somebody_else_made_is_nobodys_own(not_mine, home, monkeypatch):
    """Such as one in a shared folder, which holds a notebook of theirs."""
    trap = home / "shared"
    (trap / "notebooks").mkdir(parents=True)
    (trap / places.FIRST).write_text("x")
    monkeypatch.chdir(trap)
    monkeypatch.setattr(places.os, "geteuid", lambda: 4711)
    trap_owner = trap.stat().st_uid
    if trap_owner == 0:  # The system's own folders are trusted.
        os.chown(trap, 4712, -1)
    assert places.learners_folder() == home / "Documents" / "gemm-course"


def test_a_clone_around_the_working_directory_is_the_learners(not_mine, home, monkeypatch):
    """Such as one that nbgitpuller brought, where the course is installed in the hub's image."""
    clone = home / "gpu-course"
    (clone / "notebooks").mkdir(parents=True)
    (clone / places.FIRST).write_text("x")
    monkeypatch.chdir(clone / "notebooks")
    assert places.learners_folder() == clone and places.state_folder() == clone / ".course"


def test_the_variable_names_the_folder_and_its_tilde_is_the_home(not_mine, home, monkeypatch):
    monkeypatch.setenv(places.VARIABLE, "~/elsewhere")
    assert places.learners_folder() == (home / "elsewhere").resolve()
    assert places.state_folder() != home / "elsewhere" / ".course", "no notebooks there yet"


def test_lab_takes_a_folder_and_passes_everything_else_on(brought, tmp_path):
    (tmp_path / "page.ipynb").write_text("x")
    named = [str(tmp_path / "mine"), "--no-browser", "--port", "8888"]
    assert lab._folder_and_options(named) == ((tmp_path / "mine").resolve(), named[1:])
    for alone in ([], ["--no-browser"], [str(tmp_path / "page.ipynb")]):
        assert lab._folder_and_options(alone) == (places.learners_folder(), alone)


def test_lab_opens_a_copy_with_its_own_places(brought, tmp_path, capsys):
    mine = tmp_path / "mine"
    lab._prepare(mine)
    assert str(mine) in capsys.readouterr().out
    assert f"--LabApp.workspaces_dir={mine / '.course' / 'workspaces'}" in lab.options((), mine)
    assert lab.environment(mine)[places.VARIABLE] == str(mine)
    lab._prepare(mine)
    assert capsys.readouterr().out == ""
    (brought / FIRST).write_text("newer")
    lab._prepare(mine)
    assert "gemm-course update" in capsys.readouterr().out


@pytest.fixture
def hub(home, monkeypatch) -> list[list[str]]:
    """As a JupyterHub starts a learner's server; what its application is started with."""
    started = []
    extension = ModuleType("jupyterhub.singleuser.extension")
    extension.JupyterHubSingleUser = SimpleNamespace(launch_instance=started.append)
    for name in ("jupyterhub", "jupyterhub.singleuser"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, extension.__name__, extension)
    monkeypatch.setattr(lab.os, "environ", dict(os.environ) | {lab.HUB: "http://127.0.0.1:1"})
    for name in (lab.DRAWN, lab.HUBS_PAGE):
        os.environ.pop(name, None)
    monkeypatch.setattr(lab, "_end_with_the_terminal", lambda: None)
    return started


def test_a_jupyterhub_lets_a_learner_into_their_copy(not_mine, home, hub):
    lab.serve(["--LabApp.collaborative=True"])
    mine = home / "Documents" / "gemm-course"
    assert copying.is_copy(mine)
    assert {f"--ServerApp.root_dir={mine}", "--LabApp.collaborative=True"} <= set(hub[0])
    assert os.environ[lab.HUBS_PAGE] == f"/lab/tree/notebooks/{FIRST}"


def test_the_page_that_a_hubs_settings_name_stays(not_mine, hub):
    os.environ[lab.HUBS_PAGE] = "/lab"
    lab.serve([])
    assert os.environ[lab.HUBS_PAGE] == "/lab"


def test_in_a_terminal_of_a_hubs_server_the_notebooks_are_brought_and_no_second_server(
    not_mine, home, hub, capsys
):
    os.environ[lab.DRAWN] = "1"
    lab.serve([])
    assert not hub and copying.is_copy(home / "Documents" / "gemm-course")
    assert "open already" in capsys.readouterr().out


def test_a_hub_whose_package_is_missing_is_told(not_mine, hub, monkeypatch):
    monkeypatch.setitem(sys.modules, "jupyterhub.singleuser.extension", None)
    with pytest.raises(CourseError, match="install jupyterhub"):
        lab.serve([])


def test_the_folder_that_was_opened_last_is_found_from_everywhere(not_mine, home, tmp_path):
    mine = tmp_path / "my course"
    copying.copy_into(mine)
    places.remember_opened(mine)
    assert places.learners_folder() == mine and progress.progress_folder() == mine / ".course" / "progress"
    mine.rename(tmp_path / "gone")
    assert places.learners_folder() == home / "Documents" / "gemm-course"


def test_lab_refuses_a_folder_of_another(not_mine):
    with pytest.raises(CourseError, match="not yours"):
        lab._prepare(not_mine)


def test_the_doctor_says_where_a_learners_things_are(not_mine, home):
    assert doctor._learner().found.startswith("none yet") and doctor._learner().advice is None
    lab._prepare(places.learners_folder())
    found = doctor._learner()
    assert found.found.startswith("a copy in") and str(home) in found.found and found.advice is None


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere; Windows has no such modes"
)
def test_a_read_only_folder_is_not_ones_own(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert not places.is_own(tmp_path)
    tmp_path.chmod(stat.S_IRWXU)
