"""Ways through the course in a real JupyterLab: links, folded solutions, notebooks that were only opened."""

import os
import re
from pathlib import Path

import pytest

from tests.browser.lab import WAIT_MS, Lab, jupyterlab
from tests.browser.test_notebooks_in_the_browser import NAMES

pytestmark = [pytest.mark.browser, pytest.mark.waits]

# The builder makes the links of all notebooks with solutions alike, from the same sources.
PLACES = [f"{name}.ipynb" for name in NAMES] + [f"solutions/{name}_solutions.ipynb" for name in NAMES[::4]]
DARK, LIGHT = "JupyterLab Dark", "JupyterLab Light"
_OPEN = """async path => {
    await jupyterapp.restored;
    const panel = await jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook'});
    await panel.context.ready;
    await panel.revealed;
    window.opened = panel;
    window.closeOthers = async () => {
        for (const other of [...jupyterapp.shell.widgets('main')])
            if (other !== panel) {
                await other.sessionContext?.shutdown();
                other.dispose();
            }
        jupyterapp.shell.activateById(panel.id);
    };
    await closeOthers();
}"""
# Whether all texts are there, and JupyterLab has made their links to files its own.
_READY = """() => opened.content.widgets.every(cell => cell.model.type !== 'markdown' ||
        cell.node.querySelector('.jp-MarkdownOutput')?.textContent.trim())
    && [...opened.content.node.querySelectorAll('.jp-RenderedHTMLCommon a[href]')]
        .every(link => !/^[\\w./]+\\.(ipynb|md)\\b/.test(link.getAttribute('href')))"""
_LINKS = """() => [...opened.content.node.querySelectorAll('.jp-RenderedHTMLCommon a[href]')]
    .map((link, place) => { link.dataset.place = place; return link.getAttribute('href'); })"""
# Where the page is: the path, and how far below the top of the notebook the cell begins that a link named.
_PLACE = """id => {
    const panel = jupyterapp.shell.currentWidget;
    const cell = panel.content.widgets?.find?.(each => each.model.id === id);
    const view = panel.content.node.querySelector('.jp-WindowedPanel-outer');
    const box = cell?.node.getBoundingClientRect();
    const top = box && view ? box.top - view.getBoundingClientRect().top : null;
    return {path: panel.context?.path ?? null, top, height: box?.height ?? 0};
}"""


@pytest.fixture(scope="module")
def page(folder, browser):
    """A page of a JupyterLab as `gemm-course lab` sets it up, with its own way of drawing long notebooks."""
    with jupyterlab(folder, kernels=False, windowing=None) as base:
        lab = Lab(browser, base, kernels=False)
        lab.load()
        lab.page.add_locator_handler(lab.page.locator("dialog.jp-Dialog").first, _no_kernel)
        yield lab.page


def _no_kernel(question) -> None:
    """Answer which kernel a notebook should have, as often as it is asked."""
    while question.count():
        question.locator("button").first.click(no_wait_after=True)
        question.page.wait_for_timeout(100)


def _open(page, path: str) -> list[str]:
    """Open a notebook, close all others, and return where the links in its cells and outputs lead."""
    page.evaluate(_OPEN, path)
    page.wait_for_function(_READY)
    return page.evaluate(_LINKS)


def _follow(page, place: int) -> None:
    link = page.locator(f'a[data-place="{place}"]')
    link.scroll_into_view_if_needed()
    link.click()


@pytest.mark.full(reason="JupyterLab in Chromium, at every link")
@pytest.mark.many(one_in=26, with_all=5)
@pytest.mark.parametrize("start", PLACES)
def test_every_link_leads_to_its_place_on_the_first_click(start, page, folder, sample):
    """Where it leads, no notebook is open yet. Several links to the same place are tried once, from the first
    notebook that has one.
    """
    found = _open(page, start)
    targets = {_local(href): place for place, href in enumerate(found) if _local(href)}
    assert len(targets) >= 4
    assert all((folder / path).is_file() for path, _ in targets)
    tried = {(start, None)}.union(*(_written(folder, each) for each in PLACES[: PLACES.index(start)]))
    for path, cell in sample([target for target in targets if target not in tried], one_in=2):
        _follow(page, targets[path, cell])
        _arrives(page, path, cell)
        page.evaluate("() => closeOthers()")


