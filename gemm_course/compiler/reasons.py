"""Says in a sentence why there is no machine code."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterable

from lockstep.limits import MAX_STATIC_SHARED_BYTES

# A reason has at most this many characters.
LONGEST = 300
PREAMBLES = ("Failed in ", "- Resolution failure", 'File "', "During: ", "Traceback")
NUMBAS_FILES = (
    "/numba/",
    "/numba_cuda/",
    "\\\\numba\\\\",
    "\\\\numba_cuda\\\\",
    "<unknown>",
    "unknown location",
)


class CannotCompile(ValueError):
    """The error for a kernel that cannot be compiled as asked. Its message says why in a sentence."""


class NoCompiler(RuntimeError):
    """The error for missing tools of NVIDIA's. Its message says in a sentence what to install."""


def numbas_reason(error: BaseException, function: Callable) -> CannotCompile:
    """Return Numba's reason to reject a function, as an error, with the line if it is known."""
    # The message may have codes for a terminal's colours.
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    reason = _essence(text) or type(error).__name__
    if not _is_numbas(error) and not isinstance(error, TypeError):
        reason = f"{type(error).__name__}: {reason}"
    return CannotCompile(f"Numba cannot compile {function.__name__}{_place(error)}: {_cut(reason)}")


def optimisers_reason(log: str, name: str) -> CannotCompile:
    """Return the reason why NVIDIA's optimiser, NVVM, rejects a kernel, from its log."""
    return CannotCompile(f"NVIDIA's optimiser refuses {name}: {_cut(_first_error(log))}")


def linkers_reason(log: str, name: str) -> CannotCompile:
    """Return the reason why NVIDIA's linker or assembler rejects a kernel, from their log."""
    too_much = re.search(r"uses too much shared data \((0x[0-9a-f]+) bytes", log)
    if too_much:
        return too_much_static(name, int(too_much[1], 16))
    return CannotCompile(f"NVIDIA's linker refuses {name}: {_cut(_first_error(log))}")


def too_much_static(name: str, shared_bytes: int) -> CannotCompile:
    """Return the error for arrays of fixed shape with more shared memory than a block can have."""
    return CannotCompile(
        f"{name} has {shared_bytes:,} bytes of shared memory in arrays of fixed shape; the maximum is "
        f"{MAX_STATIC_SHARED_BYTES:,}. A launch can request more: cuda.shared.array(0, ...) and "
        "kernel[grid, block, 0, bytes]."
    )


def _first_error(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"(?i)error|fatal|undefined", line)]
    return re.sub(r"^(ptxas|nvlink|error|fatal|ERROR|:|\s)+", "", (wrong or lines or [log])[0])


def _is_numbas(error: BaseException) -> bool:
    return any(base.__name__ == "NumbaError" for base in type(error).__mro__)


def _essence(text: str) -> str:
    """Return the line of Numba's message that has the reason, in words that make sense by themselves."""
    if "NRT required but not enabled" in text:
        return "it makes a new array, which a kernel cannot: copy element by element, in a loop"
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(PREAMBLES)]
    for i, line in enumerate(lines):
        if line.startswith("No implementation of function"):
            call = next((one[4:] for one in lines[i:] if one.startswith(">>> ")), "")
            if call.startswith("array(") and not call.startswith("array(array("):
                return "the shape of an array in shared or local memory must consist of constants"
            why = _rejection(lines[i:])
            return f"there is no {call}" + (f": {why}" if why else "")
    return lines[0] if lines else ""


def _rejection(lines: list[str]) -> str:
    """Return why Numba's candidates rejected the types of a call, if all that gave a reason gave the same."""
    said = {lines[i + 1] for i, line in enumerate(lines[:-1]) if line.startswith("Rejected as")}
    return re.sub(r"^\w*Error: ", "", said.pop()) if len(said) == 1 else ""


def _place(error: BaseException) -> str:
    """Return the innermost place outside of Numba's own files, ", line 7, `acc += A[row, p]`", or "".

    Not every error has a place. But what Numba was working on has one, which is in local variables of the
    functions on the traceback.
    """
    frames, traceback = [], error.__traceback__
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    places = [getattr(error, "loc", None)]
    for frame in reversed(frames):
        known = frame.f_locals
        places += [
            known.get("loc"),
            *(getattr(known.get(name), "loc", None) for name in ("self", "inst", "stmt")),
        ]
    for place in places:
        file, line = getattr(place, "filename", None), getattr(place, "line", None)
        if isinstance(file, str) and isinstance(line, int) and not any(part in file for part in NUMBAS_FILES):
            source = linecache.getline(file, line).strip()
            return f", line {line}" + (f", `{source}`" if source else "")
    return ""


def _cut(reason: str) -> str:
    reason = " ".join(reason.split()).rstrip(".:")
    return (reason if len(reason) <= LONGEST else reason[: LONGEST - 4] + " ...") + "."


def one_of(names: Iterable[str]) -> str:
    """Return names in words, such as "7.5, 8.0 or 9.0"."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
