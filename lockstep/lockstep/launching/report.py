"""Reports the result of an emulated launch: counts by line, findings, and a table beside the source."""

from __future__ import annotations

import html
import re
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from lockstep.counts.lower_bound import COUNTS
from lockstep.errors import UnknownName
from lockstep.findings import Finding
from lockstep.reading.names import parameter_names
from lockstep.spelling import did_you_mean

from .faults import guarded

if TYPE_CHECKING:
    import pandas as pd

_COUNTS = ("requests", "lanes", "bytes", "sectors", "lines", "wavefronts", "ideal_wavefronts")
_ACCESS_COLUMNS = ("function", "line", "site", "space", "op", "array", "bits", *_COUNTS)
_KEYS = tuple(name for name in _ACCESS_COLUMNS if name not in _COUNTS)
_VALUES = {"space": ("global", "shared", "local", "constant"), "op": ("load", "store", "atomic")}
# ``as_compiled`` covers these accesses.
_MERGED = {"space": ("global", "shared"), "op": ("load", "store")}
_LINE_COLUMNS = ("requests", "sectors", "wavefronts", "operations")


class Report:
    """The result of :func:`emulate`.

    ``accesses``: a frame with a row per site, array and width. ``arithmetic``: a frame of floating-point
    operations per line. There "mma" counts the multiply-adds of Tensor Cores, shared equally among the lanes,
    with the dtype of their accumulators. ``findings``: errors first, then advice. ``barriers``: the number of
    barriers executed, summed over blocks. ``shared_bytes``: bytes of shared memory per block. ``trace``: a
    frame, if a Watch was given. ``as_compiled``: a frame, if the launch asked for it. ``silenced``: findings
    that a comment or ``allow`` has silenced (see :mod:`.silence`).
    """

    def __init__(self, machine, findings, function, source, watch, lower_bound=None):
        self.findings: list[Finding] = findings.listed() if machine.counts_only else findings.final()
        self.silenced: list[Finding] = findings.listed(silenced=True)
        self.grid, self.block = machine.grid, machine.block
        # The launch had to keep the limits of this GPU.
        self.gpu: str = machine.gpu.name
        self.shared_bytes = machine.static_shared_bytes() + machine.dynamic_shared
        self._sites = machine.sites
        self._tallies = machine.tallies
        self.function, self._source = function, source
        self._watcher = machine.last_watcher
        self.trace_complete = self._watcher is None or not self._watcher.full
        self.watch = watch
        self._least: dict | None = None if lower_bound is None else lower_bound.least

    # ---- counts ----

    @cached_property
    @guarded
    def accesses(self) -> pd.DataFrame:
        rows = []
        for what, counts in self._tallies.accesses.items():
            at = self._sites[what.site]
            slot = at.function, at.line, what.site, what.space, what.op, what.array, what.bits
            rows.append((*slot, *(int(c) for c in counts)))
        frame = _frame(rows, columns=_ACCESS_COLUMNS)
        return frame.sort_values(["function", "line", "site", "op"], ignore_index=True)

    @cached_property
    @guarded
    def arithmetic(self) -> pd.DataFrame:
        rows = []
        for what, lanes in self._tallies.arithmetic.items():
            at = self._sites[what.site]
            rows.append((at.function, at.line, what.op, np.dtype(what.dtype).name, lanes))
        frame = _frame(rows, columns=("function", "line", "op", "dtype", "lanes"))
        return frame.groupby(["function", "line", "op", "dtype"], as_index=False)["lanes"].sum()

    @cached_property
    @guarded
    def barriers(self) -> int:
        return sum(self._tallies.barriers.values())

    @cached_property
    @guarded
    def barriers_by_line(self) -> pd.DataFrame:
        rows = [
            (self._sites[site].function, self._sites[site].line, count)
            for site, count in self._tallies.barriers.items()
        ]
        frame = _frame(rows, columns=("function", "line", "barriers"))
        return frame.sort_values("line", ignore_index=True)

    @cached_property
    def trace(self) -> pd.DataFrame:
        if self._watcher is None:
            raise AttributeError("nothing was recorded: pass watch=Watch(block=..., warp=...) to emulate()")
        return self._watcher.frame()

    def total(self, column: str, **where) -> int:
        """Return the sum of a column of ``accesses``: ``report.total("sectors", space="global", array="A")``.

        column: one of requests, lanes, bytes, sectors, lines, wavefronts, ideal_wavefronts. where: values of
        function, line, site, space, op, array and bits. Raises UnknownName for a column or a value that the
        report does not have.
        """
        _require("count", column, _COUNTS)
        return int(self._rows(where)[column].sum())

    @cached_property
    @guarded
    def as_compiled(self) -> pd.DataFrame:
        """Loads and stores of global and shared memory as written, and the least that compiled code does.

        There is a row per space, op and array, with requests, sectors and wavefronts and, for each of these
        counts, a column such as ``at_least_requests``. :mod:`lockstep.counts.lower_bound` says what a
        compiler may leave out. Raises AttributeError unless ``as_compiled=True`` was passed to
        :func:`emulate`.
        """
        self._require_least()
        frame = self.accesses
        frame = frame[frame["space"].isin(_MERGED["space"]) & frame["op"].isin(_MERGED["op"])]
        frame = frame.groupby(["space", "op", "array"], as_index=False)[list(COUNTS)].sum()
        found = [self._least_of(*what) for what in frame[["space", "op", "array"]].itertuples(index=False)]
        for position, column in enumerate(COUNTS):
            frame[f"at_least_{column}"] = [counts[position] for counts in found]
        return frame

    def at_least(self, column: str, space: str, op: str, array: str | None = None) -> int:
        """Return a lower bound, for compiled code, of ``total(column, space=..., op=...)``.

        column: one of requests, sectors, wavefronts. space: "global" or "shared". op: "load" or "store".
        array: the name of an array, or None for all together, which may be less than the sum over the arrays.
        Raises UnknownName for other words, and AttributeError unless ``as_compiled=True`` was passed to
        :func:`emulate`.
        """
        self._require_least()
        _require("count", column, COUNTS)
        _require("space", space, _MERGED["space"])
        _require("op", op, _MERGED["op"])
        if array is not None:
            self._require_known("array", array)
        return self._least_of(space, op, array)[COUNTS.index(column)]

    def _least_of(self, space, op, array) -> list[int]:
        return [int(count) for count in self._least.get((space, op, array), (0,) * len(COUNTS))]

    def _require_least(self):
        if self._least is None:
            raise AttributeError("this was not counted: pass as_compiled=True to emulate()")

    def _rows(self, where: dict) -> pd.DataFrame:
        """Return the rows of ``accesses`` with these values."""
        frame = self.accesses
        for name, value in where.items():
            _require("column to select by", name, _KEYS)
            self._require_known(name, value)
            frame = frame[frame[name] == value]
        return frame

    def _require_known(self, column, value):
        """Refuse a misspelt value, which would select nothing and count as 0. Numbers such as lines pass."""
        if column == "array":
            # A declared array may have no access.
            if value not in {site.op for site in self._sites.values()}:
                _require(column, value, self._arrays(), parts=True)
        elif column in _VALUES:
            _require(column, value, _VALUES[column])
        elif column == "function":
            _require(column, value, {site.function for site in self._sites.values()})

    def _arrays(self) -> list[str]:
        """Return the names of the arguments, then those of all arrays that were accessed."""
        return [*parameter_names(self.function), *sorted(set(self.accesses["array"]))]

    def totals(self) -> dict[str, int]:
        """Return global requests and sectors, shared wavefronts, FLOP and barriers, without using frames."""
        spaces = {"global": np.zeros(len(_COUNTS), np.int64), "shared": np.zeros(len(_COUNTS), np.int64)}
        for what, counts in self._tallies.accesses.items():
            if what.space in spaces:
                spaces[what.space] += np.array(counts, np.int64)
        by_space = {space: dict(zip(_COUNTS, counts.tolist())) for space, counts in spaces.items()}
        operations = ((what.op, int(lanes)) for what, lanes in self._tallies.arithmetic.items())
        return {
            "requests": by_space["global"]["requests"],
            "sectors": by_space["global"]["sectors"],
            "wavefronts": by_space["shared"]["wavefronts"],
            "flop": sum(lanes * (2 if op in ("fma", "mma") else 1) for op, lanes in operations),
            "barriers": self.barriers,
        }

    def file_of(self, finding: Finding) -> str:
        """Return the file of a finding's line, which may be a device function's file, not the kernel's."""
        if finding.file is not None:
            return finding.file
        site = self._sites.get(finding.site)
        return site.file if site is not None else self.function.__code__.co_filename

    # ---- figures that follow from the counts ----

    @property
    def ok(self) -> bool:
        """Whether there are no errors. Advice is allowed."""
        return not self.errors

    @property
    def errors(self) -> list[Finding]:
        return [f for f in self.findings if f.severity == "error"]

    @property
    def advice(self) -> list[Finding]:
        return [f for f in self.findings if f.severity == "advice"]

    @property
    def flops(self) -> int:
        """The number of floating-point operations. A multiply-add, fused or on a Tensor Core, is two."""
        frame = self.arithmetic
        return int(frame["lanes"].sum() + frame.loc[frame["op"].isin(("fma", "mma")), "lanes"].sum())

    @property
    def global_bytes(self) -> int:
        """The number of bytes that global requests move: 32 per sector, as if there were no cache."""
        return 32 * self.total("sectors", space="global")

    @property
    def intensity(self) -> float:
        """Arithmetic intensity: FLOP per byte of requested global traffic, as if there were no cache."""
        return self.flops / self.global_bytes if self.global_bytes else float("inf")

    def sectors_per_request(self, **where) -> float:
        """Return the sectors per request of global memory, or 0 if there are no requests.

        where: as in :meth:`total`, without space.
        """
        if "space" in where:
            raise UnknownName("sectors are counted in global memory alone: leave out space")
        requests = self.total("requests", space="global", **where)
        return self.total("sectors", space="global", **where) / requests if requests else 0.0

    @property
    def bank_conflicts(self) -> int:
        """The number of shared wavefronts beyond those that the width of the accesses requires."""
        return self.total("wavefronts", space="shared") - self.total("ideal_wavefronts", space="shared")

    # ---- output ----

    @cached_property
    @guarded
    def by_line(self) -> pd.DataFrame:
        """A frame of the kernel's source lines with the totals of each line."""
        lines, start = self._source
        numbers = range(start, start + len(lines))
        frame = _frame({"line": numbers, "source": [text.rstrip("\n") for text in lines]})
        moved, computed = (
            rows[rows["function"] == self.function.__name__] for rows in (self.accesses, self.arithmetic)
        )
        costs = moved[moved["space"] != "local"].groupby("line")[["requests", "sectors", "wavefronts"]].sum()
        operations = computed.groupby("line")["lanes"].sum().rename("operations")
        frame = frame.join(costs, on="line").join(operations, on="line")
        return frame.astype(dict.fromkeys(_LINE_COLUMNS, "Int64"))

    @guarded
    def __str__(self):
        frame = self.by_line
        width = max(len(text) for text in frame["source"]) + 2
        head = f"{'':>5} {'':<{width}}{'requests':>12}{'sectors':>12}{'wavefronts':>12}{'operations':>14}"
        body = [
            f"{line:>5} {source:<{width}}"
            + "".join(f"{_cell(value):>{w}}" for value, w in zip(costs, (12, 12, 12, 14)))
            for line, source, *costs in frame.itertuples(index=False)
        ]
        notes = [f"{f.severity}: {f}" for f in self.findings] or ["nothing found wrong"]
        return "\n".join([head, *body, "", self._summary(), *self._compiled(), *notes, *self._silenced()])

    def _compiled(self) -> list[str]:
        """Return sentences about the least that compiled code does, if the launch asked for it."""
        if self._least is None:
            return []
        told = []
        for space, op in product(*_MERGED.values()):
            columns = ("requests", "sectors" if space == "global" else "wavefronts")
            parts = [
                self._both(column, space, op) for column in columns if self.total(column, space=space, op=op)
            ]
            told += [f"{space} {op}s: {'; '.join(parts)}"] if parts else []
        return told

    def _both(self, column, space, op) -> str:
        written, least = self.total(column, space=space, op=op), self.at_least(column, space, op)
        return f"{written:,} {column} as written, at least {least:,} as compiled"

    def _silenced(self) -> list[str]:
        """Return a list with a sentence about the silenced findings, or an empty list if there are none."""
        found = ", ".join(f"{f.kind} in line {f.line} ({f.count:,} times)" for f in self.silenced)
        return [f"silenced: {found}"] if found else []

    def _summary(self) -> str:
        return (
            f"{self.total('sectors', space='global'):,} sectors of global memory, "
            f"{self.total('wavefronts', space='shared'):,} wavefronts of shared memory "
            f"({self.bank_conflicts:,} of them bank conflicts), "
            f"{self.flops:,} FLOP, {self.barriers:,} barriers"
        )

    @guarded
    def _repr_html_(self):
        head = "".join(f"<th scope='col'>{name}</th>" for name in ("line", "source", *_LINE_COLUMNS))
        body = "".join(_html_row(*row) for row in self.by_line.itertuples(index=False))
        notes = "".join(
            f"<li><b>{f.kind.replace('_', ' ')}</b>, line {f.line}: {html.escape(f.message)}</li>"
            for f in self.findings
        )
        notes += "".join(f"<li>{html.escape(text)}</li>" for text in self._silenced())
        compiled = "".join(f"<p>{html.escape(text)}</p>" for text in self._compiled())
        return (
            f"<table><caption>{html.escape(self._summary())}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"{compiled}<ul>{notes or '<li>nothing found wrong</li>'}</ul>"
        )


def _require(what: str, name, known, parts=False):
    """Raise UnknownName unless ``name`` is known. ``parts``: whether a known name's parts are known too."""
    whole = re.split(r"[.\[]", name)[0] if parts and isinstance(name, str) else name
    if name not in known and whole not in known:
        listed = ", ".join(map(str, dict.fromkeys(known)))
        raise UnknownName(
            f"the report has no {what} named {name!r}; it has {listed}{did_you_mean(str(name), known)}"
        )


def _frame(data, columns=None) -> pd.DataFrame:
    """Return a frame. Only this function imports pandas, because the import takes a third of a second."""
    import pandas as pd

    return pd.DataFrame(data, columns=columns)


def _cell(value) -> str:
    from pandas import isna

    return "" if isna(value) else f"{int(value):,}"


def _html_row(line, source, *costs) -> str:
    code = f"<td style='text-align:left'><pre style='margin:0'>{html.escape(source)}</pre></td>"
    return f"<tr><td>{line}</td>{code}" + "".join(f"<td>{_cell(cost)}</td>" for cost in costs) + "</tr>"
