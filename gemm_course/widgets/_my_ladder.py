"""Draws a learner's own ladder from what their kernels counted, and keeps bets on it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from gemm_course import records
from gemm_course.device import gpu_available, gpu_facts
from gemm_course.figures import my_ladder as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.launching import run
from gemm_course.model import shared_memory_ceiling
from gemm_course.progress import passed
from gemm_course.records import Place
from gemm_course.rungs import PARTS, RUNGS, Kept, Part, Rung, keep, kept, ladder_folder, passed_here, rung_of
from gemm_course.rungs.store import BET, MEASURED
from gemm_course.widgets import _gpus, _measured
from lockstep import did_you_mean

WARP = 32
SIZE = _measured.SIZE
# A bet above this many TFLOPS is a slip: no GPU of the course is as fast.
_MOST = 10_000


def my_ladder(*, on: str | None = None) -> Picture:
    """Draw your own ladder: a place for each kernel that a notebook builds, filled when yours has passed.

    A filled place has your bet, what your kernel as written can reach at most, where its reads are the limit,
    and the recorded speed of the ladder's kernel with the notebook's tile. Below are the wavefronts that a
    multiply-add of a warp reads: of your kernel as written, and as measured of the ladder's. From 08 on you
    write a part of a kernel, and its place says which of the ladder's has that part. With a GPU, your
    kernels that passed since this notebook was started are measured, which takes some seconds. ``on`` is the
    GPU of the ladder's figures, such as "rtx_3060", and the H200 without it.

    Raise ValueError for an unknown GPU.
    """
    place = _gpus.named(on)
    if gpu_available():
        _measure()
    done = passed() if ladder_folder() else {}
    places = [_place(rung, kept(rung.checker), rung.checker in done, place) for rung in RUNGS]
    parts = [_part(part, part.checker in done, place) for part in PARTS]
    return figure.my_ladder(places + parts, place.an, _notes(places, place))


def my_bet(kernel: str, tflops: Any = None) -> None:
    """Bet on the speed of the ladder's kernel, in TFLOPS on an H200, before your kernel has passed.

    ``kernel`` is the topic of the notebook that builds it, such as "thread_tiles_2d", or the name of its
    checker. Your ladder shows the bet beside what was recorded. You may change it until your kernel passes.

    Raise ValueError for an unknown kernel, and for a bet that is not a positive number.
    """
    rung = rung_of(kernel)
    if rung is None:
        known = [each.notebook for each in RUNGS]
        meant = did_you_mean(kernel, known) or "."
        raise ValueError(f"there are no bets on {kernel!r}{meant} There are bets on {', '.join(known)}.")
    print(_bet(rung, None if tflops is Ellipsis else tflops))


# ---- bets --------------------------------------------------------------------------------------------------


def _bet(rung: Rung, tflops: Any) -> str:
    """Keep a bet, if it may be made. Return what the learner should know, in a sentence."""
    before = kept(rung.checker)
    has = f"Your bet on {rung.notebook}: {before.bet:g} TFLOPS" if before.bet else "You made no bet"
    if tflops is None:
        call = f'see.my_bet("{rung.notebook}", tflops=12.5)'
        settled = before.bet or before.passed
        return f"{has}." if settled else f"Write your bet as a number of TFLOPS, such as {call}."
    number = isinstance(tflops, int | float | np.number) and not isinstance(tflops, bool)
    if not number or not 0 < tflops <= _MOST or math.isnan(tflops):
        raise ValueError(f"a bet is a number of TFLOPS, above 0 and at most {_MOST:,}, not {tflops!r}")
    if ladder_folder() is None:
        return "Bets are kept in your own notebooks only."
    if before.passed and before.bet != float(tflops):
        return f"{has}. Your kernel has passed, and bets are closed."
    if not keep(rung.checker, BET, {"tflops": float(tflops)}):
        return f"Your bet could not be kept in {ladder_folder()}."
    return f"Your bet on {rung.notebook}: {tflops:g} TFLOPS, for the ladder's kernel on an H200."


# ---- what is drawn -----------------------------------------------------------------------------------------


def _place(rung: Rung, known: Kept, passed_before: bool, on: Place) -> figure.Place:
    """Return a rung as it is drawn. A kernel that has not passed shows nothing that a bet could use."""
    if not (known.passed or passed_before):
        return figure.Place(rung.name, bet=known.bet)
    return figure.Place(
        rung.name,
        passed=True,
        stage=rung.stage,
        bet=known.bet,
        most=_most(rung, known, on),
        recorded=_measured.speed(LADDER[rung.stage], rung.tiles, on),
        own=known.measured,
        gpu=known.gpu,
        written=known.wavefronts,
        measured=_wavefronts_measured(rung, on),
        why_not_counted="run your check again" if rung.reads else "yours not counted",
    )


def _part(part: Part, has_passed: bool, on: Place) -> figure.Place:
    """Return the place of a part of a kernel, which tells no speed before it has passed."""
    if not has_passed:
        return figure.Place(part.name)
    rows = records.ladder(on)
    rows = rows[(rows["stage"] == part.stage) & (rows[["m", "n", "k"]] == SIZE).all(axis=1)]
    reaches = "" if rows.empty else f": {rows.iloc[-1]['tflops']:.0f} TFLOPS on {on.an}"
    return figure.Place(part.name, passed=True, stage=part.stage, part_of=f"a part of {part.stage}{reaches}")


def _most(rung: Rung, known: Kept, on: Place) -> float | None:
    """Return the TFLOPS that the reads as written allow, or None where they are not the limit."""
    gpu = _gpus.hardware(on)
    if gpu is None or known.wavefronts is None or not rung.limits:
        return None
    return shared_memory_ceiling(known.wavefronts, WARP, gpu)


def _wavefronts_measured(rung: Rung, on: Place) -> float | None:
    """Return the wavefronts that a GPU counted of the ladder's kernel, per multiply-add of a warp, or None.

    Loads from shared memory have a counter of their own. Where a kernel has no shared memory, all wavefronts
    of L1 are its loads, but for the few of C, and they follow from the clocks in which L1 was busy.
    """
    row, gpu = _profiled(rung, on), _gpus.hardware(on)
    if row is None:
        return None
    multiply_adds = SIZE**3 / WARP
    if rung.reads != "global":
        return float(row["shared_load_wavefronts"]) / multiply_adds
    if gpu is None:
        return None
    return float(row["l1_data"]) / 100 * float(row["clocks"]) * gpu.multiprocessors / multiply_adds


def _profiled(rung: Rung, on: Place) -> pd.Series | None:
    """Return the profile of the ladder's kernel with the notebook's tile, or None."""
    rows = records.profiles(on)
    rows = rows[(rows["stage"] == rung.stage) & (rows["tiles"] == tiles_text(rung.tiles))]
    rows = rows[(rows["m"] == SIZE) & (rows["n"] == SIZE) & (rows["k"] == SIZE)]
    return None if rows.empty else rows.iloc[-1]


def _notes(places: list[figure.Place], on: Place) -> list[str]:
    """Say how to bet on the next kernel, and whose the figures are and where they come from."""
    notes = []
    following = next((rung for rung, each in zip(RUNGS, places, strict=True) if not each.passed), None)
    if following and kept(following.checker).bet is None:
        # No line may break inside the call.
        notes.append(
            f'Bet before you write the next kernel: see.my_bet("{following.notebook}",\u00a0tflops=...).'
        )
    done = [rung for rung, each in zip(RUNGS, places, strict=True) if each.passed]
    if not done:
        return ["A kernel that passes its check fills its place.", *notes]
    notes.append(
        "Wavefronts: what a warp reads for one multiply-add of its 32 lanes, from L1 before there are tiles, "
        "then from shared memory. As written: your kernel, counted here. Measured: the ladder’s, as compiled."
    )
    if any(each.most for each in places):
        whole = shared_memory_ceiling(1, WARP, _gpus.hardware(on))
        notes.append(
            f"At most: {whole:.3g} TFLOPS / wavefronts as written. The compiler may save reads, and a kernel "
            "then passes this bound."
        )
    stages = {(rung.stage, tiles_text(rung.tiles)) for rung in done}
    rows = records.sweep(on)
    rows = rows[[each in stages for each in zip(rows["stage"], rows["tiles"], strict=True)]]
    if len(rows):
        notes.append(f"Ladder’s kernels: the notebook’s tile, {SIZE}³; {records.provenance(rows)}.")
    return notes


# ---- the learner's GPU -------------------------------------------------------------------------------------

_timed: dict[str, Any] = {}


def _measure() -> None:
    """Measure the kernels that passed in this process, each once, and keep their speeds."""
    for rung in RUNGS:
        answer = passed_here(rung)
        if rung.reads and answer is not None and _timed.get(rung.checker) is not answer:
            _timed[rung.checker] = answer
            try:
                tflops = _speed(rung, answer)
            except Exception as error:  # The ladder is drawn, whatever a kernel does on the GPU.
                print(f"Your {rung.checker} was not measured here: {error}")
            else:
                keep(
                    rung.checker,
                    MEASURED,
                    {"tflops": tflops, "gpu": gpu_facts().name.removeprefix("NVIDIA ")},
                )


def _speed(rung: Rung, answer: Any) -> float:
    """Return the TFLOPS of a learner's kernel on this machine's GPU."""
    # Random numbers, as in all measurements of the course: equal ones cost less power, and raise the clock.
    matrix = np.random.default_rng(0).standard_normal((SIZE, SIZE), np.float32)
    grid = SIZE // rung.tiles["BN"], SIZE // rung.tiles["BM"]
    return run(rung.kernel(answer)[grid, rung.block], matrix, matrix, backend="gpu").tflops
