"""Shows a stage's source, and what changed since the stage before."""

from __future__ import annotations

from collections.abc import Callable

from gemm_course.figures import listing
from gemm_course.kernels import LADDER, Stage


def kernel_of(subject: str | Stage | Callable) -> Callable:
    """Return the kernel of a stage (or of its name) with its default tiles. Return a kernel as it is."""
    stage = LADDER[subject] if isinstance(subject, str) else subject
    if isinstance(stage, Stage):
        return stage.kernel()
    if not callable(stage):
        raise TypeError(f"a kernel is needed, or a stage's name in quotes, not {stage!r}")
    return stage


def source(subject: str | Stage | Callable) -> listing.Listing:
    """Show the source of a stage's kernel, or of your own."""
    return listing.listing(kernel_of(subject))


def diff(before: str | Stage | Callable, after: str | Stage | Callable) -> listing.Listing:
    """Show what changed from one kernel to the next."""
    return listing.difference(kernel_of(before), kernel_of(after))
