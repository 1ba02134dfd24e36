"""`python -m gemm_course.bench counters ...`: the measuring commands by themselves."""

from gemm_course.bench.cli import app

if __name__ == "__main__":  # the sweep's processes import this module again
    app()
