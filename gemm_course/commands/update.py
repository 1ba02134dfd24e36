"""Brings a newer course, and keeps everything that the learner wrote."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from gemm_course.commands.copying import bring_up_to_date, is_copy
from gemm_course.commands.errors import CourseError
from gemm_course.commands.git import Clone
from gemm_course.commands.keep import keep
from gemm_course.commands.places import KEPT

# A notebook that gets another number is a file that goes and a file that comes, for what a learner wrote
# belongs to the one that goes.
_CHANGED = ("diff", "--name-only", "--no-renames", "-z")


@dataclass(frozen=True)
class Update:
    """The result of an update: its number of changes, the kept copies, and whether packages must change."""

    changes: int
    kept: list[Path]
    packages: bool


def update(root: Path) -> Update:
    """Bring the newest course. First keep edited notebooks that it changes as dated copies.

    A clone gets the newest commits of the branch that it follows. If it has commits of its own, such as those
    that nbgitpuller makes of a learner's work, the newest are merged in. A copy gets the install's notebooks.

    Raise CourseError, and change nothing, if the folder is neither a clone nor a copy, if the network is
    unreachable, or if the learner has edited other files that the update changes.
    """
    if is_copy(root):
        names, kept = bring_up_to_date(root)
        return Update(len(names), kept, False)
    clone = Clone(root)
    newer, base = _newest(clone), clone.course_commit()
    if newer == base:
        return Update(0, [], False)
    coming = clone.paths(*_CHANGED, base, newer)
    tracked = clone.paths("ls-tree", "-r", "--name-only", "-z", "HEAD")
    added = {path for path in coming - tracked if (root / path).exists()}
    edited = coming & clone.paths(*_CHANGED, base) | added
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
    """Move these notebooks out of the way and go to the newer commit. If that fails, move them back."""
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
            _merge(clone, base, newer)
    except BaseException:
        for path, content in written.items():
            path.write_bytes(content)
        raise
    return kept


def _merge(clone: Clone, base: str, newer: str) -> None:
    """Merge the newer commit, whose notebooks are taken whole, never merged by lines or across names."""
    notebooks = sorted(path for path in clone.paths(*_CHANGED, base, newer) if path.endswith(".ipynb"))
    with contextlib.suppress(CourseError):  # Conflicts in notebooks are resolved below.
        clone("merge", "--quiet", "--no-commit", "--no-ff", newer)
    try:
        clone("rev-parse", "--quiet", "--verify", "MERGE_HEAD")  # Git fails here if the merge has not begun.
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
