#!/usr/bin/env python3
"""Sets the course up and opens it.

    python3 course.py            opens notebook 00 in JupyterLab
    python3 course.py test       runs the tests
    python3 course.py doctor     says what this machine has; the other commands of gemm-course work as well

The packages go into .venv beside this file and nowhere else. With an NVIDIA driver, those for the GPU are
added; --cpu leaves them out. --compiler adds NVIDIA's compiler, which shows machine code without a GPU.
"""

import contextlib
import ctypes
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LOCK = ROOT / "uv.lock"
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "course-is-set-up"  # lists what was installed; it is written last
WHEELS = ROOT / "wheels"  # `gemm-course bundle` puts it there, for rooms without a network
OLDEST_UV = (0, 9)
STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
KILL_ME_WITH_MY_PARENT = 1  # PR_SET_PDEATHSIG of Linux's prctl

REASONS = {
    r"No space left|not enough space|Disk quota|os error (28|112)\b": "The disk is full: free 2 GB",
    r"ensurepip|No module named venv": "This Python lacks venv: get it (Debian: apt install python3-venv)",
    r"Permission denied|Read-only|os error 13\b": "The course's folder cannot be written: move it",
    r"Failed to (fetch|download)|versions: none|onnect|timed out": "pypi.org cannot be reached: go online",
}


def main(arguments):
    if not (3, 11) <= sys.version_info < (3, 15):
        sys.exit(
            "The course needs Python 3.11 to 3.14, and this is %d.%d: start another." % sys.version_info[:2]
        )
    if {"-h", "--help"} & set(arguments[:1]):
        print(__doc__)
        return
    command = [word for word in arguments if word not in ("--cpu", "--compiler")] or ["lab"]
    for number in stopping():
        signal.signal(number, interrupt)
    try:
        extra = None if "--cpu" in arguments else gpu_extra()
        if not extra and (
            command[0] == "test" or "--compiler" in arguments or is_installed("--extra=compiler")
        ):
            extra = "compiler"
        extras = {"--extra=" + extra} if extra else set()
        if command[0] == "test" or (command[0] == "site" and is_installed("--dev")):
            set_up(extras, {"--dev"})  # this includes what the site needs
        else:
            set_up(extras | ({"--extra=site"} if command[0] == "site" else set()), set())
    except OSError as error:
        sys.exit(sentence(str(error)))
    except KeyboardInterrupt:
        sys.exit("Interrupted: start again whenever you like.")
    hand_over([str(PYTHON), "-P", "-m", "gemm_course.cli", *command])


def stopping():
    """Return those signals of Ctrl-C and of a closed terminal that stop this process; nohup ignores one."""
    return [number for number in STOPPING if signal.getsignal(number) != signal.SIG_IGN]


def interrupt(number, frame):
    raise KeyboardInterrupt


