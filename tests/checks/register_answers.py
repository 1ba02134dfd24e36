"""Answers with the right result: solutions with a loop rewritten, whose arrays stay in registers or not.

Each is here with what NVIDIA's compiler makes of it for compute capability 9.0 with the tiles that the
checkers ask about.
"""

import re
from dataclasses import dataclass

from tests.wrong_solutions.altering import Change, changed, solution
from tests.wrong_solutions.thread_tiles_1d import ADD, ADD_LOOP, IS_COLUMN, STORE_LOOP, ZERO_LOOP


@dataclass(frozen=True)
class Answer:
    """A cell that ends in a call of its checker. stays: in registers, as compiled."""

    cell: str
    stays: bool


def answers_of(exercise: str) -> dict[str, Answer]:
    """All answers to an exercise, by what is special about them."""
    kinds = {True: STAYING, False: LEAVING}
    return {
        name: Answer(rewritten(exercise, changes), stays)
        for stays, answers in kinds.items()
        for name, changes in answers.get(exercise, {}).items()
    }


def rewritten(exercise: str, changes: tuple) -> str:
    """The solution with texts replaced, pairs, or rewritten by functions of the cell."""
    cell = solution(exercise)
    for change in changes:
        cell = change(cell) if callable(change) else changed(cell, change)
    return cell


def with_while(*loops: tuple[str, str]):
    """Turn each `for i in range(R):` into a `while`; loops: variable and end of each."""

    def rewrite(cell: str) -> str:
        for variable, end in loops:
            cell = _with_while(cell, variable, end)
        return cell

    return rewrite


def _with_while(cell: str, variable: str, end: str) -> str:
    new, open_loops = [], []
    for line in cell.split("\n"):
        depth = len(line) - len(line.lstrip())
        while open_loops and line.strip() and depth <= open_loops[-1]:
            new.append(f"{' ' * (open_loops.pop() + 4)}{variable} += 1")
        if line.strip() == f"for {variable} in range({end}):":
            new += [f"{' ' * depth}{variable} = 0", f"{' ' * depth}while {variable} < {end}:"]
            open_loops.append(depth)
        else:
            new.append(line)
    return "\n".join(new)


def last(old: str, new: str):
    """Replace the last of several places."""

    def rewrite(cell: str) -> str:
        before, found, after = cell.rpartition(old)
        if not found:
            raise ValueError(f"there is no {old!r} in\n{cell}")
        return before + new + after

    return rewrite


def everywhere(pattern: str, new: str):
    """Replace what a regular expression finds."""

    def rewrite(cell: str) -> str:
        if not re.search(pattern, cell):
            raise ValueError(f"there is no {pattern!r} in\n{cell}")
        return re.sub(pattern, new, cell)

    return rewrite


# ---- in_registers: a vector times a matrix, R = 16 results per thread --------------------------------------

FIRST = "first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x\n"
COUNT = FIRST, f"{FIRST}        count = min(R, (n - first + 31) // 32)\n"
SHORT_ADD = f"for i in range(count):\n                {ADD}\n"
SHORT_STORE = "for i in range(count):\n            y[first + 32 * i] = acc[i]\n"


def _added(*lines: str) -> Change:
    """Other lines in place of the loop that adds."""
    return ADD_LOOP, "\n            ".join(lines) + "\n"


def _stored(*lines: str) -> Change:
    return STORE_LOOP, "\n        ".join(lines) + "\n"


def _at(index: str) -> tuple[Change, Change]:
    """The accumulators in another order."""
    return (
        _added("for i in range(R):", f"    {IS_COLUMN}", f"        {ADD.replace('acc[i]', f'acc[{index}]')}"),
        _stored("for i in range(R):", f"    {IS_COLUMN}", f"        y[first + 32 * i] = acc[{index}]"),
    )


