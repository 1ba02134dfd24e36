"""Measures what only maintainers need, on a GPU with NVIDIA's tools: `python -m measuring --help`.

This package needs a clone. It imports from the course, and the course imports nothing from here. Learners do
not get it: it is neither in the wheel nor in what `gemm-course release` and `gemm-course bundle` write.
"""
