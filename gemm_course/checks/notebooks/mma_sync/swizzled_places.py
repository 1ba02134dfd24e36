"""Checks swizzles, with which no read by ldmatrix may have a bank conflict."""

from collections.abc import Callable

from gemm_course.checks.core import Refused, call, exercise, function_of, whole_number

# Eight pieces of 16 bytes fill all 32 banks, and ldmatrix reads eight rows at a time.
EIGHT = 8
BYTES = 16  # of a piece
ROWS = 64
NARROW_TO_WIDE = (8, 4, 2, 16, 32)


@exercise(
    start="return a place for each piece, a number from 0 on. In every row another order.",
    hints=(
        "Eight rows, and in each the same piece must go to a different one of 8 places. Let the row decide.",
        "Two things must hold: within a row, 8 pieces go to 8 different places; and piece p goes to 8 "
        "different places in 8 rows.",
        "Move a row on by its number, and take what runs over at the front: `(piece + row) % 8`. Or flip "
        "those bits of `piece` that are 1 in `row % 8`: `piece ^ row % 8`, where `^` is Python's *xor*.",
    ),
)
def swizzle(place):
    """place(row, piece) -> where a row of 8 pieces keeps one of them, 0 to 7."""
    function_of(place, ("row", "piece"))
    _hold({EIGHT: _table(place, EIGHT)})
    return (
        f"Proven for {ROWS} rows: all {ROWS} reads of 8 pieces, one below the other, take one "
        "wavefront, and so does each copy of a row. Not one byte of padding."
    )


@exercise(
    start="return a place for each piece, a number from 0 on. In every row another order.",
    hints=(
        "Draw rows of 4 pieces: rows 0 and 1 fill the 128 bytes of all banks together, rows 2 and 3 lie "
        "under them. Which rows can meet in a bank?",
        "Only rows that begin in the same bank can meet: those that are `8 // pieces` apart. So neighbours "
        "that share 128 bytes need the same swap, and the next ones another. (With 16 pieces that is 0: use "
        "`max`.)",
        "Rows of 4: `piece ^ (row // 2 % 4)`. Rows of 2: `piece ^ (row // 4 % 2)`. Rows of 8 or more: "
        "`piece ^ "
        "(row % 8)`. Find one formula with `max` and `min`, or write an `if`.",
    ),
)
def swizzle_any(place):
    """place(row, piece, pieces) -> where a row of so many pieces keeps one; pieces is 2, 4, 8, 16 or 32."""
    function_of(place, ("row", "piece", "pieces"))
    _hold({pieces: _table(place, pieces, pieces) for pieces in NARROW_TO_WIDE})
    return (
        f"Proven for rows of {', '.join(map(str, sorted(NARROW_TO_WIDE)))} pieces and {ROWS} rows each: no "
        "read of 8 pieces, one below the other, has a bank conflict."
    )


def _hold(tables: dict[int, list[list[int]]]) -> None:
    """Check the places in rows of so many pieces against both rules."""
    if all(row == list(range(pieces)) for pieces, table in tables.items() for row in table):
        raise Refused(
            "Every piece stays where it was, in every row. Then the 8 pieces of a column lie in the same "
            "banks.",
            _of_conflict(tables[EIGHT], EIGHT),
        )
    for pieces, table in tables.items():
        _check_rows(table, pieces)
    for pieces, table in tables.items():
        _check_columns(table, pieces)


def _table(place: Callable[..., int], pieces: int, *told: int) -> list[list[int]]:
    """Return the places of all pieces of all rows. ``told`` is what the learner's function gets besides."""
    try:
        return [
            [
                call(place, row, piece, *told, read=lambda answer: whole_number(answer, "the place"))
                for piece in range(pieces)
            ]
            for row in range(ROWS)
        ]
    except Refused as refused:
        if pieces <= EIGHT or "ZeroDivisionError" not in refused.message:
            raise
        raise Refused(
            f"{refused.message} A row of {pieces} pieces is longer than the 128 bytes of all banks, and "
            "`8 // pieces` is 0. There every row needs another swap, as with 8 pieces.",
            refused.where,
        ) from None


def _check_rows(table: list[list[int]], pieces: int) -> None:
    """Check that a row's pieces go to the row's own places, each to another."""
    said = f"Rows have {pieces} pieces."
    for row, places in enumerate(table):
        for piece, where in enumerate(places):
            if not 0 <= where < pieces:
                raise Refused(_outside(table, pieces), f"Row {row}, piece {piece}: place {where}. {said}")
            if where in places[:piece]:
                raise Refused(
                    "Two pieces of a row are stored at the same place: one overwrites the other.",
                    f"Row {row}, pieces {places.index(where)} and {piece}: place {where}. {said}",
                )


