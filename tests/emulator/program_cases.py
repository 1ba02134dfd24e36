"""The kernels of tests/emulator/families, for a GPU's counters.

`gemm-course counters --module tests/emulator/program_cases.py` records them.
"""

from tests.emulator.families import programs

CASES = list(programs().values())
