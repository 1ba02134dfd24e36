"""The kernels of lockstep/lockstep_tests/families, for a GPU's counters.

`python -m measuring counters --module lockstep/lockstep_tests/program_cases.py` records them.
"""

from lockstep_tests.families import programs

CASES = list(programs().values())
