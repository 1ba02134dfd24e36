"""`gemm-course emulate`: a numba.cuda program runs on the emulator, and what was found is told."""

import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from gemm_course.commands.errors import CourseError
from gemm_course.emulator import LaunchError
from gemm_course.emulator.limits import profile
from gemm_course.programs.running import Outcome, run_program


def emulate(
    target: str, arguments: Sequence[str], *, gpu: str | None, module: bool = False, as_json: bool = False
) -> int:
    """Run a program and tell about it -> the exit code: the program's own, or 1 if there are errors.

    With ``as_json`` one JSON object goes to the standard output, and all that the program prints to the
    standard error. Raises CourseError if there is no such program or GPU.
    """
    if not module and not Path(target).exists():
        raise CourseError(f"There is no program {target}.")
    try:
        chosen = profile(gpu)
    except LaunchError as error:
        raise CourseError(str(error)) from None
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        outcome = run_program(target, arguments, gpu=chosen, module=module)
    if as_json:
        print(json.dumps(_as_data(outcome), default=str))
    else:
        _tell(outcome)
    return outcome.exit_code


def _as_data(outcome: Outcome) -> dict:
    ended = {"exit_code": outcome.exit_code, "stopped": outcome.stopped}
    return {**outcome.session.as_dict(), **ended}


def _tell(outcome: Outcome) -> None:
    sys.stdout.flush()
    if outcome.stopped:
        print(outcome.stopped, file=sys.stderr)
    print(f"\n{outcome.session}", file=sys.stderr)
