"""Draws how latency is hidden: while one warp waits for memory, the others compute."""

from __future__ import annotations

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing

# The timeline is cut off after this many clocks.
CLOCKS = 64
_ISSUING = colours.OF_WAIT["issuing"]


def schedule(warps: int, work: int, wait: int, clocks: int = CLOCKS) -> list[list[str]]:
    """Simulate a scheduler that issues one instruction per clock.

    The scheduler stays with one warp while that warp is ready. Then it goes on with the warp that has been
    ready longest.

    Every warp issues ``work`` instructions, asks memory for more, waits ``wait`` clocks, and begins again.
    The result has one list per warp, with one word per clock: "work", "wait", or "ready" if another warp
    issues instead.
    """
    ready_at, left, chosen = [0] * warps, [work] * warps, None
    story: list[list[str]] = [[] for _ in range(warps)]
    for clock in range(clocks):
        ready = [w for w in range(warps) if ready_at[w] <= clock]
        if chosen not in ready:
            chosen = min(ready, key=lambda w: ready_at[w], default=None)
        for warp in range(warps):
            story[warp].append("work" if warp == chosen else "ready" if warp in ready else "wait")
        if chosen is not None:
            left[chosen] -= 1
            if not left[chosen]:
                ready_at[chosen], left[chosen] = clock + 1 + wait, work
    return story


def timeline(warps: int, work: int, wait: int) -> Picture:
    """Draw :func:`schedule` for up to 16 warps, and how busy the scheduler is."""
    story = schedule(warps, work, wait)
    busy = sum(any(row[clock] == "work" for row in story) for clock in range(CLOCKS))
    percent = round(100 * busy / CLOCKS)
    plural = "warp keeps" if warps == 1 else "warps keep"
    drawing = Drawing(f"{warps} {plural} the scheduler busy {percent} % of the time")
    left, cell, high = 76.0, 7.4, 16.0
    top = drawing.top + 8
    for warp, row in enumerate(story):
        y = top + warp * high
        if warp % 2 == 0 or warps <= 4:
            drawing.text(8, y + 13, f"warp {warp}")
        for clock, state in enumerate(row):
            x = left + clock * cell
            if state == "work":
                drawing.rect(x, y, cell - 0.6, high - 2, _ISSUING)
            elif state == "wait":
                drawing.rect(x, y + high / 2 - 2, cell, 2, colours.QUIET)
    y = top + warps * high + 4
    drawing.text(8, y + 14, "busy", bold=True)
    for clock in range(CLOCKS):
        working = any(row[clock] == "work" for row in story)
        drawing.rect(left + clock * cell, y, cell - 0.6, high, _ISSUING if working else colours.PAPER)
        if not working:
            drawing.hatch(left + clock * cell, y, cell - 0.6, high)
    drawing.rect(8, y + 32, 12, 12, _ISSUING)
    drawing.text(26, y + 43, "computes", fill=colours.QUIET)
    drawing.rect(124, y + 37, 24, 2, colours.QUIET)
    drawing.text(154, y + 43, "waits for memory", fill=colours.QUIET)
    drawing.hatch(312, y + 32, 24, 12)
    drawing.text(342, y + 43, "no warp is ready", fill=colours.QUIET)
    return drawing.picture(
        f"Each warp computes for {work} clocks, then waits {wait} clocks for memory. With {warps} of"
        f" them the scheduler has a ready warp in {busy} of {CLOCKS} clocks; {-(-wait // work) + 1} warps"
        f" would keep it busy all the time."
    )
