"""A small suite of tests in a folder of its own, run by another pytest with this one's conftest."""

import os
import re
import subprocess
import sys
from pathlib import Path

from lockstep_tests import processes

ROOT = Path(__file__).parents[1]


class Suite:
    """One file of tests; what a run of it makes for the time being lies in the same folder."""

    def __init__(self, folder: Path, source: str):
        self.folder = folder
        (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  many\n  full\n  waits\n  long\n")
        self.write(source)

    def write(self, source: str) -> None:
        (self.folder / "test_it.py").write_text(source)

    def begin(self, *arguments: str):
        """Start a run and go on, as a block; it is killed at the end."""
        command = [sys.executable, "-m", "pytest", "-p", "lockstep_tests.plugin", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "lockstep"), "TMPDIR": str(self.folder)}
        for name in ("PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE"):  # of the outer run
            environment.pop(name, None)
        return processes.child(
            command,
            cwd=self.folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, *arguments: str) -> dict[str, int]:
        """Return how many tests passed, failed and so on, and how many the sample left out ("more")."""
        with self.begin(*arguments) as running:
            self.said, _ = running.communicate(timeout=5 * processes.WAIT)
        found = re.findall(r"(\d+) (?:tests )?(\w+)", "\n".join(self.said.splitlines()[-3:]))
        return {kind: int(number) for number, kind in found}
