"""Defines the maintainers' measuring commands: `counters`, `sanitize`, `roofs` and `triton`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from gemm_course.bench.options import (
    Folder,
    Shapes,
    Stages,
    Tiles,
    able,
    command_line,
    folder_here,
    parse_shapes,
    progress_of,
    sentences,
    show_ladder,
    stages_of,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Measure what the course's records need, on a GPU with NVIDIA's tools.",
    epilog="Other measurements are modules: measuring.lane_layouts, .one_change and .tensor_core_sums.",
)


@app.command()
def counters(
    stages: Stages = None,
    shapes: Shapes = "1024,333x217x129",
    module: Annotated[
        Path | None, typer.Option(help="A Python file with CASES to count instead of stages.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Of a module, only cases with this in their names; rows of others stay; may be repeated.",
            show_default=False,
        ),
    ] = None,
    wavefronts: Annotated[
        bool, typer.Option("--wavefronts", help="Measure single shared-memory instructions instead.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Record Nsight Compute's hardware counters of stages, or of any list of kernels."""
    from measuring.counters.record import record_counters, record_wavefronts

    target = folder_here(folder)
    with sentences():
        if wavefronts:
            path = target / "shared_memory_wavefronts.csv"
            rows, failed = record_wavefronts(path)
        else:
            program, name = _counted(stages, shapes, module, only)
            path = target / "counters" / f"{name}.csv"
            rows, failed = record_counters(program, path, _command())
    for line in failed:
        typer.echo(f"not counted: {line}", err=True)
    typer.echo(f"{rows} rows written to {path}")
    if failed:
        raise typer.Exit(1)


def _counted(stages, shapes, module, only) -> tuple[list[str], str]:
    """Return the program that launches what is counted, and the name of the file of its counts."""
    from gemm_course.bench.profile.sources import Source
    from measuring.counters import child

    if module is not None:
        return child.of_module(module, only or ()), module.stem
    names = tuple(stage.name for stage in able(stages_of(stages)))
    return Source("stages", names, tuple(parse_shapes(shapes))).program, "ladder"


@app.command()
def sanitize(
    stages: Stages = None,
    shapes: Annotated[
        str | None,
        typer.Option(help="Matrix sizes, as in 1x1x1,129x131x17; six odd ones by default."),
    ] = None,
    tiles: Tiles = None,
    tools: Annotated[
        str | None, typer.Option(help="Some of memcheck,racecheck,initcheck,synccheck.", show_default=False)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes at a time; one per core by default.", show_default=False)
    ] = None,
    folder: Folder = None,
) -> None:
    """Run NVIDIA's compute-sanitizer on stages: bounds, races, uninitialised reads, barriers."""
    from gemm_course.records import parse_tiles
    from measuring.sanitizer import SHAPES, TOOLS, NoSanitizer, sanitize_stages

    path = folder_here(folder) / "stage_sanitizer.csv"
    with sentences(NoSanitizer):
        rows = sanitize_stages(
            able(stages_of(stages)),
            [parse_tiles(text) for text in tiles or [""]],
            path,
            _tools(tools, TOOLS),
            parse_shapes(shapes) if shapes else SHAPES,
            workers or os.cpu_count() or 1,
            typer.echo,
        )
    wrong = [row for row in rows if row["verdict"] != "clean"]
    for row in wrong:
        where = f"{row['stage']} {row['tiles']} at {row['m']}x{row['n']}x{row['k']}"
        typer.echo(f"{where}, {row['tool']}: {row['verdict']}. {row['message']}", err=True)
    typer.echo(f"{len(rows)} rows written to {path}, {len(wrong)} not clean")
    if wrong:
        raise typer.Exit(1)


def _tools(text: str | None, known: tuple[str, ...]) -> list[str]:
    tools = [part.strip() for part in text.split(",")] if text else list(known)
    unknown = [tool for tool in tools if tool not in known]
    if unknown:
        raise ValueError(f"compute-sanitizer has no tool {' or '.join(unknown)}; it has {', '.join(known)}")
    return tools


@app.command()
def roofs(folder: Folder = None) -> None:
    """Measure the bandwidth of memories and the speed of arithmetic units."""
    from measuring.arithmetic import measure_arithmetic
    from measuring.roofs import measure_roofs

    target = folder_here(folder)
    for memory, bandwidth in measure_roofs(target / "roofs.csv", _command()).items():
        typer.echo(f"{memory}: {bandwidth:.2f} TB/s")
    for unit, speed in measure_arithmetic(target / "compute_roofs.csv", _command()).items():
        typer.echo(f"{unit}: {speed:.1f} TFLOPS")


@app.command()
def triton(stages: Stages = None, sizes: Shapes = "4096", tiles: Tiles = None, folder: Folder = None) -> None:
    """Measure stages beside cuBLAS, as `gemm-course bench` does, and beside Triton."""
    from gemm_course.bench.ladder import measure_ladder
    from gemm_course.records import parse_tiles
    from measuring.triton_peer import NoTriton, triton_launcher

    path = folder_here(folder) / "ladder.csv"
    with sentences(NoTriton):
        chosen, shapes = stages_of(stages), parse_shapes(sizes)
        changes = [parse_tiles(text) for text in tiles or [""]]
        with progress_of(len(shapes) * len(chosen) * len(changes)) as advance:
            rows = measure_ladder(
                chosen, shapes, changes, path, _command(), triton_launcher, progress=advance
            )
    show_ladder(rows)
    typer.echo(f"{len(rows)} rows added to {path}")


def _command() -> str:
    return command_line("python -m measuring")
