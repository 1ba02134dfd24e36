"""Makes a folder with the course and all its packages, for a room without a network."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gemm_course import places
from gemm_course.commands.errors import CourseError
from gemm_course.commands.release import release_course

# These packages make a package of the course itself.
BUILDS = ("hatchling>=1.27", "editables")


def bundle(folder: Path, solutions: bool, extra: str | None) -> float:
    """Write the course and the wheels that it needs into a new folder. Return its size in MB.

    The wheels are for machines like this one: the same system, processor and Python, such as 3.12. ``extra``
    is an extra whose packages come as well, such as "gpu-cu13". Raise CourseError where the course is not a
    clone or archive, the folder is not new, or packages cannot be fetched.
    """
    if not (places.COURSE / "uv.lock").is_file():
        raise CourseError("A bundle is made from a clone or an archive of the course, not from a wheel.")
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        raise CourseError("A bundle needs uv: `python3 course.py doctor` installs it where there is none.")
    release_course(folder, solutions)
    wheels = folder / "wheels"
    wheels.mkdir()
    listed = wheels / "requirements.txt"
    extras = [f"--extra={extra}"] if extra else []
    options = ["--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "--no-annotate", "--no-header"]
    _do([uv, "export", "--quiet", *options, *extras, "--output-file", str(listed)])
    locked = re.search(r'name = "uv"\nversion = "(.+)"', (places.COURSE / "uv.lock").read_text("utf-8"))[1]
    download = [
        uv,
        "tool",
        "run",
        "--python",
        sys.executable,
        "pip",
        "download",
        "--quiet",
        "--only-binary=:all:",
    ]
    for python, wanted in _for_any_patch(listed.read_text("utf-8")).items():
        _do([*download, "--dest", str(wheels), "--no-deps", f"--python-version={python}", *wanted])
    _do([*download, "--dest", str(wheels), *BUILDS, f"uv=={locked}"])
    _check_hashes(wheels)
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _check_hashes(wheels: Path) -> None:
    """Refuse a wheel of a locked package that is not one of the files that ``uv.lock`` names."""
    lock = tomllib.loads((places.COURSE / "uv.lock").read_text("utf-8"))
    known = {each["name"]: {file.get("hash") for file in each.get("wheels", ())} for each in lock["package"]}
    for wheel in sorted(wheels.glob("*.whl")):
        name = canonicalize_name(wheel.name.partition("-")[0])
        if name in known and f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" not in known[name]:
            raise CourseError(f"{wheel.name} is not the file that uv.lock names: its hash is another.")


def _for_any_patch(listed: str) -> dict[str, list[str]]:
    """Return the requirements on the oldest and on the newest patch of this Python.

    Python 3.11.2 needs more than 3.11.7. pip must be told for which patch, or it refuses packages that are
    not for the Python that runs it.
    """
    requirements = [Requirement(line) for line in listed.splitlines() if line.strip()]
    minor = "{}.{}".format(*sys.version_info[:2])
    return {
        python: sorted(
            f"{each.name}{each.specifier}"
            for each in requirements
            if each.marker is None or each.marker.evaluate({"python_full_version": python})
        )
        for python in (f"{minor}.0", f"{minor}.99")
    }


def _do(command: list[str]) -> None:
    done = subprocess.run(command, cwd=places.COURSE, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise CourseError(f"The packages cannot be fetched: {last}")
