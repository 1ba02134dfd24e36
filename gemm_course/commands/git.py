"""The few things asked of git."""

import os
import subprocess
from pathlib import Path

from gemm_course.commands.errors import CourseError

# Of a merge: whoever uses nbgitpuller need not have told git a name.
NAMES = {"NAME": "gemm-course update", "EMAIL": "update@gemm-course.invalid"}
AUTHOR = {f"GIT_{who}_{what}": name for who in ("AUTHOR", "COMMITTER") for what, name in NAMES.items()}


class NoClone(CourseError):
    """The folder is no clone of its own, or the machine has no git."""


class Clone:
    """The course's folder as git knows it.

    Raises NoClone where it knows none, and CourseError with git's own reason where git refuses to look.
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
        """Return what git prints; raises CourseError with git's reason where it fails."""
        return self.bytes(*arguments).decode()

    def bytes(self, *arguments: str) -> bytes:
        """Return what git prints, undecoded."""
        settings = {**os.environ, "LC_ALL": "C"} | AUTHOR
        done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, env=settings)
        if done.returncode:
            raise CourseError(f"git {arguments[0]} did not work: {_reason(done.stderr)}")
        return done.stdout

    def course_commit(self) -> str:
        """Return the newest commit here that came with the course, whatever was committed on top of it.

        That is where this branch and the one it follows part. nbgitpuller commits a learner's work by itself.
        """
        try:
            return self("merge-base", "HEAD", "@{upstream}").strip()
        except CourseError:  # a branch that follows none
            return "HEAD"

    def paths(self, *arguments: str) -> set[str]:
        """Return the paths that git lists, with ``-z`` among the arguments."""
        return set(filter(None, self(*arguments).split("\0")))


def _reason(said: bytes) -> str:
    """What git says went wrong, in a line; of a refusal its advice as well, which is the last line."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    reason = next(
        (line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else ""
    )
    if "dubious ownership" in reason:
        return f"{reason} (the folder is another user's). To trust it: {lines[-1]}"
    return reason or "no reason given"
