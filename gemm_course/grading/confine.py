"""Runs a command that reaches nothing but what it needs: a submission's kernel, on Linux.

    python confine.py --hide FOLDER --keep PATH -- COMMAND ...

The command sees the whole machine read-only. The homes, the temporary folders, and each FOLDER are empty
for it. Only what Python needs is there again, and each PATH, also read-only. The current folder is a copy,
which the command may write to. Whatever it writes is in memory, and gone when it ends. It sees no other
process, and has no rights over the system. What it leaves running ends with it. It may not take all of the
machine's memory: see ``LIMITS``.

It is a mount namespace of Linux with a user namespace around it, so it needs no rights itself. Some systems
forbid it; then ``possible()`` is False. It has no network, and no key of the session.
This module imports the standard library only, because it runs before the command's own Python does.
"""

import argparse
import contextlib
import ctypes
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

# These are the numbers that Linux has for flags and calls, from its headers.
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x08000000, 0x10000000, 0x20000000
CLONE_NEWNET, KEYCTL_JOIN_SESSION_KEYRING = 0x40000000, 1
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND = 1, 2, 4, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
PR_SET_DUMPABLE, SYS_KEYCTL = 4, {"x86_64": 250, "aarch64": 219}
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1

# Here other programs keep sockets and files of all users.
SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/run")
# Of the devices, these stay. Those that are left out are terminals and disks.
DEVICES = ("null", "zero", "full", "random", "urandom")
# A folder that is shared holds sockets, and no more than this many names and bytes.
MOST_SHARED_NAMES, MOST_SHARED_BYTES = 30, 100_000
# A submission's own folder may have this many bytes.
MOST_BYTES = 200_000_000
# What is written into one folder may take this much memory.
SIZE = "size=256m"
# A process may have this much memory of its own, and a file may have this many bytes. A graded notebook takes
# 0.6 GB. The number of processes is counted in our own namespace, on Linux 5.14 and later.
LIMITS = {
    resource.RLIMIT_DATA: 4 * 2**30,
    resource.RLIMIT_FSIZE: 2**28,
    resource.RLIMIT_NPROC: 256,
    resource.RLIMIT_CORE: 0,
}
# These are new. A kernel that knows no parent complains, and here its parent is no process that it sees.
NEW = {
    "IPYTHONDIR": "/tmp/ipython",
    "JPY_PARENT_PID": "1",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "PYTHONSAFEPATH": "1",
}
# The command gets these variables, and no token of a hub or a cloud.
VARIABLES = ("PATH", "LANG", "LANGUAGE", "TZ", "TERM", "HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH")
BEGINNINGS = ("LC_", "PYTHON", "NUMBA_", "CUDA_", "NBGRADER_", "GEMM_COURSE_", "OMP_", "MPL")


def command(
    inner: Sequence[str],
    hide: Sequence[Path | str] = (),
    keep: Sequence[Path | str] = (),
    share: Sequence[Path | str] = (),
    silent: bool = False,
) -> list[str]:
    """Return the command line that runs the command ``inner`` confined.

    ``share``: folders that it can write to. ``silent``: it gets no terminal, and nothing that it prints is
    shown.
    """
    given = [f"--hide={folder}" for folder in hide] + [f"--keep={path}" for path in keep]
    given += [f"--share={folder}" for folder in share] + ["--silent"] * silent
    return [sys.executable, "-I", str(Path(__file__).resolve()), *given, "--", *inner]