STRIP_STAYING = {
    "as_it_is": (),
    "length_of_the_array": (("in range(R)", "in range(len(acc))"),),
    "size_of_the_array": (("in range(R)", "in range(acc.size)"),),
    "shape_of_the_array": (("in range(R)", "in range(acc.shape[0])"),),
    "all_in_while": (with_while(("i", "R")),),
    "while_with_two_conditions": (
        _added("i = 0", "while first + 32 * i < n and i < R:", f"    {ADD}", "    i += 1"),
    ),
    "while_with_break": (
        _added(
            "i = 0",
            "while i < R:",
            "    if first + 32 * i >= n:",
            "        break",
            f"    {ADD}",
            "    i += 1",
        ),
    ),
    "while_true": (
        _added(
            "i = 0",
            "while True:",
            "    if i == R:",
            "        break",
            f"    {IS_COLUMN}",
            f"        {ADD}",
            "    i += 1",
        ),
    ),
    "while_of_count": (COUNT, _added("i = 0", "while i < count:", f"    {ADD}", "    i += 1")),
    "while_of_min": (
        _added("i = 0", "while i < min(R, (n - first + 31) // 32):", f"    {ADD}", "    i += 1"),
    ),
    "while_of_columns": (
        _added(
            "i, c = 0, first",
            "while c < n and c < first + 32 * R:",
            "    acc[i] += xp * A[p, c]",
            "    i += 1",
            "    c += 32",
        ),
    ),
    "counted_by_assignment": (
        _added("i = 0", "while i < R:", f"    {IS_COLUMN}", f"        {ADD}", "    i = i + 1"),
    ),
    "counted_down": (_added("i = R", "while i > 0:", "    i -= 1", f"    {IS_COLUMN}", f"        {ADD}"),),
    "for_with_break": (
        _added("for i in range(R):", "    if first + 32 * i >= n:", "        break", f"    {ADD}"),
    ),
    "for_with_break_at_count": (
        COUNT,
        _added("for i in range(R):", "    if i >= count:", "        break", f"    {ADD}"),
    ),
    "backwards": (("in range(R)", "in range(R - 1, -1, -1)"),),
    "all_set_at_once": ((ZERO_LOOP, "acc[:] = 0\n"),),
    "columns_as_the_variable": (
        _added(
            "for c in range(first, first + 32 * R, 32):",
            "    if c < n:",
            "        acc[(c - first) // 32] += xp * A[p, c]",
        ),
    ),
    "running_index": (
        _added(
            "i = 0",
            "for c in range(first, first + 32 * R, 32):",
            "    if c < n:",
            "        acc[i] += xp * A[p, c]",
            "    i += 1",
        ),
    ),
    "running_index_to_the_end": (
        _added(
            "i = 0",
            "for c in range(first, min(n, first + 32 * R), 32):",
            "    acc[i] += xp * A[p, c]",
            "    i += 1",
        ),
    ),
    "running_index_in_a_short_loop": (
        COUNT,
        _added("i = 0", "for j in range(count):", f"    {ADD}", "    i += 1"),
    ),
    "short_loop_that_stores_results": (COUNT, (STORE_LOOP, SHORT_STORE)),
    "short_loop_that_stores_zeros": (COUNT, (ZERO_LOOP, "for i in range(count):\n            acc[i] = 0\n")),
    "while_that_stores_results": (
        _stored(
            "i = 0", "while first + 32 * i < n and i < R:", "    y[first + 32 * i] = acc[i]", "    i += 1"
        ),
    ),
    "in_pairs": (
        _added(
            "for e in range(2 * R):",
            "    i, odd = divmod(e, 2)",
            "    if odd and first + 32 * i < n:",
            f"        {ADD}",
        ),
    ),
    "in_halves": (
        _added(
            "for h in range(2):",
            "    for i in range(h * R // 2, (h + 1) * R // 2):",
            f"        {IS_COLUMN}",
            f"            {ADD}",
        ),
    ),
    "in_fours_of_a_tuple": (
        _added(
            "for q in range(0, R, 4):",
            "    for e, one in enumerate((float32(1), float32(1), float32(1), float32(1))):",
            "        if first + 32 * (q + e) < n:",
            "            acc[q + e] += one * xp * A[p, first + 32 * (q + e)]",
        ),
    ),
    "over_a_tuple": (
        ("    @cuda.jit", "    EACH = tuple(range(R))\n\n    @cuda.jit"),
        _added("for i in EACH:", f"    {IS_COLUMN}", f"        {ADD}"),
    ),
    "found_by_search": (
        _added(
            "for i in range(R):",
            "    for j in range(R):",
            "        if i == j and first + 32 * i < n:",
            "            acc[j] += xp * A[p, first + 32 * i]",
        ),
    ),
    "order_of_two_branches": (
        _added(
            "for i in range(R):",
            "    j = i if n > 100 else R - 1 - i",
            "    if first + 32 * j < n:",
            "        acc[j] += xp * A[p, first + 32 * j]",
        ),
    ),
    "mirrored": _at("R - 1 - i"),
    "from_the_end": _at("-1 - i"),
    "pairs_swapped": _at("i ^ 1"),
    "shifted_in_a_ring": _at("(i + 3) % R"),
}
STRIP_LEAVING = {
    "rotated_by_the_step": (
        _added(
            "for i in range(R):",
            "    j = (i + p) % R",
            "    if first + 32 * j < n:",
            "        acc[j] += xp * A[p, first + 32 * j]",
        ),
    ),
    "rotated_by_the_lane": _at("(i + cuda.threadIdx.x) % R"),
    "rotated_by_the_block": _at("(i + cuda.blockIdx.x) % R"),
    "rotated_by_an_argument": _at("(i + k) % R"),
    "swapped_by_the_lane": _at("i ^ (cuda.threadIdx.x % 2)"),
    "by_column_in_a_ring": (
        _added(
            "for c in range(first, first + 32 * R, 32):",
            "    if c < n:",
            "        acc[c // 32 % R] += xp * A[p, c]",
        ),
        _stored(
            "for c in range(first, first + 32 * R, 32):", "    if c < n:", "        y[c] = acc[c // 32 % R]"
        ),
    ),
    "rotated_by_a_counter": (
        (ZERO_LOOP, f"{ZERO_LOOP}        s = 0\n"),
        _added(
            "for i in range(R):",
            "    j = (i + s) % R",
            "    if first + 32 * j < n:",
            "        acc[j] += xp * A[p, first + 32 * j]",
            "s = (s + 1) % R",
        ),
    ),
    "to_and_fro": (
        (ZERO_LOOP, f"{ZERO_LOOP}        s = 0\n"),
        _added(
            "for i in range(R):",
            "    j = (i + s) % R",
            "    if first + 32 * j < n:",
            "        acc[j] += xp * A[p, first + 32 * j]",
            "s = 1 - s",
        ),
    ),
    "short_loop_that_adds": (COUNT, (ADD_LOOP, SHORT_ADD)),
    "short_loops_as_handed_out_and_a_guard": (
        COUNT,
        _added("for i in range(count):", f"    {IS_COLUMN}", f"        {ADD}"),
        (STORE_LOOP, SHORT_STORE),
    ),
    "short_loop_spelled_out": (
        COUNT,
        _added("for i in range(count):", "    acc[i] = acc[i] + xp * A[p, first + 32 * i]"),
    ),
    "short_loop_of_min": (_added("for i in range(min(R, (n - first + 31) // 32)):", f"    {ADD}"),),
    "short_loop_of_columns": (
        _added(
            "for c in range(first, min(n, first + 32 * R), 32):",
            "    acc[(c - first) // 32] += xp * A[p, c]",
        ),
    ),
    "all_columns_with_a_guard": (
        _added("for i in range((n - first + 31) // 32):", "    if i < R:", f"        {ADD}"),
    ),
    "all_columns_with_break": (
        _added(
            "for i in range(n):",
            "    if i >= R or first + 32 * i >= n:",
            "        break",
            f"    {ADD}",
        ),
    ),
    "while_to_the_end_with_a_guard": (
        _added("i = 0", "while first + 32 * i < n:", "    if i < R:", f"        {ADD}", "    i += 1"),
    ),
    "while_to_the_end_with_break": (
        _added(
            "i = 0",
            "while first + 32 * i < n:",
            "    if i == R:",
            "        break",
            f"    {ADD}",
            "    i += 1",
        ),
    ),
    "running_index_behind_a_guard": (
        _added(
            "i = 0",
            "for c in range(first, first + 32 * R, 32):",
            "    if c < n:",
            "        acc[i] += xp * A[p, c]",
            "        i += 1",
        ),
    ),
    "loop_over_the_array_that_adds": (
        _added(
            "for i, one in enumerate(acc):",
            f"    {IS_COLUMN}",
            "        acc[i] = one + xp * A[p, first + 32 * i]",
        ),
    ),
    "loop_over_the_array_that_stores": (
        _stored(
            "i = 0", "for one in acc:", f"    {IS_COLUMN}", "        y[first + 32 * i] = one", "    i += 1"
        ),
    ),
    "enumerate_that_stores": (
        _stored("for i, one in enumerate(acc):", f"    {IS_COLUMN}", "        y[first + 32 * i] = one"),
    ),
    "zip_that_stores": (
        _stored("for i, one in zip(range(R), acc):", f"    {IS_COLUMN}", "        y[first + 32 * i] = one"),
    ),
}


