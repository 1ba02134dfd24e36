"""The few things asked of git."""

import subprocess
from pathlib import Path

from gemm_course.commands.errors import CourseError


class Clone:
    """The course's folder as git knows it.

    Raises CourseError where the folder is no clone, or the machine has no git.
    """

    def __init__(self, root: Path):
        self.root = root
        try:
            top = self("rev-parse", "--show-toplevel").strip()
        except (CourseError, FileNotFoundError):
            top = ""
        if not top or Path(top).resolve() != root.resolve():
            raise CourseError(
                "This needs git and a course that came by `git clone`: "
                "download a fresh copy beside this one and carry your notebooks over."
            )

    def __call__(self, *arguments: str) -> str:
        """Return what git prints; raises CourseError with git's last line where it fails."""
        return self.bytes(*arguments).decode()

    def bytes(self, *arguments: str) -> bytes:
        """Return what git prints, undecoded."""
        done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True)
        if done.returncode:
            last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"])[-1]
            raise CourseError(f"git {arguments[0]} did not work: {last}")
        return done.stdout

    def paths(self, *arguments: str) -> set[str]:
        """Return the paths that git lists, with ``-z`` among the arguments."""
        return set(filter(None, self(*arguments).split("\0")))
