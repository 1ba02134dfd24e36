"""Simulates how latency is hidden: while one warp waits for memory, the others compute."""

from __future__ import annotations


def schedule(warps: int, work: int, wait: int, clocks: int) -> list[list[str]]:
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
