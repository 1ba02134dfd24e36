"""The advice about local arrays: which indices the compiler knows; tests/checks asks the compiler itself."""

import textwrap

import numpy as np
import pytest
from numba import cuda, float32, int32

from lockstep import emulate

LENGTH = 16  # of the array
KNOWN = {
    "a constant": "acc[3] += x[i]",
    "a for loop": "for j in range(R):\n    acc[j] += x[i]",
    "its length": "for j in range(len(acc)):\n    acc[j] += x[i]",
    "its shape": "for j in range(acc.shape[0]):\n    acc[j] += x[i]",
    "min of constants": "for j in range(min(R, 20)):\n    acc[j] += x[i]",
    "a while loop": "j = 0\nwhile j < R:\n    acc[j] += x[i]\n    j += 1",
    "counted by an assignment": "j = 0\nwhile j < R:\n    acc[j] += x[i]\n    j = j + 1",
    "a while loop with two conditions": "j = 0\nwhile j < n and j < R:\n    acc[j] += x[i]\n    j += 1",
    "a while loop to min": "j = 0\nwhile j < min(R, n):\n    acc[j] += x[i]\n    j += 1",
    "while True": "j = 0\nwhile True:\n    if j == R:\n        break\n    acc[j] += x[i]\n    j += 1",
    "a difference": "for c in range(i, i + R):\n    acc[c - i] += x[i]",
    "a difference with steps": "for c in range(i, i + 32 * R, 32):\n    acc[(c - i) // 32] += x[i]",
    "a difference of a counter": "c = i\nwhile c < i + R:\n    acc[c - i] += x[i]\n    c += 1",
    "a counter beside the loop": "j = 0\nfor c in range(i, i + R):\n    acc[j] += x[i]\n    j += 1",
    "divmod": "for e in range(2 * R):\n    j, odd = divmod(e, 2)\n    acc[j] += x[i]",
    "a conversion": "for j in range(R):\n    acc[int32(j)] += x[i]",
    "a tuple": "for j in (0, 1, 2):\n    acc[j] += x[i]",
    "an enumerated tuple": "for j, one in enumerate((1, 1)):\n    acc[j] += x[i]",
    "reset in a loop": "for k in range(n):\n    j = 0\n    while j < R:\n        acc[j] += 1\n        j += 1",
    "one of two": "for j in range(R):\n    e = j if n > 3 else R - 1 - j\n    acc[e] += x[i]",
    "zeros in a loop of unknown length": "for j in range(min(R, n)):\n    acc[j] = 0",
    "read in a loop of unknown length": "for j in range(min(R, n)):\n    x[i] += acc[j]",
}
UNKNOWN = {
    "the thread": "acc[i % R] += x[i]",
    "data": "acc[int32(x[i])] += x[i]",
    "an argument": "acc[n % R] += x[i]",
    "the variable of a long loop": "for k in range(n):\n    acc[k % R] += x[i]",
    "a loop over the array": "for one in acc:\n    x[i] += one",
    "an enumerated array": "for j, one in enumerate(acc):\n    x[i] += one",
    "parts of one call": "q, r = divmod(i, 4)\nacc[q - r + R // 2] += x[i]",
    "carried by a long loop": "j = 0\nfor k in range(n):\n    acc[j] += 1\n    j = (j + 1) % R",
    "two starts": "for c in range(i, n):\n    acc[(c - n) % R] += x[i]",
}
COUNTED = {  # unknown if the array is long
    "range(min)": "for j in range(min(R, n)):\n    acc[j] += x[i]",
    "spelled out": "for j in range(min(R, n)):\n    acc[j] = acc[j] + x[i]",
    "a break": "for j in range(n):\n    if j == R:\n        break\n    acc[j] += x[i]",
    "a while loop without end": "j = 0\nwhile j < n:\n    if j < R:\n        acc[j] += x[i]\n    j += 1",
    "behind a guard": "j = 0\nfor k in range(R):\n    if x[k] < n:\n        acc[j] += 1\n        j += 1",
}


def advised(body: str, length: int, tmp_path) -> bool:
    """Whether a kernel with this body is told that its local array leaves the registers."""
    source = (
        "def kernel(x, n):\n    i = cuda.grid(1)\n    acc = cuda.local.array(R, float32)\n"
        f"    for j in range(R):\n        acc[j] = 0\n{textwrap.indent(body, '    ')}\n    x[i] = acc[0]\n"
    )
    file = tmp_path / "kernel.py"
    file.write_text(source)
    space = {"cuda": cuda, "float32": float32, "int32": int32, "R": length}
    exec(compile(source, str(file), "exec"), space)
    report = emulate(cuda.jit(space["kernel"]), 1, 4, np.arange(4 * length, dtype=np.float32) % 4, 6)
    return "dynamic_local_index" in {finding.kind for finding in report.advice}


@pytest.mark.parametrize("name", KNOWN)
def test_an_index_that_the_compiler_knows_gets_no_advice(name, tmp_path):
    assert not advised(KNOWN[name], LENGTH, tmp_path)


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_index_known_only_at_run_time_does(name, tmp_path):
    assert advised(UNKNOWN[name], LENGTH, tmp_path)


@pytest.mark.parametrize("name", COUNTED)
def test_after_a_loop_of_unknown_length_it_depends_on_the_array(name, tmp_path):
    assert advised(COUNTED[name], LENGTH, tmp_path)
    assert not advised(COUNTED[name], 8, tmp_path)
