"""Buttons side by side of which one is pressed: a choice from a few."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import ipywidgets as widgets


def segments(label: str, options: Sequence[tuple[str, Hashable]], value: Hashable) -> widgets.ToggleButtons:
    """Return them for pairs of text and value.

    Tab reaches every button, Enter and Space press it. `name_the_handles` names them.
    """
    return widgets.ToggleButtons(
        options=list(options),
        value=value,
        description=label,
        tooltips=[f"{label}: {text}" for text, _ in options],
        style={"description_width": "150px", "button_width": "auto"},
        layout=widgets.Layout(display="flex", flex_flow="row wrap", align_items="center"),
    )
