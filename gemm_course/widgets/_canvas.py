"""Provides a place in a cell's output whose content can be replaced."""

from __future__ import annotations

from IPython.display import display


class Canvas:
    """A display handle that shows one thing at a time, a picture or words.

    A canvas is not a widget. Its content is saved with the notebook, and is still there when the notebook is
    opened again without a kernel.
    """

    def __init__(self):
        self._handle = None

    def show(self, content) -> None:
        """Show ``content`` (anything with ``_repr_mimebundle_``) in place of what was there."""
        bundle = content._repr_mimebundle_()
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


class Text:
    """Markdown text that a canvas can show."""

    def __init__(self, words: str):
        self.words = words

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/markdown": self.words, "text/plain": self.words}
