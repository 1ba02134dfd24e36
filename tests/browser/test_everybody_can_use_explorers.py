"""axe-core on every explorer in a real JupyterLab, in light and in dark."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.lab import Notebook
from tests.browser.test_notebooks_in_the_browser import NAMES, WITHOUT

pytestmark = [
    pytest.mark.browser,
    pytest.mark.full(reason="JupyterLab in Chromium, and all explorers of a notebook"),
    pytest.mark.many(one_in=13, with_all=5),
    pytest.mark.filterwarnings("ignore:.* is deprecated"),
]
GRAVE = ("serious", "critical")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT])
def test_axe_finds_nothing_grave(name, lab_without_kernels):
    with lab_without_kernels.open(f"{name}.ipynb") as notebook:
        notebook.draw()
        assert _grave(notebook) == []
        notebook.command("apputils:change-theme", {"theme": "JupyterLab Dark"})
        try:
            notebook.page.wait_for_function("document.body.dataset.jpThemeName === 'JupyterLab Dark'")
            assert _grave(notebook) == []
        finally:
            notebook.command("apputils:change-theme", {"theme": "JupyterLab Light"})


def _grave(notebook: Notebook) -> list[str]:
    """What keeps somebody from using an explorer."""
    options = {"resultTypes": ["violations"], "preload": False}
    context = {"include": [[".gemm-explorer"]]}
    found = Axe().run(notebook.page, context=context, options=options).response["violations"]
    return [
        f"{each['id']}: {node['html'][:120]}"
        for each in found
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]
