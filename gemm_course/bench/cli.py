"""Defines the measuring commands: `gemm-course bench`, `sweep`, `profile` and `merge`."""

import itertools
import math
import time
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
    known,
    parse_shapes,
    progress_of,
    sentences,
    show_ladder,
    stages_of,
    stop,
)

app = typer.Typer()
ANY = {"allow_extra_args": True, "ignore_unknown_options": True}
ELSEWHERE = "This is now `python -m measuring {}`, in a clone of the course."

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
    triton: Annotated[bool, typer.Option("--triton", hidden=True)] = False,
    roofs: Annotated[bool, typer.Option("--roofs", hidden=True)] = False,
    rows_of_any_length: Annotated[
        bool, typer.Option("--rows", help="Measure the naive kernels with longer and longer rows instead.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Measure stages beside cuBLAS, after checking each against float64."""
    from gemm_course.bench.ladder import check_odd_shapes, measure_ladder
    from gemm_course.records import parse_tiles

    if roofs or triton:
        stop(ELSEWHERE.format("roofs" if roofs else "triton"))
    target = folder_here(folder or _beside(stages))
    if rows_of_any_length:
        _measure_row_lengths(target)
        return
    with sentences():
        chosen = _stages_or_files(stages)
        changes = [parse_tiles(text) for text in tiles or [""]]
        if odd:
            wrong = check_odd_shapes(chosen, changes, target / "correctness.csv", command_line())
            typer.echo(f"{wrong} wrong results; the checks are in {target / 'correctness.csv'}")
            if wrong:
                raise typer.Exit(1)
            return
        shapes = parse_shapes(sizes)
        with progress_of(len(shapes) * len(chosen) * len(changes)) as advance:
            rows = measure_ladder(
                chosen, shapes, changes, target / "ladder.csv", command_line(), progress=advance
            )
    show_ladder(rows)
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
    with sentences():
        if cluster is not None:
            if again or illegal or best or shard:
                raise ValueError("--cluster goes without --again, --illegal, --best and --shard")
            chosen, shape = stages_of(stages), parse_shapes(size)[0]
            _on_a_cluster(chosen, shape, most, promising, workers, cluster, minutes, partition, folder)
            return
        part = None if shard is None else _shard(shard)
        chosen, (shape,) = stages_of(stages), parse_shapes(size)
        if best:
            _show_best(chosen, shape, _recorded(folder))
            return
        path = folder_here(folder) / "sweep.csv"
        chosen = able(chosen)
        _measure_choices(chosen, shape, path, most, promising, again, workers, until, part)
        if illegal:
            from gemm_course.bench.choices import illegal_rows
            from gemm_course.records.columns import SWEEP

            SWEEP.append(path, list(illegal_rows(chosen, shape, path)))


def _shard(text: str):
    from gemm_course.bench.cluster import Shard

    return Shard.read(text)


def _on_a_cluster(chosen, shape, most, promising, workers, shards, minutes, partition, folder) -> None:
    """Submit the sweep's shards, wait, and merge. This machine needs a GPU only if there is no Slurm."""
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
        typer.echo(f"{forget(known(again), shape, path)} rows dropped, to be measured again")
    gpus = visible_gpus()
    dtypes = len({stage.dtype for stage in chosen})
    fitting = workers_that_fit(gpu_facts().memory_bytes, len(gpus), shape, dtypes)
    todo = len(queue_of(chosen, shape, path, most, promising, shard))
    with progress_of(todo) as advance:
        done = run_sweep(
            chosen,
            shape,
            path,
            command_line(),
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


@app.command("counters", hidden=True, context_settings=ANY)
@app.command("sanitize", hidden=True, context_settings=ANY)
def elsewhere(context: typer.Context) -> None:
    """Say that this is now a command of `python -m measuring`."""
    stop(ELSEWHERE.format(context.info_name))


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
    target = folder_here(folder)
    with sentences():
        chosen = _able_to_profile(_profiles(stages, tiles, sizes))
        with progress_bar("profiling", "kernels") as show:
            done = record_profiles(chosen, target, command_line(), again, until, show)
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
    """Profile a learner's own stages and say what limits them. Nothing is kept."""
    from gemm_course.bench.profile import NotProfiled, profiled
    from gemm_course.device import NoGpu
    from gemm_course.profiles import verdict
    from gemm_course.records import parse_tiles

    with sentences():
        for stage, text, shape in itertools.product(
            _stages_or_files(stages), tiles or [""], parse_shapes(sizes or "4096")
        ):
            try:
                found = profiled(stage, tiles=parse_tiles(text), size=shape)
            except (NoGpu, NotProfiled, LookupError) as reason:
                stop(str(reason))
            typer.echo(f"{found}\n{verdict(found)}")


def _profiles(stages, tiles, sizes) -> list:
    from gemm_course.bench.profile.wanted import recorded_ones, wanted
    from gemm_course.kernels import LADDER

    if not (tiles or sizes):
        return recorded_ones(stages or ())
    return wanted(stages or [stage.name for stage in LADDER], tiles or (), parse_shapes(sizes or "4096"))


def _able_to_profile(chosen: list) -> list:
    stages = able(list(dict.fromkeys(one.stage for one in chosen)))
    return [one for one in chosen if one.stage in stages]


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

    with sentences():
        target = _recorded(folder)
        empty = [source for source in sources if not has_records(source)]
        if len(empty) < len(sources) > 1:  # A shard that had nothing to do leaves an empty folder.
            sources = [source for source in sources if source not in empty]
            for source in empty:
                typer.echo(f"{source}: no records")
        for source in sources:
            for one in merge_records(source, target, known(again)):
                typer.echo(f"{one.file}: {one.added} rows added, {one.replaced} replaced")


def _measure_row_lengths(folder: Path) -> None:
    from gemm_course.bench.row_length import cases, measure_row_lengths

    path = folder / "row_lengths.csv"
    with sentences(), progress_of(cases()) as advance:
        count = measure_row_lengths(path, command_line(), advance)
    typer.echo(f"{count} rows added to {path}")


def _is_file(name: str) -> bool:
    return name.endswith(".py")


def _stages_or_files(names: list[str] | None) -> list:
    """Return the stages of these names and in these files, in this order, or the ladder if there are none.

    Raise ValueError for an unknown name, or a file whose stage cannot be read.
    """
    from gemm_course.kernels.parts.own import own_stage

    files = {name: own_stage(name) for name in names or () if _is_file(name)}
    stages = iter(stages_of([name for name in names if name not in files]) if names else stages_of(None))
    return [files[name] if name in files else next(stages) for name in names] if names else list(stages)


def _beside(names: list[str] | None) -> Path | None:
    """Return the folder for a learner's own stage, beside its file and never in the course's records.

    Return None if no name is a file.
    """
    from gemm_course.kernels.parts.own import where

    own = [where(name) for name in names or () if _is_file(name)]
    return own[0].parent / "measured" if own else None


def _show_standings(found: list) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("stage", "measured", "failed", "left", "best tiles", "TFLOPS")
    for one in found:
        speed = f"{one.best_tflops:.2f}" if one.best_tflops else ""
        table.add_row(one.stage, str(one.measured), str(one.failed), str(one.left), one.best_tiles, speed)
    Console(width=170).print(table)


def _recorded(folder: Path | None) -> Path:
    """Return the folder to read records from.

    This is ``folder`` if it is given, else this GPU's, and without a GPU the one that the course ships.
    """
    from gemm_course.device import gpu_available, gpu_facts
    from gemm_course.records import DATA, SHIPPED

    return folder or (DATA / gpu_facts().slug if gpu_available() else SHIPPED.folder)


def _show_best(stages: list, shape: tuple[int, int, int], folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from gemm_course.bench.best import CompileTimes, best_choices
    from gemm_course.bench.choices import rows_at
    from gemm_course.device import gpu_available
    from gemm_course.kernels import tiles_text

    table = Table("stage", "default", "share", "fastest", "share", "default/fastest", "compiles in s")
    times = CompileTimes(folder / "compile_times.csv", command_line(), measure=gpu_available())
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
