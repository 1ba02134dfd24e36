"""The recorded profiles agree with themselves, with the counters of the same launch and with the emulator."""

import numpy as np
import pytest

from gemm_course import emulate
from gemm_course.bench.counters.sources import stage_named
from gemm_course.compiler.kinds import KINDS
from gemm_course.device.buffers import leading_dimension
from gemm_course.emulator import DataDependent
from gemm_course.profiles import recorded
from gemm_course.profiles.store import FOLDER, KEY, SUFFIX
from gemm_course.records import DATA, gpus, parse_tiles
from gemm_course.records.columns import PROFILE

TABLES = {gpu: DATA / gpu / FOLDER / "kernels.csv" for gpu in gpus()}
ROWS = [(gpu, row) for gpu, path in TABLES.items() for row in PROFILE.rows(path)]
pytestmark = pytest.mark.skipif(not ROWS, reason="no profile was recorded: gemm-course profile, on a GPU")

# The counter of the requests that an instruction makes, one per warp with at least one active lane.
REQUESTS = {
    "LDG": "global_load_requests",
    "STG": "global_store_requests",
    "LDS": "shared_load_requests",
    "STS": "shared_store_requests",
    "LDSM": "matrix_load_requests",
    "LDGSTS": "async_copy_requests",
}
FLOATS = {"FFMA": "float32_fma", "FADD": "float32_add", "FMUL": "float32_mul"}
OTHER_GLOBAL = ("async_copy_requests", "global_reduction_requests", "global_atomic_requests")


def named(case) -> str:
    gpu, row = case
    return f"{gpu} {row['file'].removesuffix(SUFFIX)}"


every_profile = [pytest.mark.many(one_in=4), pytest.mark.parametrize("case", ROWS, ids=named)]


def on_every_profile(test):
    for mark in reversed(every_profile):
        test = mark(test)
    return test


def profile_of(case):
    gpu, row = case
    return recorded(row["stage"], parse_tiles(row["tiles"]), (row["m"], row["n"], row["k"]), gpu)


def of_opcode(frame, opcode, column) -> int:
    """The sum over all instructions with this opcode, whatever its modifiers."""
    return int(frame.loc[frame["opcode"].str.split(".").str[0] == opcode, column].sum())


def test_every_profile_has_its_file_and_every_file_its_row():
    for gpu, path in TABLES.items():
        rows = PROFILE.rows(path)
        assert len({tuple(row[name] for name in KEY) for row in rows}) == len(rows)
        assert sorted(row["file"] for row in rows) == sorted(
            file.name for file in (DATA / gpu / FOLDER).glob(f"*{SUFFIX}")
        )


@on_every_profile
def test_instructions_have_all_samples_and_all_that_was_executed(case):
    found = profile_of(case)
    row, frame = found.measured, found.instructions
    assert frame["samples"].sum() == found.by_line["samples"].sum() == row["samples"] > 0
    assert frame["executed"].sum() == row["warp_instructions"]
    assert list(found.executed) == list(KINDS)
    assert sum(found.executed.values()) == row["warp_instructions"]
    assert (frame["threads"] <= 32 * frame["executed"]).all()
    assert frame["shared_wavefronts"].sum() == row["shared_wavefronts"]


@on_every_profile
def test_threads_multiply_and_add_as_often_as_was_counted(case):
    found = profile_of(case)
    for opcode, column in FLOATS.items():
        assert of_opcode(found.instructions, opcode, "threads") == found.measured[column], opcode


@on_every_profile
def test_accesses_are_the_requests_that_were_counted(case):
    """An instruction whose predicate is off for the whole warp is executed, but requests nothing."""
    found = profile_of(case)
    for opcode, column in REQUESTS.items():
        executed, threads = (of_opcode(found.instructions, opcode, name) for name in ("executed", "threads"))
        requests = found.measured[column]
        assert requests <= executed and threads <= 32 * requests, opcode
        if threads == 32 * executed:
            assert requests == executed, opcode


@on_every_profile
def test_sectors_are_those_that_were_counted(case):
    found = profile_of(case)
    row = found.measured
    if any(row[name] for name in OTHER_GLOBAL):
        pytest.skip("it also copies asynchronously or has atomics, whose sectors are counted by other units")
    sectors = row["global_load_sectors"] + row["global_store_sectors"]
    assert found.instructions["global_sectors"].sum() == sectors


@on_every_profile
def test_every_line_with_instructions_can_be_shown(case):
    found = profile_of(case)
    for one in found.code.rows:
        assert not one.file or one.line in found.sources[one.file]


@on_every_profile
def test_lines_multiply_and_add_as_often_as_in_the_emulator(case):
    _, row = case
    stage, tiles = stage_named(row["stage"]), parse_tiles(row["tiles"])
    if stage.dtype != "float32":
        pytest.skip("its products are those of Tensor Cores")
    frame = profile_of(case).instructions
    by_line = frame[frame["opcode"].str.startswith("FFMA")].groupby("line")["threads"].sum()
    try:
        emulated = multiply_adds(stage, tiles, row["m"], row["n"], row["k"])
    except DataDependent:  # Stream-K: blocks wait for each other, so what it counts needs all of it to run
        assert by_line.max() == row["m"] * row["n"] * row["k"]
        return
    assert emulated.max() >= row["m"] * row["n"] * row["k"]
    for line in {*by_line.index, *emulated.index}:
        assert by_line.get(line, 0) == emulated.get(line, 0), f"line {line}"


def multiply_adds(stage, tiles, m, n, k):
    """How many the emulator counts on each line, without running it."""

    def matrix(rows, columns):
        shape = rows, leading_dimension(columns, stage.alignment)
        return np.broadcast_to(np.float32(0), shape)

    standard = (m, n, k, np.float32(1), matrix(m, k), matrix(k, n), np.float32(0), matrix(m, n))
    one = stage.alone(*standard, tiles=tiles)
    report = emulate(
        one.kernel, one.grid, one.block, *one.arguments, shared_bytes=one.shared_bytes, counts_only=True
    )
    return report.arithmetic.query("op == 'fma'").groupby("line")["lanes"].sum()
