"""Runs the command line for ``python -m gemm_course``."""

from gemm_course.cli import main

main()
