"""``python -m gemm_course`` is the command line."""

from gemm_course.cli import main

main()
