"""Links: every way to name a place of a notebook leads to the same heading of its page."""

import pytest

from gemm_course.commands.site.links import places, rewritten, rewritten_html, slug
from tests.site.small_course import learner

HEADING = "Exercise 00.1 · What is a dot?"


@pytest.mark.parametrize(
    "name",
    [
        "cell-id=exercise-00-1",  # the cell that begins with the heading
        "cell-id=ex-00-1",  # a cell below it
        "Exercise-00.1-·-What-is-a-dot?",  # the heading, as JupyterLab calls it
        "exercise-001--what-is-a-dot",  # and as GitHub does
    ],
)
def test_a_place_has_many_names(name):
    assert places(learner())[name] == HEADING


def test_a_cell_that_begins_with_text_lies_below_the_heading_before():
    notebook = learner()
    notebook.cells[4].source = "More.\n\n" + notebook.cells[4].source
    assert places(notebook)["cell-id=exercise-00-1"] == "Exercises"


def test_what_is_commented_out_in_code_is_no_heading():
    notebook = learner()
    notebook.cells[4].source += "\n\n```python\n# no heading\n```"
    assert "no-heading" not in places(notebook) and places(notebook)["cell-id=ex-00-1"] == HEADING


def test_a_slug_is_githubs():
    assert slug("Exercise 02.1 · Coalesce it") == "exercise-021--coalesce-it"


def test_links_are_led_on_and_others_stay():
    def lead(target):
        path, place = target
        return {"README.md": ("index.md", place), "a/b.md": ("a/c.md", "there")}.get(path)

    text = "[1](../README.md#x) [2](b.md) [3](https://a.b/c.md#d) [4](e.md) `f[i](g)` [5](#h) ![6](i.png)"
    led = text.replace("README", "index").replace("(b.md)", "(c.md#there)").replace("(#h)", "(c.md#there)")
    assert rewritten(text, "a/b.md", lead) == led


def test_links_to_notebooks_in_outputs_lead_to_pages():
    markup = (
        '<a href="01_b.ipynb#cell-id=x">b</a> <a href="01_b.ipynb">b</a> <a href="https://c.d/e.ipynb">e</a>'
    )
    led = rewritten_html(
        markup, "notebooks/00_a.ipynb", lambda target: (target[0], "there" if target[1] else "")
    )
    assert (
        led == '<a href="01_b.html#there">b</a> <a href="01_b.html">b</a> <a href="https://c.d/e.ipynb">e</a>'
    )
