"""Wrong solutions as what they are: a right one with a line or two written differently."""

import inspect
import linecache
import textwrap
from collections.abc import Callable
from itertools import count

_NUMBER = count()


def altered(right: Callable, *changes: tuple[str, str], name: str | None = None) -> Callable:
    """Return ``right``, a plain function that closes over nothing, with each (old, new) text exchanged.

    The source of what comes out can be read like any other's, so that checkers can show its lines. Raises
    ValueError where an old text does not occur.
    """
    source = textwrap.dedent(inspect.getsource(right))
    for old, new in changes:
        if old not in source:
            raise ValueError(f"{right.__name__} has no {old!r}")
        source = source.replace(old, new)
    filename = f"<{name or right.__name__}, altered {next(_NUMBER)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    space = dict(right.__globals__)
    exec(compile(source, filename, "exec"), space)
    return space[right.__name__]
