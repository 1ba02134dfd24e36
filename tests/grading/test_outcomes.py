"""What a teacher is told of submissions that were not graded, and the real nbgrader at work."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from gemm_course import road
from gemm_course.commands.errors import CourseError
from gemm_course.commands.graded import show
from gemm_course.commands.release import release_assignments
from gemm_course.grading.outcomes import Outcome, note, outcomes
from tests.grading import books
from tests.notebooks.builder import ROOT

NAME = road.notebook(books.NAME).name
ATTACKS = """
import os, pathlib, sqlite3
startup = pathlib.Path("~/.ipython/profile_default/startup").expanduser()
startup.mkdir(parents=True, exist_ok=True)
(startup / "00.py").write_text("from gemm_course.checks.core.exercise import Exercise\\\\n"
    "from gemm_course.checks import Verdict\\\\n"
    "Exercise.__call__ = lambda self, *a, **k: Verdict(self.number, self.name, True, 'x')")
with sqlite3.connect("../../../gradebook.db") as book:
    book.execute("CREATE TABLE IF NOT EXISTS grade (x)")
    book.execute("CREATE TRIGGER t AFTER INSERT ON grade BEGIN UPDATE grade SET auto_score = 1; END")
"""

TAMPERED = """
from gemm_course.checks import Exercise, Verdict
Exercise.__call__ = lambda self, *answer: Verdict(self.number, self.name, True, "mine")
"""

SHOWS = """
from IPython.display import display
display({"image/png": "AAAA"}, raw=True, metadata={"image/png": {"width": "1 onerror=alert(1) x="}})
kernel = get_ipython().kernel
data = {"state": {"_model_name": "AnyModel", "_model_module": "anywidget"}, "buffer_paths": []}
opened = {"comm_id": "e", "target_name": "jupyter.widget", "data": data}
kernel.session.send(kernel.iopub_socket, "comm_open", opened, parent=kernel.get_parent())
print("x" * 30_000_000)
"""


def hand_in(folder: Path, student: str, book, name=f"{NAME}.ipynb") -> Path:
    place = folder / "submitted" / student / NAME
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(book if isinstance(book, str) else json.dumps(book), "utf-8")
    return place


def test_why_a_submission_has_no_points(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("")
    (tmp_path / "release" / NAME).mkdir(parents=True)
    (tmp_path / "submitted" / "eve" / "03").mkdir(parents=True)
    hand_in(tmp_path, "ada", books.right())
    hand_in(tmp_path, "ben", books.right(), "Untitled.ipynb")
    hand_in(tmp_path, "dan", books.right())
    note(tmp_path, NAME, "dan", "the kernel ended in the cell that begins `exit()`")
    reasons = {each.student: each.reason for each in outcomes(tmp_path)}
    assert reasons["ada"] == f"run `nbgrader autograde {NAME} --student ada`, and see what it says"
    assert reasons["ben"] == f"{NAME}.ipynb is missing; there is Untitled.ipynb"
    assert reasons["dan"] == "the kernel ended in the cell that begins `exit()`"
    os.utime(hand_in(tmp_path, "dan", books.right()) / f"{NAME}.ipynb", (4e9, 4e9))
    (again,) = [str(each) for each in outcomes(tmp_path) if each.student == "dan"]
    assert again.endswith("begins `exit()`, and a newer notebook was handed in since")
    assert reasons["eve"] == "no assignment 03 was released; is the folder's name right?"
    text, complete = show(tmp_path, None)
    assert not complete and "4 of 4 submissions are not graded. An export has 0 for them" in text


def test_a_name_forges_no_line_and_no_colour():
    shown = str(Outcome(NAME, "eve", None, 6, f"no.\n{NAME}  ada  0 of 6\x1b[8m"))
    assert len(shown.splitlines()) == 1 and "\x1b" not in shown


def test_a_folder_that_is_no_nbgrader_course(tmp_path):
    with pytest.raises(CourseError, match="has no nbgrader_config"):
        show(tmp_path, None)
    (tmp_path / "nbgrader_config.py").write_text("")
    with pytest.raises(CourseError, match="There are no submissions in"):
        show(tmp_path, "03")


@pytest.fixture(scope="session")
def python(tmp_path_factory) -> Path:
    """A Python with the course and nbgrader, as a teacher has them."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    place = tmp_path_factory.mktemp("teacher") / "env"
    listed = place.with_name("listed.txt")
    export = [
        "--frozen",
        "--no-dev",
        "--no-emit-workspace",
        "--no-hashes",
        "--quiet",
        "--output-file",
        listed,
    ]
    packages = ["--editable", ROOT, "--editable", ROOT / "lockstep", "nbgrader==0.9.6"]
    for command in (
        ["export", *export],
        ["venv", "--quiet", "--python", sys.executable, place],
        ["pip", "install", "--quiet", "--python", place, "--constraint", listed, *packages],
    ):
        subprocess.run([uv, *map(str, command)], cwd=ROOT, check=True, timeout=500)
    return place / "bin" / "python"


