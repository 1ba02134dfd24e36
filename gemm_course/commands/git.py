"""Asks git the few things that the course needs from it."""

import os
import subprocess
from pathlib import Path

from gemm_course.commands.errors import CourseError

# A merge has this author, because users of nbgitpuller may never have told git their name.
NAMES = {"NAME": "gemm-course update", "EMAIL": "update@gemm-course.invalid"}
AUTHOR = {f"GIT_{who}_{what}": name for who in ("AUTHOR", "COMMITTER") for what, name in NAMES.items()}


class NoClone(CourseError):
    """The error for a folder that is not a clone of its own, or a machine without git."""


class Clone:
    """The course's folder as a git clone.

    Making one raises NoClone if the folder is not a clone, and CourseError with git's reason if git refuses
    to look.
    """

    def __init__(self, root: Path):
        self.root = root
        try:
            top = self("rev-parse", "--show-toplevel").strip()
        except FileNotFoundError:
            top = ""
        except CourseError as error:
            if "not a git repository" not in str(error):
                raise
            top = ""
        if not top or Path(top).resolve() != root.resolve():
            raise NoClone(
                "This needs git and a course that came by `git clone`: "
                "download a fresh copy beside this one and carry your notebooks over."
            )

    def __call__(self, *arguments: str) -> str:
        """Return what git prints. Raise CourseError with git's reason where it fails."""
        return self.bytes(*arguments).decode()

    def bytes(self, *arguments: str) -> bytes:
        """Return what git prints, undecoded."""
        settings = {**os.environ, "LC_ALL": "C"} | AUTHOR
        done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, env=settings)
        if done.returncode:
            raise CourseError(f"git {arguments[0]} did not work: {_reason(done.stderr)}")
        return done.stdout

    def course_commit(self) -> str:
        """Return the newest commit that came with the course, below any commits on top of it.

        It is the last one that this branch shares with the branch it follows. On top of it there may be
        commits with a learner's work, which nbgitpuller makes by itself.
        """
        try:
            return self("merge-base", "HEAD", "@{upstream}").strip()
        except CourseError:  # The branch follows no other branch.
            return "HEAD"

    def paths(self, *arguments: str) -> set[str]:
        """Return the paths that git lists, with ``-z`` among the arguments."""
        return set(filter(None, self(*arguments).split("\0")))


def _reason(said: bytes) -> str:
    """Return the line in which git says what went wrong.

    After a refusal also return the last line, which is git's advice.
    """
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    reason = next(
        (line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else ""
    )
    if "dubious ownership" in reason:
        return f"{reason} (the folder is another user's). To trust it: {lines[-1]}"
    return reason or "no reason given"
