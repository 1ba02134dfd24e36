"""course.py: what it installs, that a second start does nothing, and how it fails.

A stand-in for uv notes how it is called, so that most tests install nothing; the last ones use the real uv.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lockstep_tests import processes

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="the stand-ins for uv and nvidia-smi are shell scripts"
)

WORKING_UV = """
mkdir -p .venv/bin
touch .venv/pyvenv.cfg
printf '#!/bin/sh\\necho runs "$@"\\n' > .venv/bin/python
chmod +x .venv/bin/python
"""
FULL = "error: Failed to install: numpy\n  cause: failed to copy file: No space left on device (os error 28)"
AWAY = "error: Failed to download `attrs==26.1.0`\n  cause: Request failed after 3 retries in 3.8s"


class Machine:
    """A folder with course.py in it and a PATH that holds only what a test puts there."""

    def __init__(self, folder: Path):
        self.course = folder / "the course"  # a space, as people's folders have
        self.bin = folder / "bin"
        self.course.mkdir()
        self.bin.mkdir()
        for name in ("course.py", "pyproject.toml", "uv.lock"):
            shutil.copy(ROOT / name, self.course)
        self.environment = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(folder)}

    def provide(self, name: str, script: str) -> None:
        program = self.bin / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def provide_uv(self, sync: str = WORKING_UV, version: str = "0.13.8") -> None:
        self.provide(
            "uv",
            f'if [ "$1" = --version ]; then echo "uv {version} (x86_64)"; exit; fi\n'
            f'echo "$@" >> "{self.bin}/called"\n{sync}',
        )

    def provide_gpu(self, driver: str, capability: str) -> None:
        self.provide("nvidia-smi", f'echo "{driver}, {capability}"')

    def fail_uv(self, message: str) -> None:
        self.provide_uv(f"mkdir .venv; echo half > .venv/half\ncat >&2 <<'END'\n{message}\nEND\nexit 2")

    def calls(self) -> list[str]:
        called = self.bin / "called"
        return called.read_text().splitlines() if called.exists() else []

    def start(self, *arguments: str, prelude: str = "") -> subprocess.CompletedProcess:
        code = f"import sys, runpy; sys.argv = ['course.py', *sys.argv[1:]]\n{prelude}\n"
        code += f"runpy.run_path({str(self.course / 'course.py')!r}, run_name='__main__')"
        return processes.run([sys.executable, "-c", code, *arguments], env=self.environment)

    def begin(self):
        """Start course.py and go on, as a block; it is killed at the end."""
        command = [sys.executable, str(self.course / "course.py")]
        return processes.child(command, env=self.environment, stderr=subprocess.PIPE, text=True)

    def has_left_nothing(self) -> bool:
        return not list(self.course.glob(".venv*")) and not processes.belonging_to(self.course)

    @property
    def venv(self) -> Path:
        return self.course / ".venv"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def is_one_sentence(done: subprocess.CompletedProcess) -> bool:
    said = done.stderr.strip()
    return done.returncode == 1 and "\n" not in said and said.endswith(".") and "Traceback" not in said


def test_without_an_argument_the_lab_is_opened(machine):
    machine.provide_uv()
    done = machine.start()
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "runs -P -m gemm_course.cli lab"
    assert "Setting the course up" in done.stdout


def test_commands_and_their_options_are_passed_on(machine):
    machine.provide_uv()
    assert (
        machine.start("--cpu", "reset", "03").stdout.splitlines()[-1] == "runs -P -m gemm_course.cli reset 03"
    )


def test_the_exit_code_is_the_commands(machine):
    machine.provide_uv(WORKING_UV.replace('echo runs "$@"', '[ "$2" = -c ] || exit 7'))
    assert machine.start("test").returncode == 7


def test_help_sets_nothing_up(machine):
    done = machine.start("--help")
    assert done.returncode == 0 and "python3 course.py test" in done.stdout
    assert not machine.venv.exists()


def test_a_second_start_installs_nothing(machine):
    machine.provide_uv()
    machine.start()
    again = machine.start()
    assert len(machine.calls()) == 1
    assert again.stdout.splitlines() == ["runs -P -m gemm_course.cli lab"]


def test_the_lock_file_is_followed_and_the_running_python_used(machine):
    machine.provide_uv()
    machine.start()
    assert machine.calls() == [f"sync --frozen --python {sys.executable} --no-dev"]


@pytest.mark.parametrize("name", ["uv.lock", "pyproject.toml"])
def test_a_newer_course_is_installed(machine, name):
    machine.provide_uv()
    machine.start()
    with (machine.course / name).open("a") as file:
        file.write("# newer\n")
    machine.start()
    assert len(machine.calls()) == 2


def test_a_moved_course_is_set_up_again(machine):
    machine.provide_uv()
    machine.start()
    machine.course = machine.course.rename(machine.course.with_name("moved"))
    machine.start()
    assert len(machine.calls()) == 2


def test_a_moved_course_needs_no_network(machine):
    """Nothing is installed again: the package's path and the scripts' first lines follow."""
    machine.provide_uv()
    machine.start()
    packages = machine.course / ".venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    path = packages / "_gemm_course.pth"
    path.write_text(f"{machine.course}\n{machine.course}/lockstep")
    script = machine.course / ".venv" / "bin" / "jupyter-lab"
    script.write_text(f"#!{machine.course}/.venv/bin/python\nprint({str(machine.course)!r})\n")
    binary = machine.course / ".venv" / "bin" / "uv"
    binary.write_bytes(b"\x7fELF " + bytes(machine.course))
    old, machine.course = machine.course, machine.course.rename(machine.course.with_name("moved to here"))
    (machine.bin / "uv").unlink()
    for _ in range(2):
        assert machine.start("doctor").stdout.split()[0] == "runs"
    assert len(machine.calls()) == 1
    bin_now = machine.course / ".venv" / "bin"
    assert (
        machine.course / path.relative_to(old)
    ).read_text() == f"{machine.course}\n{machine.course}/lockstep"
    (bin_now / "jupyter-lab").chmod(0o755)
    ran = processes.run([str(bin_now / "jupyter-lab"), "here"], env=machine.environment)
    assert ran.stdout == f"runs {bin_now / 'jupyter-lab'} here\n", "though its path has a space"
    assert (bin_now / "uv").read_bytes() == b"\x7fELF " + bytes(old)


NOT_MINE = "import os; os.access = lambda path, mode: False"  # root may write anywhere


def test_anothers_install_serves_as_its_owner_set_it_up(machine):
    """On a machine with a GPU, say, though it was set up on one without, or after its owner's `git pull`."""
    machine.provide_uv()
    machine.start()
    machine.provide_gpu("580.1", "9.0")
    with (machine.course / "uv.lock").open("a") as file:
        file.write("# newer\n")
    assert machine.start("lab", prelude=NOT_MINE).stdout.split()[0] == "runs"
    assert len(machine.calls()) == 1


