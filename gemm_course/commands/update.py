"""Brings a newer course and loses nothing that the learner wrote."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from gemm_course.commands.copying import bring_up_to_date, is_copy
from gemm_course.commands.errors import CourseError
from gemm_course.commands.git import Clone
from gemm_course.commands.keep import keep
from gemm_course.commands.places import KEPT


@dataclass(frozen=True)
class Update:
    """What an update did: how many changes came, the copies kept, whether packages have to follow."""

    changes: int
    kept: list[Path]
    packages: bool


def update(root: Path) -> Update:
    """Go to the newest course; edited notebooks that it changes are kept as dated copies first.

    A clone gets the newest commits of the branch it follows. Where there are other commits on top, as
    nbgitpuller makes them of a learner's work, the newest are merged in. A copy gets the install's notebooks.

    Raises CourseError, with everything as it was, where the folder is neither, the network is away, or the
    learner edited other files that the update changes.
    """
    if is_copy(root):
        names, kept = bring_up_to_date(root)
        return Update(len(names), kept, False)
    clone = Clone(root)
    newer, base = _newest(clone), clone.course_commit()
    if newer == base:
        return Update(0, [], False)
    coming = clone.paths("diff", "--name-only", "-z", base, newer)
    tracked = clone.paths("ls-tree", "-r", "--name-only", "-z", "HEAD")
    added = {path for path in coming - tracked if (root / path).exists()}
    edited = coming & clone.paths("diff", "--name-only", "-z", base) | added
    notebooks = sorted(path for path in edited if path.endswith(".ipynb"))
    others = sorted(edited - set(notebooks))
    if others:
        raise CourseError(
            f"You changed {', '.join(others)}, which the update changes too: commit or undo that first."
        )
    commits = int(clone("rev-list", "--count", f"{base}..{newer}"))
    kept = _replace(clone, base, newer, notebooks, tracked)
    return Update(commits, kept, "uv.lock" in coming)


def _newest(clone: Clone) -> str:
    try:
        clone("fetch", "--quiet")
        return clone("rev-parse", "@{upstream}").strip()
    except CourseError as error:
        raise CourseError(f"No newer course can be fetched ({error}).") from error


def _replace(clone: Clone, base: str, newer: str, notebooks: list[str], tracked: set[str]) -> list[Path]:
    """Go to the newer commit with these notebooks out of its way; if it fails, they are back."""
    written = {path: path.read_bytes() for name in notebooks if (path := clone.root / name).exists()}
    kept = [keep(path, clone.root / KEPT) for path in written]
    try:
        for path in written:
            path.unlink()
        if known := tracked.intersection(notebooks):
            clone("checkout", "--quiet", "HEAD", "--", *known)
        if clone("rev-parse", "HEAD").strip() == base:
            clone("merge", "--quiet", "--ff-only", newer)
        else:
            _merge(clone, newer, notebooks)
    except BaseException:
        for path, content in written.items():
            path.write_bytes(content)
        raise
    return kept


def _merge(clone: Clone, newer: str, notebooks: list[str]) -> None:
    """Merge the newer commit; these notebooks become the newer ones as they are, never a mixture of both."""
    with contextlib.suppress(CourseError):  # a conflict: in notebooks it is decided below
        clone("merge", "--quiet", "--no-commit", "--no-ff", newer)
    try:
        clone("rev-parse", "--quiet", "--verify", "MERGE_HEAD")  # otherwise it has not even begun
        there = clone.paths("ls-tree", "-r", "--name-only", "-z", newer)
        for name in notebooks:
            if name in there:
                clone("checkout", "--quiet", newer, "--", name)
            else:
                clone("rm", "--quiet", "--force", "--ignore-unmatch", "--", name)
        clone("commit", "--quiet", "--no-verify", "--message", "The newer course, merged")
    except CourseError as error:
        with contextlib.suppress(CourseError):
            clone("merge", "--abort")
        raise CourseError(f"The newer course could not be merged with your commits ({error}).") from error
