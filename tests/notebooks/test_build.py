"""The built notebooks are what their sources say, and the builder does what it promises."""

import io
import re
import subprocess
import tarfile
from contextlib import contextmanager

import nbformat
import pytest

from gemm_course import road
from tests.notebooks.builder import ROOT, builder, load_builder

SOURCE = """# %% [markdown]
# # A title

# %%
x = 1

# %% tags=["stub"] id="ex-1"
y = None

# %% tags=["solution"] id="ex-1-solution"
y = 2

# %%
x = 1
"""


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """The notebooks as they were committed: a learner's edits in the working tree do not matter."""
    if subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True).returncode:
        pytest.skip("this is no git checkout, so there are no committed notebooks to compare with")
    folder = tmp_path_factory.mktemp("committed")
    archive = subprocess.run(
        ["git", "-C", ROOT, "archive", "HEAD", "notebooks", "tools"], capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def test_a_rebuild_gives_the_committed_notebooks(committed, tmp_path):
    then = load_builder(committed / "tools" / "build_notebooks.py")
    assert then.names(), "no sources found"
    for name in then.names():
        rebuilt = then.build(name, tmp_path, execute=False)
        for path, kind in zip(rebuilt, then.KINDS, strict=True):
            kept = nbformat.read(then.target(name, kind), 4)
            assert then.shape_of(nbformat.read(path, 4)) == then.shape_of(kept), (
                f"{name} ({kind}): build again"
            )


def test_no_notebook_is_left_without_a_source(committed):
    folder = committed / "notebooks"
    names = {notebook.name for notebook in road.NOTEBOOKS}
    assert {path.stem for path in folder.glob("*.ipynb")} == names
    solved = {path.stem for path in (folder / "solutions").glob("*.ipynb")}
    assert solved == {f"{name}_solutions" for name in names}, "their tabs must look different"


def test_the_committed_glossary_is_what_its_source_says(committed):
    then = load_builder(committed / "tools" / "build_notebooks.py")
    assert then.stale_pages() == []


def test_a_cells_id_stays_when_a_number_in_its_text_changes(monkeypatch):
    text = "# %% [markdown]\n# See [[naive]] and [[naive.ipynb]].\n"
    (before,) = builder.assemble(text, "learner").cells
    monkeypatch.setattr(road, "ROAD", road.ROAD[1:])
    (after,) = builder.assemble(text, "learner").cells
    assert (before.source, after.source) == ("See 01.1 and 01.", "See 00.1 and 00.") and before.id == after.id


def test_a_full_build_leaves_no_notebook_under_an_old_number(tmp_path):
    (tmp_path / "solutions").mkdir()
    for path in ("00_naive.ipynb", "01_naive.ipynb", "solutions/00_naive_solutions.ipynb"):
        (tmp_path / path).touch()
    builder.remove_others(tmp_path)
    assert [path.name for path in builder.built(tmp_path)] == ["01_naive.ipynb"]


def test_stubs_go_to_learners_and_solutions_to_solutions():
    learner, solutions = (builder.assemble(SOURCE, kind) for kind in ("learner", "solutions"))
    assert [cell.id for cell in learner.cells if cell.id.startswith("ex")] == ["ex-1"]
    assert [cell.id for cell in solutions.cells if cell.id.startswith("ex")] == ["ex-1-solution"]


WITH_EXERCISE = """# %% [markdown]
# Some words before it.
#
# ### Exercise [[best_block]] · Add one
# Write it.

# %% id="ex-best_block"
def add(x):
    ### BEGIN SOLUTION
    return x + 1
    ### STUB
    # return None
    ### END SOLUTION


check.add(add)
"""


def test_an_exercise_begins_with_a_cell_of_its_own_that_links_can_name():
    for kind in builder.KINDS:
        texts = {cell.id: cell.source for cell in builder.assemble(WITH_EXERCISE, kind).cells}
        number = road.number_of("best_block")
        assert texts["exercise-best_block"].startswith(f"### Exercise {number} · Add one\nWrite it.")
        assert "Some words before it." in texts.values()


def test_the_solution_is_folded_below_the_stub_word_for_word():
    learner, solutions = (builder.assemble(WITH_EXERCISE, kind).cells for kind in builder.KINDS)
    assert [cell.id for cell in learner[-2:]] == ["ex-best_block", "ex-best_block-folded"]
    assert "return None" in learner[-2].source and "return x + 1" not in learner[-2].source
    code = re.fullmatch(
        r"<details>\n<summary>Solution</summary>\n\n```python\n(.*)\n```\n\n</details>",
        learner[-1].source,
        re.DOTALL,
    )
    assert code[1] == solutions[-1].source and solutions[-1].id == "ex-best_block-solution"
    assert not [cell for cell in solutions if "<details>" in cell.source]


def test_a_notebook_without_a_title_or_times_is_refused():
    good = (
        "# %% [markdown]\n# # 01 · A title\n#\n# *Time: about 5 minutes to read, 6 for the\n# exercises.*\n"
    )
    assert builder.links.listed("01_a", good) == builder.links.Listed("01_a", "01 · A title", 5, 6)
    for bad in (good.replace("# # ", "# "), good.replace("about", "")):
        with pytest.raises(ValueError, match="01_a"):
            builder.links.listed("01_a", bad)


def test_what_jupyterlab_would_add_on_opening_is_there():
    """Else it shows a notebook that was only opened as edited; the kernel says what it will add."""
    kernel = pytest.importorskip("ipykernel.ipkernel").IPythonKernel
    metadata = builder.whole("welcome", "learner").metadata
    assert metadata.language_info == kernel.language_info
    assert set(metadata.kernelspec) == {"name", "display_name", "language"}


def test_ids_stay_when_other_cells_come_and_go():
    before = builder.assemble(SOURCE, "learner")
    after = builder.assemble(SOURCE.replace("# %% tags", "# %%\nz = 3\n\n# %% tags", 1), "learner")
    assert {cell.id for cell in before.cells} < {cell.id for cell in after.cells}


def test_equal_cells_have_different_ids():
    cells = builder.assemble(SOURCE, "learner").cells
    assert len({cell.id for cell in cells}) == len(cells)


def test_a_failing_cell_fails_the_build(tmp_path):
    from nbclient.exceptions import CellExecutionError

    with pytest.raises(CellExecutionError):
        builder.run(builder.assemble("# %%\n1 / 0\n", "learner"), tmp_path)


class Client:
    """Whose kernel finds its port taken as often as asked."""

    def __init__(self, failures: int):
        self.failures, self.running = failures, False

    @contextmanager
    def setup_kernel(self, env):
        if self.failures:
            self.failures -= 1
            raise RuntimeError("Kernel died before replying to kernel_info")
        self.running = True
        yield
        self.running = False


def test_a_kernel_whose_port_was_taken_is_started_again():
    client = Client(failures=2)
    with builder.kernel_of(client):
        assert client.running
    assert not client.running
    with pytest.raises(RuntimeError, match="Kernel died"), builder.kernel_of(Client(failures=3)):
        raise AssertionError("nothing runs")


def test_outputs_that_need_a_kernel_are_left_out(tmp_path):
    source = "# %%\nimport ipywidgets\ndisplay(ipywidgets.IntSlider())\nprint('stays')\n"
    notebook = builder.assemble(source, "learner")
    builder.run(notebook, tmp_path)
    assert [output.output_type for output in notebook.cells[0].outputs] == ["stream"]


ANSWERED = """# %% [markdown] tags=["{tag}"]
# **Because.**

# %% [markdown]
# **Open.**

# %%
from gemm_course import widgets as see
see.fold("because of", lambda: see.owners(lambda tid, BN, WM, WN, TN, WNITER: [(tid // 8, tid % 8)]))
"""


@pytest.mark.parametrize(
    ("tag", "first"),
    [("answer", "Choose your"), ("listing", "Write the exercise first"), ("thought", "Answer first")],
)
def test_a_text_that_answers_is_folded_and_says_what_comes_first(tag, first):
    words, other, _ = builder.assemble(ANSWERED.format(tag=tag), "learner").cells
    assert words.source.startswith(f"<details><summary>{first}")
    assert "\n\n**Because.**\n\n" in words.source
    assert other.source == "**Open.**"


def test_an_explorer_in_a_fold_knows_that_its_kernel_is_gone(tmp_path):
    notebook = builder.assemble(ANSWERED, "learner")
    builder.run(notebook, tmp_path)
    (output,) = notebook.cells[-1].outputs
    words, explorer = output.data[builder.FOLD]["explorers"]
    assert words is None and explorer["own"] == "gone"
