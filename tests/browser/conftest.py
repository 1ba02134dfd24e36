"""A JupyterLab and a Chromium for the tests of one file; each worker of a parallel run has its own."""

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.lab import Lab, copy_of_notebooks, jupyterlab


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The built notebooks, as a learner has them."""
    return copy_of_notebooks(tmp_path_factory.mktemp("course") / "notebooks")


@pytest.fixture(scope="module")
def browser(chromium):
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium)
        yield started.new_context(viewport={"width": 1280, "height": 1000})
        started.close()


@pytest.fixture(scope="module")
def lab(folder, browser):
    """A JupyterLab that serves the notebooks."""
    with jupyterlab(folder) as base:
        yield Lab(browser, base)


@pytest.fixture(scope="module")
def lab_without_kernels(folder, browser):
    """Another JupyterLab on the same notebooks, which trusts nothing and has no kernel to offer."""
    with jupyterlab(folder, kernels=False) as base:
        yield Lab(browser, base, kernels=False)
