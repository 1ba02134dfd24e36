"""Runs the command line for ``python -m lockstep program.py``."""

from lockstep.cli import main

main()
