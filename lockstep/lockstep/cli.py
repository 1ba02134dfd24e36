"""Defines the command ``lockstep``, which runs a numba.cuda program on the emulator and prints a summary."""

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from lockstep.errors import LaunchError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Exit with the program's exit code, or with 1 if the emulator found errors."""
    given = _parser().parse_args(arguments)
    try:
        code = emulate(
            given.program,
            given.arguments,
            gpu=given.gpu,
            module=given.module,
            as_json=given.as_json,
            loop_seconds=given.loop_seconds,
        )
    except (LaunchError, FileNotFoundError) as error:
        sys.exit(f"{error}")
    sys.exit(code)


def emulate(
    target: str,
    arguments: Sequence[str],
    *,
    gpu: str | None,
    module: bool = False,
    as_json: bool = False,
    loop_seconds: float | None = None,
) -> int:
    """Run a program and print a summary. Return its exit code, or 1 if that is 0 and there are errors.

    With ``as_json`` the summary is one JSON object on the standard output, and everything that the program
    prints goes to the standard error. Raises FileNotFoundError if there is no such program, and LaunchError
    for an unknown GPU.
    """
    from lockstep.host.running import run_program
    from lockstep.limits import profile

    if not module and not Path(target).exists():
        raise FileNotFoundError(f"There is no program {target}.")
    chosen = profile(gpu)
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        seconds = {} if loop_seconds is None else {"loop_seconds": loop_seconds}
        outcome = run_program(target, arguments, gpu=chosen, module=module, **seconds)
    if as_json:
        print(json.dumps(_as_data(outcome), default=str))
    else:
        _tell(outcome)
    return outcome.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lockstep",
        description="Run a numba.cuda program without a GPU, count its accesses, find its mistakes. "
        "The program runs as you: it can read and write what you can.",
    )
    parser.add_argument("--gpu", help="the GPU whose limits hold, such as h200 (the default), ada or 8.6")
    parser.add_argument(
        "--loop-seconds", type=float, help="how long a while loop may run without a thread leaving it: 7"
    )
    parser.add_argument("--json", dest="as_json", action="store_true", help="tell it as JSON, for machines")
    parser.add_argument("-m", dest="module", action="store_true", help="run a module, as python -m does")
    parser.add_argument("program", help="a file, or with -m a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")
    return parser


def _as_data(outcome) -> dict:
    told = outcome.session.as_dict()
    ok = told["ok"] and not outcome.stopped
    return {**told, "ok": ok, "exit_code": outcome.exit_code, "stopped": outcome.stopped}


def _tell(outcome) -> None:
    if not sys.stdout.closed:
        sys.stdout.flush()
    if outcome.stopped:
        print(outcome.stopped, file=sys.stderr)
    print(f"\n{outcome.session}", file=sys.stderr)
