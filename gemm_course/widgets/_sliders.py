"""Explorers made of ipywidgets, for every notebook program that has not the course's extension."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets
from IPython.display import display

from gemm_course.widgets._canvas import Canvas, Text
from gemm_course.widgets._names import name_the_handles
from gemm_course.widgets._segments import segments
from gemm_course.widgets._states import SEGMENTS, STEPS, Control

_LABEL = {"description_width": "150px"}
_WIDE = widgets.Layout(width="min(520px, 96%)")


def show(explorer: Any, _call: Any) -> Panel:
    """Display an explorer with sliders and buttons above its picture."""
    panel = Panel(explorer)
    panel.show()
    return panel


class Panel:
    """The widgets of an explorer, by the names of its controls, and its picture."""

    def __init__(self, explorer: Any):
        self._explorer, self._controls, self._fitting = explorer, explorer.controls, False
        self._canvas, self._words = Canvas(), Canvas()
        self.state = self._controls.start()
        self.chosen = {control.name: self._made(control) for control in self._controls.all}
        for name, choice in self.chosen.items():
            choice.observe(lambda change, name=name: self._moved(name, change["new"]), names="value")
        self.buttons = {label: _button(label, label) for label in explorer.actions}
        for label, button in self.buttons.items():
            button.on_click(lambda _, label=label: self._act(label))

    def show(self) -> None:
        """Display the controls and the first picture."""
        shown: list[widgets.Widget] = []
        for control in self._controls.all:
            choice = self.chosen[control.name]
            shown += [choice, _steps(choice)] if control.kind == STEPS else [choice]
        box = widgets.VBox([*shown, *self.buttons.values()])
        box.add_class("gemm-controls")
        display(box)
        self._draw()
        name_the_handles()

    def _made(self, control: Control) -> widgets.Widget:
        offered = [(option.text, option.value) for option in control.offered(self.state)]
        value = self.state[control.name]
        if self._controls.kind(control) == SEGMENTS:
            return segments(control.label, offered, value)
        if control.kind == STEPS:
            more = {"min": 0, "max": len(offered) - 1, "value": value, "readout": False}
            return widgets.IntSlider(**_named(control), **more)
        return widgets.SelectionSlider(options=offered, value=value, **_named(control))

    def _moved(self, name: str, value: Any) -> None:
        if self._fitting:
            return
        self._fitting = True
        try:
            self.state = self._controls.fitted({**self.state, name: value})
            for control in self._controls.all:
                self._fit(control)
        finally:
            self._fitting = False
        self._draw()

    def _fit(self, control: Control) -> None:
        """Offer what the controls above leave, and follow the state."""
        choice = self.chosen[control.name]
        offered = [(option.text, option.value) for option in control.offered(self.state)]
        if control.kind == STEPS:
            choice.value = min(choice.value, len(offered) - 1)
            choice.max = len(offered) - 1
        elif list(choice.options) != offered:
            choice.options = offered
        if choice.value != self.state[control.name]:
            choice.value = self.state[control.name]

    def _act(self, label: str) -> None:
        self.buttons[label].disabled = True
        self._words.show(Text(self._explorer.act(label, self.state)))
        self.buttons[label].disabled = False
        self._draw()

    def _draw(self) -> None:
        self._canvas.show(self._explorer.picture(self.state))


def _named(control: Control) -> dict[str, Any]:
    return {"description": control.label, "tooltip": control.label, "style": _LABEL, "layout": _WIDE}


def _steps(slider: widgets.IntSlider) -> widgets.HBox:
    """Buttons for the steps: previous, next, and play, which the browser does by itself."""
    play = widgets.Play(min=0, max=slider.max, interval=900, tooltip="Play the steps")
    widgets.jslink((play, "value"), (slider, "value"))
    slider.observe(lambda change: setattr(play, "max", change["new"]), names="max")
    back, forth = _button("◀ previous", "One step back"), _button("next ▶", "One step forward")
    back.on_click(lambda _: _move(slider, -1))
    forth.on_click(lambda _: _move(slider, 1))
    return widgets.HBox([back, forth, play], layout=widgets.Layout(flex_flow="row wrap"))


def _move(slider: widgets.IntSlider, by: int) -> None:
    slider.value = min(max(slider.value + by, 0), slider.max)


def _button(words: str, tip: str) -> widgets.Button:
    return widgets.Button(description=words, tooltip=tip, layout=widgets.Layout(width="auto"))
