"""Explorers in a JupyterLab without the course's extension, as in VS Code and Colab: anywidget shows them."""

import nbformat
import pytest
from nbformat import v4

from tests.browser.lab import Lab, jupyterlab

pytestmark = [pytest.mark.browser, pytest.mark.full(reason="another JupyterLab in Chromium")]
NAME = "elsewhere.ipynb"
CELLS = (
    "from gemm_course import widgets as see\nsee.banks()",
    "see.walk()",
    "def elements(tid, BN, WM, WN, TN, WNITER):\n    return [(tid // 8, tid % 8)]\nsee.owners(elements)",
)
STILLS = "[id^=gemm-still] img.gemm-picture"


@pytest.fixture(scope="module")
def another_lab(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    cells = [v4.new_code_cell(source) for source in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(v4.new_notebook(cells=cells, metadata=kernel), folder / NAME)
    with jupyterlab(folder, course=False) as base:
        yield Lab(browser, base)


def test_it_is_run_and_moves_and_its_picture_stays_in_the_saved_notebook(another_lab):
    with another_lab.open(NAME) as notebook:
        notebook.run_all()
        banks, walk, own = notebook.wait_for_explorers(3)
        assert notebook.errors() == []
        assert not any(still.is_visible() for still in notebook.page.locator(STILLS).all())
        for explorer, label in ((banks, "padding, in words"), (own, "lane")):
            before = explorer.seen()
            explorer.control(label).press("End")
            assert explorer.seen() != before and explorer.said() == ""
        walk.press("next ▶")
        assert walk.seen()["alt"].startswith("Step 2 of ")
        outside = [
            url
            for url in notebook.page.evaluate(
                "() => performance.getEntriesByType('resource').map(each => each.name)"
            )
            if not url.startswith((another_lab.base, "data:", "blob:"))
        ]
        assert outside == [], "nothing comes from a network"
        notebook.command("docmanager:save")
    with another_lab.open(NAME) as notebook:
        notebook.wait_for_pictures(3)
        assert all(still.is_visible() for still in notebook.page.locator(STILLS).all())
        notebook.restart()
        notebook.run_all()
        notebook.wait_for_explorers(3)
