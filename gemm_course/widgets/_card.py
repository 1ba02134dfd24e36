"""Draws a kernel's card: its speed beside every rung's and cuBLAS's, and what is known without a GPU."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gemm_course.compiler import CannotCompile, Compiled, NoCompiler, compiled
from gemm_course.compiler.iteration import share_of_iteration
from gemm_course.device import gpu_available, gpu_facts, why_too_old
from gemm_course.figures import card as figure
from gemm_course.figures.card import Fact, Roof, Speed
from gemm_course.figures.picture import Picture
from gemm_course.figures.saving import save_picture, saveable
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.model import issue_ceiling, occupancy
from gemm_course.records import Place
from gemm_course.records.provenance import version_of
from gemm_course.widgets import _ladder as ladder
from gemm_course.widgets._block_resources import OfStage
from gemm_course.widgets._costs import Cost, cost
from gemm_course.widgets._errors_in_words import NotShown
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
    date: str = ""


@dataclass(frozen=True)
class Card:
    """A card: its picture, and the same in one line of text, to be pasted."""

    picture: Picture
    line: str


def card(
    stage: Stage,
    *,
    tiles: Mapping[str, int] | None = None,
    on: str | None = None,
    save: str | Path | None = None,
) -> Picture:
    """Compare a stage of your own, `own("mine.py")`, with every rung of its dtype and with cuBLAS.

    Where there is a GPU, the stage, the one that it began as and cuBLAS are measured on it with 4096³, and
    the stage's result is checked first. Without a GPU its bar stays empty, and the card shows what can be
    known: what the emulator counts, and, with NVIDIA's compiler, machine code. From these the roofs of an
    H200 are computed. The rungs' TFLOPS are recorded ones. ``tiles`` changes the stage's defaults. ``on`` is
    the GPU that the rungs were measured on, such as "rtx_3060", and the H200 without it. ``save`` is a file,
    such as "mine.svg" or "mine.png", into which the card is written; then a line of text to paste is printed
    too.

    A stage of your own is checked first, at odd shapes. Raise NotShown, a ValueError, if it is wrong,
    OwnKernelError if its file has changed since it was read, IllegalTiles for illegal tiles, ValueError with
    the line for a kernel that the emulator cannot count, or for a file of another kind, and TypeError if
    ``stage`` is not a stage.
    """
    made = card_of(stage, tiles=tiles, on=on, save=save)
    if save is not None:
        print(f"Saved as {save}. A line to paste:\n\n{made.line}")
    return made.picture


def card_of(
    stage: Stage,
    *,
    tiles: Mapping[str, int] | None = None,
    on: str | None = None,
    save: str | Path | None = None,
) -> Card:
    """Make a card as :func:`card` does, and save it if asked. Return it with its line of text."""
    if not isinstance(stage, Stage):
        raise TypeError(
            f"see.card() takes a stage of your own, not {stage!r}: mine = own('mine.py'), then "
            "see.card(mine). The ladder's stages are in see.ladder()."
        )
    if save is not None:
        saveable(save)
    chosen = stage.complete(tiles)
    checked = _checked(stage, tiles)
    start = LADDER[stage.after] if stage.after in LADDER else _first(stage)
    here = _measured_here(stage, chosen, start)
    place = named(on)
    roof = _lowest(_counted(stage, chosen), _code(stage, chosen), stage, chosen)
    picture = figure.card(
        _title(stage, here, roof),
        _speeds(stage, start, here, place),
        roof,
        _facts((stage, chosen), (start, start.complete())),
        (stage.name, start.name),
        _notes(stage, here, place, checked),
    )
    if save is not None:
        save_picture(picture, save)
    return Card(picture, _line(stage, chosen, start, here, place, checked))


def _checked(stage: Stage, tiles: Mapping[str, int] | None) -> str:
    """Return what a check of a learner's stage says, in a few words, or "" for a stage of the ladder.

    Raise NotShown if the stage is wrong.
    """
    if not hasattr(stage, "check"):
        return ""
    stage.require_unchanged()
    found = stage.check(tiles)
    if not found.ok:
        raise NotShown(f"No card for a kernel that is wrong. {found}")
    return f"right in {len(found.passed)} cases on the emulator"


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
    today = datetime.date.today().isoformat()
    return Here(gpu_facts().name, found["tflops"], before["tflops"], found["cublas_tflops"], date=today)


def _speeds(stage: Stage, start: Stage, here: Here, on: Place) -> list[Speed]:
    """Return bars for the rungs of the stage's dtypes in order, for cuBLAS, and for the stage itself."""
    rungs = [each for each in LADDER if (each.dtype, each.accumulate) == (stage.dtype, stage.accumulate)]
    bars = [Speed(each.name, ladder.speed_of(each, on)) for each in rungs]
    bars.append(Speed(f"cuBLAS, {on.short}", ladder.cublas_of(stage, on)))
    if here.own is not None:
        bars += [Speed(f"{start.name} here", here.start), Speed("cuBLAS here", here.cublas)]
    return [*bars, Speed(stage.name, here.own, own=True)]


