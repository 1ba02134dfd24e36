"""Build the learner's and the solution notebooks from notebooks/source/*.py (for developers).

    python tools/build_notebooks.py               build all, running each once on this machine without a GPU
    python tools/build_notebooks.py 02 overlap    build those whose files or topics begin so
    python tools/build_notebooks.py --check       say whether the built notebooks fit their sources

A source is a py:percent script, named by its topic; those of side trips are in notebooks/source/side. Numbers
come from ``gemm_course/road.py``: a source names an exercise as ``[[outer_product]]``, a notebook as
``[[warp_tiles.ipynb]]``, and links to ``warp_tiles.ipynb``. So does the glossary, which is built as well.

A cell tagged ``solution`` goes to the solution notebook only, one tagged
``stub`` to the learner's only, every other to both. A cell's id is the one given in its header (``# %%
id="ex-where"``), or else made from the cell's text, so that it stays the same while other cells come and go.

An exercise is one cell, the solution, with marks around what the learner writes:

    def blocks_for(n, threads):
        ### BEGIN SOLUTION
        return (n + threads - 1) // threads
        ### STUB
        # return None  # your code
        ### END SOLUTION

The solution notebook has everything but the marks and the stub, and adds ``-solution`` to the cell's id. The
learner's has the lines of the stub in place of the solution, without their ``# ``; without the mark
``### STUB`` the stub is ``pass  # your code``. The solution is folded in a cell below it, whose id gets
``-folded``.

A heading such as ``### Exercise [[best_block]] · ...`` begins a cell of its own, ``exercise-best_block``, for
links. Every notebook gets links to its neighbours. A side trip gets a link back to the cell of the road that
has the id ``side-`` and its topic. ``<!-- contents -->`` in a source becomes the table of all notebooks.

A text tagged ``answer`` answers a prediction above it, one tagged ``thought`` a question without options;
both are folded. Code folds what it shows itself, with ``see.fold``. A cell tagged ``listing`` lists what an
exercise above it asks for. It is folded as well, and an assignment has it without its outputs.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import jupytext
import nbformat

from gemm_course import road
from gemm_course.widgets._lab_output import FOLD, MIME

sys.path.insert(0, str(Path(__file__).resolve().parent))  # for when this file is loaded as a module
import folded_answers
import notebook_links as links

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
# Pages beside the notebooks whose sources name notebooks and exercises too.
PAGES = ("glossary.md",)
KINDS = {
    "learner": ("", "solution"),
    "solutions": ("solutions", "stub"),
}  # folder below the target, tag to leave out
OWN_TAG = {"learner": "stub", "solutions": "solution"}
NAVIGATION, FOLDED = "navigation", "folded"  # tags of cells that are in no source
BEGIN, STUB, END = "### BEGIN SOLUTION", "### STUB", "### END SOLUTION"
NO_STUB = "pass  # your code"
# All that a kernel says about its language. If something were missing, JupyterLab would add it, and the
# notebook would count as edited.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": platform.python_version(),
    },
}
NEEDS_A_KERNEL = ("application/vnd.jupyter.widget-view+json", "application/javascript")


def names() -> list[str]:
    """Return the topics of all notebooks, in the order of the road, and then those of side trips."""
    return [notebook.topic for notebook in road.NOTEBOOKS]


def source_of(topic: str, folder: Path = NOTEBOOKS) -> Path:
    """Return the path of a notebook's source."""
    return folder / "source" / ("side" if road.notebook(topic).beside else "") / f"{topic}.py"


def assemble(source: str, kind: str) -> nbformat.NotebookNode:
    """Return the notebook that ``source`` (py:percent text) describes, without outputs and links to others.

    ``kind`` is a key of KINDS.
    """
    left_out = KINDS[kind][1]
    notebook = nbformat.v4.new_notebook(metadata=copy.deepcopy(METADATA))
    used: Counter[str] = Counter()
    for cell in jupytext.reads(source, fmt="py:percent").cells:
        if left_out in cell.metadata.get("tags", []):
            continue
        made = _exercise(cell, kind) if BEGIN in cell.source else _as_it_is(cell)
        notebook.cells += [_cell(*each, used) for each in made]
    for cell in notebook.cells:
        folded_answers.fold_text(cell)
    return notebook


