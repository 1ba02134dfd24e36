"""A course of one chapter, with a place of every kind that a link can lead to."""

from pathlib import Path

import nbformat
from nbformat import v4

FILES = {
    "README.md": """# A small course

It begins here.

![A dot.](notebooks/pictures/dot.png)

## Two commands

Run it. The [list](notebooks/glossary.md#lane) has the words, [the rules](RULES.md) are for contributors.

| | you will be able to say |
|---|---|
| 00 | what a dot is |
""",
    "RULES.md": "# Rules\n\nBack to the [start](README.md#two-commands), [terms](LICENSE).\n",
    "LICENSE": "Do what you like.\n",
    "notebooks/glossary.md": "# Glossary\n\n## threads\n\n### lane\nA place. "
    "[00](00_dots.ipynb#cell-id=exercise-00-1)\n",
    "docs/what_limits_it.md": "# What limits it\n\nSee [the emulator](../lockstep/README.md).\n",
    "docs/open_questions.md": "# Open questions\n\nNobody measured it.\n",
    "lockstep/README.md": "# The emulator\n\nIt counts, and $a^2$ is a square. [More](REFERENCE.md).\n",
    "lockstep/REFERENCE.md": "# Reference\n\nBack to the [start](README.md).\n",
}
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63606060f80f0001040100a5d4e60c0000000049454e44ae426082"
)
EXPLORER = "application/vnd.gemm-course.explorer+json"


def explorer(alt: str) -> nbformat.NotebookNode:
    """The output of an explorer, with signs in its spec that HTML has to escape."""
    control = {"label": '"<&', "kind": "segments", "of": [], "rows": {"": ["few", "many"]}}
    spec = {"controls": [control], "width": 10, "at": ["few"], "actions": [], "frames": None}
    still = {
        "text/html": f'<img class="gemm-picture" alt="{alt}" src="data:image/gif;base64,R0lGODlhAQABAAAAACw">'
    }
    return v4.new_output("display_data", {EXPLORER: spec, **still, "text/plain": alt})


def widget() -> nbformat.NotebookNode:
    """The output of a widget, which a page without Python cannot show."""
    return v4.new_output("display_data", {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}})


def learner() -> nbformat.NotebookNode:
    """A learner's notebook, as built: a lesson, an explorer, an exercise with its stub."""
    return _notebook(
        v4.new_markdown_cell(
            "[Contents](00_dots.ipynb)", id="navigation-top", metadata={"tags": ["navigation"]}
        ),
        v4.new_markdown_cell("# 00 · Dots\n\nA dot is small: $n/6$.\n\n$$a / b$$", id="first"),
        v4.new_code_cell("see.dots()", id="dots", outputs=[explorer("three dots"), widget()]),
        v4.new_markdown_cell("## Exercises\n\nTwo of them.", id="exercises"),
        v4.new_markdown_cell("### Exercise 00.1 · What is a dot?\nSay it.", id="exercise-00-1"),
        v4.new_code_cell(
            "check.dot(None)",
            id="ex-00-1",
            metadata={"tags": ["stub"]},
            outputs=[v4.new_output("execute_result", {"text/html": "<div>Not yet</div>"})],
        ),
        v4.new_markdown_cell("<details>folded</details>", id="ex-00-1-folded", metadata={"tags": ["folded"]}),
        v4.new_markdown_cell("## Recap\n\nSee [above](#cell-id=exercise-00-1).", id="recap"),
    )


def solutions() -> nbformat.NotebookNode:
    """The same chapter with its solution, which shows more when it is run."""
    cells = [cell for cell in learner().cells if not {"stub", "folded"} & set(cell.metadata.get("tags", []))]
    solved = [
        v4.new_code_cell(
            "check.dot('small')",
            id="ex-00-1-solution",
            metadata={"tags": ["solution"]},
            outputs=[v4.new_output("execute_result", {"text/html": "<div>Passed</div>"})],
        )
    ]
    place = [cell.id for cell in cells].index("recap")
    return _notebook(*cells[:place], *solved, *cells[place:])


def _notebook(*cells) -> nbformat.NotebookNode:
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return v4.new_notebook(cells=list(cells), metadata=metadata)


def write(folder: Path) -> Path:
    """Write the course into ``folder``, and return it."""
    for name, text in FILES.items():
        _write(folder / name, text.encode())
    _write(folder / "notebooks/pictures/dot.png", DOT)
    _write(folder / "notebooks/00_dots.ipynb", nbformat.writes(learner()).encode())
    _write(folder / "notebooks/solutions/00_dots_solutions.ipynb", nbformat.writes(solutions()).encode())
    return folder


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
