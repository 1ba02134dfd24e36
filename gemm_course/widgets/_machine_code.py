"""Shows the machine code of a stage or of your own kernel, line by line, with what was measured of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from gemm_course import records
from gemm_course.compiler import CannotCompile, Compiled, NoCompiler, compiled
from gemm_course.compiler.disassembly import NOWHERE
from gemm_course.compiler.limits import shown
from gemm_course.figures import machine_code as figure
from gemm_course.figures.code_lines import Function, Line, Machine, percent
from gemm_course.figures.machine_code import Caption
from gemm_course.kernels import Stage
from gemm_course.profiles import WAITS, NoProfile, Profile, recorded
from gemm_course.profiles.verdict import of_active_clocks
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets._canvas import Text
from gemm_course.widgets._choosing import Choosable
from gemm_course.widgets._gpus import named, to_measure
from gemm_course.widgets._limit_in_words import limit_in_words
from gemm_course.widgets._loop_in_words import loop_in_words
from gemm_course.widgets._profiled import FEW
from gemm_course.widgets._sources import Sources, functions_in, sources_of

NEWEST = (9, 0)
NOT_MEASURED = (
    "How often each line is executed and where warps wait was not measured of this code: a GPU has to run it."
)


def machine_code(
    subject: str | Stage | Compiled | Profile | Any,
    *args: Any,
    tiles: Mapping[str, int] | None = None,
    compute_capability: tuple[int, int] | str | None = None,
    on: str | None = None,
) -> Choosable | Text:
    """Show source and machine code side by side: choose a line, and see the instructions that it became.

    ``subject`` is a stage of the ladder or its name, with ``tiles`` to change from its defaults; your kernel,
    followed by example arguments as for `compiled`; a `Compiled`; or a `Profile`. If a profile was recorded
    under this name, its code and its measurements are shown. ``compute_capability`` is 9.0 unless you say
    otherwise. ``on`` is the GPU that was profiled, such as "rtx_3060", and the H200 without it.

    A sentence answers if the code cannot be compiled, here or at all, or was not profiled on the GPU that you
    name. Raise IllegalTiles for illegal tiles, and ValueError for an unknown GPU.
    """
    if isinstance(subject, Profile):
        return of_profile(subject)
    if isinstance(subject, Compiled):
        return of_code(subject)
    place = named(on)
    profile = None if args else _profile(subject, tiles, compute_capability, place)
    if profile is None and place != SHIPPED and isinstance(subject, (str, Stage)):
        name = subject if isinstance(subject, str) else subject.name
        return Text(to_measure(f"{name} with these tiles was", place, f"profile {name}"))
    if profile is not None:
        return of_profile(profile)
    try:
        code = compiled(subject, *args, tiles=tiles, compute_capability=compute_capability or NEWEST)
    except (CannotCompile, NoCompiler) as reason:
        return Text(str(reason))
    return of_code(code)


def _profile(
    subject: Any, tiles: Mapping | None, capability: tuple[int, int] | str | None, on: Place
) -> Profile | None:
    """Return the profile of a stage's code for this compute capability, or None if none was recorded."""
    if not isinstance(subject, (str, Stage)):
        return None
    try:
        profile = recorded(subject, tiles, gpu=on)
    except NoProfile:
        return None
    asked, ran = (re.findall(r"\d", str(one)) for one in (capability, profile.code.compute_capability))
    return profile if capability is None or asked == ran else None


def of_code(code: Compiled) -> Choosable:
    """Show machine code of which nothing was measured."""
    functions = _functions(code, sources_of(code), None)
    chosen = _most_of_the_loop(functions)
    count, place = f"{len(chosen.instructions):,} of {len(code):,} instructions", _named(chosen, functions)
    title = f"{code.name}: " + (f"{place} became {count}" if chosen.number else f"{count} are of no line")
    caption = Caption(title, loop_in_words(code), _about(code), missing=NOT_MEASURED)
    return Choosable(figure.machine_code(functions, chosen, caption))


def of_profile(profile: Profile) -> Choosable:
    """Show the machine code that ran, with how often it ran and where warps waited."""
    code = profile.code
    functions = _functions(code, profile.sources, profile)
    chosen = max(_choosable(functions), key=lambda line: line.waited)
    if chosen.waited:
        title = (
            f"warps wait longest at {_named(chosen, functions)}, {percent(chosen.waited)} of all their time, "
            f"most {WAITS[next(iter(chosen.waits))].waits}"
        )
    else:
        chosen = _most_of_the_loop(functions)
        title = "no sampled warp waited" if profile.samples else "it ended before a warp was sampled"
    loop = loop_in_words(code, of_active_clocks(profile.measured, "tensor_pipe"))
    caption = Caption(
        f"{profile.name}: {title}", loop, _measured_where(profile), limit=limit_in_words(profile)
    )
    return Choosable(figure.machine_code(functions, chosen, caption))


