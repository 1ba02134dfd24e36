"""Shows explorers as a widget where the course's extension is missing, such as in VS Code and Colab.

anywidget brings `explorer.js`, the script of the course's JupyterLab, to the page as part of the widget's
state, so that no folder and no network is needed. The script asks Python for a picture by a message, and
Python answers with `asked.answer`. Stored frames are not used.

A cell has two outputs: the still picture, and the widget, whose script hides the still. So the still is what
a saved notebook shows wherever no widget lives: on GitHub, with nbconvert, and before the cell is run. A fold
that has explorers is one widget, and its still is the same fold with their still pictures.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import display

from gemm_course.widgets import asked
from gemm_course.widgets._frames import STATIC
from gemm_course.widgets._lab_output import FOLD, MIME

_RENDER = """
export default {
  render({model, el}) {
    const waiting = new Map();
    let count = 0;
    const ask = request => new Promise((done, failed) => {
      waiting.set(++count, {done, failed});
      model.send({number: count, request});
    });
    const answered = ({number, answer, problem}) => {
      const {done, failed} = waiting.get(number) ?? {};
      waiting.delete(number);
      if (problem) failed?.(new Error(problem));
      else done?.(answer);
    };
    model.on('msg:custom', answered);
    const {fold, html, name} = model.get('still');
    const shown = document.getElementById(name); // in the cell's output above
    if (shown) shown.hidden = true;
    const {behind, explore, partsOf, stillOf} = window.gemmCourse;
    const parts = (fold ? partsOf(html) : [html]).map((part, place) => {
      const element = document.createElement('div'), spec = model.get('explorers')[place];
      if (spec) explore(element, spec, {still: stillOf(part), ask});
      else element.innerHTML = part;
      return element;
    });
    el.append(...(fold ? [behind(fold, ...parts)] : parts));
    return () => model.off('msg:custom', answered);
  },
};
"""


def show(output: dict[str, Any]) -> None:
    """Display the output of an explorer or of a fold: still, and as a widget that takes its place.

    A fold without explorers needs no widget.
    """
    html, plain = output["text/html"], output["text/plain"]
    fold = output.get(FOLD, {})
    explorers = fold["explorers"] if fold else [output[MIME]] if MIME in output else []
    if not explorers:
        display({"text/html": html, "text/plain": plain}, raw=True)
        return
    name = f"gemm-still-{uuid4().hex[:12]}"
    display({"text/html": f'<div id="{name}">{html}</div>', "text/plain": plain}, raw=True)
    display(ExplorerWidget(explorers, {"fold": fold.get("first", ""), "html": html, "name": name}))


class ExplorerWidget(anywidget.AnyWidget):
    """A widget that shows an explorer in the page, or a fold that has explorers.

    ``explorers`` are specs as `_lab_output` writes them, one for each part of a fold; None is for a part that
    is no explorer. ``still`` has "html", the output where no widget lives, "name", the id of the element that
    the widget replaces, and "fold", the line that opens the fold, which is "" if there is no fold.
    """

    _esm = (STATIC / "explorer.js").read_text(encoding="utf-8") + _RENDER
    _css = (STATIC / "explorer.css").read_text(encoding="utf-8")
    explorers = traitlets.List().tag(sync=True)
    still = traitlets.Dict().tag(sync=True)

    def __init__(self, explorers: list[dict[str, Any] | None], still: dict[str, str]):
        super().__init__(explorers=[spec and {**spec, "frames": None} for spec in explorers], still=still)
        self.on_msg(self._asked)

    def _asked(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        """Answer the page's message, which holds a number and a request as `asked.answer` takes it."""
        reply: dict[str, Any] = {"number": content["number"]}
        try:
            reply["answer"] = asked.answer(json.dumps(content["request"])).data
        except Exception as problem:
            reply["problem"] = f"Python could not draw this: {problem}."
        self.send(reply)
