"""Keeps the active session, which the whole process shares as it would share one GPU."""

from typing import Any

_sessions: list = []


def active() -> Any:
    """Return the session that runs numba.cuda's host side at the moment, or None."""
    return _sessions[-1] if _sessions else None


def current() -> Any:
    """Return the active session. Raises RuntimeError if there is none."""
    if not _sessions:
        raise RuntimeError(
            "this belongs to an emulated GPU, and no session of it is active: with emulated():"
        )
    return _sessions[-1]


def enter(session: Any) -> None:
    _sessions.append(session)


def leave(session: Any) -> None:
    _sessions.remove(session)
