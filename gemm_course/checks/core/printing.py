"""Shows the first lines that a learner's code prints while it is checked, and counts the others."""

import contextlib
import io
from collections.abc import Iterator

MOST_LINES = 12


@contextlib.contextmanager
def few_lines() -> Iterator[None]:
    """Show no more than MOST_LINES of what is printed inside: a checker runs a kernel dozens of times."""
    printed = io.StringIO()
    try:
        # Warnings are told with the rest: a grader takes whatever is on stderr for an error.
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            yield
    finally:
        lines = printed.getvalue().splitlines()
        for line in lines[:MOST_LINES]:
            print(line)
        if len(lines) > MOST_LINES:
            print(f"... and {len(lines) - MOST_LINES:,} more lines: the checker runs your code many times.")