# ---- thread_columns: TM results per thread -----------------------------------------------------------------

STEP = "acc[i] += As[ty * TM + i, p] * b"
STEPS = f"for i in range(TM):\n                    {STEP}\n"
ZEROS = "for i in range(TM):\n            acc[i] = 0\n"


def _rotated_column(index: str) -> tuple[Change]:
    return ((STEP, f"j = {index}\n                    acc[j] += As[ty * TM + j, p] * b"),)


COLUMN_STAYING = {
    "all_in_while": (with_while(("i", "TM")),),
    "length_of_the_array": (("in range(TM)", "in range(len(acc))"),),
    "size_of_the_array": (("in range(TM)", "in range(acc.size)"),),
    "rows_as_the_variable": (
        (
            STEPS,
            "y0 = ty * TM\n                for y in range(y0, y0 + TM):\n"
            "                    acc[y - y0] += As[y, p] * b\n",
        ),
    ),
    "rows_without_a_name": (
        (
            STEPS,
            "for y in range(ty * TM, ty * TM + TM):\n                    acc[y - ty * TM] += As[y, p] * b\n",
        ),
    ),
    "all_set_at_once": ((ZEROS, "acc[:] = 0\n"),),
    "short_loop_that_stores": (last("for i in range(TM):", "for i in range(min(TM, m - row0 - ty * TM)):"),),
}
COLUMN_LEAVING = {
    "rotated_by_the_step": _rotated_column("(i + p) % TM"),
    "rotated_by_the_lane": _rotated_column("(i + tx) % TM"),
    "rotated_by_the_row": _rotated_column("(i + ty) % TM"),
    "swapped_by_the_lane": _rotated_column("i ^ (tx & 1)"),
    "loop_over_the_array_that_adds": (
        (STEPS, "for i, one in enumerate(acc):\n                    acc[i] = one + As[ty * TM + i, p] * b\n"),
    ),
    "loop_over_the_array_that_stores": (
        last("for i in range(TM):", "for i, one in enumerate(acc):"),
        last("alpha * acc[i] + beta", "alpha * one + beta"),
        last("else alpha * acc[i]", "else alpha * one"),
    ),
}


