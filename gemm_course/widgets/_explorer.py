"""Sliders on top, pictures below: move a slider and the pictures change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import ipywidgets as widgets
from IPython.display import display

from gemm_course.widgets._canvas import Canvas
from gemm_course.widgets._names import name_the_handles

_LABEL = {"description_width": "150px"}
_WIDE = widgets.Layout(width="min(520px, 96%)")
_KEPT = 512  # pictures that an explorer caches

Options = Sequence | Callable[[dict], Sequence]


class Controls:
    """Named selection sliders whose choices may depend on each other.

    ``described`` maps a name to (label, options, first value). An option is a value or a (text, value)
    pair; options may be a function of the values of the sliders above, such as a thread's x, which must
    lie inside the block. ``changed`` is called after every change.
    """

    def __init__(self, described: Mapping[str, tuple[str, Options, object]], changed: Callable[[], None]):
        self._options = {name: options for name, (_, options, _) in described.items()}
        self._changed, self._fitting = changed, False
        self.sliders: dict[str, widgets.SelectionSlider] = {}
        for name, (label, options, value) in described.items():
            offered = options(self.values()) if callable(options) else options
            self.sliders[name] = _slider(label, offered, value)
        for slider in self.sliders.values():
            slider.observe(self._moved, names="value")

    def values(self) -> dict:
        """Return the sliders' values by name."""
        return {name: slider.value for name, slider in self.sliders.items()}

    def key(self) -> tuple:
        """Return the values as a key for a cache."""
        return tuple(self.values().items())

    def _moved(self, _change) -> None:
        if self._fitting:
            return
        self._fitting = True
        try:
            for name, options in self._options.items():
                if callable(options):
                    self._fit(name, list(options(self.values())))
        finally:
            self._fitting = False
        self._changed()

    def _fit(self, name: str, offered: list) -> None:
        """Offer new options; keep the value, or take the last option if the value is gone."""
        slider = self.sliders[name]
        if list(slider.options) != offered:
            value = slider.value if slider.value in _values(offered) else _values(offered)[-1]
            slider.options = offered
            slider.value = value


def _values(options: list) -> list:
    return [
        option[1] if isinstance(option, tuple) and isinstance(option[0], str) else option
        for option in options
    ]


def _slider(label: str, options: Sequence, value) -> widgets.SelectionSlider:
    return widgets.SelectionSlider(
        options=list(options), value=value, description=label, tooltip=label, style=_LABEL, layout=_WIDE
    )


def show_controls(parts: Sequence[widgets.Widget]) -> None:
    """Display controls one below the other."""
    box = widgets.VBox(list(parts))
    box.add_class("gemm-controls")
    display(box)


class Explorer:
    """Controls and the pictures they draw.

    ``draw`` is a function, or several, of the controls' values by name; pictures are cached.
    """

    def __init__(
        self, draw: Callable | Sequence[Callable], controls: Mapping[str, tuple[str, Options, object]]
    ):
        self.controls = Controls(controls, self._redraw)
        drawn = [draw] if callable(draw) else draw
        self._pictures = [(lru_cache(_KEPT)(_of_key(function)), Canvas()) for function in drawn]

    def show(self) -> None:
        """Display the controls and the first picture."""
        show_controls(list(self.controls.sliders.values()))
        self._redraw()
        name_the_handles()

    def _redraw(self) -> None:
        for draw, canvas in self._pictures:
            canvas.show(draw(self.controls.key()))


def _of_key(draw: Callable) -> Callable:
    return lambda key: draw(**dict(key))


class StepThrough:
    """A sequence of pictures: previous, next, play, and a slider over the steps, which the arrow keys move.

    ``draw`` takes the step (from 0) and the controls' values by name. ``count`` takes the controls' values
    and returns how many steps there are.
    """

    def __init__(
        self, draw: Callable, count: Callable[..., int], controls: Mapping[str, tuple[str, Options, object]]
    ):
        self.controls = Controls(controls, self._changed)
        self._draw = lru_cache(_KEPT)(lambda step, key: draw(step, **dict(key)))
        self._count = count
        self._canvas = Canvas()
        self.step = widgets.IntSlider(
            min=0, max=0, description="Step", tooltip="Step", style=_LABEL, layout=_WIDE, readout=False
        )
        self.play = widgets.Play(min=0, max=0, interval=900, tooltip="Play the steps")
        self.previous = widgets.Button(description="◀ previous", tooltip="One step back")
        self.next = widgets.Button(description="next ▶", tooltip="One step forward")
        self._fit()
        widgets.jslink((self.play, "value"), (self.step, "value"))
        self.previous.on_click(lambda _: self._move(-1))
        self.next.on_click(lambda _: self._move(1))
        self.step.observe(lambda _: self._redraw(), names="value")

    def show(self) -> None:
        """Display the controls and the first picture."""
        buttons = widgets.HBox(
            [self.previous, self.next, self.play], layout=widgets.Layout(flex_flow="row wrap")
        )
        show_controls([*self.controls.sliders.values(), self.step, buttons])
        self._redraw()
        name_the_handles()

    def _fit(self) -> None:
        self.step.max = self.play.max = self._count(**self.controls.values()) - 1

    def _move(self, by: int) -> None:
        self.step.value = min(max(self.step.value + by, 0), self.step.max)

    def _changed(self) -> None:
        self._fit()
        self._redraw()

    def _redraw(self) -> None:
        self._canvas.show(self._draw(min(self.step.value, self.step.max), self.controls.key()))
