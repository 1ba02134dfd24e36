"""What a confined command can reach: nothing of anybody's, and nothing that lasts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gemm_course.grading import confine

pytestmark = pytest.mark.skipif(not confine.possible(), reason="this system lets no command be confined")

TRY = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
secret, program = sys.argv[1:]
def can_write(path):
    try:
        open(path, "a").close()
        return True
    except OSError:
        return False
print(json.dumps({
    "here": sorted(os.listdir(".")),
    "there": os.path.exists(secret),
    "profile": os.path.exists(os.path.expanduser("~/.ipython")),
    "writes": {path: can_write(path) for path in (secret, program, "/etc/hosts", "mine.txt")},
    "uncovers": libc.umount2(os.path.dirname(secret).encode(), 2) == 0,
    "begins anew": libc.unshare(0x10020000) == 0 and libc.umount2(os.path.dirname(secret).encode(), 2) == 0,
    "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "token": os.environ.get("JUPYTERHUB_API_TOKEN"),
    "still there": os.path.exists(secret),
}))
"""


def run(folder: Path, *inner: str, hide=(), keep=(), **variables) -> subprocess.CompletedProcess:
    command = confine.command(inner, hide, keep)
    return subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def course(tmp_path):
    """An nbgrader course with a gradebook and a submission that is being graded."""
    folder = tmp_path / "autograded" / "ada" / "03"
    folder.mkdir(parents=True)
    (folder / "03.ipynb").write_text("{}")
    (tmp_path / "gradebook.db").write_text("marks")
    (folder / "link").symlink_to(tmp_path / "gradebook.db")
    return tmp_path


def test_a_submission_sees_and_changes_nothing_but_a_copy_of_its_folder(course):
    secret, here = course / "gradebook.db", course / "autograded" / "ada" / "03"
    program = str(Path(confine.__file__))
    done = run(
        here,
        sys.executable,
        "-c",
        TRY,
        str(secret),
        program,
        hide=[course],
        keep=[program],
        JUPYTERHUB_API_TOKEN="t",
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["here"] == ["03.ipynb"] and not found["there"] and not found["profile"]
    # It may write where its own empty folders are, and none of that lasts.
    assert found["writes"][program] is found["writes"]["/etc/hosts"] is False and found["writes"]["mine.txt"]
    assert not found["uncovers"] and not found["begins anew"] and not (set(found["processes"]) - {"1", "2"})
    assert found["token"] is None
    assert sorted(os.listdir(here)) == ["03.ipynb", "link"] and secret.read_text() == "marks"


def test_a_hidden_folder_inside_what_is_kept_is_hidden(tmp_path):
    (tmp_path / "course" / "solutions").mkdir(parents=True)
    (tmp_path / "course" / "kernel.py").write_text("x")
    (tmp_path / "course" / "solutions" / "03.ipynb").write_text("x")
    (tmp_path / "here").mkdir()
    course = tmp_path / "course"
    listed = "ls course ../course ../course/solutions"
    done = run(tmp_path / "here", "sh", "-c", listed, hide=[course / "solutions"], keep=[course])
    assert done.stdout.split() == ["../course:", "kernel.py", "solutions", "../course/solutions:"]


def test_the_exit_status_and_the_output_are_the_commands(tmp_path):
    done = run(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_a_folder_that_is_too_large_is_refused(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(confine.MOST_BYTES + 1)
    done = run(tmp_path, "true")
    assert done.returncode == 125 and "the current folder has more than 200,000,000 bytes" in done.stderr


def until_all_have_ended(command, folder, stop=False, **variables) -> None:
    """Run a command until nobody holds the end of a pipe that every process it starts inherits."""
    read, write = os.pipe()
    with subprocess.Popen(command, cwd=folder, env=os.environ | variables, pass_fds=[write]) as process:
        os.close(write)
        try:
            if stop:
                process.terminate()
            with open(read, "rb") as left:
                left.read()
            process.wait(60)
        finally:
            process.kill()


def test_it_ends_with_the_process_that_started_it(tmp_path):
    late = "sleep 20; touch late"
    until_all_have_ended(confine.command(["sh", "-c", late], share=[tmp_path]), tmp_path, stop=True)
    assert os.listdir(tmp_path) == []


LEAVES = """
import ctypes, os, time
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
if os.fork() == 0:
    os.setsid()
    time.sleep(20)
    open(os.path.join(os.environ["GEMM_COURSE_SHARED"], "late"), "w").close()
"""


def test_nothing_is_left_running_and_only_what_is_shared_is_written(tmp_path):
    command = confine.command([sys.executable, "-c", LEAVES], share=[tmp_path])
    until_all_have_ended(command, "/", GEMM_COURSE_SHARED=str(tmp_path))
    until_all_have_ended(confine.command(["touch", str(tmp_path / "early")], share=[tmp_path]), "/")
    assert os.listdir(tmp_path) == ["early"]


@pytest.mark.parametrize("fills", ["head -c 200000 /dev/zero > large", "mkdir -p a/b"])
def test_a_shared_folder_that_is_filled_ends_the_command(fills, tmp_path):
    command = confine.command(["sh", "-c", f"cd {tmp_path}; {fills}; sleep 20; touch late"], share=[tmp_path])
    until_all_have_ended(command, "/")
    assert "late" not in os.listdir(tmp_path)


def test_there_is_no_network_no_setting_of_the_system_and_no_terminal(tmp_path):
    asked = "cat /proc/net/dev | wc -l; echo x > /proc/sys/kernel/hostname && echo set; true"
    assert run(tmp_path, "sh", "-c", asked).stdout.split() == ["3"]  # Two titles and the loop-back device.
    devices = run(tmp_path, "sh", "-c", "echo x > /dev/null; ls /dev").stdout.split()
    assert [name for name in devices if not name.startswith("nvidia")] == [
        "fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"
    ]  # fmt: skip
    silent = confine.command(["echo", "seen"], silent=True)
    assert subprocess.run(silent, cwd="/", capture_output=True, timeout=60).stdout == b""


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("bytearray(6 * 2**30)", "MemoryError"),
        ("open('/tmp/large', 'wb').truncate(2**29)", "File too large"),
    ],
)
def test_it_cannot_take_all_memory(code, error, tmp_path):
    done = run(tmp_path, sys.executable, "-c", code)
    assert done.returncode == 1 and error in done.stderr


MANY = """
import os, time
try:
    for _ in range(400):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
except BlockingIOError as refused:
    print(refused.strerror)
"""


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the system limits no processes of root")
def test_it_cannot_start_any_number_of_processes(tmp_path):
    assert "unavailable" in run(tmp_path, sys.executable, "-c", MANY).stdout


def test_memory_that_runs_out_ends_this_command_first(tmp_path):
    assert run(tmp_path, "cat", "/proc/self/oom_score_adj").stdout == "1000\n"