def gpu_extra():
    """Return the extra for the NVIDIA driver and the oldest GPU; None if there are none."""
    query = ["nvidia-smi", "--query-gpu=driver_version,compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=5).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    gpus = re.findall(r"^(\d+)[\d.]*, (\d+)\.(\d+)", answer.decode(), re.MULTILINE)
    driver, *capability = min((tuple(map(int, gpu)) for gpu in gpus), default=(0, 0, 0))
    if driver >= 580 and capability >= [7, 5]:  # CUDA 13 needs both
        return "gpu-cu13"
    return "gpu-cu12" if driver >= 525 else None


def is_installed(option):
    """Return whether uv was given this option before: then a newer course keeps what it brought."""
    return STAMP.exists() and option in STAMP.read_text().split()


def set_up(extras, dev):
    """Bring .venv to the state that uv.lock describes, unless the stamp says that it has that state."""
    recipe = LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes()
    place = "at-" + hashlib.sha256(bytes(ROOT)).hexdigest()
    wanted = {hashlib.sha256(recipe).hexdigest(), place} | extras | dev
    is_whole = all(os.path.exists(str(path)) for path in (PYTHON, STAMP))
    there = set(STAMP.read_text().split()) if is_whole else set()
    if wanted <= there:
        return
    if not os.access(str(ROOT), os.W_OK):  # another user's install is used as it is
        if place in there:
            return
        sys.exit("This course is another's: let them start it once, with a Python that all may run.")
    if wanted - {place} <= there and follow_a_move():
        STAMP.write_text("\n".join({word for word in there if not word.startswith("at-")} | {place}))
        return
    print("Setting the course up in .venv, which takes some minutes the first time ...", flush=True)
    for gone in ROOT.glob(VENV.name + "-removed-*"):  # left by a start that was killed
        shutil.rmtree(str(gone), ignore_errors=True)
    is_new = not (PYTHON.exists() and (VENV / "pyvenv.cfg").exists())
    try:
        if is_new:  # a .venv without these files is broken
            remove(VENV)
        if STAMP.exists():
            STAMP.unlink()
        uv, groups = find_uv()
        python = PYTHON if PYTHON.exists() else sys.executable
        if WHEELS.is_dir():
            install_from_wheels(uv)
        else:
            options = [*groups, *(dev or ["--no-dev"]), *sorted(extras)]
            step([*uv, "sync", "--frozen", "--python", str(python), *options])
        step([str(PYTHON), "-P", "-c", "import gemm_course"])
        STAMP.write_text("\n".join(wanted))
    except BaseException:
        for number in stopping():
            signal.signal(number, signal.SIG_IGN)
        if is_new:  # leave no half-made .venv behind
            remove(VENV)
        raise


def install_from_wheels(uv):
    """Install the packages of a bundle, without a network. Its extras were chosen when it was made."""
    if not PYTHON.exists():
        step([*uv, "venv", "--python", sys.executable, str(VENV)])
    where = ["--python", str(PYTHON), "--offline", "--no-index", "--find-links", str(WHEELS)]
    step([*uv, "pip", "install", *where, "-r", str(WHEELS / "requirements.txt"), "--editable", str(ROOT)])


def follow_a_move():
    """Repair .venv after the course's folder was moved or copied; return whether that was possible.

    Everything is installed already. Only paths are wrong: that of the course's package, and those in the
    first lines of scripts. To repair them needs no network. On Windows such scripts are programs, which must
    be installed again.
    """
    paths = sorted(VENV.glob("lib/python*/site-packages/_gemm_course.pth"))
    if os.name == "nt" or len(paths) != 1:
        return False
    old, new = paths[0].read_bytes().split(b"\n")[0], bytes(ROOT)
    for script in [*PYTHON.parent.iterdir(), paths[0]]:
        if not script.is_symlink() and script.is_file():
            text = script.read_bytes()
            if text[:2] == b"#!" or script.name.startswith("activate") or script == paths[0]:
                script.write_bytes(runnable(text.replace(old, new)))
    return True


def runnable(script):
    """Return a script that the system can start, although its first line cannot name a path with a space."""
    first, _, rest = script.partition(b"\n")
    if not first.startswith(b"#!" + bytes(VENV)) or b" " not in first:
        return script
    return b"#!/bin/sh\n'''exec' \"" + first[2:] + b'" "$0" "$@"\n\' \'\'\'\n' + rest


def remove(folder):
    """Rename a folder, then remove it, so that a half-removed folder is never taken for a whole one."""
    if folder.exists():
        gone = folder.with_name(folder.name + "-removed-%d" % os.getpid())
        folder.rename(gone)
        shutil.rmtree(str(gone), ignore_errors=True)


def find_uv():
    """Return uv's command, and options that install uv itself if the machine has none."""
    found = shutil.which("uv")
    if found:
        version = subprocess.run(
            [found, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ).stdout
        numbers = re.match(r"uv (\d+)\.(\d+)", version.decode())
        if numbers and tuple(map(int, numbers.groups())) >= OLDEST_UV:
            return [found], []
    if not PYTHON.exists():
        step([sys.executable, "-m", "venv", str(VENV)])
    locked = re.search(r'name = "uv"\nversion = "(.+)"', LOCK.read_text(encoding="utf-8")).group(1)
    step([str(PYTHON), "-m", "ensurepip"])
    local = ["--no-index", "--find-links", str(WHEELS)] if WHEELS.is_dir() else ["--retries=1"]
    step([str(PYTHON), "-m", "pip", "install", "--quiet", *local, "uv==" + locked])
    return [str(PYTHON.with_name("uv"))], ["--group=setup"]


def step(command):
    """Run one command of the set-up and show how far it is; if it fails, leave with one sentence."""
    environment = dict(
        os.environ, UV_PROJECT_ENVIRONMENT=str(VENV), UV_PYTHON_DOWNLOADS="never", UV_COMPILE_BYTECODE="1"
    )
    output = []
    with held_back() as let_go:
        process = subprocess.Popen(
            command,
            cwd=str(ROOT),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # one group, which can be stopped as a whole
            preexec_fn=die_with_me(),
        )
        try:
            let_go()
            for line in process.stdout:
                output.append(line.decode(errors="replace").strip())
                if output[-1].startswith(("Downloading", "Installed")):
                    print("  " + output[-1], flush=True)
            failed = process.wait()
        except KeyboardInterrupt:
            process.kill() if os.name == "nt" else os.killpg(process.pid, signal.SIGKILL)
            process.communicate()  # returns when all of the group have closed the output
            raise
    if failed:
        sys.exit(sentence("\n".join(output)))


@contextlib.contextmanager
def held_back():
    """Delay a Ctrl-C until the function that this yields is called.

    If it came while a process is being started, that process could not be stopped any more.
    """
    came = []
    before = {number: signal.signal(number, lambda *_: came.append(1)) for number in stopping()}

    def let_go():
        while before:
            signal.signal(*before.popitem())
        if came:
            raise KeyboardInterrupt

    try:
        yield let_go
    finally:
        let_go()


def die_with_me():
    """Return a function that a child runs first, to be killed with this process. Only Linux can do that."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # loaded here, because a forked child should load nothing
    return lambda: libc.prctl(KILL_ME_WITH_MY_PARENT, signal.SIGKILL)


def sentence(text):
    """Return one sentence on what stopped the set-up, from what a tool or the system wrote."""
    for sign, reason in REASONS.items():
        if re.search(sign, text):
            return reason + ", then start again."
    errors = [line for line in text.splitlines() if "error" in line.lower()]
    return "The set-up stopped, and this is all that is known: %s." % (errors or [text])[-1].strip(" .\n")


def hand_over(command):
    """Let the course's own command line take this process's place, Ctrl-C included."""
    if os.name != "nt":
        os.execv(command[0], command)
    process = subprocess.Popen(command)
    while True:
        try:
            sys.exit(process.wait())
        except KeyboardInterrupt:  # the command gets it as well, and ends by itself
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
