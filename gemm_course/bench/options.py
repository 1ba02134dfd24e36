"""Holds what measuring commands share: options, the stages and folders that the options name, and output."""

import itertools
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

Shapes = Annotated[
    str,
    typer.Option(help="Matrix sizes, comma-separated: 4096 for m = n = k, or as in 1023x517x769."),
]
Folder = Annotated[
    Path | None, typer.Option(help="The folder to write to; data/GPU by default.", show_default=False)
]
Tiles = Annotated[
    list[str] | None,
    typer.Option(help="Tiles to change, as in 'BM=64 BN=64'; may be repeated.", show_default=False),
]
Stages = Annotated[
    list[str] | None,
    typer.Argument(help="Stages of the ladder by name; all by default.", show_default=False),
]


def parse_shapes(text: str) -> list[tuple[int, int, int]]:
    """Return the shapes in a text: "4096,1023x517x769" -> [(4096, 4096, 4096), (1023, 517, 769)].

    Raise ValueError for any other text.
    """
    shapes = []
    for part in text.split(","):
        sizes = re.fullmatch(r"\s*(\d+)(?:x(\d+)x(\d+))?\s*", part)
        if sizes is None:
            raise ValueError(f"sizes are written 4096 or 1023x517x769, not {part.strip()!r}")
        m = int(sizes[1])
        shapes.append((m, int(sizes[2] or m), int(sizes[3] or m)))
    return shapes


def known(names: list[str] | None) -> list[str]:
    """Return the names if each is a stage of the ladder. Raise ValueError if one is not."""
    from gemm_course.kernels import LADDER

    unknown = [name for name in names or () if name not in LADDER]
    if unknown:
        ladder = ", ".join(stage.name for stage in LADDER)
        raise ValueError(f"no stage is called {' or '.join(unknown)}; the ladder is {ladder}")
    return names or []


def stages_of(names: list[str] | None) -> list:
    """Return the stages of these names, or the whole ladder without any.

    Raise ValueError for an unknown name.
    """
    from gemm_course.kernels import LADDER

    return [LADDER[name] for name in known(names)] or list(LADDER)


def able(stages: list) -> list:
    """Return the stages that this GPU can run, and report what the others need.

    Raise ValueError if there are none.
    """
    from gemm_course.device import why_too_old

    reasons = {stage.name: why_too_old(stage.name, stage.compute_capability) for stage in stages}
    for reason in filter(None, reasons.values()):
        typer.echo(f"left out: {reason}", err=True)
    found = [stage for stage in stages if not reasons[stage.name]]
    if not found:
        raise ValueError("This GPU can run none of these stages.")
    return found


def folder_here(folder: Path | None) -> Path:
    """Return the folder for this GPU's records. Without a GPU, end the command with a sentence."""
    from gemm_course.device import NoGpu, gpu_facts
    from gemm_course.records import DATA

    try:
        facts = gpu_facts()
    except NoGpu as reason:
        stop(f"{reason} This command measures on one.")
    return folder or DATA / facts.slug


def command_line(program: str = "gemm-course") -> str:
    """Return the command as records name it, without the folder that it writes to."""
    words, folder = sys.argv[1:], re.compile("--folder(=.*)?")
    kept = [
        word
        for before, word in zip(["", *words], words)
        if not folder.fullmatch(word) and before != "--folder"
    ]
    return " ".join([program, *kept])


@contextmanager
def sentences(*errors: type[Exception]):
    """End the command with a sentence instead of a traceback, for errors that the user can fix.

    ``errors`` are such errors besides those of the course.
    """
    from gemm_course.bench.cluster import ClusterError
    from gemm_course.bench.cublas import NoCublas
    from gemm_course.bench.profile.ncu import NoProfiler
    from gemm_course.compiler import NoCompiler

    try:
        yield
    except (ClusterError, NoProfiler, NoCublas, NoCompiler, ValueError, *errors) as problem:
        stop(str(problem))
    except KeyboardInterrupt:
        stop("Interrupted; what was measured is kept, and the same command resumes from there.")


@contextmanager
def progress_of(total: int):
    """Show a progress bar in a block. Yield a function to call with each row that is measured."""
    from gemm_course.progress_bar import progress_bar

    with progress_bar("measuring", "kernels") as show:
        done = itertools.count(1)

        def advance(row) -> None:
            speed = f"{row['tflops']:.1f} TFLOPS" if row["tflops"] else row.get("reason") or "not measured"
            show(next(done), total, f"{row['stage']} {row['tiles']}: {speed[:40]}")

        show(0, total)
        yield advance


def show_ladder(rows: list[dict]) -> None:
    """Print what `measure_ladder` has measured, with Triton where it was measured as well."""
    from rich.console import Console
    from rich.table import Table

    triton = ["Triton"] if any(row["triton_tflops"] for row in rows) else []
    table = Table("stage", "m n k", "tiles", "ms", "TFLOPS", "cuBLAS", "share", *triton, "error", "registers")
    for row in rows:
        beside = f"{row['triton_tflops']:.2f}" if row["triton_tflops"] else ""
        table.add_row(
            row["stage"],
            f"{row['m']} {row['n']} {row['k']}",
            row["tiles"],
            f"{row['milliseconds']:.3f}",
            f"{row['tflops']:.2f}",
            f"{row['cublas_tflops']:.2f}",
            f"{row['ratio_to_cublas']:.1%}",
            *([beside] if triton else []),
            f"{row['relative_error']:.1e}",
            str(row["registers"]),
        )
    Console(width=170).print(table)


def stop(sentence: str) -> None:
    """End the command with a sentence and exit code 1."""
    typer.echo(sentence, err=True)
    raise typer.Exit(1)