def _outside(table: list[list[int]], pieces: int) -> str:
    flat = [where for places in table for where in places]
    if any(where % BYTES for where in flat) is False and max(flat) >= pieces:
        return "Places count pieces, 0, 1, 2 and so on, not bytes: do not multiply by 16."
    if any(where % EIGHT for where in flat) is False and max(flat) >= pieces:
        return "Places count pieces, 0, 1, 2 and so on, not FP16 values: do not multiply by 8."
    if any(where % 4 for where in flat) is False and max(flat) >= pieces:
        return "Places count pieces, 0, 1, 2 and so on, not banks: do not multiply by 4."
    if min(flat) == 1 and max(flat) == pieces:
        return f"Places count from 0: in rows of {pieces} pieces from 0 to {pieces - 1}."
    if all(set(places) == set(range(row * pieces, (row + 1) * pieces)) for row, places in enumerate(table)):
        return f"That counts through the whole tile. A place is counted within its row, 0 to {pieces - 1}."
    if any(table == _added_to(pieces, span) for span in {pieces, EIGHT}):
        return "`%` is done before `+`: only the row is folded. Use brackets: `(piece + row) % ...`."
    if min(flat) < 0:
        return "A place is negative: in shared memory that is another row. Fold it back by `%`."
    return "A place lies beyond the end of its row, in the next one. Fold it back by `%`."


def _added_to(pieces: int, span: int) -> list[list[int]]:
    """Return the table of `piece + row % span`."""
    return [[piece + row % span for piece in range(pieces)] for row in range(ROWS)]


def _check_columns(table: list[list[int]], pieces: int) -> None:
    """Check that eight rows from a multiple of 8 on keep the same piece in eight different parts of the
    banks.
    """
    for first in range(0, ROWS, EIGHT):
        for piece in range(pieces):
            banks = _banks(table, pieces, first, piece)
            if len(set(banks)) < EIGHT:
                raise Refused(_why(table, pieces, first, banks), _where(banks, pieces, first, piece))


def _banks(table: list[list[int]], pieces: int, first: int, piece: int) -> list[int]:
    """Return the first of the 4 banks of the piece in each of 8 rows."""
    return [(row * pieces + table[row][piece]) % EIGHT * 4 for row in range(first, first + EIGHT)]


def _of_conflict(table: list[list[int]], pieces: int) -> str:
    return _where(_banks(table, pieces, 0, 0), pieces, 0, 0)


def _where(banks: list[int], pieces: int, first: int, piece: int) -> str:
    most = max(banks.count(bank) for bank in banks)
    return (
        f"Rows of {pieces} pieces: piece {piece} of rows {first} to {first + 7} begins in banks "
        f"{', '.join(map(str, banks))}, which takes {most} wavefronts."
    )


def _why(table: list[list[int]], pieces: int, first: int, banks: list[int]) -> str:
    """Return the likely reason for a conflict: what the places do not depend on, or which rows share them."""
    if all(places == table[0] for places in table):
        return "All rows are swapped in the same way: the pieces of a column still lie one below the other."
    if all(table[row] == table[row % 2] for row in range(ROWS)) and pieces > 2:
        return "There are only two kinds of rows, even and odd ones: 8 rows need 8 different places."
    if pieces >= EIGHT and all(table[row] == table[row // 8 * 8] for row in range(ROWS)):
        return "The place changes every 8 rows. But these 8 rows are read together: it must change in each."
    if pieces >= EIGHT and all(table[row] == table[row // 2 * 2] for row in range(ROWS)):
        return (
            "Two neighbouring rows are swapped in the same way, and with rows this long both begin in bank 0."
        )
    if pieces >= EIGHT and all(table[row] == table[row % 4] for row in range(ROWS)):
        return "The swaps repeat after 4 rows: rows 0 and 4 keep a piece at the same place. Repeat after 8."
    if pieces < EIGHT and all(table[row] == table[row % pieces] for row in range(ROWS)):
        return (
            f"In short rows `row % {pieces}` is the wrong count. A row of {pieces} pieces is shorter than "
            f"the {EIGHT * 16} bytes of all banks, so some rows lie side by side there and cannot meet. "
            "Which rows do meet? Those must differ."
        )
    again = next(place for place, bank in enumerate(banks) if bank in banks[:place])
    rows = f"Rows {first + banks.index(banks[again])} and {first + again}"
    if pieces > EIGHT:
        return (
            f"{rows} keep a piece in the same banks. In rows longer than 128 bytes, places that are a "
            "multiple of 8 apart share their banks."
        )
    return f"{rows} are read together and keep a piece in the same banks. They need different swaps."
