"""The machine code is what numba-cuda itself makes for a launch, by its own classes and its own linker."""

import json
import linecache
import sys

import pytest
from numba import cuda

from gemm_course import compiled
from lockstep_tests import processes

STAGES = ("wmma",)


@pytest.mark.compiler
@pytest.mark.full(reason="compiles eight kernels, in two processes")
def test_opcode_for_opcode():
    from tests.compiler.numbas_own_way import ARGUMENTS, OPTIONS, SCALED, kernel, reordered

    done = processes.run([sys.executable, "-m", "tests.compiler.numbas_own_way", *STAGES])
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    ours = {name: compiled(name) for name in STAGES}
    ours |= {str(options): compiled(cuda.jit(kernel, **options), *ARGUMENTS) for options in OPTIONS}
    ours["reordered"] = compiled(cuda.jit(reordered), *SCALED)
    assert set(theirs) - {"with lines"} == set(ours)
    assert theirs["with lines"] != theirs["reordered"]
    for name, found in ours.items():
        assert theirs[name] == list(found.instructions["opcode"]), name
    square = next(row for row in ours["reordered"].rows if "value * value" in _source(row))
    assert square.opcode == "FMUL"
    assert all("value * value" in _source(row) for row in ours["reordered"].rows if row.opcode == "FMUL")


def _source(row) -> str:
    return linecache.getline(row.file, row.line)