def _most_of_the_loop(functions: list[Function]) -> Line:
    return max(_choosable(functions), key=lambda line: (line.in_loop, len(line.instructions)))


def _named(line: Line, functions: list[Function]) -> str:
    """Name a line, with its function if that is not the kernel itself."""
    if not line.number:
        return "instructions of no line"
    (function,) = (each for each in functions if any(one is line for one in each.lines))
    return line.name if function is functions[0] else f"{line.name} of {function.name or function.place}"


def _about(code: Compiled) -> str:
    return f"{_titled(code)}, compute capability {shown(code.compute_capability)}; {code.compiler}"


def _measured_where(profile: Profile) -> str:
    row = profile.measured
    where = records.provenance(pd.DataFrame([row]))
    tool = f", Nsight Compute {row['ncu']}" if row.get("ncu") else ""
    size = "" if row["m"] is None else f", {row['m']} × {row['n']} × {row['k']}"
    doubt = f" Rough, with fewer than {FEW:,} samples." if profile.samples < FEW else ""
    return f"{_titled(profile)}{size}; measured: {where}{tool}; code: {profile.code.compiler}.{doubt}"


def _titled(kernel: Compiled | Profile) -> str:
    return f"{kernel.name} ({kernel.tiles})" if kernel.tiles else kernel.name


# --- lines with their instructions --------------------------------------------------------------------------


def _functions(code: Compiled, sources: Sources, profile: Profile | None) -> list[Function]:
    """Sort functions: the kernel first, then what was inlined into it, then instructions of no line."""
    machine = _by_place(code, profile)
    first = {place: order for order, place in enumerate(machine)}
    found = []
    for file, lines in _completed(sources, machine).items():
        for name, numbers in functions_in(lines):
            places = [(file, number) for number in numbers]
            rows = [Line(number, lines[number], machine.get((file, number), ())) for number in numbers]
            order = min(first.get(place, len(first)) for place in places)
            found.append((name != code.name, order, Function(name, _place(file), rows)))
    functions = [function for *_, function in sorted(found, key=lambda each: each[:2])]
    if NOWHERE in machine:
        row = Line(0, "no line of the source", machine[NOWHERE])
        functions.append(Function("", "NVIDIA's own code, such as a division of integers", [row]))
    return functions


def _completed(sources: Sources, places: Iterable[tuple[str, int]]) -> Sources:
    """Return the sources, with an empty line for each line number that has no source."""
    found = {file: dict(lines) for file, lines in sources.items()}
    for file, number in places:
        if file:
            found.setdefault(file, {}).setdefault(number, "")
    return found


def _place(file: str) -> str:
    if file.startswith("gemm_course/"):
        return file
    return Path(file).name if Path(file).exists() else "notebook"


def _by_place(code: Compiled, profile: Profile | None) -> dict[tuple[str, int], list[Machine]]:
    """Return the instructions of each file and line, in the order in which lines first come."""
    in_loop = code.loop.addresses if code.loop else frozenset()
    measured = _measured(profile) if profile else [{}] * len(code.rows)
    found: dict[tuple[str, int], list[Machine]] = {}
    for one, figures in zip(code.rows, measured, strict=True):
        opcode = one.opcode.split(".")[0]
        row = Machine(one.address, one.text, opcode, one.kind, one.address in in_loop, **figures)
        found.setdefault((one.file, one.line), []).append(row)
    return found


def _measured(profile: Profile) -> list[dict[str, Any]]:
    """Return what was measured of each instruction, as arguments for `Machine`."""
    frame, all_time = profile.instructions, max(profile.samples, 1)
    found = []
    for row in frame[["executed", *WAITS]].to_dict("records"):
        parts = {name: row[name] / all_time for name in WAITS if row[name]}
        waits = {name: part for name, part in parts.items() if WAITS[name].waits}
        ready = sum(part for name, part in parts.items() if name not in waits)
        found.append({"executed": row["executed"], "waits": waits, "ready": ready})
    return found


def _choosable(functions: list[Function]) -> list[Line]:
    return [line for function in functions for line in function.lines if line.instructions]
