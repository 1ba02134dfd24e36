"""Describes the states that an explorer can be in: what its controls offer, and which states are stored.

A control's options are values, or (text, value) pairs. They may be a function of the values above it, such as
a thread's x, which must lie inside the block. Such a function is tried with all values that it reads. So a
front end can be given a table of its answers, and needs no Python to move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Options = Sequence | Callable[[Mapping[str, Any]], Sequence]

# A control can have one of these looks.
SEGMENTS, RANGE, STEPS = "segments", "range", "steps"
# No more categories are shown as buttons side by side.
_BUTTONS = 10
# A table with more rows is a mistake in the declaration.
_ROWS = 5000


@dataclass(frozen=True)
class Option:
    """A choice, as the text that is shown and the value that is drawn."""

    text: str
    value: Any


def _is_number(option: Option) -> bool:
    return isinstance(option.value, int | float) and option.text == str(option.value)


@dataclass(frozen=True)
class Control:
    """A control: its name in the drawing function, its label, its options and its first value.

    ``kind`` is one of the looks above, or "" if the options decide.
    """

    name: str
    label: str
    options: Options
    start: Any
    kind: str = ""

    def offered(self, values: Mapping[str, Any]) -> list[Option]:
        """Return what can be chosen while the controls above have these values."""
        options = self.options(values) if callable(self.options) else self.options
        return [_option(each) for each in options]


def _option(option: Any) -> Option:
    if isinstance(option, tuple) and len(option) == 2 and isinstance(option[0], str):
        return Option(*option)
    return Option(str(option), option)


@dataclass(frozen=True)
class Table:
    """The options of a control, as the texts for each combination of the controls that they depend on.

    ``of`` names these controls. ``rows`` maps their positions to the texts. A control whose options are
    always the same depends on none, and has one row, of the key ().
    """

    of: tuple[str, ...]
    rows: Mapping[tuple[int, ...], tuple[str, ...]]


class Controls:
    """All controls of an explorer, from top to bottom. A state is a dict from names to values."""

    def __init__(self, controls: Sequence[Control]):
        self.all = tuple(controls)
        self.by_name = {control.name: control for control in self.all}

    def start(self) -> dict[str, Any]:
        """Return the state in which the explorer begins."""
        return self.fitted({control.name: control.start for control in self.all})

    def fitted(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state nearest to the wanted values.

        A value that is not offered becomes the last option.
        """
        state: dict[str, Any] = {}
        for control in self.all:
            values = [option.value for option in control.offered(state)]
            state[control.name] = wanted[control.name] if wanted[control.name] in values else values[-1]
        return state

    def of_texts(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the state with these options. Raise ValueError for a text that is not offered."""
        state: dict[str, Any] = {}
        for control, text in zip(self.all, texts, strict=True):
            offered = {option.text: option.value for option in control.offered(state)}
            if text not in offered:
                raise ValueError(f"{control.label} does not offer {text}")
            state[control.name] = offered[text]
        return state

    def places(self, state: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the places of the state's values among the options, control by control."""
        return tuple(
            [option.value for option in control.offered(state)].index(state[control.name])
            for control in self.all
        )

    def texts(self, state: Mapping[str, Any]) -> list[str]:
        """Return the texts of the state's options."""
        return [
            control.offered(state)[place].text
            for control, place in zip(self.all, self.places(state), strict=True)
        ]

    def kind(self, control: Control) -> str:
        """Return the look of a control: buttons for a few categories, a slider for ordered values."""
        if control.kind:
            return control.kind
        variants = self._variants(control)
        ordered = any(_is_number(option) for options in variants for option in options)
        return RANGE if ordered or max(map(len, variants)) > _BUTTONS else SEGMENTS

    def _variants(self, control: Control) -> list[list[Option]]:
        names = self._read_by(control) if callable(control.options) else ()
        return [control.offered(state) for _, state in self._over(names)]

    def table(self, control: Control) -> Table:
        """Return the control's options for all values of the controls that they depend on."""
        names = self._read_by(control) if callable(control.options) else ()
        rows = {
            place: tuple(option.text for option in control.offered(state))
            for place, state in self._over(names)
        }
        return _narrowed(Table(names, rows))

    def _read_by(self, control: Control) -> tuple[str, ...]:
        """Return the controls that its options read, and those that these depend on, from top to bottom."""
        names: set[str] = set()
        while True:
            reader = _Reader(self.start_above(control))
            for _, state in self._over(self._ordered(names)):
                reader.values.update(state)
                control.options(reader)
            found = set(reader.read)
            for name in reader.read:
                if callable(self.by_name[name].options):
                    found |= set(self._read_by(self.by_name[name]))
            if found <= names:
                return self._ordered(names)
            names |= found

    def start_above(self, control: Control) -> dict[str, Any]:
        """Return the first values of the controls above this one."""
        state: dict[str, Any] = {}
        for above in self.all[: self.all.index(control)]:
            state[above.name] = above.start
        return state

    def _ordered(self, names: set[str]) -> tuple[str, ...]:
        return tuple(control.name for control in self.all if control.name in names)

    def _over(self, names: Sequence[str]) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
        """Yield all combinations of values of these controls, with their places among the options."""
        partial: list[tuple[tuple[int, ...], dict[str, Any]]] = [((), {})]
        for name in names:
            control = self.by_name[name]
            partial = [
                ((*place, here), {**state, name: option.value})
                for place, state in partial
                for here, option in enumerate(control.offered(state))
            ]
            if len(partial) > _ROWS:
                raise ValueError(f"{', '.join(names)} have more than {_ROWS} values together")
        yield from partial

    def number(self) -> int:
        """Count the states. Stop counting when there are very many."""
        try:
            return sum(1 for _ in self._over([control.name for control in self.all]))
        except ValueError:
            return _ROWS + 1

    def every(self) -> list[dict[str, Any]]:
        """Return all states. Raise ValueError if there are very many."""
        return [state for _, state in self._over([control.name for control in self.all])]

    def near_the_start(self, most: int) -> list[dict[str, Any]]:
        """Choose states to store where there are very many: each control moved alone, then pairs, then three.

        A group of two or three is left out if its states would make them more than ``most``.
        """
        start = self.start()
        kept = {self.places(start): start}
        names = [control.name for control in self.all]
        for group in (group for size in (1, 2, 3) for group in combinations(names, size)):
            found = {self.places(state): state for state in self._moved(start, group)}
            if len(group) == 1 or len(kept | found) <= most:
                kept |= found
        return list(kept.values())

    def _moved(self, start: Mapping[str, Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield states in which these controls were moved, from top to bottom. Others follow if they must."""
        if not names:
            yield dict(start)
            return
        for option in self.by_name[names[0]].offered(start):
            yield from self._moved(self.fitted({**start, names[0]: option.value}), names[1:])


class _Reader(Mapping):
    """A mapping of values, which remembers the names that were read."""

    def __init__(self, values: dict[str, Any]):
        self.values, self.read = values, set()

    def __getitem__(self, name: str) -> Any:
        value = self.values[name]
        self.read.add(name)
        return value

    def __iter__(self) -> Iterator[str]:
        self.read |= self.values.keys()
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)


def _narrowed(table: Table) -> Table:
    """Return the table without the controls that make no difference."""
    for name in table.of:
        at = table.of.index(name)
        rows: dict[tuple[int, ...], tuple[str, ...]] = {}
        without = [(place[:at] + place[at + 1 :], texts) for place, texts in table.rows.items()]
        for place, texts in without:
            rows.setdefault(place, texts)
        if all(rows[place] == texts for place, texts in without):
            table = Table(tuple(each for each in table.of if each != name), rows)
    return table