def possible() -> bool:
    """Tell whether this system lets a command be confined."""
    if sys.platform != "linux":
        return False
    try:
        tried = subprocess.run(command(["true"]), cwd="/", capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


class Refused(OSError):
    """An error for a call that the system refuses."""


def _call(name: str, *args: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    done = getattr(libc, name)(*args)
    if done == -1:
        error = ctypes.get_errno()
        raise Refused(error, f"{name}: {os.strerror(error)}")
    return done


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = (None if text is None else text.encode() for text in (source, target, kind))
    source, target, kind = texts
    _call("mount", source, target, kind, ctypes.c_ulong(flags), None if data is None else data.encode())


def _enter() -> None:
    """Enter namespaces of our own, in which this user keeps its number."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _read_only() -> None:
    """Make every mounted file system read-only."""
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
    flags = ctypes.c_uint(AT_RECURSIVE)
    _call("syscall", SYS_MOUNT_SETATTR, AT_FDCWD, b"/", flags, ctypes.byref(attributes), ctypes.c_size_t(32))


def _needed_by_python() -> list[str]:
    # A virtual environment's Python lies elsewhere, and so may the packages of an editable install.
    executables = {os.path.dirname(os.path.realpath(sys.executable)), os.path.dirname(sys.executable)}
    return [sys.prefix, sys.base_prefix, *executables, *sysconfig.get_paths().values()]


def _hide(folders: Sequence[str], keep: Sequence[str], current: str) -> None:
    """Cover folders with empty ones. Put back what is kept, read-only, and a copy of the current folder."""
    hidden = sorted({os.path.realpath(folder) for folder in folders if os.path.isdir(folder)} - {"/"})
    folders = [each for each in hidden if not _is_in_one_of(each, hidden)]
    keep = sorted({path for path in keep if os.path.exists(path) and _is_in(path, folders)})
    keep = [path for path in keep if not _is_in_one_of(path, keep)]
    handles = {path: os.open(path, os.O_PATH) for path in (*keep, current)}
    for folder in folders:
        _mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV, SIZE)
    for path in keep:
        if os.path.isdir(f"/proc/self/fd/{handles[path]}"):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Path(path).touch()
        _mount(f"/proc/self/fd/{handles[path]}", path, None, MS_BIND | MS_REC)
    for folder in hidden:
        if _is_in(folder, keep):  # A hidden folder inside what is kept, such as the solutions in the course.
            _mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY)
    inside = f"/proc/self/fd/{handles[current]}"
    if _is_in(current, folders):
        os.makedirs(current, exist_ok=True)
    elif current != "/" and not any(_is_in(path, [current]) for path in _needed_by_python()):
        _mount("none", current, "tmpfs", MS_NOSUID | MS_NODEV, SIZE)
    # A folder around what is kept, such as a home, is no submission, and stays as it is.
    if current != "/" and not any(_is_in(path, [current]) for path in (*keep, *_needed_by_python())):
        _copy(inside, current)
    for handle in handles.values():
        os.close(handle)
    os.chdir(current)


def _is_in(path: str, folders: Sequence[str]) -> bool:
    return any(path == each or path.startswith(f"{each}{os.sep}") for each in folders)


def _is_in_one_of(path: str, others: Sequence[str]) -> bool:
    return any(path != each and path.startswith(f"{each}{os.sep}") for each in others)


def _copy(source: str, target: str) -> None:
    """Copy a folder's files, and no links, which might lead elsewhere."""
    left = MOST_BYTES
    for folder, folders, files in os.walk(source):
        place = os.path.join(target, os.path.relpath(folder, source))
        folders[:] = [each for each in folders if not os.path.islink(os.path.join(folder, each))]
        for each in folders:
            os.makedirs(os.path.join(place, each), exist_ok=True)
        for each in files:
            path = os.path.join(folder, each)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            left -= os.path.getsize(path)
            if left < 0:
                raise Refused(errno.EFBIG, f"the current folder has more than {MOST_BYTES:,} bytes")
            shutil.copyfile(path, os.path.join(place, each))


def _own_devices() -> None:
    """Show the usual devices, and those of a GPU, but no terminal: others type there."""
    there = [name for name in os.listdir("/dev") if name in DEVICES or name.startswith("nvidia")]
    handles = {name: os.open(f"/dev/{name}", os.O_PATH) for name in there}
    _mount("none", "/dev", "tmpfs", MS_NOSUID, "size=1m")
    for name, handle in handles.items():
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            os.mkdir(f"/dev/{name}")
        else:
            Path(f"/dev/{name}").touch()
        _mount(f"/proc/self/fd/{handle}", f"/dev/{name}", None, MS_BIND | MS_REC)
        os.close(handle)
    os.mkdir("/dev/shm")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/dev/{name}")
    os.symlink("/proc/self/fd", "/dev/fd")


def _own_processes() -> None:
    """Show the processes of our own namespace only; where that is forbidden, none."""
    try:
        _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_RDONLY)
    except Refused:
        _mount("none", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY)


def _give_up_rights() -> None:
    """Drop all rights over the namespaces, so that the command cannot uncover anything."""
    for capability in range(64):
        with contextlib.suppress(Refused):
            _call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
    _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _environment() -> dict[str, str]:
    kept = {n: v for n, v in os.environ.items() if n in VARIABLES or n.startswith(BEGINNINGS)}
    kept.pop("PYTHONSTARTUP", None)
    return kept | NEW


def _share(folders: Sequence[str]) -> None:
    for folder in folders:
        attributes = (ctypes.c_uint64 * 4)(0, MOUNT_ATTR_RDONLY, 0, 0)
        place, size = folder.encode(), ctypes.c_size_t(32)
        _call("syscall", SYS_MOUNT_SETATTR, AT_FDCWD, place, 0, ctypes.byref(attributes), size)


def _without_keys() -> None:
    """Leave the keyring of the session, in which other programs keep tickets and passwords."""
    with contextlib.suppress(KeyError, Refused):
        _call("syscall", SYS_KEYCTL[os.uname().machine], KEYCTL_JOIN_SESSION_KEYRING, None)


def _run(given: argparse.Namespace) -> None:
    """Confine this process, run the command in a child, and end with it.

    This process is the first of its namespace. When it ends, the system ends all that the command has left.
    """
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    current, home = os.path.realpath(os.getcwd()), os.path.expanduser("~")
    _limit()
    _read_only()
    _own_devices()
    folders, kept = [*SHARED, "/home", "/root", home, *given.hide], (*given.keep, *given.share)
    _hide(folders, [os.path.realpath(each) for each in (*kept, *_needed_by_python())], current)
    _share(given.share)
    _own_processes()
    _give_up_rights()
    _without_keys()
    inner = os.fork()
    if inner:
        _call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)
        _wait_for(inner, all_children=True)
    if given.silent:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
    os.execvpe(given.command[0], list(given.command), _environment())