def _title(stage: Stage, here: Here, roof: Roof) -> str:
    if here.own is not None:
        return (
            f"{stage.name}: {here.own:.3g} TFLOPS on this machine, "
            f"{here.own / here.cublas:.0%} of cuBLAS, {here.own / here.start:.2f} times its beginning"
        )
    return f"{stage.name}: at most {roof.tflops:.3g} TFLOPS on an H200, by its {roof.part}; not measured"


def _notes(stage: Stage, here: Here, on: Place, checked: str) -> list[str]:
    notes = [f"Rungs and cuBLAS: recorded. {SIZE}³, {ladder.precision(stage).upper()}; "]
    notes[0] += f"{ladder.provenance([stage], on=on)}."
    rungs = [each for each in LADDER if (each.dtype, each.accumulate) == (stage.dtype, stage.accumulate)]
    missing = [each for each in rungs if ladder.speed_of(each, on) is None]
    if missing:
        notes.append(left_out(missing, on, "bench"))
    if here.gpu:
        notes.append(
            f"{stage.name} and what says “here”: measured on this machine’s {here.gpu}, {here.date}."
        )
    else:
        notes.append(
            here.wrong or f"No GPU here: `python3 course.py bench {stage.name}.py` measures your file on one."
        )
    if checked:
        notes.append(f"{stage.name} is {checked}, odd shapes among them.")
    return [*notes, f"Made with {_course()}."]


def _course() -> str:
    """Return the name of the course's package and its version."""
    return f"gemm-course {version_of('gemm-course')}".strip()


# --- a line to paste ----------------------------------------------------------------------------------------


def _line(stage: Stage, chosen: Mapping[str, int], start: Stage, here: Here, on: Place, checked: str) -> str:
    """Return the card in one line: what is known of the kernel, and what stands beside it."""
    costs, code = _counted(stage, chosen), _code(stage, chosen)
    parts = [f"{stage.name}, begun as {start.name}, {tiles_text(chosen)}", _speed_in_words(here)]
    if costs.wavefronts:
        parts.append(
            f"{costs.shared_loads:.2g} shared-memory reads per multiply-add and {costs.wavefronts:.3g} "
            "wavefronts per 32, as written"
        )
    parts.append(f"lowest roof computed for an H200: {_roof(costs, code, stage, chosen)}")
    parts.append("not compiled" if isinstance(code, str) else _registers(code))
    parts += [checked] if checked else []
    beside = [(each.label, each.tflops) for each in _speeds(stage, start, Here(), on)[:-1] if each.tflops]
    cublas = [("cuBLAS", tflops) for _, tflops in beside[-1:]]
    fastest = max(beside[:-1], key=lambda one: one[1], default=None)
    begun = [one for one in beside if one[0] == start.name and one != fastest]
    listed = ", ".join(
        f"{label} {tflops:.3g}" for label, tflops in [*begun, *([fastest] if fastest else []), *cublas]
    )
    if listed:
        parts.append(f"recorded on {on.an} at {SIZE}³, TFLOPS: {listed}")
    return "; ".join([*parts, _course()])


def _speed_in_words(here: Here) -> str:
    if here.own is None:
        return "speed not measured"
    share = f"{here.own / here.cublas:.0%} of cuBLAS there"
    return f"{here.own:.3g} TFLOPS at {SIZE}³ on {here.gpu}, {here.date}, {share}"


def _registers(code: Compiled) -> str:
    spilled = f"{code.spilled_bytes:,} bytes" if code.spilled_bytes else "nothing"
    return f"{code.registers} registers, {spilled} spilled"


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
    lowest = _lowest(costs, code, stage, tiles)
    return f"{lowest.tflops:.3g} TFLOPS: {lowest.part}"


def _lowest(costs: Cost, code: Compiled | str, stage: Stage, tiles: Mapping[str, int]) -> Roof:
    """Return the lowest of the roofs that are known for any kernel.

    These are L1 by the bytes of the kernel's loads, its loop's other instructions, and the peak of
    arithmetic.
    """
    l1 = rated().bandwidths["L1"]
    heights = {"L1": l1 * costs.intensity, "peak of arithmetic": tensor_peak([stage]) or fp32_peak()}
    if not isinstance(code, str) and code.loop is not None and stage.dtype == "float32":
        heights["issue slots"] = issue_ceiling(share_of_iteration(code, stage, tiles))
    name, most = min(heights.items(), key=lambda roof: roof[1])
    return Roof(most, name, "H200")


def _of_code(tell):
    return lambda costs, code, stage, tiles: code if isinstance(code, str) else tell(code)


def _wavefronts(costs: Cost, *_) -> str:
    return f"{costs.wavefronts:.3g}" if costs.wavefronts else "none: no loads from shared memory"


_COUNTED = (
    ("global loads per multiply-add", lambda costs, *_: f"{costs.loads:.3g}"),
    ("sectors per load request", lambda costs, *_: f"{costs.sectors:.3g}"),
    ("FLOP per byte loaded", lambda costs, *_: f"{costs.intensity:.3g}"),
    ("shared-memory reads per multiply-add", lambda costs, *_: f"{costs.shared_loads:.2g}"),
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
