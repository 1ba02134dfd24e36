"""The bar of a long run: seen by whoever watches, gone at the end, nothing where nobody does."""

import io
import re

import nbformat
import pytest
from nbclient import NotebookClient
from rich.console import Console

from gemm_course.progress_bar import progress_bar
from tests.notebooks.builder import builder


def terminal() -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, force_interactive=True, color_system=None, width=90
    )


def test_in_a_terminal_it_moves_and_goes():
    console = terminal()
    with progress_bar("emulating", "blocks", console) as show:
        show(3, 8, "[tile] BM=8")
    assert re.search(r"emulating .* 3/8 blocks .* \[tile\] BM=8", console.file.getvalue())
    assert console.file.getvalue().endswith("\x1b[?25h\r\x1b[1A\x1b[2K")  # cursor shown, line erased


def test_it_goes_when_the_run_is_interrupted():
    console = terminal()
    with pytest.raises(KeyboardInterrupt), progress_bar("emulating", "blocks", console) as show:
        show(1, 8)
        raise KeyboardInterrupt
    assert console.file.getvalue().endswith("\x1b[2K")


def test_nothing_is_written_where_nobody_looks(capfd):
    with progress_bar("emulating", "blocks") as show:
        show(3, 8)
    assert capfd.readouterr() == ("", "")


IN_A_NOTEBOOK = """
import time
from gemm_course import progress_bar
progress_bar.PAUSE = 0
with progress_bar.progress_bar("emulating", "blocks") as show:
    for done in range(4):
        show(done, 3)
"""


def test_in_a_notebook_one_display_is_updated_and_left_empty():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(IN_A_NOTEBOOK)])
    seen = []

    class Client(NotebookClient):
        def process_message(self, message, *arguments):
            if message["msg_type"].endswith("display_data"):
                seen.append((message["msg_type"], message["content"]["data"]["text/plain"]))
            return super().process_message(message, *arguments)

    client = Client(notebook, kernel_name="python3")
    with builder.kernel_of(client):
        client.execute_cell(notebook.cells[0], 0)
    assert [kind for kind, _ in seen] == ["display_data"] + 5 * ["update_display_data"]
    assert "emulating" in seen[0][1] and "3/3" in seen[4][1]
    (left,) = notebook.cells[0].outputs
    assert left["data"] == {"text/plain": ""}