# ---- outer_product and runs_of_four: two dimensions --------------------------------------------------------

PRODUCTS = """for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]"""
PLACES = """for i in range(TM):
            for j in range(TN):
                row, col = row0 + ty * TM + i, col0 + tx * TN + j
"""
ONE_DIMENSION = (
    ("    @cuda.jit\n", "    SIZE = TM * TN\n\n    @cuda.jit\n"),
    ("cuda.local.array((TM, TN), float32)", "cuda.local.array(SIZE, float32)"),
)


def _device_function(*lines: str) -> tuple[Change, Change]:
    """The products by a function that is given the arrays."""
    head = "    @cuda.jit(device=True)\n    def add(acc, a, b):\n"
    body = "".join(f"        {line}\n" for line in lines)
    return ("    @cuda.jit\n", f"{head}{body}\n    @cuda.jit\n"), (PRODUCTS, "add(acc, a, b)")


OUTER_STAYING = {
    "in_one_dimension": (*ONE_DIMENSION, ("acc[i, j]", "acc[i * TN + j]")),
    "in_one_dimension_counted_up": (
        *ONE_DIMENSION,
        (
            PRODUCTS,
            "e = 0\n                for i in range(TM):\n                    for j in range(TN):\n"
            "                        acc[e] += a[i] * b[j]\n                        e += 1",
        ),
        ("acc[i, j]", "acc[i * TN + j]"),
    ),
    "row_by_row": (
        (
            PRODUCTS,
            "for i in range(TM):\n                    own = acc[i]\n                    for j in range(TN):\n"
            "                        own[j] += a[i] * b[j]",
        ),
    ),
    "in_a_device_function": _device_function(
        "for i in range(TM):", "    for j in range(TN):", "        acc[i, j] += a[i] * b[j]"
    ),
    "lengths_in_a_device_function": _device_function(
        "for i in range(acc.shape[0]):", "    for j in range(len(b)):", "        acc[i, j] += a[i] * b[j]"
    ),
    "places_as_the_variables": (
        (
            PLACES,
            "top, left = row0 + ty * TM, col0 + tx * TN\n        for row in range(top, top + TM):\n"
            "            for col in range(left, left + TN):\n                i, j = row - top, col - left\n",
        ),
    ),
    "short_loops_that_store": (
        (
            PLACES,
            PLACES.replace("range(TM)", "range(min(TM, m - row0 - ty * TM))").replace(
                "range(TN)", "range(min(TN, n - col0 - tx * TN))"
            ),
        ),
    ),
    "all_in_while": (with_while(("i", "TM"), ("j", "TN")),),
    "one_loop_in_while": (with_while(("j", "TN")),),
    "shape_of_the_array": (
        ("for i in range(TM)", "for i in range(acc.shape[0])"),
        ("for j in range(TN)", "for j in range(acc.shape[1])"),
    ),
    "one_loop_for_both": (
        (
            PRODUCTS,
            "for e in range(TM * TN):\n                    i, j = divmod(e, TN)\n"
            "                    acc[i, j] += a[i] * b[j]",
        ),
    ),
    "all_set_at_once": (
        (
            "for i in range(TM):\n            for j in range(TN):\n                acc[i, j] = 0\n",
            "acc[:, :] = 0\n",
        ),
    ),
}
OUTER_LEAVING = {
    "short_loop_that_stores_rows": (
        (PLACES, PLACES.replace("range(TM)", "range(min(TM, m - row0 - ty * TM))")),
    ),
    "columns_rotated_by_the_lane": (everywhere(r"acc\[i, j\]", "acc[i, (j + tx) % TN]"),),
    "rows_rotated_by_the_step": (
        ("acc[i, j] += a[i] * b[j]", "h = (i + p) % TM\n                        acc[h, j] += a[h] * b[j]"),
    ),
    "rows_swapped_by_the_row": (everywhere(r"acc\[i, j\]", "acc[i ^ (ty & 1), j]"),),
}
RUNS_STAYING = {
    "all_in_while": (with_while(("i", "TM"), ("j", "TN")),),
    "columns_in_while": (with_while(("j", "TN")),),
    "rows_in_while": (with_while(("i", "TM")),),
    "lengths_of_the_arrays": (
        ("for i in range(TM)", "for i in range(len(a))"),
        ("for j in range(TN)", "for j in range(len(b))"),
    ),
}
RUNS_LEAVING = {
    "rotated_by_the_step": (
        ("acc[i, j] += a[i] * b[j]", "h = (j + p) % TN\n                        acc[i, h] += a[i] * b[h]"),
    ),
    "rotated_by_the_lane": (
        ("acc[i, j] += a[i] * b[j]", "h = (j + lane) % TN\n                        acc[i, h] += a[i] * b[h]"),
    ),
    "rows_rotated_by_the_lane": (
        ("acc[i, j] += a[i] * b[j]", "h = (i + lane) % TM\n                        acc[h, j] += a[h] * b[j]"),
    ),
}

STAYING = {
    "in_registers": STRIP_STAYING,
    "thread_columns": COLUMN_STAYING,
    "outer_product": OUTER_STAYING,
    "runs_of_four": RUNS_STAYING,
}
LEAVING = {
    "in_registers": STRIP_LEAVING,
    "thread_columns": COLUMN_LEAVING,
    "outer_product": OUTER_LEAVING,
    "runs_of_four": RUNS_LEAVING,
}
CASES = [(exercise, name) for exercise in STAYING for name in answers_of(exercise)]
