"""Checks ``grouped_tile``: which tile of C a block computes if blocks are numbered group by group."""

from gemm_course.checks.engines.tables import Slip, names_without_effect, table_exercise, whole_numbers

# Each shape is (rows of tiles, columns of tiles, GROUP). Some shapes differ in one number alone.
SHAPES = (
    (4, 3, 2),
    (5, 4, 2),
    (6, 4, 2),
    (5, 3, 2),
    (5, 4, 3),
    (5, 3, 3),
    (7, 3, 4),
    (6, 5, 1),
    (4, 6, 8),
)
CASES = tuple(
    (block, rows, columns, group) for rows, columns, group in SHAPES for block in range(rows * columns)
)


def _full_groups(block, rows, columns, GROUP):
    group, within = divmod(block, GROUP * columns)
    return group * GROUP + within % GROUP, within // GROUP


def _height_by_rows(block, rows, columns, GROUP):
    group, within = divmod(block, GROUP * columns)
    return group * GROUP + within // columns, within % columns


def _swapped(block, rows, columns, GROUP):
    group, within = divmod(block, GROUP * columns)
    height = min(GROUP, rows - group * GROUP)
    return group * GROUP + within // height, within % height


def _first_group(block, rows, columns, GROUP):
    group, within = divmod(block, GROUP * columns)
    height = min(GROUP, rows - group * GROUP)
    return within % height, within // height


def _by_the_block(block, rows, columns, GROUP):
    group, within = divmod(block, GROUP * columns)
    height = min(GROUP, rows - group * GROUP)
    return group * GROUP + block % height, within // height


def _column_first(block, rows, columns, GROUP):
    return grouped_tile.right(block, rows, columns, GROUP)[::-1]


def _rows_for_columns(block, rows, columns, GROUP):
    group, within = divmod(block, GROUP * rows)
    height = min(GROUP, rows - group * GROUP)
    return group * GROUP + within % height, within // height


def _rows_less_groups(block, rows, columns, GROUP):
    group, within = divmod(block, GROUP * columns)
    height = min(GROUP, rows - group)
    return group * GROUP + within % height, within // height


def _columns_in_groups(block, rows, columns, GROUP):
    group, within = divmod(block, GROUP * rows)
    height = min(GROUP, columns - group * GROUP)
    return within // height, group * GROUP + within % height


SLIPS = (
    Slip(
        "The last group may have fewer rows than GROUP, and then has tiles below C. Its height is what is "
        "left: `min(GROUP, rows - group * GROUP)`.",
        _full_groups,
    ),
    Slip(
        "Within a group the blocks are numbered row by row, as without groups. Go down the column first.",
        _height_by_rows,
    ),
    Slip(
        "`//` and `%` are swapped: neighbours lie below each other, so the row within the group changes "
        "first: `within % height`.",
        _swapped,
    ),
    Slip(
        "Every group begins at row 0. Group g begins at row `g * GROUP`.",
        _first_group,
    ),
    Slip(
        "`block % height` counts from block 0. In a lower last group the blocks before it need not be a "
        "multiple of its height: take the number within the group, `within % height`.",
        _by_the_block,
    ),
    Slip("That is right up to the order: first the row, then the column.", _column_first),
    Slip(
        "A group has GROUP rows of `columns` tiles each, so `GROUP * columns` blocks, not `GROUP * rows`.",
        _rows_for_columns,
    ),
    Slip(
        "The height of the last group is what the groups above leave, and these have `group * GROUP` rows: "
        "`min(GROUP, rows - group * GROUP)`.",
        _rows_less_groups,
    ),
    Slip("These are groups of columns. Here a group is GROUP rows of tiles.", _columns_in_groups),
    Slip(
        "Column by column, all of C in one group: where does GROUP come in?",
        lambda b, r, c, G: (b % r, b // r),
    ),
)


def _passed(right) -> str:
    return (
        f"Right for {len(SHAPES)} grids of tiles. In groups of 2, with 5 rows of 4, blocks 0 to 3 compute "
        f"{', '.join(str(right(block, 5, 4, 2)) for block in range(4))}."
    )


@table_exercise(
    start="how many blocks has a group of GROUP rows of tiles, and in which group is `block`?",
    hints=(
        "A full group has `GROUP * columns` blocks: `group, within = divmod(block, GROUP * columns)`.",
        "The last group may be lower: `height = min(GROUP, rows - group * GROUP)`.",
        "Within the group go down the column: row `within % height`, column `within // height`. Then add the "
        "rows of the groups above.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=whole_numbers("row", "column"),
    passed=_passed,
    otherwise=names_without_effect("block", "rows", "columns", "GROUP"),
)
def grouped_tile(block, rows, columns, GROUP):
    """tile_of(block, rows, columns, GROUP) -> (row, column) of its tile; rows, columns: of tiles in C."""
    group, within = divmod(block, GROUP * columns)
    height = min(GROUP, rows - group * GROUP)
    return group * GROUP + within % height, within // height
