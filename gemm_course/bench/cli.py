"""The measuring commands: `gemm-course bench`, `sweep`, `counters`, `profile`, `sanitize` and `merge`."""

import itertools
import math
import os
import re
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()

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
StagesOrFiles = Annotated[
    list[str] | None,
    typer.Argument(
        help="Stages of the ladder by name, or files such as mine.py; all stages by default. With a file, "
        "what is measured is written beside it.",
        show_default=False,
    ),
]


@app.command()
def bench(
    stages: StagesOrFiles = None,
    sizes: Shapes = "4096",
    tiles: Tiles = None,
    odd: Annotated[
        bool, typer.Option("--odd", help="Check at odd shapes, with poisoned padding, instead of timing.")
    ] = False,
    triton: Annotated[
        bool, typer.Option("--triton", help="Measure Triton as well, where it and PyTorch are installed.")
    ] = False,
    roofs: Annotated[
        bool, typer.Option("--roofs", help="Measure memories and arithmetic units instead.")
    ] = False,
    rows_of_any_length: Annotated[
        bool, typer.Option("--rows", help="Measure the naive kernels with longer and longer rows instead.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Measure stages beside cuBLAS, after checking each against float64."""
    from gemm_course.bench.ladder import check_odd_shapes, measure_ladder
    from gemm_course.records import parse_tiles

    target = _folder(folder or _beside(stages))
    if roofs:
        _measure_roofs(target)
        return
    if rows_of_any_length:
        _measure_row_lengths(target)
        return
    with _sentences():
        chosen = _stages_or_files(stages)
        changes = [parse_tiles(text) for text in tiles or [""]]
        if odd:
            wrong = check_odd_shapes(chosen, changes, target / "correctness.csv", _command())
            typer.echo(f"{wrong} wrong results; the checks are in {target / 'correctness.csv'}")
            if wrong:
                raise typer.Exit(1)
            return
        shapes = parse_shapes(sizes)
        with _progress(len(shapes) * len(chosen) * len(changes)) as advance:
            rows = measure_ladder(
                chosen, shapes, changes, target / "ladder.csv", _command(), triton, progress=advance
            )
    _show(rows)
    typer.echo(f"{len(rows)} rows added to {target / 'ladder.csv'}")


@app.command()
def sweep(
    stages: Stages = None,
    size: Annotated[
        str, typer.Option(help="The matrix size: 4096 for m = n = k, or as in 1023x517x769.")
    ] = "4096",
    most: Annotated[
        int | None,
        typer.Option(
            help="Rows per stage, including those of the file; all legal choices by default.",
            show_default=False,
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Stop after so many minutes; the same command resumes.", show_default=False),
    ] = None,
    promising: Annotated[
        bool, typer.Option("--promising", help="Choices near the fastest ones first, instead of at random.")
    ] = False,
    again: Annotated[
        list[str] | None,
        typer.Option(
            help="A stage whose kernel has changed: drop its rows and measure them again; may be repeated.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that compile; one per core by default.", show_default=False)
    ] = None,
    illegal: Annotated[
        bool, typer.Option("--illegal", help="Also list the choices that break a rule, with the rules.")
    ] = False,
    best: Annotated[
        bool, typer.Option("--best", help="Only show each stage's default beside the fastest measured.")
    ] = False,
    shard: Annotated[
        str | None, typer.Option(help="Only a part, such as 2/4, the second of four.", show_default=False)
    ] = None,
    cluster: Annotated[
        int | None,
        typer.Option(
            help="In so many shards, each a job on a cluster; --minutes is of a job.", show_default=False
        ),
    ] = None,
    partition: Annotated[
        str | None, typer.Option(help="The cluster's partition for --cluster.", show_default=False)
    ] = None,
    folder: Folder = None,
) -> None:
    """Measure every tile choice that the sliders offer. Resumes where it was interrupted."""
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    with _sentences():
        if cluster is not None:
            if again or illegal or best or shard:
                raise ValueError("--cluster goes without --again, --illegal, --best and --shard")
            chosen, shape = _stages(stages), parse_shapes(size)[0]
            _on_a_cluster(chosen, shape, most, promising, workers, cluster, minutes, partition, folder)
            return
        part = None if shard is None else _shard(shard)
        chosen, (shape,) = _stages(stages), parse_shapes(size)
        if best:
            _show_best(chosen, shape, _recorded(folder))
            return
        path = _folder(folder) / "sweep.csv"
        chosen = _able(chosen)
        _measure_choices(chosen, shape, path, most, promising, again, workers, until, part)
        if illegal:
            from gemm_course.bench.choices import illegal_rows
            from gemm_course.records.columns import SWEEP

            SWEEP.append(path, list(illegal_rows(chosen, shape, path)))


def _shard(text: str):
    from gemm_course.bench.cluster import Shard

    return Shard.read(text)


def _on_a_cluster(chosen, shape, most, promising, workers, shards, minutes, partition, folder) -> None:
    """Submit the sweep's shards, wait, and merge. This machine needs no GPU, unless it has no Slurm."""
    from gemm_course.bench import cluster
    from gemm_course.bench.sweep import cores, queue_of, visible_gpus
    from gemm_course.device import NoGpu, require_gpu

    if shards < 1:
        raise ValueError("--cluster needs a number of shards, one or more")
    if folder is None:
        raise ValueError("a sweep on a cluster needs --folder, which all its nodes can write to")
    target = folder.resolve()
    parts = [cluster.Shard(number, shards) for number in range(1, shards + 1)]
    given = [stage.name for stage in chosen] + ["--size", "x".join(map(str, shape))]
    given += [] if most is None else ["--most", str(most)]
    given += ["--promising"] if promising else []

    def is_done(part, place) -> bool:
        return not queue_of(chosen, shape, place / "sweep.csv", most, promising, part)

    executor = cluster.executor_for(target, max(1, math.ceil(minutes or 240)), partition)
    gpus = []
    if executor.cluster == "local":
        try:
            require_gpu()
        except NoGpu as reason:
            raise ValueError(f"There is no Slurm here, no `srun`, and shards need GPUs. {reason}") from None
        gpus = visible_gpus()
        workers = workers or max(1, cores() // len(gpus))
    given += [] if workers is None else ["--workers", str(workers)]
    command = cluster.sweep_command(given)
    for merged in cluster.run(parts, target, command, is_done, executor, typer.echo, gpus):
        typer.echo(f"{merged.file}: {merged.added} rows")


def _measure_choices(chosen, shape, path, most, promising, again, workers, until, shard=None) -> None:
    from gemm_course.bench.choices import forget, rows_at, standings
    from gemm_course.bench.sweep import queue_of, visible_gpus, workers_that_fit
    from gemm_course.bench.sweep import sweep as run_sweep
    from gemm_course.device import gpu_facts

    if again:
        typer.echo(f"{forget(_known(again), shape, path)} rows dropped, to be measured again")
    gpus = visible_gpus()
    dtypes = len({stage.dtype for stage in chosen})
    fitting = workers_that_fit(gpu_facts().memory_bytes, len(gpus), shape, dtypes)
    todo = len(queue_of(chosen, shape, path, most, promising, shard))
    with _progress(todo) as advance:
        done = run_sweep(
            chosen,
            shape,
            path,
            _command(),
            most,
            gpus,
            min(workers or fitting, fitting),
            advance,
            promising,
            until,
            shard,
        )
    _show_standings(standings(chosen, rows_at(shape, path)))
    for gpu, rows in sorted(done.measured_on.items()):
        typer.echo(f"{rows} choices timed on {gpu}")
    typer.echo(f"{done.rows} rows added to {path}")


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
    from gemm_course.bench.counters import Source, record_counters, record_wavefronts

    target = _folder(folder)
    with _sentences():
        if wavefronts:
            path = target / "shared_memory_wavefronts.csv"
            rows, failed = record_wavefronts(path)
        else:
            source, name = _counter_source(stages, shapes, module, only, Source)
            path = target / "counters" / f"{name}.csv"
            rows, failed = record_counters(source, path, _command())
    for line in failed:
        typer.echo(f"not counted: {line}", err=True)
    typer.echo(f"{rows} rows written to {path}")
    if failed:
        raise typer.Exit(1)


@app.command()
def profile(
    stages: Annotated[
        list[str] | None,
        typer.Argument(
            help="Stages of the ladder or variants, by name; all by default. Without tiles and sizes: all "
            "that the course shows of them. Or one file, such as mine.py, whose profile is only shown.",
            show_default=False,
        ),
    ] = None,
    tiles: Tiles = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            help="Matrix sizes, as in 4096,1024 or 1023x517x769; 4096 by default.", show_default=False
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also profile what the folder has a profile of, and replace that.")
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Begin no kernel after so many minutes; the same command resumes.", show_default=False
        ),
    ] = None,
    folder: Folder = None,
) -> None:
    """Profile stages with Nsight Compute: what every instruction did and waited for. Resumes.

    A profile is a row of profile/kernels.csv and a file beside it.
    """
    from gemm_course.bench.profile.record import record_profiles
    from gemm_course.progress_bar import progress_bar

    if any(map(_is_file, stages or ())):
        _show_profiles(stages, tiles, sizes)
        return
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    target = _folder(folder)
    with _sentences():
        chosen = _able_to_profile(_profiles(stages, tiles, sizes))
        with progress_bar("profiling", "kernels") as show:
            done = record_profiles(chosen, target, _command(), again, until, show)
    for line in done.failed:
        typer.echo(f"not profiled: {line}", err=True)
    if done.there:
        typer.echo(f"{done.there} were profiled before; --again does so anew")
    if done.left:
        typer.echo(f"{done.left} are left: there was no time; the same command goes on")
    typer.echo(f"{done.profiled} profiles written to {target / 'profile'}")
    if done.failed:
        raise typer.Exit(1)


def _show_profiles(stages: list[str], tiles: list[str] | None, sizes: str | None) -> None:
    """Profile stages of one's own and say what limits them; nothing is kept."""
    from gemm_course.bench.profile import NotProfiled, profiled
    from gemm_course.device import NoGpu
    from gemm_course.profiles import verdict
    from gemm_course.records import parse_tiles

    with _sentences():
        for stage, text, shape in itertools.product(
            _stages_or_files(stages), tiles or [""], parse_shapes(sizes or "4096")
        ):
            try:
                found = profiled(stage, tiles=parse_tiles(text), size=shape)
            except (NoGpu, NotProfiled, LookupError) as reason:
                _stop(str(reason))
            typer.echo(f"{found}\n{verdict(found)}")


def _profiles(stages, tiles, sizes) -> list:
    from gemm_course.bench.profile.wanted import recorded_ones, wanted
    from gemm_course.kernels import LADDER

    if not (tiles or sizes):
        return recorded_ones(stages or ())
    return wanted(stages or [stage.name for stage in LADDER], tiles or (), parse_shapes(sizes or "4096"))


def _able_to_profile(chosen: list) -> list:
    able = _able(list(dict.fromkeys(one.stage for one in chosen)))
    return [one for one in chosen if one.stage in able]


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
    from gemm_course.bench.sanitizer import SHAPES, TOOLS, sanitize_stages
    from gemm_course.records import parse_tiles

    path = _folder(folder) / "stage_sanitizer.csv"
    with _sentences():
        chosen = _able(_stages(stages))
        rows = sanitize_stages(
            chosen,
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


@app.command()
def merge(
    sources: Annotated[list[Path], typer.Argument(help="The folders with new records.")],
    again: Annotated[
        list[str] | None,
        typer.Option(
            help="A stage whose kernel has changed: drop its old rows of the sweep; may be repeated.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="The folder of records; data/GPU by default.", show_default=False)
    ] = None,
) -> None:
    """Merge rows that were measured into a separate folder into the records. Needs no GPU."""
    from gemm_course.bench.merge import has_records
    from gemm_course.bench.merge import merge as merge_records

    with _sentences():
        target = _recorded(folder)
        empty = [source for source in sources if not has_records(source)]
        if len(empty) < len(sources) > 1:  # such as the folder of a shard that had nothing to do
            sources = [source for source in sources if source not in empty]
            for source in empty:
                typer.echo(f"{source}: no records")
        for source in sources:
            for one in merge_records(source, target, _known(again)):
                typer.echo(f"{one.file}: {one.added} rows added, {one.replaced} replaced")


def _tools(text: str | None, known: tuple[str, ...]) -> list[str]:
    tools = [part.strip() for part in text.split(",")] if text else list(known)
    unknown = [tool for tool in tools if tool not in known]
    if unknown:
        raise ValueError(f"compute-sanitizer has no tool {' or '.join(unknown)}; it has {', '.join(known)}")
    return tools


def _measure_roofs(folder: Path) -> None:
    from gemm_course.bench.arithmetic import measure_arithmetic
    from gemm_course.bench.roofs import measure_roofs

    for memory, bandwidth in measure_roofs(folder / "roofs.csv", _command()).items():
        typer.echo(f"{memory}: {bandwidth:.2f} TB/s")
    for unit, speed in measure_arithmetic(folder / "compute_roofs.csv", _command()).items():
        typer.echo(f"{unit}: {speed:.1f} TFLOPS")


def _measure_row_lengths(folder: Path) -> None:
    from gemm_course.bench.row_length import cases, measure_row_lengths

    path = folder / "row_lengths.csv"
    with _sentences(), _progress(cases()) as advance:
        count = measure_row_lengths(path, _command(), advance)
    typer.echo(f"{count} rows added to {path}")


def _counter_source(stages, shapes, module, only, Source):
    if module is not None:
        return Source("module", module=str(module), only=tuple(only or ())), module.stem
    names = tuple(stage.name for stage in _able(_stages(stages)))
    return Source("stages", names, tuple(parse_shapes(shapes))), "ladder"


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


def _is_file(name: str) -> bool:
    return name.endswith(".py")


def _stages_or_files(names: list[str] | None) -> list:
    """Stages of the ladder, all by default, and those of one's own. Raises ValueError."""
    from gemm_course.kernels.parts.own import own_stage

    files = {name: own_stage(name) for name in names or () if _is_file(name)}
    stages = iter(_stages([name for name in names if name not in files]) if names else _stages(None))
    return [files[name] if name in files else next(stages) for name in names] if names else list(stages)


def _beside(names: list[str] | None) -> Path | None:
    """Where to write what was measured of a stage of one's own: never into the course's records."""
    from gemm_course.kernels.parts.own import where

    own = [where(name) for name in names or () if _is_file(name)]
    return own[0].parent / "measured" if own else None


def _able(stages: list) -> list:
    """The stages that this GPU can run; reports what the others need. Raises ValueError if there are none."""
    from gemm_course.device import why_too_old

    reasons = {stage.name: why_too_old(stage.name, stage.compute_capability) for stage in stages}
    for reason in filter(None, reasons.values()):
        typer.echo(f"left out: {reason}", err=True)
    able = [stage for stage in stages if not reasons[stage.name]]
    if not able:
        raise ValueError("This GPU can run none of these stages.")
    return able


def _recorded(folder: Path | None) -> Path:
    """The folder to read records from: this GPU's, or without a GPU the course's own."""
    from gemm_course.device import gpu_available, gpu_facts
    from gemm_course.records import DATA, SHIPPED

    return folder or (DATA / gpu_facts().slug if gpu_available() else SHIPPED.folder)


def _folder(folder: Path | None) -> Path:
    """The folder for this GPU's records; without a GPU, end the command with a sentence."""
    from gemm_course.device import NoGpu, gpu_facts
    from gemm_course.records import DATA

    try:
        facts = gpu_facts()
    except NoGpu as reason:
        _stop(f"{reason} This command measures on one.")
    return folder or DATA / facts.slug


def _command() -> str:
    """The command as records name it, without the folder that it writes to."""
    words, folder = sys.argv[1:], re.compile("--folder(=.*)?")
    kept = [
        word
        for before, word in zip(["", *words], words)
        if not folder.fullmatch(word) and before != "--folder"
    ]
    return " ".join(["gemm-course", *kept])


@contextmanager
def _sentences():
    """End the command with a sentence instead of a traceback, for errors that the user can fix."""
    from gemm_course.bench.cluster import ClusterError
    from gemm_course.bench.counters.ncu import NoProfiler
    from gemm_course.bench.cublas import NoCublas
    from gemm_course.bench.sanitizer import NoSanitizer
    from gemm_course.bench.triton_peer import NoTriton
    from gemm_course.compiler import NoCompiler

    try:
        yield
    except (ClusterError, NoProfiler, NoCublas, NoCompiler, NoSanitizer, NoTriton, ValueError) as problem:
        _stop(str(problem))
    except KeyboardInterrupt:
        _stop("Interrupted; what was measured is kept, and the same command resumes from there.")


@contextmanager
def _progress(total: int):
    """Yield what to call with each row that is measured."""
    from gemm_course.progress_bar import progress_bar

    with progress_bar("measuring", "kernels") as show:
        done = itertools.count(1)

        def advance(row) -> None:
            speed = f"{row['tflops']:.1f} TFLOPS" if row["tflops"] else row.get("reason") or "not measured"
            show(next(done), total, f"{row['stage']} {row['tiles']}: {speed[:40]}")

        show(0, total)
        yield advance


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


def _show_standings(found: list) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("stage", "measured", "failed", "left", "best tiles", "TFLOPS")
    for one in found:
        speed = f"{one.best_tflops:.2f}" if one.best_tflops else ""
        table.add_row(one.stage, str(one.measured), str(one.failed), str(one.left), one.best_tiles, speed)
    Console(width=170).print(table)


def _show_best(stages: list, shape: tuple[int, int, int], folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from gemm_course.bench.best import CompileTimes, best_choices
    from gemm_course.bench.choices import rows_at
    from gemm_course.device import gpu_available
    from gemm_course.kernels import tiles_text

    table = Table("stage", "default", "share", "fastest", "share", "default/fastest", "compiles in s")
    times = CompileTimes(folder / "compile_times.csv", _command(), measure=gpu_available())
    for stage in stages:
        times(stage, tiles_text(stage.complete()))
    for one in best_choices(stages, rows_at(shape, folder / "sweep.csv"), times):
        table.add_row(
            one.stage,
            one.default,
            _percent(one.default_share),
            one.best if one.best != one.default else "the default",
            _percent(one.best_share),
            f"{one.ratio:.3f}" if one.ratio else "",
            f"{one.compile_seconds:.1f}" if one.compile_seconds else "not timed",
        )
    Console(width=190).print(table)


def _percent(share: float | None) -> str:
    return f"{share:.1%}" if share else "not measured"


def _stop(sentence: str) -> None:
    typer.echo(sentence, err=True)
    raise typer.Exit(1)
