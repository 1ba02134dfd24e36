"""Lets a reader choose lines of a machine-code picture, by a script in the page that asks no kernel.

So the picture answers at once, also when the notebook is opened again without a kernel. JupyterLab leaves
the script out of an output that it does not trust, and the line that was chosen first stays.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json

from gemm_course.figures import colours
from gemm_course.figures.machine_code import CHOSEN, EDGE_OF_CHOSEN, MachineCode

# Elements that can have the focus carry data-lm-suppress-shortcuts. Otherwise JupyterLab would use the keys
# itself: arrow keys leave the cell, and letters add and delete cells. A cell that is shown twice has two
# roots, and the script wires each of them once.
_SCRIPT = """
(() => {
  const unpack = async packed => {
    const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
  };
  const wire = async (root, packed) => {
    root.dataset.wired = 'yes';
    const [panels, names] = await unpack(packed);
    const list = root.querySelector('.gemm-lines'), side = root.querySelector('.gemm-instructions');
    const lines = [...list.querySelectorAll('.gemm-line')];
    let chosen = lines.findIndex(line => line.getAttribute('aria-selected') === 'true');
    const mark = (line, yes) => {
      line.setAttribute('aria-selected', yes);
      line.style.background = yes ? CHOSEN : '';
      line.style.borderLeftColor = yes ? EDGE : 'transparent';
    };
    const columns = list.querySelector('.gemm-columns').offsetHeight;  // stay on top of the list
    const reveal = line => {  // within the list: the notebook stays where it is
      const top = line.offsetTop - columns - line.offsetHeight;
      const bottom = line.offsetTop + 2 * line.offsetHeight;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
    };
    const choose = place => {
      place = Math.min(Math.max(place, 0), lines.length - 1);
      mark(lines[chosen], false);
      mark(lines[place], true);
      list.setAttribute('aria-activedescendant', lines[place].id);
      if (place !== chosen) {
        side.innerHTML = panels[place];
        side.scrollTop = side.scrollLeft = 0;
        side.setAttribute('aria-label', names[place]);
      }
      chosen = place;
      reveal(lines[place]);
    };
    lines.forEach((line, place) => {
      line.id ||= `gemm-line-${Math.random().toString(36).slice(2)}-${place}`;
      line.addEventListener('click', () => { list.focus({preventScroll: true}); choose(place); });
    });
    const all = lines.length;
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -all, End: all};
    list.addEventListener('keydown', event => {
      if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      choose(chosen + steps[event.key]);
    });
    root.querySelector('.gemm-how').textContent =
      'Choose another line with ↑ and ↓, or with the mouse; ▸ opens a run of like instructions.';
    choose(chosen);
    list.scrollTop = lines[chosen].offsetTop - list.clientHeight / 2;
    root.dataset.ready = 'yes';
  };
  for (const root of document.querySelectorAll('[data-code="NAME"]:not([data-wired])')) wire(root, 'PACKED');
})();
"""
# These styles draw a ring around the element with the focus, and a tint under the mouse.
_STYLE = (
    ".gemm-machine-code [role]:focus-visible,.gemm-machine-code summary:focus-visible"
    f"{{outline:3px solid {colours.INK};outline-offset:-1px}}"
    f".gemm-machine-code .gemm-columns{{position:sticky;top:0;background:{colours.PAPER}}}"
    f".gemm-machine-code .gemm-line:hover{{box-shadow:inset 0 0 0 1px {colours.INK}}}"
)


class Choosable:
    """A machine-code picture that displays itself, and whose lines can be chosen."""

    def __init__(self, picture: MachineCode):
        self.picture = picture

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": _living(self.picture), "text/plain": self.picture.text}


def _living(picture: MachineCode) -> str:
    content = json.dumps([picture.panels, picture.names], ensure_ascii=False, separators=(",", ":")).encode()
    packed = base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()
    name = hashlib.sha256(picture.markup.encode()).hexdigest()[:12]
    script = _SCRIPT.replace("CHOSEN", f"'{CHOSEN}'").replace("EDGE", f"'{EDGE_OF_CHOSEN}'")
    script = script.replace("NAME", name).replace("PACKED", packed)
    return f'<div data-code="{name}"><style>{_STYLE}</style>{picture.markup}<script>{script}</script></div>'
