"""Defines explorers, which are controls and the picture that they draw, once for all front ends.

    @explorer
    def addresses(rows: int = 5) -> Explorer:
        return Explorer(draw, {"row": ("row", range(rows), 2)})

``draw`` takes the controls' values by name and returns a Picture. A control is (label, options, first value).
Options are values or (text, value) pairs, or a function of the values of the controls above that returns
them. The first values should make a telling picture, because a saved notebook shows it where nothing runs.

`gemm_course.widgets._showing` decides how an explorer is shown:

- In the course's JupyterLab the browser draws an output of the course's own MIME type (`_lab_output.py`), by
  ``commands/jupyter/labextensions/gemm-course/static/explorer.js``. It needs no kernel for stored frames
  (`_frames.py`). For a state that is not stored it asks Python (`asked.py`), which needs no cell to be run.
- Elsewhere a widget (`_widget_output.py`) brings the same script, which asks Python for every other picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gemm_course.figures.picture import Picture
from gemm_course.widgets._calls import explorer
from gemm_course.widgets._states import STEPS, Control, Controls, Options

__all__ = ["Explorer", "Pointing", "StepThrough", "explorer"]


@dataclass(frozen=True)
class Pointing:
    """A part of the picture in which a click on a cell chooses the nearest values of two controls.

    ``box`` is left, top, width and height as shares of the picture's width. It is divided into ``rows`` by
    ``columns`` cells. ``row`` and ``column`` are the names of the controls. ``words`` tells the learner.
    """

    box: tuple[float, float, float, float]
    rows: int
    columns: int
    row: str
    column: str
    words: str


_KEPT = 512
# Of an explorer with more states, only this many are stored.
MOST = 1000

Described = Mapping[str, tuple[str, Options, object]]


class Explorer:
    """A set of controls and the picture that they draw. Pictures are cached.

    ``actions`` are buttons for what takes a while or changes something, such as a measurement. Each maps a
    label to a function of the controls' values that returns a sentence, and afterwards the picture is drawn
    anew. ``stored`` is the most states that are kept as frames, where there are more. ``everywhere`` tells
    whether a state's picture is the same on every machine, and if not, it is not stored. ``pointing`` tells
    where a click on the picture moves the controls, in the browser.
    """

    def __init__(
        self,
        draw: Callable[..., Picture],
        controls: Described,
        *,
        actions: Mapping[str, Callable[..., str]] | None = None,
        stored: int = MOST,
        everywhere: Callable[..., bool] = lambda **_: True,
        pointing: Pointing | None = None,
    ):
        self.controls = Controls([Control(name, *described) for name, described in controls.items()])
        self.actions, self.stored, self._everywhere = dict(actions or {}), stored, everywhere
        self.pointing = pointing
        self._draw = draw
        self._cached = lru_cache(_KEPT)(lambda state: draw(**dict(state)))

    def picture(self, state: Mapping[str, Any]) -> Picture:
        """Draw a state, which maps each control's name to its value."""
        return self._cached(tuple(state.items()))

    def act(self, label: str, state: Mapping[str, Any]) -> str:
        """Run the action of a button, and return its sentence. Raise KeyError for an unknown label."""
        said = self.actions[label](**state)
        self._cached.cache_clear()
        return said

    def states_to_store(self) -> list[dict[str, Any]]:
        """Return all states, or those near the start if there are too many."""
        few = self.controls.number() <= self.stored
        states = self.controls.every() if few else self.controls.near_the_start(self.stored)
        return [state for state in states if self._everywhere(**state)]


class StepThrough(Explorer):
    """A sequence of pictures with previous, next, play, and a slider over the steps for the arrow keys.

    ``draw`` takes the step (from 0) and the controls' values by name. ``count`` takes the controls' values
    and returns the number of steps. ``first`` is the step that is shown first. ``counts`` says what the
    slider counts, and how many of it a step is.
    """

    def __init__(
        self,
        draw: Callable[..., Picture],
        count: Callable[..., int],
        controls: Described,
        *,
        first: int = 0,
        counts: tuple[str, int] = ("step", 1),
        stored: int = MOST,
        pointing: Pointing | None = None,
    ):
        label, each = counts

        def steps(chosen: Mapping[str, Any]) -> list[tuple[str, int]]:
            number = count(**{name: chosen[name] for name in controls})
            return [(str(each * (step + 1)), step) for step in range(number)]

        super().__init__(draw, {**controls, "step": (label, steps, first)}, stored=stored, pointing=pointing)
        above = self.controls.all[:-1]
        self.controls = Controls([*above, Control("step", label, steps, first, STEPS)])
