"""A notebook as a page: stubs, how to run them, folded solutions with what they show, and no dead widget."""

import html
import json
import re

from nbformat import v4

from gemm_course.commands.site.notebooks import page_of
from gemm_course.commands.site.outputs import EXPLORER, FOLD, for_a_page
from tests.site.small_course import learner, solutions


def page():
    return page_of(learner(), solutions(), "00")


def test_an_exercise_is_its_task_its_stub_how_to_run_it_and_its_solution_folded():
    sources = [cell.source for cell in page().cells]
    place = sources.index("check.dot(None)")
    how, opening, solution, closing, after = sources[place + 1 : place + 6]
    assert sources[place - 1].startswith("### Exercise 00.1")
    assert "notebook 00" in how and "two-commands" in how
    assert opening.startswith("<details") and 'id="ex-00-1-solution"' in opening and "Solution" in opening
    assert (solution, closing) == ("check.dot('small')", "</details>")
    assert after.startswith("## Recap")


def test_stub_and_solution_keep_what_they_show():
    shown = {cell.id: cell.outputs[0].data["text/html"] for cell in page().cells if cell.get("outputs")}
    assert shown["ex-00-1"] == "<div>Not yet</div>"
    assert shown["ex-00-1-solution"] == "<div>Passed</div>"


def test_ways_from_notebook_to_notebook_and_the_solution_without_outputs_are_left_out():
    assert not {"navigation-top", "ex-00-1-folded"} & {cell.id for cell in page().cells}


def test_no_page_tells_a_reader_to_run_it():
    own = learner()
    own.cells[
        1
    ].source = "# 00 · Dots\n\n**Press Shift+Enter to begin.** It runs\nthe cell.\n\nA dot is small."
    assert page_of(own, solutions(), "00").cells[0].source == "# 00 · Dots\n\nA dot is small."


def test_a_stub_without_a_checker_says_nothing_of_one():
    own, other = learner(), solutions()
    own.cells[5].source = "formula = None"
    assert not any("checker" in cell.source for cell in page_of(own, other, "00").cells)


def test_an_explorer_is_an_element_with_its_spec_and_its_still():
    (output,) = next(cell for cell in page().cells if cell.id == "dots").outputs  # the widget is gone
    found = re.fullmatch(r'<div data-gemm-explorer="([^"]*)">(<img .*)</div>', output.data["text/html"])
    spec = next(cell for cell in learner().cells if cell.id == "dots").outputs[0].data[EXPLORER]
    assert json.loads(html.unescape(found[1])) == spec
    assert EXPLORER not in output.data


def test_an_explorer_in_a_fold_gets_its_spec_and_stays_folded():
    words, still = (
        '<div class="gemm-part"><pre>words</pre></div>',
        '<div class="gemm-part"><img alt="3"></div>',
    )
    data = {
        "text/html": f"<details><summary>Think.</summary>{words}{still}</details>",
        "text/plain": "Think.",
    }
    spec = {"controls": [], "at": ['"<']}
    output = v4.new_output("display_data", {**data, FOLD: {"first": "Think.", "explorers": [None, spec]}})
    (shown,) = for_a_page(v4.new_code_cell("see.fold(...)", outputs=[output])).outputs
    line, element = shown.data["text/html"].split("<div data-gemm-explorer=", 1)
    assert line == f"<details><summary>Think.</summary>{words}"
    given, rest = element.split(">", 1)
    assert json.loads(html.unescape(given.strip('"'))) == spec and rest == '<img alt="3"></div></details>'
    assert FOLD not in shown.data
