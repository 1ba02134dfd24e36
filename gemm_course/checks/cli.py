"""The command `gemm-course progress`."""

import typer

app = typer.Typer(no_args_is_help=True)


@app.callback()
def exercises() -> None:
    """The exercises of the course."""


@app.command()
def progress() -> None:
    """Say which exercises you have passed, and what comes next."""
    from gemm_course import checks

    typer.echo(str(checks.progress()))
