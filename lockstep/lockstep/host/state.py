"""Which session is active. There is one for the whole process, as there would be one GPU."""

from typing import Any

_sessions: list = []


def active() -> Any:
    """The session that numba.cuda's host side belongs to at the moment, or None."""
    return _sessions[-1] if _sessions else None


def current() -> Any:
    """The active session. Raises RuntimeError outside of any."""
    if not _sessions:
        raise RuntimeError(
            "this belongs to an emulated GPU, and no session of it is active: with emulated():"
        )
    return _sessions[-1]


def enter(session: Any) -> None:
    _sessions.append(session)


def leave(session: Any) -> None:
    _sessions.remove(session)
