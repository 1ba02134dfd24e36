"""A stage of one's own: read from a Python file with a STAGE, as each file of the ladder has one."""

from __future__ import annotations

import functools
import linecache
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import FunctionType, ModuleType

from gemm_course.kernels.parts.base import IllegalTiles, Stage
from gemm_course.kernels.parts.own_rules import broken_rules
from gemm_course.places import learners_folder


class OwnKernelError(ValueError):
    """Something is wrong with the file of a kernel of one's own; the message names the file and the line."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the sentence alone, for the error lies in no line of the course."""
        return [str(self)]


@dataclass(frozen=True, eq=False, repr=False)
class OwnStage(Stage):
    """A stage that is not part of the ladder, as its file was when it was read."""

    file: Path = Path()
    text: str = ""

    def kernel(self, tiles: Mapping[str, int] | None = None):
        """As of any stage. Raises OwnKernelError where `build` fails, or the file has changed since."""
        self.require_unchanged()
        try:
            return super().kernel(tiles)
        except (IllegalTiles, OwnKernelError):
            raise
        except Exception as error:  # whatever the learner's build raises
            raise OwnKernelError(in_file(self.file, error)) from error

    def require_unchanged(self) -> None:
        """Raise OwnKernelError if the file was changed since it was read: its lines would be others."""
        if _text(self.file) != self.text:
            raise OwnKernelError(
                f"{self.file.name} has changed since it was read: read it again, "
                f'{self.name} = own("{self.file.name}").'
            )


def own_stage(file: str | Path, of: type[OwnStage] = OwnStage) -> OwnStage:
    """Read the STAGE of a file anew, whatever was read before; its name is the file's.

    file: its path; a relative one may start beside the notebooks as well. of: the class of what is returned.
    Raises OwnKernelError if there is no such file, if Python cannot run it, or if it has no STAGE.
    """
    path = where(file)
    text = _text(path)
    linecache.cache.pop(str(path), None)  # the emulator and the compiler read the source there
    stage = _run(path, text).get("STAGE")
    if not isinstance(stage, Stage):
        raise OwnKernelError(
            f"{path.name} has no STAGE: at its end must stand STAGE = Stage(...). "
            "`python3 course.py new NAME` writes a file that has one."
        )
    if broken := next(broken_rules(stage), None):
        raise OwnKernelError(f"{path.name}, STAGE: {broken}.")
    given = {each.name: getattr(stage, each.name) for each in fields(Stage)}
    own = {"name": path.stem, "file": path, "text": text, "build": _giving_a_kernel(path, stage.build)}
    return of(**{**given, **own})


def _giving_a_kernel(path: Path, build: Callable) -> Callable:
    """The build of a file, held to what it must return."""

    @functools.wraps(build)
    def held(**tiles: int) -> Callable:
        kernel = build(**tiles)
        kernel = getattr(kernel, "py_func", kernel)  # @cuda.jit has no place here, and does no harm
        if not isinstance(kernel, FunctionType):
            raise OwnKernelError(
                f"{path.name}: build must return the kernel, a function; it returns "
                f"{'None' if kernel is None else type(kernel).__name__}."
            )
        return kernel

    return held


def where(file: str | Path) -> Path:
    """The path of a file as the learner names it: from here, or else from beside the notebooks."""
    here, beside = Path(file), learners_folder() / "notebooks" / file
    return (beside if not here.exists() and beside.exists() else here).resolve()


def in_file(path: Path, error: BaseException) -> str:
    """What went wrong, in a sentence with the last line of the file that was at work."""
    if isinstance(error, SyntaxError):
        line, said = error.lineno, error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
        said = f"{type(error).__name__}: {error}"
    return f"{path.name}{f', line {line}' if line else ''}: {said}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise OwnKernelError(
            f"there is no file {path}. `python3 course.py new {path.stem}` writes one to begin with."
        ) from None


def _run(path: Path, text: str) -> dict:
    """The names that a file defines. Its folder is where it imports from first, as for a script."""
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.path.insert(0, str(path.parent))
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except Exception as error:  # whatever the learner's file raises
        raise OwnKernelError(in_file(path, error)) from error
    finally:
        sys.path.remove(str(path.parent))
    return module.__dict__
