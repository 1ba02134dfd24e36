"""A picture, and the same in words."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from html import escape


@dataclass(frozen=True)
class Picture:
    """One finished picture.

    ``data`` holds SVG text or PNG bytes, ``alt`` what the picture says in words (for a screen reader, and
    wherever the picture cannot be shown), ``width`` the width in CSS pixels at which it is shown when
    there is room.
    """

    data: str | bytes
    alt: str
    width: int = 672

    @property
    def plain(self) -> Picture:
        """The same with ordinary spaces in its words, for one whose text keeps figures and units together."""
        return replace(self, alt=self.alt.replace("\u00a0", " "))

    @property
    def mime(self) -> str:
        return "image/svg+xml" if isinstance(self.data, str) else "image/png"

    def html(self) -> str:
        """Return an ``<img>``, which is still shown in a saved, reopened or untrusted notebook."""
        raw = self.data.encode() if isinstance(self.data, str) else self.data
        source = f"data:{self.mime};base64,{base64.b64encode(raw).decode()}"
        return f'<img class="gemm-picture" width="{self.width}" alt="{escape(self.alt)}" src="{source}">'

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html(), "text/plain": self.alt}
