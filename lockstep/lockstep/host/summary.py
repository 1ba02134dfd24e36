"""Renders a session's launches and findings as text for people, and as plain data for machines."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

TIMES = ("The program read times between events; those are the emulator's own and say nothing about a GPU.",)


def as_data(session: Any) -> dict[str, Any]:
    return {
        "gpu": session.gpu.name,
        "compute_capability": list(session.gpu.compute_capability),
        "ok": session.ok,
        "launches": [_launch_data(launch) for launch in (*session.launches, *session.stopped)],
        "launches_in_workers": _in_workers(session),
        "findings": [vars(found) for found in session.findings],
        "notes": list(notes(session)),
    }


def _launch_data(launch: Any) -> dict[str, Any]:
    file, line = launch.launched_in
    return {
        "kernel": launch.kernel,
        "file": launch.file,
        "line": launch.line,
        "launched_in": {"file": file, "line": line},
        "grid": list(launch.grid),
        "block": list(launch.block),
        **({"stopped": launch.stopped} if launch.stopped else _counts(launch.report)),
    }


def _counts(report: Any) -> dict[str, Any]:
    return {"shared_bytes": report.shared_bytes, "counts": report.totals()}


def _in_workers(session: Any) -> int:
    return sum(told["launches"] for told in session.workers.told())


def notes(session: Any) -> Iterator[str]:
    """Yield sentences that a reader must know before trusting the numbers."""
    if session.times_read:
        yield from TIMES
    if many := _in_workers(session):
        yield f"{_number(many, 'launch')} ran in forked processes: findings are listed, and no counts."
    for launch in session.stopped:
        place = f"{short(launch.file)}:{launch.line}"
        yield f"A launch of {launch.kernel} ({place}) was stopped before its end, so it has no counts."


def as_text(session: Any) -> str:
    """Return a text: a table of launches by kernel with their counts, then the findings and a total."""
    found = session.findings
    lines = [*_table(session.launches), ""] if session.launches else []
    lines += [_placed(one) for one in found]
    lines += list(notes(session))
    return "\n".join([*lines, _total(session, found)])


def _total(session: Any, found: Sequence) -> str:
    kernels = {(launch.file, launch.line, launch.kernel) for launch in (*session.launches, *session.stopped)}
    errors = sum(one.severity == "error" for one in found)
    told = [_number(errors, "error")] if errors else []
    told += [f"{_number(len(found) - errors, 'piece')} of advice"] if len(found) > errors else []
    told += [f"{_number(len(session.stopped), 'launch')} stopped"] if session.stopped else []
    launches = [*session.launches, *session.stopped]
    if not launches and not _in_workers(session):
        return f"no kernel was launched on the emulated {session.gpu.name}"
    if not launches:
        return f"launches in forked processes only: {' and '.join(told) or 'nothing found wrong'}"
    return (
        f"{_number(len(launches), 'launch')} of {_number(len(kernels), 'kernel')} on an emulated "
        f"{session.gpu.name}: {' and '.join(told) or 'nothing found wrong'}"
    )


def _number(count: int, what: str) -> str:
    ending = "" if count == 1 else "es" if what.endswith("ch") else "s"
    return f"{count:,} {what}{ending}"


def _table(launches: Sequence) -> Iterator[str]:
    """Yield the titles, then a row for each kernel with its number of launches and their total counts."""
    rows: dict[tuple, list[int]] = {}
    for launch in launches:
        cost = [1, *launch.report.totals().values()]
        key = (launch.kernel, f"{short(launch.file)}:{launch.line}")
        rows[key] = [a + b for a, b in zip(rows.get(key, [0] * len(cost)), cost)]
    names = [f"{kernel} ({place})" for kernel, place in rows]
    width = max(map(len, ["kernel", *names]))
    titles = ("launches", "requests", "sectors", "wavefronts", "FLOP", "barriers")
    yield f"{'kernel':<{width}}" + "".join(f"{title:>14}" for title in titles)
    for name, cost in zip(names, rows.values()):
        yield f"{name:<{width}}" + "".join(f"{number:>14,}" for number in cost)


def _placed(found: Any) -> str:
    often = f" (in {found.launches:,} launches)" if found.launches > 1 else ""
    return f"{found}{often}"


def short(path: str) -> str:
    """Return a path relative to the current folder if it is below that folder, else the path itself."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # The path is on another drive.
        return path
    return path if relative.startswith("..") else relative
