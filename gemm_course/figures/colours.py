"""The course's colours: one meaning each, the same in every picture.

They are the Okabe-Ito colours, which colour-blind readers can tell apart. A picture never relies on colour
alone: an outline, hatching, a number or a label says the same thing.
"""

A = "#0072B2"  # matrix A and its shared tile
B = "#D55E00"  # matrix B and its shared tile
C = "#009E73"  # matrix C and the accumulators
MOVED = "#F0E442"  # a sector that is moved
NOW = "#56B4E9"  # what is touched now
IDLE = "#F3F4F6"  # paper grey: nothing happens here
EDGE = "#C9CED6"  # hairlines between idle cells
INK = "#1F2328"  # text and outlines
QUIET = "#57606A"  # secondary text
PAPER = "#FFFFFF"  # set explicitly, so that pictures look the same in a dark theme
WARN = "#B3261E"  # a rule is broken, a race is found
BUSY = "#CFE3F5"  # how busy a part of the GPU is
LIMIT = "#7FB2E0"  # the same of the part that limits a kernel

PALE = {A: "#CCE3F0", B: "#F7DFCC", C: "#CCECE3"}  # the same hue, for what is not touched now

# A warp's time: grey is issuing or ready, a colour is waiting. Each memory has one hue, darker for its answer
# than for its queue; all others differ in hue, so that they can be told apart in narrow parts.
OF_WAIT = {
    "issuing": "#3D4752",
    "another warp's turn": "#AEB6C1",
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


def of_array(name: str) -> str:
    """Return the hue of the array called ``name``; a shared tile (``As``) keeps the hue of its matrix."""
    return {"A": A, "B": B, "C": C, "a": A, "b": B, "o": C}.get(name[:1], QUIET)


def text_on(fill: str) -> str:
    """Return black or white, whichever is easier to read on ``fill`` (a ``#rrggbb`` colour)."""
    red, green, blue = (int(fill[i : i + 2], 16) / 255 for i in (1, 3, 5))
    luminance = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    return INK if luminance > 0.25 else PAPER
