"""The measuring commands: `gemm-course bench`, `sweep` and `counters`."""

import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True)

Shapes = Annotated[
    str, typer.Option(help="Matrix sizes, comma-separated: 4096 for a cube, or m x n x k as in 1023x517x769.")
]
Folder = Annotated[
    Path | None, typer.Option(help="The folder to write to; data/GPU if not given.", show_default=False)
]
Stages = Annotated[
    list[str] | None,
    typer.Argument(help="Stages of the ladder by name; all of them if none is given.", show_default=False),
]


@app.callback()
def measure() -> None:
    """Measure the ladder on a GPU."""


@app.command()
def bench(
    stages: Stages = None,
    sizes: Shapes = "4096",
    tiles: Annotated[
        list[str] | None,
        typer.Option(help="Tiles to change, as in 'BM=64 BN=64'; may be repeated.", show_default=False),
    ] = None,
    odd: Annotated[
        bool, typer.Option("--odd", help="Check at odd shapes, with poisoned padding, instead of timing.")
    ] = False,
    triton: Annotated[
        bool, typer.Option("--triton", help="Measure Triton as well, where it and PyTorch are installed.")
    ] = False,
    roofs: Annotated[
        bool, typer.Option("--roofs", help="Measure the bandwidth of DRAM, L2 and shared memory instead.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Measure stages beside cuBLAS, each checked against float64 first."""
    from gemm_course.bench.ladder import check_odd_shapes, measure_ladder
    from gemm_course.records import parse_tiles

    target = _folder(folder)
    if roofs:
        _measure_roofs(target / "roofs.csv")
        return
    with _sentences():
        chosen = _stages(stages)
        changes = [parse_tiles(text) for text in tiles or [""]]
        if odd:
            wrong = check_odd_shapes(chosen, changes, target / "correctness.csv", _command())
            typer.echo(f"{wrong} wrong results; the checks are in {target / 'correctness.csv'}")
            if wrong:
                raise typer.Exit(1)
            return
        shapes = parse_shapes(sizes)
        with _progress(len(shapes) * len(chosen) * len(changes), "measuring") as (advance, say):
            rows = measure_ladder(
                chosen, shapes, changes, target / "ladder.csv", _command(), triton, say, advance
            )
    _show(rows)
    typer.echo(f"{len(rows)} rows added to {target / 'ladder.csv'}")


@app.command()
def sweep(
    stages: Stages = None,
    size: Annotated[
        str, typer.Option(help="The matrix size: 4096 for a cube, or as in 1023x517x769.")
    ] = "4096",
    most: Annotated[
        int | None,
        typer.Option(help="Tile choices a stage; all legal ones if not given.", show_default=False),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that compile; a core each if not given.", show_default=False)
    ] = None,
    illegal: Annotated[
        bool, typer.Option("--illegal", help="Also list the choices that break a rule, with the rule.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Measure every tile choice that the sliders offer. Goes on where it was interrupted."""
    from gemm_course.bench.sweep import choices, illegal_rows, remaining, visible_gpus, workers_that_fit
    from gemm_course.bench.sweep import sweep as run_sweep
    from gemm_course.device import gpu_facts
    from gemm_course.records.columns import SWEEP

    path = _folder(folder) / "sweep.csv"
    with _sentences():
        chosen, (shape,) = _stages(stages), parse_shapes(size)
        gpus = visible_gpus()
        fitting = workers_that_fit(gpu_facts().memory_bytes, len(gpus), shape)
        todo = len(remaining(choices(chosen, most), shape, path))
        with _progress(todo, "measuring") as (advance, _):
            written = run_sweep(
                chosen, shape, path, _command(), most, gpus, min(workers or fitting, fitting), advance
            )
        if illegal:
            SWEEP.append(path, list(illegal_rows(chosen, shape, path)))
    typer.echo(f"{written} rows added to {path}")


@app.command()
def counters(
    stages: Stages = None,
    shapes: Shapes = "1024,333x217x129",
    module: Annotated[
        Path | None, typer.Option(help="A Python file with CASES to count instead of stages.")
    ] = None,
    wavefronts: Annotated[
        bool, typer.Option("--wavefronts", help="Measure single shared-memory instructions instead.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Record Nsight Compute's hardware counters of stages, or of any list of kernels."""
    from gemm_course.bench.counters import Source, record_counters, record_wavefronts

    target = _folder(folder)
    with _sentences():
        if wavefronts:
            path = target / "shared_memory_wavefronts.csv"
            rows, failed = record_wavefronts(path)
        else:
            source, name = _counter_source(stages, shapes, module, Source)
            path = target / "counters" / f"{name}.csv"
            rows, failed = record_counters(source, path, _command())
    for line in failed:
        typer.echo(f"not counted: {line}", err=True)
    typer.echo(f"{rows} rows written to {path}")
    if failed:
        raise typer.Exit(1)


def _measure_roofs(path: Path) -> None:
    from gemm_course.bench.roofs import measure_roofs

    for memory, bandwidth in measure_roofs(path, _command()).items():
        typer.echo(f"{memory}: {bandwidth:.2f} TB/s")


def _counter_source(stages, shapes, module, Source):
    if module is not None:
        return Source("module", module=str(module)), module.stem
    return Source("stages", tuple(_known(stages)), tuple(parse_shapes(shapes))), "ladder"


def parse_shapes(text: str) -> list[tuple[int, int, int]]:
    """ "4096,1023x517x769" -> [(4096, 4096, 4096), (1023, 517, 769)]. Raises ValueError."""
    shapes = []
    for part in text.split(","):
        sizes = re.fullmatch(r"\s*(\d+)(?:x(\d+)x(\d+))?\s*", part)
        if sizes is None:
            raise ValueError(f"sizes are written 4096 or 1023x517x769, not {part.strip()!r}")
        m = int(sizes[1])
        shapes.append((m, int(sizes[2] or m), int(sizes[3] or m)))
    return shapes


def _known(stages: list[str] | None) -> list[str]:
    from gemm_course.kernels import LADDER

    unknown = [name for name in stages or () if name not in LADDER]
    if unknown:
        known = ", ".join(stage.name for stage in LADDER)
        raise ValueError(f"no stage is called {' or '.join(unknown)}; the ladder is {known}")
    return stages or []


def _stages(names: list[str] | None) -> list:
    from gemm_course.kernels import LADDER

    return [LADDER[name] for name in _known(names)] or list(LADDER)


def _folder(folder: Path | None) -> Path:
    """The folder for this GPU's records; ends with a sentence where there is no GPU."""
    from gemm_course.device import NoGpu, gpu_facts
    from gemm_course.records import DATA

    try:
        facts = gpu_facts()
    except NoGpu as reason:
        _stop(f"{reason} This command measures on one.")
    return folder or DATA / facts.slug


def _command() -> str:
    return " ".join(["gemm-course", *sys.argv[1:]])


@contextmanager
def _sentences():
    """What the user can mend ends the command with a sentence, not with a traceback."""
    from gemm_course.bench.counters.record import NoProfiler
    from gemm_course.bench.problem import NoCublas
    from gemm_course.bench.triton_peer import NoTriton

    try:
        yield
    except (NoProfiler, NoCublas, NoTriton, ValueError) as problem:
        _stop(str(problem))
    except KeyboardInterrupt:
        _stop("Interrupted; what was measured is kept, and the same command goes on from there.")


@contextmanager
def _progress(total: int, doing: str):
    """-> (call for each row, call to say something beside the bar)."""
    from tqdm import tqdm

    with tqdm(total=total, desc=doing, unit="kernel") as bar:

        def advance(row) -> None:
            speed = f"{row['tflops']:.1f} TFLOPS" if row["tflops"] else row.get("reason") or "not measured"
            bar.set_postfix_str(f"{row['stage']} {row['tiles']}: {speed[:40]}", refresh=False)
            bar.update()

        yield advance, bar.write


def _show(rows: list[dict]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "stage", "m n k", "tiles", "ms", "TFLOPS", "cuBLAS", "share", "Triton", "error", "registers"
    )
    for row in rows:
        table.add_row(
            row["stage"],
            f"{row['m']} {row['n']} {row['k']}",
            row["tiles"],
            f"{row['milliseconds']:.3f}",
            f"{row['tflops']:.2f}",
            f"{row['cublas_tflops']:.2f}",
            f"{row['ratio_to_cublas']:.1%}",
            f"{row['triton_tflops']:.2f}" if row["triton_tflops"] else "",
            f"{row['relative_error']:.1e}",
            str(row["registers"]),
        )
    Console(width=170).print(table)


def _stop(sentence: str) -> None:
    typer.echo(sentence, err=True)
    raise typer.Exit(1)
