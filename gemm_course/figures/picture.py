"""Defines a picture, which is an SVG and the same in words."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from html import escape


@dataclass(frozen=True)
class Picture:
    """One finished picture.

    ``data`` is SVG. ``alt`` says in words what the picture shows, for a screen reader and wherever the
    picture cannot be shown. ``width`` is how wide it is shown where there is room, in CSS pixels.
    """

    data: str
    alt: str
    width: int = 672

    @property
    def plain(self) -> Picture:
        """The same picture, with ordinary spaces instead of no-break spaces in its alt text."""
        return replace(self, alt=self.alt.replace("\u00a0", " "))

    def html(self) -> str:
        """Return an ``<img>``, which is still shown in a saved, reopened or untrusted notebook."""
        source = f"data:image/svg+xml;base64,{base64.b64encode(self.data.encode()).decode()}"
        return f'<img class="gemm-picture" width="{self.width}" alt="{escape(self.alt)}" src="{source}">'

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html(), "text/plain": self.alt}
