"""Reads a learner's own stage from a Python file that defines STAGE, as each file of the ladder does."""

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
    """The error for a mistake in a learner's own file. The message names the file, and the line if known."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the message alone, because no line of the course is at fault."""
        return [str(self)]


@dataclass(frozen=True, eq=False, repr=False)
class OwnStage(Stage):
    """A learner's own stage, read from ``file``. ``text`` is what the file contained at that time."""

    file: Path = Path()
    text: str = ""

    def kernel(self, tiles: Mapping[str, int] | None = None):
        """Return the kernel for these tiles, as `Stage.kernel` does.

        Raises OwnKernelError if `build` fails, or if the file has changed since it was read, and IllegalTiles
        if the tiles break a rule.
        """
        self.require_unchanged()
        try:
            return super().kernel(tiles)
        except (IllegalTiles, OwnKernelError):
            raise
        except Exception as error:  # whatever the learner's build raises
            raise OwnKernelError(in_file(self.file, error)) from error

    def require_unchanged(self) -> None:
        """Raise OwnKernelError if the file has changed since it was read.

        Messages that quote its lines would then quote the wrong ones.
        """
        if _text(self.file) != self.text:
            raise OwnKernelError(
                f"{self.file.name} has changed since it was read: read it again, "
                f'{self.name} = own("{self.file.name}").'
            )


def own_stage(file: str | Path, of: type[OwnStage] = OwnStage) -> OwnStage:
    """Run a Python file, and return the STAGE that it defines as a stage with the file's name.

    The file is run again in each call, so the result has the latest edits. A stage that was read before an
    edit keeps what it has, but refuses to return a kernel. The stage's name is the file's without ".py",
    whatever STAGE says.

    file: the path. A relative path is looked up in the working directory, and then in the folder of the
    learner's notebooks. of: the class of the result.

    Raises OwnKernelError if the file cannot be opened or is not UTF-8, if Python cannot run it, if it defines
    no STAGE, or if a field of STAGE cannot be used.
    """
    path = where(file)
    text = _text(path)
    linecache.cache.pop(str(path), None)  # the emulator and the compiler would find the old source there
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
    """Return a file's `build`, wrapped so that it raises OwnKernelError unless it returns a function."""

    @functools.wraps(build)
    def held(**tiles: int) -> Callable:
        kernel = build(**tiles)
        kernel = getattr(kernel, "py_func", kernel)  # the course applies @cuda.jit itself
        if not isinstance(kernel, FunctionType):
            raise OwnKernelError(
                f"{path.name}: build must return the kernel, a function; it returns "
                f"{'None' if kernel is None else type(kernel).__name__}."
            )
        return kernel

    return held


def where(file: str | Path) -> Path:
    """Return the absolute path of a learner's file.

    A relative path is looked up in the working directory, and then in the folder of the notebooks.
    """
    here, beside = Path(file), learners_folder() / "notebooks" / file
    return (beside if not here.exists() and beside.exists() else here).resolve()


def in_file(path: Path, error: BaseException) -> str:
    """Return a sentence with the error and the line of the file that was running last."""
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
    except UnicodeDecodeError:
        raise OwnKernelError(f"{path} is no text in UTF-8, as Python's files are") from None
    except OSError:
        raise OwnKernelError(f"there is no file {path}. {_to_begin_with(path.stem)}") from None


def _to_begin_with(name: str) -> str:
    """Return the command that writes a file of this name, or one that begins as the stage of this name."""
    if any(Path(__file__).parents[1].glob(f"*_{name}.py")):  # A stage's file, as LADDER imports this module.
        return f"{name} is a stage of the ladder; `python3 course.py new mine --from {name}` begins with it."
    return f"`python3 course.py new {name}` writes one to begin with."


def _run(path: Path, text: str) -> dict:
    """Run a file like a script, which imports from its own folder first. Return the names that it defines."""
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
