"""What Nsight Compute prints of each instruction, joined with machine code and the text of the source."""

import pytest

from gemm_course import LADDER
from gemm_course.bench.profile import pages
from gemm_course.bench.profile.join import OtherCode, joined, places
from gemm_course.compiler.disassembly import Instruction
from gemm_course.compiler.sources import sources
from gemm_course.profiles.waits import REASONS
from tests.bench.nsight import (
    ACCESSES,
    BEGIN,
    CODE,
    COLUMNS,
    MEASURED,
    REASON_COLUMNS,
    line,
    printed,
    rows_of,
)

# --- the page ---------------------------------------------------------------------------------------------


def test_the_page_is_read():
    (rows,) = pages.kernels(printed(MEASURED))
    assert [row.opcode for row in rows] == ["LDC", "LDG.E", "FFMA", "EXIT", "BRA", "NOP"]
    assert rows[0].counts == {
        "executed": 1096,
        "threads": 32 * 1096,
        "global_sectors": 0,
        "shared_wavefronts": 0,
    }
    assert rows[1].samples == {"long_sb": 5, "selected": 1}
    assert (rows[1].counts["global_sectors"], rows[2].counts["shared_wavefronts"]) == (64, 7)
    assert [row.is_padding for row in rows] == [False] * 4 + [True] * 2


def test_samples_without_a_column_are_those_of_wgmma():
    (rows,) = pages.kernels(printed(MEASURED))
    assert rows[2].samples == {"math": 6, "gmma": 4}
    with pytest.raises(ValueError, match="FFMA R5, R2, R3, R5 Nsight Compute has more reasons than samples"):
        pages.kernels(printed([line(2, "FFMA R5, R2, R3, R5", samples=5, math=6)]))


def test_a_kernel_too_short_for_a_sample_has_no_column_for_them():
    plain = [name for name in COLUMNS if name != pages.SAMPLES and not name.startswith(pages.STALL)]
    (rows,) = pages.kernels(printed(MEASURED, columns=plain))
    assert not any(row.samples for row in rows) and rows[0].counts["executed"] == 1096


def test_a_kernel_without_shared_memory_has_no_column_for_it():
    (rows,) = pages.kernels(printed(MEASURED, columns=[name for name in COLUMNS if name not in ACCESSES]))
    assert [row.counts["shared_wavefronts"] for row in rows] == [0] * 6


def test_every_kernel_of_a_page_and_no_other_page():
    assert [len(rows) for rows in pages.kernels(printed(MEASURED, MEASURED[:2]))] == [6, 2]
    assert pages.kernels(["==PROF== nothing was launched"]) == []
    with pytest.raises(ValueError, match="not Nsight Compute's page of sources"):
        pages.kernels(['"ID","Kernel Name"', '"0","k"'])


def test_every_reason_of_the_page_is_known():
    named = {
        pages.SPELLINGS.get(name, name) for name in (one.removeprefix("stall_") for one in REASON_COLUMNS)
    }
    assert named | {pages.WITHOUT_COLUMN} == set(REASONS)
    sleeping = ["stall_sleeping" if name == "stall_sleep" else name for name in COLUMNS]
    row = line(0, "NANOSLEEP", sleep=3) | {"stall_sleeping": "3"}
    (rows,) = pages.kernels(printed([row], columns=sleeping))
    assert rows[0].samples == {"sleep": 3}


# --- joined with the machine code ---------------------------------------------------------------------------


def test_what_is_measured_of_the_padding_counts_for_the_last_instruction():
    found = joined(CODE, rows_of(*MEASURED))
    assert found["executed"] == [1096, 8, 8, 8]
    assert found["global_sectors"] == [0, 64, 0, 0]
    assert found["samples"] == {
        "wait": [2, 0, 0, 1],
        "long_sb": [0, 5, 0, 0],
        "selected": [0, 1, 0, 0],
        "math": [0, 0, 6, 0],
        "gmma": [0, 0, 4, 0],
        "drain": [0, 0, 0, 5],
    }
    in_all = sum(int(row["# Samples"]) for row in MEASURED)
    assert sum(map(sum, found["samples"].values())) == in_all == 24


