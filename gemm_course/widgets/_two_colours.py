"""Steps through the arrivals at an mbarrier, and shows when a thread that waits goes on."""

from __future__ import annotations

from gemm_course.figures import two_colours as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.two_colours import ARRIVALS, COLOURS, STRETCHES
from gemm_course.widgets._explorer import StepThrough, explorer


@explorer
def two_colours(waits_for: str = "") -> StepThrough:
    """Step through arrivals at a barrier whose phases are dark and light in turn.

    ``waits_for`` is the colour for which a thread waits, "dark" or "light". Without it, it can be chosen.
    """
    if waits_for and waits_for not in COLOURS:
        raise ValueError(f"waits_for must be one of {', '.join(COLOURS)}, not {waits_for!r}")
    controls = {} if waits_for else {"waits_for": ("the thread waits for", list(COLOURS), COLOURS[0])}

    def shown(step: int, **chosen: str) -> Picture:
        return draw(step, chosen.get("waits_for", waits_for))

    return StepThrough(shown, lambda **_: ARRIVALS * STRETCHES, controls)


def draw(step: int, waits_for: str) -> Picture:
    """Draw the barrier after ``step`` arrivals. ``waits_for`` is a key of COLOURS."""
    return figure.two_colours(step, waits_for)
