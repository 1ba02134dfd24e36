"""Draws a kernel's card: its speed beside every rung's and cuBLAS's, and what is known without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gemm_course.compiler import CannotCompile, Compiled, NoCompiler, compiled
from gemm_course.device import gpu_available, gpu_facts, why_too_old
from gemm_course.figures import card as figure
from gemm_course.figures.card import Fact, Speed
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.model import issue_ceiling, occupancy
from gemm_course.records import Place
from gemm_course.widgets import _ladder as ladder
from gemm_course.widgets._block_resources import OfStage
from gemm_course.widgets._costs import Cost, cost
from gemm_course.widgets._gpus import left_out, named
from gemm_course.widgets._measured import SIZE
from gemm_course.widgets._roofs import HOPPER, fp32_peak, rated, tensor_peak

BUDGET_MS = 200


@dataclass(frozen=True)
class Here:
    """The TFLOPS that were measured on this machine. ``wrong`` says in a sentence why they were not."""

    gpu: str = ""
    own: float | None = None
    start: float | None = None
    cublas: float | None = None
    wrong: str = ""


def card(stage: Stage, *, tiles: Mapping[str, int] | None = None, on: str | None = None) -> Picture:
    """Compare a stage of your own, `own("mine.py")`, with every rung of its dtype and with cuBLAS.

    Where there is a GPU, the stage, the one that it began as and cuBLAS are measured on it with 4096³, and
    the stage's result is checked first. Without a GPU its bar stays empty, and the card shows what can be
    known: what the emulator counts, and, with NVIDIA's compiler, machine code. From these the roofs of an
    H200 are computed. The rungs' TFLOPS are recorded ones. ``tiles`` changes the stage's defaults. ``on`` is
    the GPU that the rungs were measured on, such as "rtx_3060", and the H200 without it.

    Raise IllegalTiles for illegal tiles, ValueError with the line for a kernel that the emulator cannot
    count, and TypeError if ``stage`` is not a stage.
    """
    if not isinstance(stage, Stage):
        raise TypeError(
            f"see.card() takes a stage of your own, not {stage!r}: mine = own('mine.py'), then "
            "see.card(mine). The ladder's stages are in see.ladder()."
        )
    chosen = stage.complete(tiles)
    start = LADDER[stage.after] if stage.after in LADDER else _first(stage)
    here = _measured_here(stage, chosen, start)
    place = named(on)
    facts = _facts((stage, chosen), (start, start.complete()))
    return figure.card(
        _title(stage, here),
        _speeds(stage, start, here, place),
        facts,
        (stage.name, start.name),
        _notes(stage, here, place),
    )


def _first(stage: Stage) -> Stage:
    return next(each for each in LADDER if each.dtype == stage.dtype)


# --- speeds -------------------------------------------------------------------------------------------------


def _measured_here(stage: Stage, chosen: Mapping[str, int], start: Stage) -> Here:
    """Measure on this machine's GPU, if there is one that can run the stage. Return the figures."""
    if not gpu_available():
        return Here()
    if reason := why_too_old(stage.name, stage.compute_capability):
        return Here(wrong=f"{reason}.")
    from gemm_course.bench.cublas import NoCublas
    from gemm_course.bench.measure import Candidate
    from gemm_course.bench.problem import Problem, WrongResult

    try:
        problem = Problem(SIZE, SIZE, SIZE, dtype=stage.dtype)
        own = Candidate(stage, chosen, problem)
        found = own.measure(own.check(), BUDGET_MS)
        before = Candidate(start, {}, problem).measure(0.0, BUDGET_MS)
    except (NoCublas, WrongResult, ValueError) as reason:
        return Here(wrong=f"Not measured on this machine: {reason}.")
    return Here(gpu_facts().name, found["tflops"], before["tflops"], found["cublas_tflops"])


def _speeds(stage: Stage, start: Stage, here: Here, on: Place) -> list[Speed]:
    """Return bars for the rungs of the stage's dtypes in order, for cuBLAS, and for the stage itself."""
    rungs = [each for each in LADDER if (each.dtype, each.accumulate) == (stage.dtype, stage.accumulate)]
    bars = [Speed(each.name, ladder.speed_of(each, on)) for each in rungs]
    bars.append(Speed(f"cuBLAS, {on.short}", ladder.cublas_of(stage, on)))
    if here.own is not None:
        bars += [Speed(f"{start.name} here", here.start), Speed("cuBLAS here", here.cublas)]
    return [*bars, Speed(stage.name, here.own, own=True)]


