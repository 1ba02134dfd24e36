"""The recorded profiles agree with themselves, with the counters of the same launch and with the emulator."""

import numpy as np
import pytest

from gemm_course import emulate
from gemm_course.bench.profile.sources import stage_named
from gemm_course.compiler.disassembly import SIZE
from gemm_course.compiler.kinds import KINDS
from gemm_course.device.buffers import leading_dimension
from gemm_course.profiles import recorded
from gemm_course.profiles.store import FOLDER, KEY, SUFFIX
from gemm_course.records import DATA, gpus, parse_tiles
from gemm_course.records.columns import PROFILE
from lockstep import DataDependent

TABLES = {gpu: DATA / gpu / FOLDER / "kernels.csv" for gpu in gpus()}
ROWS = [(gpu, row) for gpu, path in TABLES.items() for row in PROFILE.rows(path)]
FP32 = [(gpu, row) for gpu, row in ROWS if stage_named(row["stage"]).dtype == "float32"]

# The counter of the requests that an instruction makes, one per warp with at least one active lane.
REQUESTS = {
    "LDG": "global_load_requests",
    "STG": "global_store_requests",
    "LDS": "shared_load_requests",
    "STS": "shared_store_requests",
    "LDSM": "matrix_load_requests",
}
FLOATS = {"FFMA": "float32_fma", "FADD": "float32_add", "FMUL": "float32_mul"}
SECTORS = {
    "LDG": "global_load_sectors",
    "STG": "global_store_sectors",
    "RED": "global_reduction_sectors",
    "ATOMG": "global_atomic_sectors",
}


def named(case) -> str:
    gpu, row = case
    return f"{gpu} {row['file'].removesuffix(SUFFIX)}"


every_profile = [pytest.mark.many(one_in=4, with_all=2), pytest.mark.parametrize("case", ROWS, ids=named)]


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
    assert list(found.executed) == list(KINDS)
    assert sum(found.executed.values()) == frame["executed"].sum()
    assert 0 <= frame["executed"].sum() - row["warp_instructions"] <= asked_again(found)
    assert (frame["threads"] <= 32 * frame["executed"]).all()
    assert frame["shared_wavefronts"].sum() == row["shared_wavefronts"]


def asked_again(found) -> int:
    """How often instructions were executed that only ask an mbarrier again, and then jump back.

    Warps ask as long as the copy takes. In the pass that counts each instruction they ask more often than in
    the one that counts all together. 0 for a kernel that waits for no mbarrier.
    """
    asking = [loop for loop in found.code.loops if any("TRYWAIT" in row.opcode for row in loop.rows)]
    innermost = [one for one in asking if not any(other.addresses < one.addresses for other in asking)]
    counted = found.instructions.set_index("address")["executed"]
    return sum(int(counted[[*sorted(one.addresses), max(one.addresses) + SIZE]].sum()) for one in innermost)


@pytest.mark.full(reason="reads the code of all profiles")
def test_what_polls_is_told_from_what_does_not():
    found = [profile_of(case) for case in ROWS]
    polling = {one.name for one in found if asked_again(one)}
    assert polling <= {one.name for one in found if one.executed["Tensor Core product"]}
    assert {one.name for one in found} - polling >= {"naive_uncoalesced", "vectorized", "stream_k", "wmma"}


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
        if opcode == "LDG":  # the counter of loads has asynchronous copies in it
            requests -= found.measured["async_copy_requests"]
        assert requests <= executed and threads <= 32 * requests, opcode
        if threads == 32 * executed:
            assert requests == executed, opcode


@on_every_profile
def test_asynchronous_copies_are_the_requests_that_were_counted(case):
    """One that copies nothing, but fills with zeros beyond the end of k, requests nothing."""
    found = profile_of(case)
    executed, requests = (
        of_opcode(found.instructions, "LDGSTS", "executed"),
        found.measured["async_copy_requests"],
    )
    assert 0.95 * executed <= requests <= executed


@on_every_profile
def test_sectors_are_those_that_were_counted(case):
    """Some copies that only fill with zeros are counted differently: about one sector in 10,000."""
    found = profile_of(case)
    for opcode, column in SECTORS.items():
        sectors = of_opcode(found.instructions, opcode, "global_sectors")
        assert sectors == found.measured[column], opcode
    copied = of_opcode(found.instructions, "LDGSTS", "global_sectors")
    assert copied == pytest.approx(found.measured["async_copy_sectors"], rel=2e-4)
    assert found.instructions["global_sectors"].sum() == copied + sum(
        found.measured[column] for column in SECTORS.values()
    )


@on_every_profile
def test_every_line_with_instructions_can_be_shown(case):
    found = profile_of(case)
    for one in found.code.rows:
        assert not one.file or one.line in found.sources[one.file]


@pytest.mark.many(one_in=8, with_all=6)
@pytest.mark.parametrize("case", FP32, ids=named)
def test_lines_multiply_and_add_as_often_as_in_the_emulator(case):
    _, row = case
    stage, tiles = stage_named(row["stage"]), parse_tiles(row["tiles"])
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
