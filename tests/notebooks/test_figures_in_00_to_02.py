"""Figures in the text of notebook 00, held to the records and tables that they come from."""

import ast
import linecache
import re

import nbformat
import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import emulate, records, road
from gemm_course.kernels import LADDER
from gemm_course.model.gpus import GPUS
from gemm_course.widgets import _quiz
from tests.notebooks.builder import builder, source_of

H200 = GPUS["H200"]


def text_of(topic: str) -> str:
    """A notebook's text and code in one line, without the marks of comments."""
    return " ".join(re.sub(r"^# *", "", line) for line in source_of(topic).splitlines())


def counted(stage: str, size: int = 1024):
    rows = records.counters("ladder").set_index("case")
    return rows.loc[f"{stage} {size}x{size}x{size}"]


def test_every_stage_of_the_documents_is_in_the_table_of_00_beside_its_document():
    rows = re.findall(r"\| (\d\d \| `[^|]*\|[^|]*\|[^|]*) \|", re.sub(" +", " ", text_of("welcome")))
    assert {row[:2] for row in rows} <= {notebook.number for notebook in road.ROAD} and len(rows) == 8
    for stage in LADDER:
        for part in filter(None, re.split(r"[:,;] *", stage.document)):
            if re.fullmatch(r"\d{3}|v\d\d", part):
                assert any(f"`{stage.name}`" in row and part in row for row in rows), (stage.name, part)


def test_the_times_of_a_product_in_00():
    """What cuBLAS takes is on record. What Python and NumPy take, a reader's machine says."""
    rows = records.ladder().query("dtype == 'fp32' and m == n == k == 4096")
    tflops = rows["cublas_tflops"].median()
    milliseconds = 1000 * 2 * 4096**3 / (tflops * 1e12)
    assert f"In the {milliseconds:.1f} milliseconds of cuBLAS" in text_of("welcome")
    assert f"this makes {tflops:.0f} TFLOPS" in text_of("welcome")
    asked = str(_quiz.questions("welcome")["gpu"])
    assert f"Measured: {milliseconds:.1f} milliseconds with cuBLAS" in asked
    assert f"'{milliseconds:.0f} milliseconds', 'right': True" in asked
    for answer, times in ((5 * 60, "a hundred thousand"), (5, "two thousand"), (0.1, "forty")):
        said = {"a hundred thousand": 1e5, "two thousand": 2000, "forty": 40}[times]
        assert times in asked and answer / milliseconds * 1000 == pytest.approx(said, rel=0.15)


def test_what_00_says_of_the_machine():
    text = text_of("welcome")
    assert f"an H200 has {H200.multiprocessors}." in text and "An SM has four **schedulers**" in text
    assert H200.limits.partitions == 4


def test_the_block_of_the_question_about_rows():
    rows = [{linear // 40 for linear in range(first, min(first + 32, 80))} for first in range(0, 80, 32)]
    assert rows == [{0}, {0, 1}, {1}]
    text = text_of("welcome")
    assert (
        "80 threads are three warps. The second has 8 threads of the first row and 24 of the second" in text
    )
    assert "16 lanes of the third have no thread" in text and 96 - 80 == 16


def test_the_warps_of_blocks_of_20_by_6():
    warps = [{linear // 20 for linear in range(first, min(first + 32, 120))} for first in range(0, 120, 32)]
    assert len(warps) == 4 and all({row % 2 for row in warp} == {0, 1} for warp in warps)
    assert warps[:2] == [{0, 1}, {1, 2, 3}]


def test_what_a_learner_counts_in_00():
    """The kernels are those of the solutions, and a learner sees twice as many requests first."""
    cells = {each.id: each.source for each in nbformat.read(builder.target("welcome", "solutions"), 4).cells}
    split, every_second = cells["split-solution"], cells["every-second-solution"]
    known = {"np": np, "cuda": cuda, "float32": float32, "emulate": emulate, "out": np.zeros(120, np.float32)}
    assert "Four requests could do it. Run it: there are eight." in text_of("welcome")
    assert "with half as many requests" in text_of("welcome")
    mixed = split.replace("i // 32 % 2 == 0", "i % 2 == 0")
    assert mixed != split
    assert [int(_shown(cell, known)["requests"].sum()) for cell in (mixed, split)] == [8, 4]
    assert [int(_shown(cell, known)["lanes"].sum()) for cell in (mixed, split)] == [128, 128]
    for cell, sectors in ((every_second.replace("2 * i", "i"), 15), (every_second, 30)):
        loads = _shown(cell, known).query("op == 'load'")
        assert (int(loads["requests"].sum()), int(loads["sectors"].sum())) == (6, sectors)


def _shown(source: str, known: dict):
    """Run a cell, and return the value of its last line."""
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    *before, last = ast.parse(source).body
    space = dict(known)
    exec(compile(ast.Module(before, []), name, "exec"), space)
    return eval(compile(ast.Expression(last.value), name, "eval"), space)
