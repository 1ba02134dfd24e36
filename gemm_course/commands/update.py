"""Brings a newer course and loses nothing that the learner wrote."""

from dataclasses import dataclass
from pathlib import Path

from gemm_course.commands.errors import CourseError
from gemm_course.commands.git import Clone
from gemm_course.commands.keep import keep
from gemm_course.commands.places import KEPT, ROOT


@dataclass(frozen=True)
class Update:
    """What an update did: how many commits came, the copies kept, whether packages have to follow."""

    commits: int
    kept: list[Path]
    packages: bool


def update(root: Path = ROOT) -> Update:
    """Fast-forward to the newest course; edited notebooks that change are kept as dated copies first.

    Raises CourseError, with everything as it was, where the folder is no clone, the network is away, the
    learner has commits of their own, or edited other files that the update changes.
    """
    clone = Clone(root)
    newer = _newer(clone)
    if newer is None:
        return Update(0, [], False)
    coming = clone.paths("diff", "--name-only", "-z", "HEAD", newer)
    tracked = clone.paths("ls-tree", "-r", "--name-only", "-z", "HEAD")
    added = {path for path in coming - tracked if (root / path).exists()}
    edited = coming & clone.paths("diff", "--name-only", "-z", "HEAD") | added
    notebooks = sorted(path for path in edited if path.endswith(".ipynb"))
    others = sorted(edited - set(notebooks))
    if others:
        raise CourseError(
            f"You changed {', '.join(others)}, which the update changes too: commit or undo that first."
        )
    commits = int(clone("rev-list", "--count", f"HEAD..{newer}"))
    kept = _replace(clone, newer, notebooks, tracked)
    return Update(commits, kept, "uv.lock" in coming)


def _newer(clone: Clone) -> str | None:
    """Return the commit to go to, None if this is the newest."""
    try:
        clone("fetch", "--quiet")
        newer = clone("rev-parse", "@{upstream}").strip()
    except CourseError as error:
        raise CourseError(f"No newer course can be fetched ({error}).") from error
    if clone("merge-base", "HEAD", newer).strip() != clone("rev-parse", "HEAD").strip():
        raise CourseError("You have commits of your own: bring the newer course in with `git pull --rebase`.")
    return newer if clone("rev-parse", "HEAD").strip() != newer else None


def _replace(clone: Clone, newer: str, notebooks: list[str], tracked: set[str]) -> list[Path]:
    """Go to the newer commit with these notebooks out of its way; if it fails, they are back."""
    written = {path: path.read_bytes() for name in notebooks if (path := clone.root / name).exists()}
    kept = [keep(path, clone.root / KEPT.relative_to(ROOT)) for path in written]
    try:
        for path in written:
            path.unlink()
        if known := tracked.intersection(notebooks):
            clone("checkout", "--quiet", "HEAD", "--", *known)
        clone("merge", "--quiet", "--ff-only", newer)
    except BaseException:
        for path, content in written.items():
            path.write_bytes(content)
        raise
    return kept
