"""What only maintainers measure, on a GPU with NVIDIA's tools: `python -m measuring --help`, in a clone.

This package imports from the course, and the course imports nothing from here. Learners do not get it: it is
neither in the wheel nor in what `gemm-course release` and `gemm-course bundle` write.
"""