def run_nbgrader(python: Path, folder: Path, *command: str) -> str:
    programs = os.pathsep.join([str(python.parent), os.environ["PATH"]])  # It calls alembic.
    environment = os.environ | {"HOME": str(folder / "home"), "CUDA_VISIBLE_DEVICES": "", "PATH": programs}
    environment.pop("VIRTUAL_ENV", None)
    done = subprocess.run(
        [python, "-m", "nbgrader", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    return done.stderr


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="nbgrader does not support Windows")
@pytest.mark.full(reason="installs nbgrader and grades fourteen submissions")
def test_nbgrader_gives_the_points_that_are_earned(python, tmp_path):
    release_assignments(tmp_path / "course")
    folder = tmp_path / "course"
    (folder / "home").mkdir()
    run_nbgrader(python, folder, "generate_assignment", NAME)
    changed, warns, attacks, empty = books.right(), books.right(), books.assignment(), books.assignment()
    books.split(changed), books.without_checks(changed), books.without_imports(changed)
    books.with_code(warns, "import sys, warnings; warnings.warn('x'); print('y', file=sys.stderr)")
    for cell in books.answers_of(warns):
        cell.source += "\nwarnings.warn('z')"
    books.tagged(empty)
    hand_in(folder, "a_attacks", books.with_code(attacks, ATTACKS))
    beside = hand_in(folder, "b_empty", empty)
    (beside / "gemm_course.py").write_text("raise SystemExit")
    (beside / "ipykernel_launcher.py").write_text("raise SystemExit")
    hand_in(folder, "c_changed", changed)
    books.with_code(warns, "import helper; assert helper.three == 3")
    (hand_in(folder, "d_warns", warns) / "helper.py").write_text("three = 3")
    hand_in(folder, "e_course", books.from_the_course())
    hand_in(folder, "f_exits", books.with_code(books.right(), "import os; os._exit(1)"))
    (hand_in(folder, "g_links", books.right()) / "x").symlink_to("../../d_warns")
    os.mkfifo(hand_in(folder, "g_pipe", books.right()) / "data")
    hand_in(folder, "g\nline", books.right())
    half = books.right()
    for cell in books.answers_of(half)[::2]:
        cell.source = "pass"
    hand_in(folder, "h_half", half)
    hand_in(folder, "i_tampers", books.with_code(books.assignment(), TAMPERED))
    shows = books.with_code(books.right(), SHOWS)
    shows.cells.insert(1, nbformat.v4.new_markdown_cell("[here](javascript:alert(5)) ![x](http://evil)"))
    hand_in(folder, "j_shows", shows)
    parts = books.right()
    parts.metadata["x"] = [{}] * 200_000
    hand_in(folder, "k_parts", parts)
    told = run_nbgrader(python, folder, "autograde", NAME)
    found = {each.student: each for each in outcomes(folder)}
    many = len(books.solutions())
    assert {student: each.points for student, each in found.items()} == {
        "a_attacks": 0, "b_empty": 0, "c_changed": many, "d_warns": many, "e_course": many,
        "f_exits": None, "g_links": None, "g_pipe": None, "g\nline": None, "h_half": many // 2,
        "i_tampers": 0, "j_shows": many, "k_parts": None,
    }, told  # fmt: skip
    assert (
        "the cell that begins `import os; os._exit(1)`" in found["f_exits"].reason
        and "is a link" in found["g_links"].reason
    )
    assert "data in the submission is a pipe" in found["g_pipe"].reason
    assert "the student's folder has characters that cannot be shown" in found["g\nline"].reason
    assert found["c_changed"].most == many
    assert not (folder / "home" / ".ipython" / "profile_default" / "startup" / "00.py").exists()

    assert "more than 100,000 lists and objects" in found["k_parts"].reason
    graded = nbformat.read(folder / "autograded" / "j_shows" / NAME / f"{NAME}.ipynb", 4)
    shown = [output for cell in graded.cells for output in cell.get("outputs", [])]
    assert "widgets" not in graded.metadata and not any(output.get("metadata") for output in shown)
    run_nbgrader(python, folder, "generate_feedback", NAME, "--student", "j_shows")
    feedback = (folder / "feedback" / "j_shows" / NAME / f"{NAME}.html").read_text("utf-8")
    assert "javascript:alert" not in feedback and 'src="http://evil' not in feedback

    # A notebook that cannot be read, and a kernel that ends, take the points of an earlier attempt with them.
    hand_in(folder, "h_half", "{")
    run_nbgrader(python, folder, "autograde", NAME, "--student", "h_half", "--force")
    reason = {each.student: each.reason for each in outcomes(folder)}["h_half"]
    assert reason == f"{NAME}.ipynb cannot be read: NotJSONError"
    hand_in(folder, "c_changed", books.with_code(books.right(), "import os; os._exit(1)"))
    (outdated,) = [each for each in outcomes(folder) if each.student == "c_changed"]
    assert outdated.outdated and "a newer notebook was handed in since" in str(outdated)
    run_nbgrader(python, folder, "autograde", NAME, "--student", "c_changed", "--force")
    run_nbgrader(python, folder, "export")
    exported = csv.DictReader((folder / "grades.csv").read_text().splitlines())
    scores = {row["student_id"]: float(row["score"]) for row in exported}
    assert scores["c_changed"] == scores["h_half"] == 0
    assert {each.student: each.points for each in outcomes(folder)}["c_changed"] is None
