"""Defines the command line: ``gemm-course lab``, ``test``, ``doctor``, ``emulate program.py`` and others."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gemm_course.bench.cli import app as measuring

# Commands import what they need when they run, so that --help and the start of JupyterLab load no Numba.
app = typer.Typer(no_args_is_help=True, add_completion=False, help="The course's commands.")
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


@app.command(context_settings=PASS_ON)
def lab(context: typer.Context) -> None:
    """Open the course in JupyterLab: yours, or a copy in the FOLDER that you name.

    Options go to JupyterLab, such as --no-browser.
    """
    from gemm_course.commands.lab import serve

    serve(context.args)


@app.command(context_settings=PASS_ON)
def test(context: typer.Context) -> None:
    """Run the course's tests: a fixed sample, or with --all everything; options go to pytest."""
    from gemm_course.commands.suite import run_tests

    raise typer.Exit(run_tests(context.args))


@app.command()
def doctor() -> None:
    """Say what this machine has, what will run where, and what to do about what is missing."""
    from gemm_course.commands.doctor import examine, show

    show(examine())


@app.command()
def update() -> None:
    """Bring a newer course, and keep your edited notebooks as dated copies."""
    from gemm_course.commands.update import update

    done = update(_learners_folder())
    for copy in done.kept:
        print(f"Your notebook is kept as {_in_course(copy)}")
    print(f"The course is up to date ({done.changes} new changes)." if done.changes else "Nothing new.")
    if done.packages:
        print("Start it with `python3 course.py`, which brings the packages up to date as well.")


@app.command()
def reset(number: Annotated[str, typer.Argument(help="the notebook's number, such as 03 or S05")]) -> None:
    """Give you a fresh notebook, and keep yours as a dated copy."""
    from gemm_course.commands.reset import reset

    path, copy = reset(number, _learners_folder())
    if copy is None:
        print(f"{_in_course(path)} is fresh already.")
    else:
        print(f"{_in_course(path)} is fresh again; yours is kept as {_in_course(copy)}")


@app.command()
def progress() -> None:
    """Say which exercises you have passed, and what comes next."""
    from gemm_course import checks

    print(checks.progress())


@app.command()
def site(
    folder: Annotated[Path, typer.Argument(help="a folder that is new or empty")],
) -> None:
    """Build the course as a website, which needs neither Python nor a network."""
    from gemm_course.commands.site.build import build

    for warning in build(folder):
        print(warning, file=sys.stderr)
    print(f"Open {folder / 'index.html'} in a browser, or copy the folder to any web server.")


@app.command()
def attempts(
    summaries: Annotated[
        list[Path] | None,
        typer.Argument(help="learners' summaries, to be added up; yours by default", show_default=False),
    ] = None,
    switch: Annotated[
        bool | None, typer.Option("--on/--off", help="keep what you try from now on, or forget all of it")
    ] = None,
    write: Annotated[Path | None, typer.Option(help="a file for your teacher: no code, no times")] = None,
) -> None:
    """Show what was tried at each exercise and what it was told; nothing is kept until you say --on."""
    from gemm_course.commands.attempts import show, switched, written

    if switch is not None:
        print(switched(switch))
    elif write is not None:
        print(written(write))
    else:
        print(show(summaries or []))


@app.command()
def release(
    folder: Annotated[Path, typer.Argument(help="a folder that is new or empty")],
    solutions: Annotated[bool, typer.Option(help="with all solutions, or with none")] = True,
    nbgrader: Annotated[
        bool, typer.Option("--nbgrader", help="assignments for nbgrader instead, without solutions")
    ] = False,
) -> None:
    """Write what a teacher hands out: the course, with or without solutions, or assignments for nbgrader."""
    from gemm_course.commands.release import release_assignments, release_course

    if nbgrader:
        names = release_assignments(folder)
        print(
            f"{len(names)} assignments are in {folder / 'source'}. "
            f"In {folder}: `nbgrader generate_assignment {names[0]}`."
        )
    else:
        release_course(folder, solutions)
        print(f"The course is in {folder}{'' if solutions else ', without solutions'}.")


@app.command()
def graded(
    folder: Annotated[Path, typer.Argument(help="the one with nbgrader_config.py")] = Path(),
    assignment: Annotated[
        str | None, typer.Option(help="only this one, such as 03_shared_memory_tiles", show_default=False)
    ] = None,
) -> None:
    """Tell each student's points, and first what nbgrader could not grade, which its export calls 0."""
    from gemm_course.commands.graded import show

    text, complete = show(folder, assignment)
    print(text)
    raise typer.Exit(0 if complete else 1)


@app.command()
def bundle(
    folder: Annotated[Path, typer.Argument(help="a folder that is new or empty")],
    solutions: Annotated[bool, typer.Option(help="with all solutions, or with none")] = True,
    extra: Annotated[
        str | None, typer.Option(help="packages to bring as well, such as gpu-cu13", show_default=False)
    ] = None,
) -> None:
    """Write the course and all its packages into a folder, for machines like this one without a network."""
    from gemm_course.commands.bundle import bundle

    print("Fetching the packages, which takes a minute or two ...", flush=True)
    size = bundle(folder, solutions, extra)
    print(
        f"{folder}, {size:.0f} MB: copy it to each machine, and there `python3 course.py` needs no network."
    )


