"""Checks that a kernel's local arrays stay in registers, with NVIDIA's compiler where there is one.

The compiler gets the kernel with the most results per thread, once all else about the answer is right.
Compiling takes 0.3 to 2 seconds. Finding the lines of an array that leaves the registers takes twice as long
again. Where the compiler is missing, the emulator's advice decides, which follows from the source alone
(:mod:`lockstep.types.local_indices`). tests/checks/test_registers.py compares the two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from gemm_course.checks.core import Call, Part, Refused
from gemm_course.compiler import CannotCompile, compiled
from gemm_course.compiler.compile import usage_of
from gemm_course.compiler.disassembly import Instruction
from gemm_course.compiler.nvidia import Usage, why_no_compiler
from lockstep import Finding, active

from .trial import Trial

CAPABILITY = (9, 0)
# The disassembly gives this kind to instructions that use local memory.
LOCAL = "local memory"
_PIECE = 8
WHY = (
    "A register has no address: the compiler must know which element each access means. Let loops over the "
    "array run a constant number of times, and index it with their variables."
)

Why = Callable[[list[int], list[str]], tuple[str, int] | None]


def kept_in_registers(trial: Trial, why: Why | None = None, sizes: str = "") -> str:
    """Raise Refused if a local array leaves the registers; return what is known about it, as a sentence.

    The sentence is "" for a kernel without local arrays. why: (lines that are to blame, names of the arrays)
    -> the reason and its line, or None for the usual words. sizes: what was compiled, in words, such as
    "R = 16"; the trial's own sizes if left out.
    """
    arrays = _local(trial)
    if not len(arrays):
        return ""
    names = list(dict.fromkeys(arrays["array"]))
    if why_no_compiler() is not None or active() is not None:
        return _as_advised(trial, names, why)
    return _as_compiled(trial, names, why, sizes or trial.about.removeprefix("With "))


def _local(trial: Trial):
    return trial.report.accesses.query("space == 'local'")


def _reason(trial: Trial, names: list[str], lines: list[int], why: Why | None) -> tuple[str, int] | None:
    for loop in trial.written.loops:
        if over := _array_in(loop.over, names):
            return (
                f"A loop over `{over}` itself finds its elements by their addresses, and a register has "
                "none: loop over its indices.",
                loop.line,
            )
        if any(element.is_slice for element in loop.over.elements()):
            return (
                "The compiler does not know how many elements a slice has, so a loop over one does not run a "
                "constant number of times. Loop over a `range` of a constant, and index inside.",
                loop.line,
            )
    return why(lines, names) if why else None


def _array_in(over: Part, names: Sequence[str]) -> str | None:
    """Return the array that a loop goes over element by element, also with enumerate and zip, or None."""
    if isinstance(over, Call) and over.name in ("enumerate", "zip"):
        return next(filter(None, (_array_in(part, names) for part in over.args)), None)
    return over.text if over.text in names else None


# ---- as compiled -------------------------------------------------------------------------------------------


def _as_compiled(trial: Trial, names: list[str], why: Why | None, sizes: str) -> str:
    try:
        used = usage_of(trial.kernel, *trial.before.values(), compute_capability=CAPABILITY)
    except CannotCompile as reason:
        raise Refused(f"On the emulator the result is right. But {reason}", f"{trial.about}.") from None
    how = f"compiled for an H200 (compute capability {'.'.join(map(str, CAPABILITY))}) with {sizes}"
    # Only spilled values are then in local memory, and no array. A thread takes it in pieces of 8 bytes.
    if used.local_bytes <= -(-used.spilled_bytes // _PIECE) * _PIECE:
        spilled = (
            " Values for which no register was left are there, and no array: that is allowed."
            if used.local_bytes
            else ""
        )
        return f"C{how[1:]}, the kernel takes {_taken(used)}.{spilled}"
    rows, advised = _own_rows(trial), _advice(trial)
    if not advised and not any(map(_is_computed, rows)) and trial.written.calls("print"):
        return (
            f"C{how[1:]}, the kernel takes {used.registers} registers per thread. Its `print` takes "
            f"{used.local_bytes} bytes of local memory: take it out before you time the kernel."
        )
    lines = _lines(rows)
    # The machine code knows lines only, and a line may use several arrays. So the advice names the arrays.
    if advised:
        names, lines = _names(advised), [finding.line for finding in advised]
    else:
        names = _accessed_in(trial, lines) or names
    reason, line = _reason(trial, names, lines, why) or (WHY, next(iter(lines), None))
    raise Refused(
        f"The result is right, but {_are(names)} in local memory: {used.local_bytes} bytes per thread, "
        f"{how}. {reason}",
        trial.line(line) if line else f"{trial.about}.",
    )


def _taken(used: Usage) -> str:
    local = f"{used.local_bytes} bytes of" if used.local_bytes else "no"
    return f"{used.registers} registers per thread and {local} local memory"


def _own_rows(trial: Trial) -> list[Instruction]:
    """Return the instructions of the learner's lines that use local memory."""
    code = compiled(trial.kernel, *trial.before.values(), compute_capability=CAPABILITY)
    file = trial.kernel.py_func.__code__.co_filename
    return [row for row in code.rows if row.kind == LOCAL and row.file == file]


def _is_computed(row: Instruction) -> bool:
    """Return whether an instruction's address is computed.

    An address that the compiler knows is an offset from R1, the stack pointer.
    """
    return not re.search(r"\[R1\b", row.text)


def _lines(rows: Sequence[Instruction]) -> list[int]:
    """Return the lines of computed addresses, or of all if none is computed, the most frequent first."""
    computed = [row for row in rows if _is_computed(row)]
    return [line for line, _ in Counter(row.line for row in computed or rows).most_common()]


def _accessed_in(trial: Trial, lines: list[int]) -> list[str]:
    return list(dict.fromkeys(_local(trial).query("line in @lines")["array"]))


def _are(names: list[str]) -> str:
    return f"{_listed(names)} {'are' if len(names) > 1 else 'is'}"


def _listed(names: list[str]) -> str:
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} and {last}" if most else last


# ---- as the source tells -----------------------------------------------------------------------------------


def _as_advised(trial: Trial, names: list[str], why: Why | None) -> str:
    advised = _advice(trial)
    if not advised:
        return f"As far as the source tells, {_listed(names)} can stay in registers."
    found = _reason(trial, _names(advised), [finding.line for finding in advised], why)
    reason, line = found or (advised[0].message, advised[0].line)
    raise Refused(
        f"The result is right, but {_listed(_names(advised))} may not stay in registers. {reason}",
        trial.line(line),
    )


def _advice(trial: Trial) -> list[Finding]:
    return [finding for finding in trial.report.advice if finding.kind == "dynamic_local_index"]


def _names(advice: list[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.array for finding in advice))
