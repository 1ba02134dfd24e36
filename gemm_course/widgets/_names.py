"""Accessible names for sliders and for groups of buttons.

ipywidgets gives the handle of a slider the role and the keys of a slider, but no name and, for a
SelectionSlider, the position in the list instead of the value. A screen reader then says "slider, 3".
These few lines of JavaScript give the handle the label and the text of the read-out, now and after every
move. Buttons of which one is pressed get a name for the group, and say which it is. Where no JavaScript
runs, nothing happens.
"""

from __future__ import annotations

from IPython.display import Javascript, display

_SCRIPT = """
(() => {
  const name = slider => {
    const words = {
      'aria-label': slider.querySelector('.widget-label')?.textContent,
      'aria-valuetext': slider.querySelector('.widget-readout')?.textContent,
    };
    for (const handle of slider.querySelectorAll('.noUi-handle')) {
      for (const [key, value] of Object.entries(words))
        if (value && handle.getAttribute(key) !== value) handle.setAttribute(key, value);
    }
  };
  const press = group => {
    for (const button of group.querySelectorAll('button')) {
      const pressed = String(button.classList.contains('mod-active'));
      if (button.getAttribute('aria-pressed') !== pressed) button.setAttribute('aria-pressed', pressed);
    }
  };
  let tries = 0;
  const timer = setInterval(() => {
    for (const slider of document.querySelectorAll('.gemm-controls .widget-slider:not([data-named])')) {
      if (!slider.querySelector('.noUi-handle')) continue;
      slider.dataset.named = 'yes';
      new MutationObserver(() => name(slider)).observe(
        slider, {subtree: true, childList: true, characterData: true, attributeFilter: ['aria-valuetext']});
      name(slider);
    }
    const groups = '.gemm-controls .widget-toggle-buttons:not([data-named])';
    for (const group of document.querySelectorAll(groups)) {
      if (!group.querySelector('button')) continue;
      group.dataset.named = 'yes';
      group.setAttribute('role', 'group');
      group.setAttribute('aria-label', group.querySelector('.widget-label')?.textContent ?? '');
      new MutationObserver(() => press(group)).observe(
        group, {subtree: true, childList: true, attributeFilter: ['class']});
      press(group);
    }
    if (++tries > 40) clearInterval(timer);
  }, 100);
})();
"""


def name_the_handles() -> None:
    """Give every slider of the course on this page the label beside it as its name."""
    display(Javascript(_SCRIPT))
