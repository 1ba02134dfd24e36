"""Examines the machine: what it has, what will run where, and what to do if something is missing."""

import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec, module_from_spec, spec_from_file_location

from gemm_course import places, records
from gemm_course.commands.copying import is_copy
from gemm_course.commands.errors import CourseError
from gemm_course.commands.git import Clone, NoClone
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.device import gpu_facts, why_no_gpu
from gemm_course.device.facts import ask_nvidia_smi
from gemm_course.records.folders import named_in_vain

_SCRIPT = places.COURSE / "course.py"


@dataclass(frozen=True)
class Finding:
    """A thing that was examined. ``advice`` says what to do about it, and is None where all is well."""

    subject: str
    found: str
    advice: str | None = None


def examine() -> list[Finding]:
    """Examine everything that the course depends on."""
    return [
        _course(),
        _learner(),
        _python(),
        *_packages(),
        _numba_cuda(),
        *_gpu(),
        _figures(),
        _compiler(),
        _tests(),
    ]


def show(findings: list[Finding]) -> None:
    """Print the findings as a table, with the advice below each thing."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for finding in findings:
        table.add_row("!" if finding.advice else "✓", finding.subject, escape(finding.found))
        if finding.advice:
            table.add_row("", "", escape(f"→ {finding.advice}"), style="yellow")
    Console(highlight=False).print(table)


def _course() -> Finding:
    return Finding("course", f"{version('gemm-course')} in {places.COURSE}")


def _figures() -> Finding:
    """Find the GPUs whose measured figures pictures can show."""
    found = ", ".join(records.short_of(place) for place in records.places())
    wrong = named_in_vain()
    return Finding(
        "figures of", found, f"{wrong} Correct the path, or unset the variable." if wrong else None
    )


def _learner() -> Finding:
    """Find this learner's notebooks and progress, and whether `update` and `reset` work there."""
    folder, state = places.learners_folder(), places.state_folder()
    if not places.has_notebooks(folder):
        return Finding(
            "your notebooks", f"none yet; `lab` puts a copy into {folder}. Progress is kept in {state}"
        )
    try:
        kind, advice = ("a copy" if is_copy(folder) else Clone(folder) and "a git clone"), None
    except NoClone:
        kind, advice = (
            "no git clone",
            "`update` needs a git clone, or a copy that `gemm-course lab FOLDER` made.",
        )
    except CourseError as refused:
        kind, advice = "a clone that git does not look at", str(refused)
    return Finding("your notebooks", f"{kind} in {folder}. Progress is kept in {state}", advice)


def _python() -> Finding:
    return Finding(
        "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}: {sys.executable}"
    )


def _packages() -> Iterator[Finding]:
    """Compare every package that the course needs on this machine with the version that it needs."""
    from packaging.requirements import Requirement

    for line in requires("gemm-course") or []:
        wanted = Requirement(line)
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        yield _package(wanted.name, wanted.specifier)


def _package(name: str, wanted: object) -> Finding:
    again = _from_script_or_wheel(
        "start the course with `python3 course.py`, which installs what is missing.",
        "install its wheel again with pip, which brings what is missing.",
    )
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, "missing", f"The course needs {wanted}: {again}")
    fits = found in wanted
    return Finding(name, found, None if fits else f"The course needs {wanted}: {again}")


def _numba_cuda() -> Finding:
    from numba import cuda

    ours = "numba_cuda" in (cuda.__file__ or "")
    return Finding("numba.cuda", "from numba-cuda" if ours else "built into Numba: enough for the emulator")


def _gpu() -> Iterator[Finding]:
    reason = why_no_gpu()
    if reason is None:
        facts = gpu_facts()
        capability = ".".join(map(str, facts.compute_capability))
        yield Finding("GPU", f"{facts.name}, compute capability {capability}, driver {facts.driver}")
        yield Finding("kernels run", "on the GPU, and on the emulator where accesses are counted")
        yield _cupy()
        yield _counters()
    else:
        yield Finding("GPU", ask_nvidia_smi("name") or "none", _advice_for_gpu(reason))
        yield Finding("kernels run", "on the emulator: every lesson and exercise works")


def _advice_for_gpu(reason: str) -> str | None:
    """Say how the GPU could be used. Return None on a machine without one, where nothing is wrong."""
    if ask_nvidia_smi("name") is None:
        return None
    if not _SCRIPT.is_file():
        return (
            f"{reason} Install the wheel with the extra that belongs to it: `pip install 'WHEEL[gpu]'`, "
            "for drivers before 580 `[gpu-cu12]`."
        )
    extra = _course_script().gpu_extra()
    if extra is None:
        return f"{reason} The course's GPU packages need driver 525 or newer."
    return f"{reason} `python3 course.py` installs what belongs to it (the extra {extra})."


def _course_script():
    spec = spec_from_file_location("course", _SCRIPT)
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def _cupy() -> Finding:
    if find_spec("cupy"):
        return Finding("cuBLAS", "through CuPy")
    advice = _from_script_or_wheel(
        "`python3 course.py` installs it.", "the wheel's extra `gpu` brings it: `pip install 'WHEEL[gpu]'`."
    )
    return Finding("cuBLAS", "no CuPy", advice)


def _counters() -> Finding:
    found = shutil.which("ncu")
    advice = (
        "Install Nsight Compute to read the hardware's counters yourself; recorded ones are shown without."
    )
    return Finding("Nsight Compute", found or "missing", None if found else advice)


def _compiler() -> Finding:
    reason = why_no_compiler()
    if reason is None:
        return Finding("machine code", "of any kernel: gemm_course.compiled")
    return Finding("machine code", f"recorded, of the ladder's stages. {reason}")


def _tests() -> Finding:
    here = find_spec("pytest") is not None
    missing = _from_script_or_wheel(
        "not installed; `python3 course.py test` installs and runs them", "come with a clone of the course"
    )
    return Finding("tests", "can run" if here and _SCRIPT.is_file() else missing)


def _from_script_or_wheel(script: str, wheel: str) -> str:
    """Return ``script`` where there is a course.py, and ``wheel`` where the course came as a wheel."""
    return script if _SCRIPT.is_file() else wheel