@pytest.mark.parametrize("moved", [False, True])
def test_anothers_install_that_is_not_set_up_here_is_told(machine, moved):
    machine.provide_uv()
    if moved:
        machine.start()
        machine.course = machine.course.rename(machine.course.with_name("moved"))
    done = machine.start("lab", prelude=NOT_MINE)
    assert is_one_sentence(done) and "another's" in done.stderr
    assert len(machine.calls()) == moved


def test_testing_adds_what_tests_need_and_opening_keeps_it(machine):
    machine.provide_uv()
    for command in ("lab", "test", "lab", "test"):
        machine.start(command)
    options = [[word for word in call.split() if word.startswith("--")] for call in machine.calls()]
    assert [found[2:] for found in options] == [["--no-dev"], ["--dev", "--extra=compiler"]]


def test_the_compiler_is_added_when_asked_for_and_stays(machine):
    machine.provide_uv()
    for arguments in (["lab"], ["--compiler", "lab"], ["lab"]):
        assert machine.start(*arguments).stdout.splitlines()[-1] == "runs -P -m gemm_course.cli lab"
    with (machine.course / "uv.lock").open("a") as file:
        file.write("# newer\n")
    machine.start("lab")
    assert ["--extra=compiler" in call for call in machine.calls()] == [False, True, True]


def test_the_site_brings_its_packages_which_tests_have_already(machine):
    machine.provide_uv()
    for command in ("site", "lab", "test", "site"):
        machine.start(command)
    options = [[word for word in call.split() if word.startswith("--")] for call in machine.calls()]
    assert [found[2:] for found in options] == [["--no-dev", "--extra=site"], ["--dev", "--extra=compiler"]]