def _limit() -> None:
    """Set the limits. If memory runs out all the same, the system ends this process before any other."""
    for kind, most in LIMITS.items():
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _overfull(folder: str) -> bool:
    try:
        found = list(os.scandir(folder))
        size = sum(entry.stat(follow_symlinks=False).st_size for entry in found)
        folders = any(entry.is_dir(follow_symlinks=False) for entry in found)
        return folders or len(found) > MOST_SHARED_NAMES or size > MOST_SHARED_BYTES
    except OSError:
        return False


def _wait_for(child: int, all_children: bool = False, shared: Sequence[str] = ()) -> None:
    """Pass interrupts on to a child, and exit as it does.

    End it if a shared folder holds more than sockets.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: os.kill(child, received))
    while True:
        ended, status = os.waitpid(-1 if all_children else child, os.WNOHANG if shared else 0)
        if ended == child:
            os._exit(os.waitstatus_to_exitcode(status) % 256)
        if any(_overfull(folder) for folder in shared):
            os.kill(child, signal.SIGKILL)
        if shared:
            time.sleep(0.2)


def main() -> int:
    """Run the command of the command line confined, and exit as it does. Return 125 if that is impossible."""
    parser = argparse.ArgumentParser(prog="confine")
    parser.add_argument("--hide", action="append", default=[], help="a folder that is empty for the command")
    parser.add_argument("--keep", action="append", default=[], help="a path that it can read all the same")
    parser.add_argument("--share", action="append", default=[], help="a folder that it can write to")
    parser.add_argument("--silent", action="store_true", help="give it no terminal, and show nothing of it")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    try:
        _enter()
    except Refused as refused:
        print(f"confine: this system refuses it: {refused}", file=sys.stderr)
        return 125
    child = os.fork()
    if child:
        _wait_for(child, shared=given.share)
    try:
        _run(given)
    except OSError as error:
        print(f"confine: {error.strerror or error}", file=sys.stderr)
    os._exit(125)


if __name__ == "__main__":
    sys.exit(main())