def _title(stage: Stage, here: Here) -> str:
    if here.own is not None:
        return (
            f"{stage.name}: {here.own:.3g} TFLOPS on this machine, "
            f"{here.own / here.cublas:.0%} of cuBLAS, {here.own / here.start:.2f} times its beginning"
        )
    return f"{stage.name} among the ladder’s kernels: not measured, but not unknown"


def _notes(stage: Stage, here: Here, on: Place) -> list[str]:
    notes = [f"Rungs and cuBLAS: recorded. {SIZE}³, {ladder.precision(stage).upper()}; "]
    notes[0] += f"{ladder.provenance([stage], on=on)}."
    rungs = [each for each in LADDER if (each.dtype, each.accumulate) == (stage.dtype, stage.accumulate)]
    missing = [each for each in rungs if ladder.speed_of(each, on) is None]
    if missing:
        notes.append(left_out(missing, on, "bench"))
    if here.gpu:
        notes.append(f"{stage.name} and what says “here”: measured now on this machine’s {here.gpu}.")
    else:
        notes.append(
            here.wrong or f"No GPU here: `python3 course.py bench {stage.name}.py` measures your file on one."
        )
    return [*notes, "The card does not check the kernel on odd shapes: check() does."]


# --- what is known without a GPU ----------------------------------------------------------------------------

_Chosen = tuple[Stage, Mapping[str, int]]


def _facts(own: _Chosen, other: _Chosen) -> list[Fact]:
    both = [(_counted(*each), _code(*each), *each) for each in (own, other)]
    rows = [("tiles", "as given", lambda costs, code, stage, tiles: tiles_text(tiles))]
    rows += [(what, "counted by the emulator", tell) for what, tell in _COUNTED]
    rows += [(what, "machine code for an H200", tell) for what, tell in _COMPILED]
    rows.append(("lowest roof, computed for an H200", "computed", _roof))
    return [Fact(what, tell(*both[0]), tell(*both[1]), how) for what, how, tell in rows]


def _counted(stage: Stage, tiles: Mapping[str, int]) -> Cost:
    return cost(stage, stage.complete(tiles))


def _code(stage: Stage, tiles: Mapping[str, int]) -> Compiled | str:
    try:
        return compiled(stage, tiles=tiles, compute_capability=HOPPER)
    except NoCompiler:
        return "not compiled here"
    except CannotCompile as reason:
        return str(reason)


def _held(costs: Cost, code: Compiled | str, stage: Stage, tiles: Mapping[str, int]) -> str:
    taken = OfStage(stage).taken(tiles, HOPPER)
    registers = taken.registers if isinstance(code, str) else code.registers
    held = occupancy(taken.threads, registers, taken.shared_bytes)
    least = "at least " if isinstance(code, str) and not taken.exact else ""
    return f"{least}{held.blocks} × {taken.threads} threads, limited by {' and '.join(held.limited_by)}"


def _roof(costs: Cost, code: Compiled | str, stage: Stage, tiles: Mapping[str, int]) -> str:
    """Return the lowest of the roofs that are known for any kernel.

    These are L1 by the bytes of the kernel's loads, its loop's other instructions, and the peak of
    arithmetic.
    """
    l1 = rated().bandwidths["L1"]
    heights = {"L1": l1 * costs.intensity, "peak of arithmetic": tensor_peak([stage]) or fp32_peak()}
    if not isinstance(code, str) and code.loop is not None and stage.dtype == "float32":
        heights["issue slots"] = issue_ceiling(code.loop.share)
    name, most = min(heights.items(), key=lambda roof: roof[1])
    return f"{most:.3g} TFLOPS: {name}"


def _of_code(tell):
    return lambda costs, code, stage, tiles: code if isinstance(code, str) else tell(code)


def _wavefronts(costs: Cost, *_) -> str:
    return f"{costs.wavefronts:.3g}" if costs.wavefronts else "none: no loads from shared memory"


_COUNTED = (
    ("global loads per multiply-add", lambda costs, *_: f"{costs.loads:.3g}"),
    ("sectors per load request", lambda costs, *_: f"{costs.sectors:.3g}"),
    ("FLOP per byte loaded", lambda costs, *_: f"{costs.intensity:.3g}"),
    ("wavefronts per 32 multiply-adds", _wavefronts),
    ("shared memory per block", lambda costs, *_: f"{costs.shared_bytes:,} bytes"),
)
_COMPILED = (
    ("registers per thread", _of_code(lambda code: f"{code.registers}")),
    ("bytes in local memory per thread", _of_code(lambda code: f"{code.local_bytes}")),
    (
        "multiply-adds in the loop",
        _of_code(lambda code: f"{code.loop.share:.0%} of its instructions" if code.loop else "no loop"),
    ),
    ("blocks on a multiprocessor", _held),
)