def whole(name: str, kind: str) -> nbformat.NotebookNode:
    """Return the notebook on this topic as it ships, but without outputs."""
    sources = {each: source_of(each).read_text("utf-8") for each in names()}
    notebooks = {each: links.listed(road.notebook(each).name, source) for each, source in sources.items()}
    notebook = assemble(sources[name], kind)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = cell.source.replace(links.CONTENTS_MARK, links.contents(notebooks))
            cell.source = (
                text if kind == "learner" else links.from_solutions(text, cell.id, notebooks[name].name)
            )
    top, bottom = (_ways(where, notebooks, name, kind) for where in (links.top, links.bottom))
    notebook.cells = [top, *notebook.cells, bottom]
    return notebook


def _ways(where: Callable[..., str], *here) -> nbformat.NotebookNode:
    metadata = {"id": f"{NAVIGATION}-{where.__name__}", "tags": [NAVIGATION]}
    return _cell("markdown", where(*here), metadata, Counter())


def _as_it_is(cell) -> Iterator[tuple[str, str, dict]]:
    """A cell without marks, as type, text and metadata. A cell of text is cut where an exercise begins."""
    if cell.cell_type != "markdown":
        yield cell.cell_type, cell.source, cell.metadata
        return
    for text in links.parts(cell.source):
        identity = links.exercise_id(text)
        yield cell.cell_type, text, {**cell.metadata, "id": identity} if identity else cell.metadata


def _exercise(cell, kind: str) -> Iterator[tuple[str, str, dict]]:
    """A cell with marks: a learner's stub with the solution folded below it, or the solution."""
    identity, tags = cell.metadata["id"], [OWN_TAG[kind]]
    if kind == "solutions":
        yield "code", written(cell.source, kind), {"id": f"{identity}-solution", "tags": tags}
        return
    yield "code", written(cell.source, kind), {"id": identity, "tags": tags}
    text = links.folded(written(cell.source, "solutions"), "Solution")
    yield "markdown", text, {"id": f"{identity}-folded", "tags": [FOLDED]}


def written(source: str, kind: str) -> str:
    """Return an exercise's cell as this ``kind`` of notebook has it.

    Raises ValueError for marks that are out of order.
    """
    lines: list[str] = []
    solution: list[str] = []
    stub: list[str] | None = None
    part = lines
    for line in source.split("\n"):
        mark = line.strip()
        if mark == BEGIN and part is lines:
            solution, stub = [], None
            part = solution
        elif mark == STUB and part is solution:
            part = stub = []
        elif mark == END and part is not lines:
            lines += solution if kind == "solutions" else _told(stub, line.removesuffix(END))
            part = lines
        elif mark in (BEGIN, STUB, END):
            raise ValueError(f"{mark!r} is out of order in\n{source}")
        else:
            part.append(line)
    if part is not lines:
        raise ValueError(f"{END!r} is missing in\n{source}")
    return "\n".join(lines)


def _told(stub: list[str] | None, indent: str) -> list[str]:
    """The lines that a learner finds in place of the solution."""
    return [indent + NO_STUB] if stub is None else [_uncommented(line, indent) for line in stub]


def _uncommented(line: str, indent: str) -> str:
    """A line of a stub without the ``# `` in front. An empty line stays empty."""
    text = line.removeprefix(indent)
    if not text.startswith("#"):
        raise ValueError(f"a line of a stub must be a comment: {line!r}")
    return (indent + text[1:].removeprefix(" ")).rstrip()


def _cell(cell_type: str, source: str, metadata: dict, used: Counter) -> nbformat.NotebookNode:
    """Make a cell. An id from its text does not change with the numbers that are put into the text."""
    name = metadata.get("id") or hashlib.sha1(source.encode()).hexdigest()[:12]
    used[name] += 1
    identity = name if used[name] == 1 else f"{name}-{used[name]}"
    make = nbformat.v4.new_markdown_cell if cell_type == "markdown" else nbformat.v4.new_code_cell
    tags = list(metadata.get("tags", []))
    return make(road.numbered(source), id=identity, metadata={"tags": tags} if tags else {})


