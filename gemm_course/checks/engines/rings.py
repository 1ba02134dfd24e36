"""Tries kernels with a ring of tiles and a thread per element of C, and reads their loop over tiles."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gemm_course.checks.core import Call, Loop, Part, Refused

from .trial import Trial, try_kernel

# A tile, the threads of a block and the block's part of C all have T rows and T columns.
T = 16
# One addition in float32 is off by no more than this part of its result.
FROM_FLOAT32 = 6e-8
COPIES = ("fetch", "cp_async4", "cp_async16")
PLACES_FOR_TILES = (
    "Your loop counts the places at which tiles begin. `fetch` and the slots take a tile's number: 0, 1, 2 "
    "and so on."
)


@dataclass(kw_only=True)
class RingTrial(Trial):
    """A product C = A @ B by the learner's kernel; each block computes a tile of C. shape: (m, n, k)."""

    shape: tuple[int, int, int]

    @property
    def tiles(self) -> int:
        """The number of tiles along k."""
        return -(-self.shape[2] // T)

    @cached_property
    def expected(self) -> np.ndarray:
        return self.product(slice(None))

    def product(self, steps: slice) -> np.ndarray:
        """Return A @ B, computed from these steps along k alone."""
        return self.before["A"][:, steps].astype(float) @ self.before["B"][steps].astype(float)

    @cached_property
    def wrong(self) -> np.ndarray:
        return ~self.close(self.expected)

    def close(self, prediction: np.ndarray) -> np.ndarray:
        """Return for each element of C whether it came out as predicted, up to float32's rounding."""
        size = abs(self.before["A"]).astype(float) @ abs(self.before["B"])
        return abs(self.after["C"] - prediction) <= (self.shape[2] + 4) * FROM_FLOAT32 * size

    @property
    def where(self) -> str:
        row, column = map(int, np.argwhere(self.wrong)[0])
        return self.first_wrong(
            "C", self.wrong, self.expected, f"It belongs to block ({column // T}, {row // T})."
        )

    @property
    def nothing_stored(self) -> bool:
        return not self.touched("C").any()


def try_ring(kernel: Any, names: tuple[str, ...], m: int, n: int, k: int, choice: str = "") -> RingTrial:
    """Launch a block of T by T threads per tile of C.

    names: the kernel's arguments, among m, n, k, A, B and C. choice: the factory's argument, in words, or "".
    """
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.uniform(-2, 2, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    given = {"m": m, "n": n, "k": k, "A": A, "B": B, "C": np.full((m, n), np.nan, np.float32)}
    about = "With " + ", ".join(filter(None, (choice, f"m = {m}, n = {n}, k = {k}")))
    done = try_kernel(
        kernel, names, (-(-n // T), -(-m // T)), (T, T), *(given[name] for name in names), about=about
    )
    return RingTrial(**vars(done), shape=(m, n, k))


# ---- the loop over tiles, as it stands in the source -------------------------------------------------------


class TileLoop:
    """A kernel's loop over tiles, as its source has it: where it waits, asks for copies and reads tiles.

    Lines are numbered as in the source. Other loops, such as the one for the first copies, are left out.
    """

    def __init__(self, trial: RingTrial):
        self.written, loops = trial.written, trial.written.loops
        self.loop: Part = max(loops, key=lambda loop: len(loop.lines), default=Part())
        # Loops outside of the loop over tiles ask for the first copies.
        self.outside = [loop for loop in loops if loop not in self.loop.loops]

    def lines(self, *names: str) -> list[int]:
        """Return the lines of calls of these functions."""
        return sorted(call.line for call in self.loop.calls(*names))

    @property
    def pending(self) -> list[int | None]:
        """What each `cp_async_wait` is passed, where that is known before the launch."""
        return [self._value(call.at(0)) for call in self._waits]

    @property
    def always_pending(self) -> list[int | None]:
        """What each `cp_async_wait` outside of any `if` is passed."""
        guarded = {call for branch in self.loop.branches for call in branch.calls()}
        return [self._value(call.at(0)) for call in self._waits if call not in guarded]

    @property
    def _waits(self) -> list[Call]:
        return [call for call in self.loop.calls("cp_async_wait") if call.args]

    @property
    def steps_by_places(self) -> bool:
        """Tell whether the loop counts by places along k, as in `range(0, k, 16)`, and not by tiles."""
        return isinstance(self.loop, Loop) and any(
            len(each.args) == 3 for each in self.loop.over.calls("range")
        )

    def end_of(self, line: int) -> int:
        """Return the last line of the inner loop that this line stands in, or the line itself."""
        inner = (loop.lines for loop in self.loop.loops if loop != self.loop)
        return max((lines[-1] for lines in inner if line in lines), default=line)

    def _value(self, text: str) -> int | None:
        try:
            return int(eval(text, {}, self.written.outside))
        except Exception:
            # The value is not known before the launch.
            return None


def check_constants(trial: Trial) -> None:
    """Refuse a `cp_async_wait` of anything but a number or a name from outside: it does not compile."""
    outside = trial.written.outside
    for wait in trial.written.calls("cp_async_wait"):
        for given in wait.args:
            if given.number is None and given.text not in outside:
                raise Refused(
                    "The ring is right, but for a GPU it does not compile: `cp_async_wait` takes a plain "
                    f"number or a name from outside the kernel, and `{given.text}` is neither. Set "
                    "`IN_FLIGHT` beside the kernel, and pass that.",
                    wait.where + ".",
                )


# ---- wrong numbers that any of these kernels may have ------------------------------------------------------


def refuse_wrong_numbers(trial: RingTrial, ahead: int = 1) -> None:
    """Refuse wrong numbers, and say which tiles along k are missing. ahead: tiles fetched before the loop."""
    if not trial.wrong.any():
        return
    if trial.nothing_stored:
        raise Refused("Nothing is stored into C: does any thread pass the guard before the store?")
    k, whole = trial.shape[2], (trial.tiles - 1) * T
    likely = (
        (
            "The last tile is missing: it was fetched, but the loop ended before it was multiplied.",
            slice(whole),
        ),
        ("The first tile is missing: the loop multiplies only what it fetched itself.", slice(T, k)),
        ("Only the first tile was multiplied.", slice(T)),
        (
            "Only the last tile counts: the accumulator starts anew with every tile. Set it to zero before "
            "the loop.",
            slice(whole, k),
        ),
        ("The tiles that were fetched before the loop are missing.", slice(ahead * T, k)),
    )
    for message, steps in likely:
        if trial.tiles > 1 and trial.close(trial.product(steps)).all():
            raise Refused(message, trial.where)
    if trial.tiles > 1 and trial.close(trial.product(slice(T)) * trial.tiles).all():
        raise Refused("The first tile was multiplied over and over: no other one was fetched.", trial.where)
    if TileLoop(trial).steps_by_places:
        raise Refused(f"The numbers are wrong. {PLACES_FOR_TILES}", trial.where)
    raise Refused("The numbers are wrong. Which tile lies in which slot when it is multiplied?", trial.where)
