"""The notebooks in a real JupyterLab, as a learner uses them."""

import json
import statistics
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.exercises import TYPED
from tests.browser.lab import Notebook, Slider, copy_of_notebooks, jupyterlab

pytestmark = pytest.mark.browser

NAMES = [
    "00_welcome",
    "01_naive",
    "02_coalesced",
    "03_shared_memory_tiles",
    "04_thread_tiles_1d",
    "05_thread_tiles_2d",
    "06_vectorized_access",
    "07_warp_tiles",
    "08_tensor_cores",
]
ARTEFACTS = Path(__file__).parent / "artefacts"
CELLS_MS, CHARTS_MS = 100, 250


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return copy_of_notebooks(tmp_path_factory.mktemp("course") / "notebooks")


@pytest.fixture(scope="module")
def server(folder):
    with jupyterlab(folder) as base:
        yield base


@pytest.fixture(scope="module")
def browser(chromium):
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium)
        yield started
        started.close()


@pytest.fixture
def page(browser):
    opened = browser.new_page(viewport={"width": 1280, "height": 1000})
    yield opened
    opened.close()


@pytest.mark.parametrize("name", NAMES)
def test_runs_and_every_slider_moves_its_picture(name, page, server, folder):
    notebook = Notebook(page, server, f"{name}.ipynb")
    notebook.run_all()
    page.wait_for_timeout(500)
    assert notebook.errors() == []
    took = {"svg": [], "png": []}
    for place in range(page.locator(".gemm-controls .widget-slider").count()):
        slider = Slider(page, page.locator(".gemm-controls .widget-slider").nth(place))
        _move(slider, took)
    assert notebook.errors() == []
    _shots(notebook, name)
    notebook.command("docmanager:save")
    _stands_without_a_kernel(page.context.browser, folder, name)
    medians = {kind: statistics.median(times) for kind, times in took.items() if times}
    _keep(name, medians, took)
    assert medians.get("svg", 0) < CELLS_MS
    assert medians.get("png", 0) < CHARTS_MS


def _move(slider: Slider, took: dict) -> None:
    """Move a slider by keyboard and mouse, collect how long that took, and put it back where it was."""
    assert slider.name, "the slider's handle has no name for a screen reader"
    place, low, high = (slider.position(end) for end in ("now", "min", "max"))
    assert low < high, f"{slider.name}: there is nothing to move"
    away = "End" if place < high else "Home"
    before = slider.seen()
    for key in (away, "Home" if away == "End" else "End", "ArrowRight", "ArrowLeft"):
        for kind, milliseconds in slider.press(key).items():
            took[kind].append(milliseconds)
    slider.press(away)
    after = slider.seen()
    assert all(now["source"] != then["source"] for now, then in zip(after, before, strict=True)), slider.name
    assert all(now["alt"] != then["alt"] for now, then in zip(after, before, strict=True)), slider.name
    assert slider.drag(0.02 if away == "End" else 0.98), f"{slider.name}: the mouse changes nothing"
    slider.press("Home")
    for _ in range(round(place - low)):
        slider.handle.press("ArrowRight")


def _shots(notebook: Notebook, name: str) -> None:
    notebook.screenshot(ARTEFACTS / f"{name}-1200.png", 1200)
    notebook.screenshot(ARTEFACTS / f"{name}-600.png", 600)
    notebook.command("apputils:change-theme", {"theme": "JupyterLab Dark"})
    notebook.screenshot(ARTEFACTS / f"{name}-dark.png", 1200)
    notebook.command("apputils:change-theme", {"theme": "JupyterLab Light"})


def _stands_without_a_kernel(browser, folder: Path, name: str) -> None:
    """Open the saved notebook on another server, which trusts nothing and has no kernel to offer."""
    with jupyterlab(folder, kernels=False) as base:
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        reopened = Notebook(page, base, f"{name}.ipynb", kernel=False)
        page.wait_for_selector("img.gemm-picture", state="attached")  # a busy machine takes its time
        page.wait_for_timeout(1000)
        pictures = reopened.pictures()
        page.close()
    assert pictures
    assert all(picture["drawn"] and picture["alt"] for picture in pictures)


def _keep(name: str, medians: dict, took: dict) -> None:
    ARTEFACTS.mkdir(exist_ok=True)
    kept = {"median_ms": medians, "moves": {kind: len(times) for kind, times in took.items()}}
    (ARTEFACTS / f"{name}-latency.json").write_text(json.dumps(kept, indent=2) + "\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_solution_is_refused_and_a_right_one_passes(name, page, server):
    notebook = Notebook(page, server, f"{name}.ipynb")
    exercise, wrong, right = TYPED[name]
    notebook.run_all()
    page.wait_for_timeout(300)
    refused = notebook.replace_cell(exercise, wrong)
    passed = notebook.replace_cell(exercise, right)
    assert "not yet" in refused.lower()
    assert "passed" in passed.lower()
    assert notebook.errors() == []