@pytest.mark.parametrize(
    "place, text, what",
    [
        (2, "FADD R5, R2, R3", r"instruction 2 of 4 is 'FADD R5, R2, R3', not 'FFMA R5, R2, R3, R5'"),
        (1, "@!P0 LDG.E.64 R2, desc[UR8][R2.64]", "instruction 1 of 4 is '@!P0 LDG.E.64"),
        (4, "BRA 0x7f8c877a0010", "6 instructions, 4 of them expected"),
        (5, "FFMA R5, R2, R3, R5", "6 instructions, 4 of them expected"),
    ],
)
def test_other_code_is_refused(place, text, what):
    rows = [*MEASURED]
    rows[place] = rows[place] | {"Source": text}
    with pytest.raises(OtherCode, match=what):
        places(CODE, rows_of(*rows))


def test_less_code_is_refused():
    with pytest.raises(OtherCode, match="3 instructions, 4 of them expected"):
        places(CODE, rows_of(*MEASURED[:3]))


def test_functions_may_come_in_another_order():
    called = [
        Instruction(64, "FMUL R4, R4, R5", "mine.py", 9),
        Instruction(80, "RET.REL.NODEC R2 mine", "", 0),
    ]
    there = [
        line(0, "FMUL R4, R4, R5", wait=3),
        line(1, "RET.REL.NODEC R2 0x7f8c877a0000", wait=4),
        *[line(place, "NOP", wait=int(place == 7)) for place in range(2, 8)],
    ]
    after = BEGIN + 128
    kernel = [
        line(row, text["Source"].strip(), begin=after, wait=row) for row, text in enumerate(MEASURED[:4])
    ]
    kernel += [line(4, f"BRA {after + 64:#x}", begin=after, wait=9)]
    rows = rows_of(*there, *kernel)
    assert places([*CODE, *called], rows) == [4, 5, 5, 5, 5, 5, 5, 5, 0, 1, 2, 3, 3]
    assert joined([*CODE, *called], rows)["samples"] == {"wait": [0, 1, 2, 3 + 9, 3, 4 + 1]}
    with pytest.raises(OtherCode):
        places([*CODE, called[0]], rows)


# --- the text of the source ---------------------------------------------------------------------------------

WRITTEN = """\
from numba import cuda

def build(factor):
    outer = 1

    @cuda.jit(
        fastmath=True,
    )
    def kernel(x):
        x[0] = factor

    return kernel

def other(x):
    return x
"""


def instructions_at(file, *lines):
    return [Instruction(16 * place, "NOP", file, number) for place, number in enumerate(lines)]


def test_sources_are_the_innermost_functions_with_their_decorators(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(WRITTEN)
    text = WRITTEN.splitlines()
    found = sources([*instructions_at(str(file), 10, 10), Instruction(64, "NOP", "", 0)])
    assert found == {str(file): {str(number): text[number - 1] for number in range(6, 11)}}
    outside = sources(instructions_at(str(file), 1, 15))
    assert list(outside[str(file)]) == ["1", "14", "15"]


def test_sources_of_a_cell_with_a_magic_command_and_of_no_known_file(tmp_path):
    file = tmp_path / "cell.py"
    file.write_text("%timeit 1\ndef f():\n    pass\n")
    assert sources(instructions_at(str(file), 3, 40)) == {str(file): {"3": "    pass"}}
    assert sources(instructions_at("<ipython-input-1>", 3)) == {"<ipython-input-1>": {}}


def test_sources_of_the_course_are_found_from_the_package_on():
    stage, file = LADDER["block_tiled"], "gemm_course/kernels/a04_block_tiled.py"
    first = stage.kernel().py_func.__code__.co_firstlineno
    found = sources(instructions_at(file, first + 3))[file]
    assert min(map(int, found)) == first
    assert any("cuda.syncthreads()" in text for text in found.values())