@app.command(context_settings={"allow_extra_args": True, "allow_interspersed_args": False})
def emulate(
    context: typer.Context,
    program: Annotated[str, typer.Argument(help="a file, or with -m a module")],
    gpu: Annotated[str, typer.Option(help="the GPU whose limits hold, such as h200, ada or 8.6")] = "h200",
    module: Annotated[bool, typer.Option("-m", help="run a module, as python -m does")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="tell it as JSON, for machines")] = False,
) -> None:
    """Run a numba.cuda program without a GPU; what follows the program are its own arguments.

    The program runs as you: it can read and write what you can.
    """
    from gemm_course.commands.errors import CourseError
    from lockstep import LaunchError
    from lockstep.cli import emulate

    try:
        code = emulate(program, context.args, gpu=gpu, module=module, as_json=as_json)
    except (LaunchError, FileNotFoundError) as error:
        raise CourseError(str(error)) from None
    raise typer.Exit(code)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="what to call it, such as mine")],
    start: Annotated[
        str, typer.Option("--from", help="the stage of the ladder that it begins as")
    ] = "thread_tiled_2d",
    folder: Annotated[
        Path | None, typer.Option(help="where to write; beside the notebooks by default", show_default=False)
    ] = None,
) -> None:
    """Write a kernel of your own, NAME.py, that begins as a stage of the ladder; never overwrites."""
    from gemm_course.commands.own_kernel import new

    path = new(name, start, folder)
    print(f"{path} is yours: edit it, then `python3 course.py check {path.name}`.")


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="a file of `gemm-course new`, such as mine.py")],
    tiles: Annotated[str, typer.Option(help="Tiles to change, as in 'BM=64 BN=64'.")] = "",
) -> None:
    """Check a kernel of your own on the emulator: odd shapes, padding, races; this needs no GPU."""
    from gemm_course.commands.own_kernel import check

    raise typer.Exit(0 if check(file, tiles) else 1)


@app.command()
def card(
    file: Annotated[str, typer.Argument(help="a file of `gemm-course new`, such as mine.py")],
    tiles: Annotated[str, typer.Option(help="Tiles to change, as in 'BM=64 BN=64'.")] = "",
    save: Annotated[
        Path | None,
        typer.Option(help="the picture's file, .svg or .png; NAME.svg by default", show_default=False),
    ] = None,
) -> None:
    """Show others a kernel of your own: a picture, and a line of text to paste; measured on a GPU."""
    from gemm_course.commands.own_kernel import card

    card(file, tiles, save)


@app.command(name="compile")
def show_machine_code(
    stages: Annotated[
        list[str] | None,
        typer.Argument(
            help="Stages of the ladder by name, or files such as mine.py; all stages by default.",
            show_default=False,
        ),
    ] = None,
    capability: Annotated[str, typer.Option("--for", help="The GPU's compute capability.")] = "9.0",
    tiles: Annotated[str, typer.Option(help="Tiles to change, as in 'BM=64 BN=64'.")] = "",
    text: Annotated[bool, typer.Option("--text", help="All the machine code, not a summary of it.")] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Write what the default tiles become into data/machine_code.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Where to write instead of data.", show_default=False)
    ] = None,
) -> None:
    """Say what machine code the stages become; this needs no GPU."""
    from gemm_course.commands import machine_code
    from gemm_course.commands.errors import CourseError

    if record and (capability != "9.0" or tiles or text):
        raise CourseError(
            "--record is of the default tiles, for 8.0, 8.6 and 9.0: leave out --for, --tiles and --text."
        )
    if folder and not record:
        raise CourseError("--folder says where --record writes: give both.")
    if record:
        machine_code.write(
            stages or [], " ".join(["gemm-course compile", *(stages or []), "--record"]), folder
        )
    else:
        machine_code.show(stages or [], capability, tiles, text)


app.add_typer(measuring)


def command_names() -> list[str]:
    """Return the names of all commands that `gemm-course --help` lists."""
    return [name for name, command in typer.main.get_group(app).commands.items() if not command.hidden]


def main() -> None:
    """Run one command. An error that a learner can fix is shown as one sentence, with exit code 1."""
    from gemm_course.commands.errors import CourseError

    try:
        app(prog_name="gemm-course")
    except CourseError as error:
        sys.exit(str(error))


def _learners_folder() -> Path:
    """Return the learner's folder. Raise CourseError if it has no notebooks yet."""
    from gemm_course import places
    from gemm_course.commands.errors import CourseError

    folder = places.learners_folder()
    if not places.has_notebooks(folder):
        raise CourseError(
            f"There are no notebooks in {folder} yet: `gemm-course lab` puts a copy there. "
            "If yours are elsewhere, go into their folder and try again."
        )
    return folder


def _in_course(path: Path) -> str:
    return path.relative_to(_learners_folder()).as_posix()


if __name__ == "__main__":
    main()
