"""Shows explorers as a widget where the course's extension is missing, such as in VS Code and Colab.

anywidget brings `explorer.js`, the script of the course's JupyterLab, to the page as part of the widget's
state, so that no folder and no network is needed. The script asks Python for a picture by a message, and
Python answers with `asked.answer`. Stored frames are not used.

A cell has two outputs: the still picture, and the widget, whose script hides the still. So the still is what
a saved notebook shows wherever no widget lives: on GitHub, with nbconvert, and before the cell is run.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import display

from gemm_course.widgets import _calls, asked
from gemm_course.widgets._frames import STATIC
from gemm_course.widgets._lab_output import MIME, bundle

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
    const {still, name} = model.get('first');
    const shown = document.getElementById(name); // in the cell's output above
    if (shown) shown.hidden = true;
    window.gemmCourse.explore(el, model.get('spec'), {still, ask});
    return () => model.off('msg:custom', answered);
  },
};
"""


def show(explorer: Any, call: _calls.Call | None) -> ExplorerWidget:
    """Display an explorer as a still picture, and as a widget that takes its place."""
    output = bundle(explorer, call)
    name = f"gemm-still-{uuid4().hex[:12]}"
    still = f'<div id="{name}">{output["text/html"]}</div>'
    display({"text/html": still, "text/plain": output["text/plain"]}, raw=True)
    widget = ExplorerWidget(explorer, output[MIME], name)
    display(widget)
    return widget


class ExplorerWidget(anywidget.AnyWidget):
    """A widget that shows an explorer in the page.

    ``spec`` is what `_lab_output` writes. ``first`` has "still", the source and alt text of the first
    picture, and "name", the id of the element that the widget replaces.
    """

    _esm = (STATIC / "explorer.js").read_text(encoding="utf-8") + _RENDER
    _css = (STATIC / "explorer.css").read_text(encoding="utf-8")
    spec = traitlets.Dict().tag(sync=True)
    first = traitlets.Dict().tag(sync=True)

    def __init__(self, explorer: Any, spec: dict[str, Any], name: str):
        picture = explorer.picture(explorer.controls.start())
        first = {"still": {"source": picture.data, "alt": picture.alt}, "name": name}
        super().__init__(spec={**spec, "frames": None}, first=first)
        self.on_msg(self._asked)

    def _asked(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        """Answer the page's message, which holds a number and a request as `asked.answer` takes it."""
        reply: dict[str, Any] = {"number": content["number"]}
        try:
            reply["answer"] = asked.answer(json.dumps(content["request"])).data
        except Exception as problem:
            reply["problem"] = f"Python could not draw this: {problem}."
        self.send(reply)
