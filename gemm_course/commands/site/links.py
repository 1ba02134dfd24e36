"""Rewrites links to places of a notebook in JupyterLab or on GitHub, so that they work on the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

import nbformat

_LINK = re.compile(r"(?<=\]\()([^)\s#]*)(?:#([^)\s]*))?(?=\))")
_HTML_LINK = re.compile(r'(?<=href=")([^"#:]+)\.ipynb(?:#([^"]*))?(?=")')
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)

# A target is a page's path and the place in the page, which is "" for its top.
Target = tuple[str, str]


def slug(heading: str) -> str:
    """Return a heading's name in links, as on GitHub: "Exercise 02.1 · Turn" is exercise-021--turn."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def places(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """Return every name by which a place of ``notebook`` may be linked, with its heading, or "" for the top.

    A heading has JupyterLab's name (spaces become "-") and its slug. A cell's name is "cell-id=" and its id.
    A cell's heading is the one that it begins with, or else the last one before it.
    """
    found: dict[str, str] = {}
    here = ""
    for cell in notebook.cells:
        text = _FENCE.sub("", cell.source) if cell.cell_type == "markdown" else ""
        headings = _HEADING.findall(text)
        begins = headings and text.lstrip().startswith("#")
        found[f"cell-id={cell.id}"] = headings[0] if begins else here
        for here in headings:
            found |= {here.replace(" ", "-"): here, slug(here): here}
    return found


def rewritten(text: str, page: str, lead: Callable[[Target], Target | None]) -> str:
    """Return Markdown ``text`` of ``page`` (its path in the course) with links that work on the site.

    ``lead`` takes the target of a link in the course, and returns its target on the site, or None if that is
    the same. Paths are relative to the course's folder, with "/".
    """
    folder = posixpath.dirname(page)

    def one(link: re.Match) -> str:
        path, place = link[1], link[2] or ""
        if ":" in path or not (path or place):
            return link[0]
        found = lead((posixpath.normpath(posixpath.join(folder, path)) if path else page, place))
        if found is None:
            return link[0]
        target = posixpath.relpath(found[0], folder or ".") if path or found[0] != page else ""
        return target + (f"#{found[1]}" if found[1] else "")

    return _LINK.sub(one, text)


def rewritten_html(markup: str, page: str, find: Callable[[Target], Target]) -> str:
    """Return HTML ``markup`` of ``page`` whose links to notebooks lead to their pages.

    ``find`` takes the target of a link in the course, and returns the page's path and the id of the place.
    """
    folder = posixpath.dirname(page)

    def one(link: re.Match) -> str:
        path, place = find((posixpath.normpath(posixpath.join(folder, f"{link[1]}.ipynb")), link[2] or ""))
        address = posixpath.relpath(path, folder or ".").removesuffix(".ipynb") + ".html"
        return address + (f"#{place}" if place else "")

    return _HTML_LINK.sub(one, markup)