def _written(folder: Path, start: str) -> set[tuple[str, str | None]]:
    """Where the links in a notebook's file lead."""
    found = re.findall(r"([\w./]+\.(?:ipynb|md))(?:#cell-id=([\w-]+))?", (folder / start).read_text("utf-8"))
    at = Path(start).parent
    return {(os.path.normpath(at / path), cell or None) for path, cell in found}


def _local(href: str) -> tuple[str, str | None] | None:
    """Path and cell id of a link within the course, which JupyterLab has made a link to its files."""
    found = re.search(r"/files/([^?#]+)[^#]*(?:#cell-id=(.+))?$", href)
    return (found[1], found[2]) if found else None


def _arrives(page, path: str, cell: str | None) -> None:
    page.wait_for_function(f"path => ({_PLACE})('').path === path", arg=path)
    if cell is None:
        return
    page.wait_for_function(f"id => Math.abs(({_PLACE})(id).top ?? 1e9) < 2", arg=cell)
    page.wait_for_timeout(300)  # and stays there
    place = page.evaluate(_PLACE, cell)
    assert place["top"] == pytest.approx(0, abs=2) and place["height"] > 0, (path, cell, place)


@pytest.mark.many(one_in=2)
@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_a_solution_opens_by_mouse_and_by_keyboard_and_can_be_read(theme, page):
    _open(page, "00_welcome.ipynb")
    page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
    solutions = page.locator("details", has=page.get_by_text("Solution", exact=True))
    folded = solutions.filter(has_text="linear // 32").first
    summary, code = folded.locator("summary"), folded.locator("pre code")
    folded.evaluate("node => { node.open = false; }")  # as it is on opening
    summary.scroll_into_view_if_needed()
    assert not code.is_visible()
    for act in (summary.click, lambda: page.keyboard.press("Enter"), lambda: page.keyboard.press("Space")):
        before = code.is_visible()
        act()
        assert code.is_visible() is not before
    assert "linear // 32, linear % 32" in code.inner_text() and "    linear = " in code.inner_text()
    family, ink, ground = code.evaluate(
        """code => {
            const style = getComputedStyle(code), seen = node => {
                const colour = getComputedStyle(node).backgroundColor;
                return colour.endsWith(', 0)') && node.parentElement ? seen(node.parentElement) : colour;
            };
            return [style.fontFamily, style.color, seen(code)];
        }"""
    )
    assert "monospace" in family and _contrast(ink, ground) >= 7


@pytest.mark.full(reason="JupyterLab in Chromium")
def test_progress_and_what_is_not_tried_can_be_read_in_the_dark(page):
    """The colour of each text against what lies behind it, in what the notebook brings."""
    _open(page, "00_welcome.ipynb")
    page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", DARK)
    page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=DARK)
    for words in ("Passed: road", "Still open", "00.2", "Not tried yet · Exercise 00.1"):
        place = page.locator(".jp-OutputArea-output").get_by_text(words).first
        ink, ground = place.evaluate(
            """node => {
                const seen = node => {
                    const colour = getComputedStyle(node).backgroundColor;
                    return colour.endsWith(', 0)') && node.parentElement ? seen(node.parentElement) : colour;
                };
                return [getComputedStyle(node).color, seen(node)];
            }"""
        )
        assert _contrast(ink, ground) >= 4.5, (words, ink, ground)


def _contrast(*colours: str) -> float:
    light, dark = sorted(map(_luminance, colours), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = [float(each) / 255 for each in re.findall(r"[\d.]+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.full(reason="JupyterLab with a kernel, for the sign of an unsaved change")
def test_a_notebook_that_was_only_opened_is_not_edited(lab, folder):
    """Whatever the version of Python that it was built with."""
    path = folder / "01_naive.ipynb"
    path.write_text(
        re.sub(r'"version": "3\.\d+\.\d+"', '"version": "3.10.0"', path.read_text("utf-8")), "utf-8"
    )
    with lab.open("01_naive.ipynb") as notebook:
        notebook.page.wait_for_function(
            """() => course.panel.model.getMetadata('language_info').version !== '3.10.0'""", timeout=WAIT_MS
        )
        notebook.page.wait_for_timeout(500)
        assert not notebook.page.evaluate("() => course.panel.context.model.dirty")
        assert notebook.page.locator(".jp-mod-dirty").count() == 0
        notebook.command("notebook:insert-cell-below")
        assert notebook.page.evaluate("() => course.panel.context.model.dirty"), "what a learner does counts"