def test_the_packages_for_the_gpu_have_the_compiler_in_them(machine):
    machine.provide_uv()
    machine.provide_gpu("580.65.06", "9.0")
    machine.start("--compiler", "test")
    assert [word for word in machine.calls()[0].split() if "extra" in word] == ["--extra=gpu-cu13"]


@pytest.mark.parametrize(
    ("driver", "capability", "extra"),
    [
        ("580.65.06", "9.0", "--extra=gpu-cu13"),
        ("591.12", "7.5", "--extra=gpu-cu13"),
        ("580.65.06", "7.0", "--extra=gpu-cu12"),
        ("580.65.06", "12.0\n580.65.06, 6.1", "--extra=gpu-cu12"),
        ("570.172", "9.0", "--extra=gpu-cu12"),
        ("525.60", "8.6", "--extra=gpu-cu12"),
        ("470.256", "8.6", None),
        ("NVIDIA-SMI has failed", "no driver", None),
    ],
)
def test_the_driver_and_the_oldest_gpu_choose_the_extra(machine, driver, capability, extra):
    machine.provide_uv()
    machine.provide_gpu(driver, capability)
    machine.start()
    assert [word for word in machine.calls()[0].split() if "extra" in word] == ([extra] if extra else [])


def test_cpu_refuses_the_gpu_packages_until_they_are_wanted(machine):
    machine.provide_uv()
    machine.provide_gpu("580.65.06", "9.0")
    machine.start("lab", "--cpu")
    machine.start("lab")
    machine.start("lab", "--cpu")
    assert ["gpu" in call for call in machine.calls()] == [False, True]


@pytest.mark.parametrize("version", ["(3, 10, 13)", "(3, 15, 0)"])
def test_a_python_too_old_or_too_new_is_told(machine, version):
    done = machine.start(prelude=f"sys.version_info = {version}")
    assert is_one_sentence(done) and "Python 3.11 to 3.14" in done.stderr


@pytest.mark.parametrize(("message", "word"), [(FULL, "disk is full"), (AWAY, "go online")])
def test_a_failure_is_one_sentence_and_a_second_try_works(machine, message, word):
    machine.fail_uv(message)
    done = machine.start()
    assert is_one_sentence(done) and word in done.stderr
    assert not machine.venv.exists()
    machine.provide_uv()
    assert machine.start().returncode == 0


def test_an_unforeseen_failure_tells_what_is_known(machine):
    machine.fail_uv("something\nerror: the moon is in the way.")
    done = machine.start()
    assert is_one_sentence(done) and "the moon is in the way" in done.stderr


def test_a_failing_update_leaves_the_environment_and_repairs_it_later(machine):
    machine.provide_uv()
    machine.start()
    (machine.course / "uv.lock").open("a").write("# newer\n")
    machine.provide_uv(f"echo '{AWAY}' >&2; exit 2")
    assert is_one_sentence(machine.start())
    assert machine.venv.exists()
    machine.provide_uv()
    assert machine.start().returncode == 0


def test_a_set_up_that_does_not_work_is_not_taken_for_done(machine):
    machine.provide_uv(WORKING_UV.replace('echo runs "$@"', "echo No module named gemm_course; exit 1"))
    assert is_one_sentence(machine.start()) and not machine.venv.exists()


@pytest.mark.parametrize("missing", ["pyvenv.cfg", "bin/python"])
def test_a_ruined_environment_is_made_anew(machine, missing):
    """Without pyvenv.cfg, the environment's Python is the system's, and packages would go there."""
    machine.provide_uv()
    machine.start()
    (machine.venv / missing).unlink()
    (machine.venv / "ruin").touch()
    (machine.venv / "course-is-set-up").unlink()
    machine.start()
    assert machine.calls()[1] == machine.calls()[0]
    assert not (machine.venv / "ruin").exists()
    assert [path.name for path in machine.course.glob(".venv*")] == [".venv"]


WRITING_ON = "(while sleep 0.01; do mkdir -p .venv/more; done) & wait"  # uv has helpers of its own


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_is_one_sentence_and_leaves_nothing(machine, number):
    """Ctrl-C, an end from outside, a closed terminal."""
    machine.provide_uv(f"mkdir .venv; touch .venv/begun; {WRITING_ON}")
    with machine.begin() as running:
        assert processes.wait_for((machine.venv / "begun").exists)
        running.send_signal(number)
        _, said = running.communicate(timeout=processes.WAIT)
        assert running.returncode == 1
        assert said.strip() == "Interrupted: start again whenever you like."
        assert machine.has_left_nothing()