def run(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run ``notebook`` in ``folder``, in a kernel without a GPU, and keep the outputs that need no kernel.

    Raises nbclient.exceptions.CellExecutionError at the first cell that fails.
    """
    from nbclient import NotebookClient

    here = os.pathsep.join(filter(None, [str(NOTEBOOKS.parent), os.environ.get("PYTHONPATH")]))
    hidden = dict(os.environ, CUDA_VISIBLE_DEVICES="", PYTHONPATH=here, PYDEVD_DISABLE_FILE_VALIDATION="1")
    hidden["GEMM_COURSE_DATA"] = "off"  # shipped pictures show no learner's GPU
    hidden["GEMM_COURSE_PROGRESS"] = "off"  # a passing solution is nobody's progress
    hidden["GEMM_COURSE_LAB"] = "1"  # explorers as the course's JupyterLab draws them
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        store_widget_state=False,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    with kernel_of(client, hidden):
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _stands_alone(output)]
            _forget_this_kernel(cell.outputs)
            cell.metadata.pop("execution", None)


@contextmanager
def kernel_of(client, environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Start the kernel of an nbclient.NotebookClient, and stop it at the end.

    Its ports are chosen before it starts. If another process has taken one meanwhile, start again.
    """
    with ExitStack() as stack:
        for is_last in (False, False, True):
            try:
                stack.enter_context(client.setup_kernel(env=environment))
                break
            except RuntimeError:
                if is_last:
                    raise
        yield


def _forget_this_kernel(outputs) -> None:
    """Mark explorers that a cell drew with code of its own: only the kernel of this build knows them."""
    for output in outputs:
        data = output.get("data", {})
        for spec in [data.get(MIME), *data.get(FOLD, {}).get("explorers", [])]:
            if spec and "own" in spec:
                spec["own"] = "gone"


def _stands_alone(output) -> bool:
    return not any(mime in output.get("data", {}) for mime in NEEDS_A_KERNEL)


def shape_of(notebook: nbformat.NotebookNode) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Return what a build decides about a notebook: each cell's id, type, source and tags; no outputs."""
    return [(c.id, c.cell_type, c.source, tuple(c.metadata.get("tags", []))) for c in notebook.cells]


def target(name: str, kind: str, folder: Path = NOTEBOOKS) -> Path:
    """Return the path of a built notebook."""
    return folder / KINDS[kind][0] / links.file_of(road.notebook(name).name, kind)


def built(folder: Path = NOTEBOOKS) -> list[Path]:
    """Return the built notebooks that are in ``folder``, of both kinds."""
    return [path for below, _ in KINDS.values() for path in sorted((folder / below).glob("*.ipynb"))]


def page(name: str) -> str:
    """Return a page such as the glossary as it ships."""
    return road.numbered((NOTEBOOKS / "source" / name).read_text("utf-8"))


def build(name: str, folder: Path = NOTEBOOKS, *, execute: bool = True) -> list[Path]:
    """Build both notebooks on the topic ``name`` into ``folder`` and return their paths."""
    made = []
    for kind in KINDS:
        notebook = whole(name, kind)
        if execute:
            run(notebook, target(name, kind).parent)
        path = target(name, kind, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.validate(notebook)
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        made.append(path)
    return made


def stale(name: str) -> list[str]:
    """Return which built notebooks on the topic ``name`` no longer fit their source."""
    found = []
    for kind in KINDS:
        path = target(name, kind)
        if not path.exists() or shape_of(nbformat.read(path, 4)) != shape_of(whole(name, kind)):
            found.append(str(path.relative_to(NOTEBOOKS.parent)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="first letters of files or topics; all if left out")
    parser.add_argument("--check", action="store_true", help="compare only")
    given = parser.parse_args()
    chosen = [name for name in names() if not given.names or _begins(name, tuple(given.names))]
    if given.check:
        behind = [path for name in chosen for path in stale(name)] + stale_pages()
        print(
            "\n".join(f"{path} does not fit its source" for path in behind)
            or "all notebooks fit their sources"
        )
        return 1 if behind else 0
    for each in PAGES:
        (NOTEBOOKS / each).write_text(page(each), "utf-8")
    if not given.names:
        remove_others()
    for name in chosen:
        for path in build(name):
            print(path.relative_to(NOTEBOOKS.parent))
    return 0


def _begins(topic: str, beginnings: tuple[str, ...]) -> bool:
    return topic.startswith(beginnings) or road.notebook(topic).name.startswith(beginnings)


def stale_pages() -> list[str]:
    return [f"notebooks/{each}" for each in PAGES if not _is_built(NOTEBOOKS / each)]


def _is_built(path: Path) -> bool:
    return path.exists() and path.read_text("utf-8") == page(path.name)


def remove_others(folder: Path = NOTEBOOKS) -> None:
    """Remove built notebooks that have another name now, because their place on the road has changed."""
    ours = {target(name, kind, folder) for name in names() for kind in KINDS}
    for path in built(folder):
        if path not in ours:
            path.unlink()


if __name__ == "__main__":
    sys.exit(main())
