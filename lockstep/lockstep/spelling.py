"""Guesses what a misspelt name was meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a text like ``; did you mean sectors?``, or an empty text if no known name is similar."""
    by_small_letters = {one.lower(): one for one in known}
    # A single letter is half of a name such as np, but hardly a misspelling of it.
    alike = 0.6 if len(name) > 1 else 1
    near = get_close_matches(name.lower(), by_small_letters, 1, alike)
    return f"; did you mean {by_small_letters[near[0]]}?" if near else ""
