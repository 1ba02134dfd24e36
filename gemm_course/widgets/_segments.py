"""Buttons side by side of which one is pressed: a choice from a few."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets as widgets


def segments(label: str, options: Sequence[str], value: str) -> widgets.ToggleButtons:
    """Return them; Tab reaches every button, Enter and Space press it. `name_the_handles` names them."""
    return widgets.ToggleButtons(
        options=list(options),
        value=value,
        description=label,
        tooltips=[f"{label}: {option}" for option in options],
        style={"description_width": "150px", "button_width": "auto"},
        layout=widgets.Layout(display="flex", flex_flow="row wrap", align_items="center"),
    )
