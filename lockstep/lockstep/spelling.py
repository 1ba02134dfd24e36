"""Guesses what a misspelt name was meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean sectors?``, or nothing if no known name looks like it."""
    by_small_letters = {one.lower(): one for one in known}
    alike = 0.6 if len(name) > 1 else 1  # one letter is half of a name such as np, and no misspelling of it
    near = get_close_matches(name.lower(), by_small_letters, 1, alike)
    return f"; did you mean {by_small_letters[near[0]]}?" if near else ""
