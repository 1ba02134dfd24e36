"""Reads and writes tables of records: CSV files with fixed, typed columns, to which rows are appended."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# The message on a file that cannot be read ends with this advice.
_HELP = "measure again, take a whole copy, or leave that folder out"
_NOT_NEGATIVE = ("milliseconds", "tflops", "cublas_tflops", "triton_tflops", "ratio_to_cublas", "tb_s")
# This many files stay in memory, because pictures are drawn at every move of a slider.
_KEPT = 64
_kept: dict[tuple, Any] = {}
PANDAS_TYPES = {"text": "object", "whole": "Int64", "real": "float64"}


@dataclass(frozen=True)
class Table:
    """The columns of one kind of record, each "text", "whole" or "real". A missing value is an empty field.

    ``later`` names columns that older files lack. They are read as empty, and added when the file is written
    to.
    """

    columns: Mapping[str, str]
    later: tuple[str, ...] = ()

    def read(self, path: Path) -> pd.DataFrame:
        """Return all rows of a file, with this table's types, or no rows if there is no such file.

        Raise ValueError, with a sentence that names the file, if it is not a CSV file, if it has other
        columns, or if a number cannot be read or is negative where it must not be.
        """
        import pandas as pd

        if not path.exists() or not path.stat().st_size:
            return self._typed(pd.DataFrame(columns=list(self.columns)))
        stat = path.stat()
        as_read = (path, tuple(self.columns), stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if as_read not in _kept:
            while len(_kept) >= _KEPT:
                del _kept[next(iter(_kept))]
            _kept[as_read] = self._read(path)
        return _kept[as_read].copy()

    def _read(self, path: Path) -> pd.DataFrame:
        import pandas as pd

        texts = [name for name, kind in self.columns.items() if kind == "text"]
        types = dict.fromkeys(texts, "object")
        try:
            frame = pd.read_csv(path, dtype=types, na_values=[""], keep_default_na=False)
        except (UnicodeDecodeError, pd.errors.ParserError):
            raise ValueError(f"{path} is no CSV file with commas, in UTF-8: {_HELP}.") from None
        self._compare(path, list(frame.columns))
        self._check_numbers(path, frame)
        frame = frame.reindex(columns=list(self.columns))
        frame[texts] = frame[texts].astype("object").fillna("")
        return self._typed(frame)

    def rows(self, path: Path) -> list[dict[str, Any]]:
        """Return all rows of a file, in the form that `append` takes."""
        frame = self.read(path)
        return frame.astype(object).where(frame.notna(), None).to_dict("records")

    def append(self, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows at the end of a file, which is made if necessary. They are on the disk when this returns.

        Raise ValueError for a row whose keys are not this table's columns.
        """
        lines = [self._line(row) for row in rows]
        begin = not path.exists() or path.stat().st_size == 0
        path.parent.mkdir(parents=True, exist_ok=True)
        if not begin:
            self._compare(path, _header(path))
            if _header(path) != list(self.columns):
                self.write(path, self.rows(path))
        with path.open("a", newline="", encoding="utf-8") as file:
            if begin:
                file.write(_csv_line(self.columns))
            file.writelines(lines)

    def write(self, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace a file's rows by these. An interruption leaves the old file whole."""
        new = path.with_name(f"{path.name}.new")
        new.unlink(missing_ok=True)
        self.append(new, rows)
        new.replace(path)

    def cut_partial_line(self, path: Path) -> None:
        """Cut off a last line that an interruption left half-written."""
        if path.exists():
            content = path.read_bytes()
            if not content.endswith(b"\n"):
                path.write_bytes(content[: content.rfind(b"\n") + 1])

    def _line(self, row: Mapping[str, Any]) -> str:
        if set(row) != set(self.columns):
            missing, extra = set(self.columns) - set(row), set(row) - set(self.columns)
            raise ValueError(f"a row lacks {sorted(missing)} and has {sorted(extra)} too many")
        return _csv_line(_field(row[name], kind) for name, kind in self.columns.items())

    def _compare(self, path: Path, found: list[str]) -> None:
        older = [name for name in self.columns if name not in self.later]
        if found not in (list(self.columns), older):
            lacks = [name for name in older if name not in found]
            unknown = [name for name in found if name not in self.columns]
            told = [f"lacks {', '.join(lacks)}"] if lacks else []
            told += [f"has columns that are not known, {', '.join(unknown)}"] if unknown else []
            raise ValueError(f"{path} {' and '.join(told) or 'has its columns in another order'}: {_HELP}.")

    def _check_numbers(self, path: Path, frame: pd.DataFrame) -> None:
        import pandas as pd

        for name in (each for each in frame if self.columns[each] != "text"):
            numbers = pd.to_numeric(frame[name], errors="coerce")
            wrong = numbers.isna() & frame[name].notna()
            if name in _NOT_NEGATIVE:
                wrong |= numbers < 0
            if wrong.any():
                line, value = wrong.idxmax() + 2, frame[name][wrong.idxmax()]
                raise ValueError(f"{path}, line {line}: {name} cannot be {value}: {_HELP}.")

    def _typed(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame.astype({name: PANDAS_TYPES[kind] for name, kind in self.columns.items()})


def parse_tiles(text: str) -> dict[str, int]:
    """Return the tiles in a text: "BM=128 BN=128" -> {"BM": 128, "BN": 128}.

    The inverse is `tiles_text` of the kernels. Raise ValueError for any other text.
    """
    try:
        return {
            name: int(value) for name, value in (part.split("=") for part in text.replace(",", " ").split())
        }
    except ValueError:
        raise ValueError(f"tiles are written BM=128 BN=128 BK=16, not {text!r}") from None


def _field(value: Any, kind: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if kind == "whole":
        return str(int(value))
    return f"{float(value):.6g}" if kind == "real" else str(value)


def _csv_line(fields: Iterable[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(list(fields))
    return buffer.getvalue()


def _header(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file))
