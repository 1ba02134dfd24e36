"""Runs the command line for `python -m measuring counters ...`."""

from measuring.cli import app

app(prog_name="python -m measuring")