def _interrupt(running: subprocess.Popen) -> None:
    """Press Ctrl-C, and again if nothing happens: Python can drop one while it starts itself."""
    deadline = time.monotonic() + processes.WAIT
    while time.monotonic() < deadline:
        running.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.communicate(timeout=5)
            return
    raise AssertionError("it does not end")


@pytest.mark.parametrize("milliseconds", range(20, 200, 20))
def test_an_interruption_at_any_moment_leaves_nothing(machine, milliseconds):
    machine.provide_uv(f"mkdir .venv; {WRITING_ON}")
    with machine.begin() as running:
        time.sleep(milliseconds / 1000)
        _interrupt(running)
        assert running.returncode != 0
        assert machine.has_left_nothing()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_a_start_that_is_killed_takes_uv_along_and_the_next_one_repairs(machine):
    machine.provide_uv("mkdir .venv; touch .venv/begun; exec sleep 1000")
    with machine.begin() as running:
        assert processes.wait_for((machine.venv / "begun").exists)
        running.kill()
        assert processes.wait_for(lambda: not processes.belonging_to(machine.course))
    (machine.course / ".venv-removed-1").mkdir()  # as if killed while it was removing
    machine.provide_uv()
    assert machine.start().returncode == 0
    assert [path.name for path in machine.course.glob(".venv*")] == [".venv"]


def test_a_python_without_venv_is_told(machine, tmp_path):
    (tmp_path / "venv.py").write_text("raise ModuleNotFoundError('No module named venv')")
    machine.environment["PYTHONPATH"] = str(tmp_path)
    done = machine.start()
    assert is_one_sentence(done) and "venv" in done.stderr


def test_an_old_uv_is_passed_over(machine, tmp_path):
    (tmp_path / "venv.py").write_text("raise ModuleNotFoundError('No module named venv')")
    machine.environment["PYTHONPATH"] = str(tmp_path)
    machine.provide_uv(version="0.4.1")
    machine.start()
    assert machine.calls() == []


@pytest.fixture
def without_network(machine) -> Machine:
    nowhere = "http://127.0.0.1:9"
    machine.environment |= {
        "HTTPS_PROXY": nowhere,
        "HTTP_PROXY": nowhere,
        "ALL_PROXY": nowhere,
        "PIP_NO_INDEX": "",
    }
    machine.environment["UV_CACHE_DIR"] = str(machine.bin / "cache")
    return machine


@pytest.mark.waits
def test_no_network_is_told_where_the_machine_has_uv(without_network):
    uv = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".venv" / "bin"))
    without_network.provide("uv", f'exec "{uv}" "$@"')
    done = without_network.start()
    assert is_one_sentence(done) and "go online" in done.stderr
    assert not without_network.venv.exists()


@pytest.mark.waits
@pytest.mark.full(reason="makes an environment, with pip in it")
def test_no_network_is_told_where_the_machine_has_no_uv(without_network):
    done = without_network.start()
    assert is_one_sentence(done) and "go online" in done.stderr
    assert not without_network.venv.exists()


@pytest.mark.waits
@pytest.mark.full(reason="installs all packages")
def test_a_real_set_up_without_uv_on_the_machine(machine):
    """The whole of it: venv, pip, uv, the packages; then the course's own command answers, also offline."""
    for package in ("gemm_course", "lockstep"):
        shutil.copytree(
            ROOT / package, machine.course / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, machine.course)
    machine.environment = {**os.environ, "PATH": "/usr/bin:/bin"}
    if shutil.which("uv", path=machine.environment["PATH"]):
        pytest.skip("uv stands beside the system's own programs")
    done = machine.start("--cpu", "doctor")
    if "go online" in done.stderr and "CI" not in os.environ:
        pytest.skip("needs the network")
    assert done.returncode == 0, done.stderr
    assert "emulator" in done.stdout
    machine.environment["HTTPS_PROXY"] = "http://127.0.0.1:9"
    assert machine.start("--cpu", "doctor").returncode == 0
