"""The wheel, installed where there is no clone: the package, its records and its commands are all in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gemm_course import LADDER, records
from gemm_course.cli import command_names

ROOT = Path(__file__).parents[2]
UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
LOOK = """
from gemm_course import LADDER, check, emulate, launch, records, run
print(run.__code__.co_filename)
print(*(stage.name for stage in LADDER))
print(len(records.ladder()), len(records.sweep()), len(records.counters()), len(records.published()))
print(*(path.relative_to(records.DATA).as_posix() for path in sorted(records.DATA.rglob("*.*"))))
"""


COPY = """
import sys
from pathlib import Path
from gemm_course.commands.copying import copy_into
copy_into(Path(sys.argv[1]))
"""


def run(*command: str | Path, cwd: Path) -> str:
    apart = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=apart, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.waits
@pytest.mark.full(reason="builds the wheel and installs it with all that it needs, from the network")
def test_the_wheel_needs_no_clone(tmp_path):
    locked, environment, elsewhere = (tmp_path / name for name in ("locked.txt", "venv", "elsewhere"))
    elsewhere.mkdir()
    run(UV, "build", "--wheel", "--out-dir", tmp_path, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    run(UV, "export", "--frozen", "--no-emit-project", "--no-hashes", "--output-file", locked, cwd=ROOT)
    run(UV, "venv", "--python", sys.executable, environment, cwd=elsewhere)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    run(UV, "pip", "install", "--python", environment, "--constraint", locked, wheel, cwd=elsewhere)

    place, stages, lengths, files = run(programs / "python", "-c", LOOK, cwd=elsewhere).splitlines()
    assert Path(place).is_relative_to(environment)
    assert stages.split() == [stage.name for stage in LADDER]
    frames = (records.ladder(), records.sweep(), records.counters(), records.published())
    assert lengths.split() == [str(len(frame)) for frame in frames]
    here = sorted(path for path in (ROOT / "data").rglob("*.*"))
    assert files.split() == [path.relative_to(ROOT / "data").as_posix() for path in here]
    said = run(programs / "gemm-course", "--help", cwd=elsewhere)
    assert all(name in said for name in command_names())

    mine = elsewhere / "mine"
    run(programs / "python", "-c", COPY, mine, cwd=elsewhere)
    learners = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")} | {"glossary.md"}
    assert {path.name for path in (mine / "notebooks").iterdir() if path.is_file()} == learners
    assert (mine / "notebooks" / "solutions").is_dir() and (mine / "notebooks" / "pictures").is_dir()
    work = mine / "notebooks" / "00_welcome.ipynb"
    fresh = work.read_bytes()
    work.write_text("a learner's work")
    told = run(programs / "gemm-course", "reset", "00", cwd=mine / "notebooks")
    assert "fresh again" in told and work.read_bytes() == fresh
    assert run(programs / "gemm-course", "update", cwd=mine) == "Nothing new.\n"
    done = run(programs / "jupyter", "execute", "--output=done.ipynb", work.name, cwd=work.parent)
    assert "error" not in done.lower() and (work.parent / "done.ipynb").exists()
