"""Keeps the list of formulas: functions, each with its document and its place in the document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Formula:
    """A formula of FORMULAS, which is a function.

    ``name`` is such as "003.regM". ``place`` is the heading, kernel or variable in the document.
    """

    name: str
    place: str
    function: Callable

    @property
    def document(self) -> str:
        return self.name.partition(".")[0]


FORMULAS: dict[str, Formula] = {}


def formula(name: str, place: str) -> Callable[[Callable], Callable]:
    """Register a function in FORMULAS under its name, and return it unchanged."""

    def keep(function: Callable) -> Callable:
        if name in FORMULAS:
            raise ValueError(f"there are two formulas called {name}")
        FORMULAS[name] = Formula(name, place, function)
        return function

    return keep
