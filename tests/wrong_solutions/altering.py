"""Wrong solutions as what they are: the notebook's right one with a line or two written differently.

Each function returns {name of the mistake: Wrong} for one exercise:

    "reverse": altered("reverse", {"no_barrier": ("There is no barrier", ("cuda.syncthreads()", "pass"))}),
    "reads_per_result": returning("reads_per_result", {"words": ("must be a number", '"BK"')}),
    "best_block": passing("best_block", {"one_row": ("There is a shape with fewer", "(32, 8)")}),

The first text is part of the message that names the mistake. The rest are changes (old, new) of the
solution's cell; or what the function returns; or what the checker is called with.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from gemm_course.checks import Verdict
from tests.checks.cells import checked_cells, verdict_of

Change = tuple[str, str]


@dataclass(frozen=True)
class Wrong:
    """A cell with a mistake in it, and words of the message that names it."""

    cell: str
    words: str

    def verdict(self) -> Verdict:
        """What the checker says of it."""
        return verdict_of(self.cell)


def solution(exercise: str) -> str:
    """The cell of an exercise's solution."""
    return checked_cells("solution")[exercise]


def changed(source: str, *changes: Change) -> str:
    """``source`` with each old text replaced by the new. Raises ValueError where an old one is missing."""
    for old, new in changes:
        if old not in source:
            raise ValueError(f"there is no {old!r} in\n{source}")
        source = source.replace(old, new)
    return source


def altered(
    exercise: str, mistakes: Mapping[str, tuple], *, first: tuple[Change, ...] = ()
) -> dict[str, Wrong]:
    """Mistakes as changes of the solution; ``first``: changes that come before each of them."""
    right = changed(solution(exercise), *first)
    return {name: Wrong(changed(right, *changes), words) for name, (words, *changes) in mistakes.items()}


def returning(exercise: str, mistakes: Mapping[str, tuple[str, str]]) -> dict[str, Wrong]:
    """Mistakes as other expressions in the solution's last ``return``."""
    right = solution(exercise)
    return {
        name: Wrong(_replaced(right, _last_return(right), expression), words)
        for name, (words, expression) in mistakes.items()
    }


def passing(exercise: str, mistakes: Mapping[str, tuple[str, str]]) -> dict[str, Wrong]:
    """Mistakes as other arguments in the call of the checker."""
    right = solution(exercise)
    call = ast.parse(right).body[-1].value
    old = ", ".join(ast.get_source_segment(right, part) for part in (*call.args, *call.keywords))
    name = ast.get_source_segment(right, call.func)
    before = right[: right.rindex(name)]
    assert old
    return {
        mistake: Wrong(f"{before}{name}({arguments})", words)
        for mistake, (words, arguments) in mistakes.items()
    }


def _last_return(source: str) -> ast.expr:
    returns = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Return) and node.value]
    return max(returns, key=lambda node: node.lineno).value


def _replaced(source: str, node: ast.expr, new: str) -> str:
    lines = source.split("\n")
    before = "\n".join([*lines[: node.lineno - 1], lines[node.lineno - 1][: node.col_offset]])
    after = "\n".join([lines[node.end_lineno - 1][node.end_col_offset :], *lines[node.end_lineno :]])
    return f"{before}{new}{after}"
