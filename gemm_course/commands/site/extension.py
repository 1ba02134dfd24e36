"""Configures Sphinx: its settings, and mathematics as MathML, which browsers draw without a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml

STATIC = Path(__file__).parent / "static"
# This static folder has the script that draws explorers, and its frames.
EXPLORERS = "explorers"
TITLE = "How a GPU multiplies matrices"
SETTINGS: dict[str, Any] = {
    "extensions": ["myst_nb", "gemm_course.commands.site.extension"],
    "project": TITLE,
    "html_title": TITLE,
    "language": "en",
    "html_theme": "sphinx_book_theme",
    "html_theme_options": {
        "use_download_button": False,
        "navbar_persistent": [],
        "show_toc_level": 2,
        "pygments_light_style": "a11y-high-contrast-light",
        "pygments_dark_style": "a11y-high-contrast-dark",
    },
    "html_favicon": str(STATIC / "favicon.svg"),
    "html_context": {"default_mode": "auto"},
    "html_css_files": ["site.css"],
    "html_js_files": [("site.js", {"defer": "defer"}), (f"{EXPLORERS}/explorer.js", {"defer": "defer"})],
    "html_math_renderer": "mathml",
    "html_copy_source": False,
    "html_use_index": False,
    "html_permalinks_icon": "#",
    "myst_enable_extensions": ["dollarmath"],
    "myst_heading_anchors": 4,
    "myst_heading_slug_func": "gemm_course.commands.site.links.slug",
    "nb_execution_mode": "off",
    "nb_mime_priority_overrides": [("html", "text/html", 0)],
}


def setup(app) -> dict[str, bool]:
    """Give Sphinx the course's way to write mathematics."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator, node: nodes.math) -> None:
    translator.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="course-formula">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        raise ValueError(f"This formula cannot be written as MathML: {node.astext()}: {error}") from None
