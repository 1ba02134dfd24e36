"""Defines the course's colours, each with one meaning that is the same in every picture.

A picture never relies on colour alone. An outline, hatching, a number or a label says the same thing. Text
has a contrast of at least 4.5 : 1 with the colour behind it. A mark has at least 3 : 1, or an outline that
does. A ground is pale on purpose, because it marks the background. All colours are defined here, and their
meanings in `MEANINGS`. Tests check the contrasts, that no other module defines a colour, and that readers
with protanopia, deuteranopia or tritanopia can tell the colours apart.
"""

from __future__ import annotations

# These are Okabe and Ito's blue, vermillion and green, darkened until white text can be read on them.
A = "#0057A8"
B = "#B85900"
C = "#008566"
PALE = {A: "#CCDDEE", B: "#F4DECC", C: "#CCE7E0"}

MOVED = "#F0E442"
NOW = "#56B4E9"
NOW_PALE = "#CFE8F7"
OTHER = "#AEB6C1"
COUNTED = "#6E7781"
WARN = "#C00048"
WARN_PALE = "#FAE3EB"

INK = "#1F2328"
QUIET = "#57606A"
EDGE = "#C9CED6"
STRIPE = "#DDE2E9"
BAND = "#EEF1F4"
IDLE = "#F3F4F6"
PAPER = "#FFFFFF"

# The scale runs from little to much. It leaves out the middle tones, on which no text can be read.
SCALE = ("#F3F5F8", "#D6DEE6", "#B1BECB", "#8A9BAE", "#5F748A", "#3F5166", "#22303F")
BUSY, LIMIT = SCALE[1], SCALE[3]

PASSED, PASSED_PALE = "#00614A", "#D9F0E4"
OPEN, OPEN_PALE = "#7A4B00", "#FFF1D6"

# A warp's time is grey while the warp issues or is ready, and coloured while it waits. The two waits for one
# memory share a hue: the wait for its data is dark, and the wait for room in its queue is light. The other
# waits differ in hue or in lightness, so that narrow parts can be told apart.
OF_WAIT = {
    "issuing": "#3D4752",
    "another warp's turn": "#9AA3AF",
    "global memory": "#5B3A8E",
    "queue to global memory": "#A88BD4",
    "copies": "#9CC7EA",
    "shared memory": "#96480A",
    "queue to shared memory": "#EBA45C",
    "barrier": "#CC79A7",
    "Tensor Cores": "#0B7A75",
    "busy unit": "#B5D98B",
    "fixed delay": "#F3E6A0",
    "dispatch": "#C9B23F",
    "next instruction": "#626E27",
    "other": PAPER,
}

# A kind of machine instruction has the hue of the wait that it leads to: purple for global memory, brown for
# shared memory, teal for Tensor Cores. A store is darker than a load. Instructions that add to the
# accumulators are green like the accumulators, and those that only accompany the work are grey.
OF_KIND = {
    "multiply-add": C,
    "Tensor Core product": OF_WAIT["Tensor Cores"],
    "other arithmetic": PALE[C],
    "global load": OF_WAIT["queue to global memory"],
    "global store": "#7756AD",
    "asynchronous copy": OF_WAIT["copies"],
    "shared load": OF_WAIT["queue to shared memory"],
    "shared store": "#A9641A",
    "atomic": "#9C4F96",
    "local memory": OF_WAIT["global memory"],
    "integer arithmetic": EDGE,
    "compare and select": "#E4E7EB",
    "branch": QUIET,
    "barrier and fence": OF_WAIT["barrier"],
    "move": "#A9B1BC",
    "other": PAPER,
}

# A kernel's source has the colours of an editor, but dark enough to be read on NOW_PALE and BAND.
OF_CODE = {
    "comment": "#2E6060",
    "decorator": "#8410C9",
    "keyword": "#006400",
    "name": "#0000D0",
    "number": QUIET,
    "text": "#A81C1C",
}

MEANINGS = {
    "A": "matrix A and its shared tile",
    "B": "matrix B and its shared tile",
    "C": "matrix C, the accumulators, and what adds to them",
    "PALE": "a ground in the hue of A, B or C: of that matrix, but not touched now, or by others",
    "MOVED": "a sector that is moved; outlined",
    "NOW": "what is looked at: the chosen thread, this step, this stage; outlined",
    "NOW_PALE": "a ground: goes with what is looked at, such as its warp; a new line of a kernel",
    "OTHER": "what stands beside it for comparison; outlined",
    "COUNTED": "what a machine counted, emulated or real",
    "WARN": "a rule is broken: a race, a bank conflict, out of bounds, a hole",
    "WARN_PALE": "the ground of a warning in words",
    "INK": "text, outlines, arrows",
    "QUIET": "secondary text, and lines that go with the axes",
    "EDGE": "a hairline",
    "STRIPE": "a ground: every other warp or block, where neighbours must be told apart",
    "BAND": "the ground of a heading, of code, of a removed line, and of a box that holds parts",
    "IDLE": "a ground: nothing happens here",
    "PAPER": "the page; always set, so that a picture looks the same in a dark theme",
    "SCALE": "how much, from little to much: TFLOPS in a map of tiles",
    "BUSY": "how much of the time a part of the GPU is busy",
    "LIMIT": "the same of the part that limits a kernel; outlined",
    "PASSED": "an exercise that passed, on PASSED_PALE",
    "PASSED_PALE": "the ground of an exercise that passed",
    "OPEN": "an exercise that has not passed yet, on OPEN_PALE",
    "OPEN_PALE": "the ground of an exercise that has not passed yet",
    "OF_WAIT": "what warps wait for, by reason; each with its letter",
    "OF_KIND": "a kind of machine instruction; each with its two letters",
    "OF_CODE": "words of a kernel's source, as in an editor",
}


def of_array(name: str) -> str:
    """Return the hue of the array called ``name``. A shared tile (``As``) keeps the hue of its matrix."""
    return {"A": A, "B": B, "C": C, "a": A, "b": B, "o": C}.get(name[:1], QUIET)


def mixed(hue: str, part: float) -> str:
    """Return ``part`` (0 to 1) of a hue mixed with paper."""
    channels = (round(255 + (int(hue[i : i + 2], 16) - 255) * part) for i in (1, 3, 5))
    return "#" + "".join(f"{value:02X}" for value in channels)


def luminance(colour: str) -> float:
    """Return the relative luminance of a ``#rrggbb`` colour, 0 to 1, as WCAG 2.2 defines it."""
    red, green, blue = (_linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def contrast(one: str, other: str) -> float:
    """Return the contrast of two ``#rrggbb`` colours, 1 to 21, as WCAG 2.2 defines it."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def text_on(fill: str) -> str:
    """Return ink or paper, whichever is easier to read on ``fill`` (a ``#rrggbb`` colour)."""
    return max((INK, PAPER), key=lambda ink: contrast(ink, fill))
