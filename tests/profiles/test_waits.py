"""What Nsight Compute's reasons mean at an instruction."""

import pytest

from gemm_course.compiler.disassembly import SIZE, Instruction
from gemm_course.profiles.waits import REASONS, WAITS, wait_of


def code(*texts):
    return [Instruction(SIZE * place, text, "kernel.py", 1) for place, text in enumerate(texts)]


TRY = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR11], R3"


@pytest.mark.parametrize(
    ("reason", "texts", "means"),
    [
        ("selected", ["FFMA R1, R2, R3, R1"], "issuing"),
        ("not_selected", ["FFMA R1, R2, R3, R1"], "another warp's turn"),
        ("long_sb", ["LDG.E R1, [R2.64]", "FFMA R1, R2, R3, R1"], "global memory"),
        ("long_sb", ["LDGDEPBAR", "DEPBAR.LE SB0, 0x0", "BAR.SYNC.DEFER_BLOCKING 0x0"], "copies"),
        ("long_sb", ["DEPBAR.LE SB0, 0x0", "NOP", "STS [R1], R2"], "global memory"),
        ("long_sb", [TRY, "IADD3 R4, R4, 0x1, RZ", "@!P0 BRA 0x40"], "copies"),
        ("long_sb", [TRY, "ISETP.GE.AND P0, PT, R1, R2, PT", "@!P0 BRA 0x40"], "global memory"),
        ("long_sb", [TRY, "@!P1 BRA 0x40"], "global memory"),
        ("short_sb", ["LDS R1, [R2]", "FFMA R1, R2, R3, R1"], "shared memory"),
        ("barrier", ["BAR.SYNC.DEFER_BLOCKING 0x0", "LDS R1, [R2]"], "barrier"),
        ("barrier", ["WARPGROUP.DEPBAR.LE gsb0, 0x1"], "Tensor Cores"),
        ("gmma", ["HGMMA.64x256x16.F32 R24, gdesc[UR12], R24"], "Tensor Cores"),
        ("wait", ["WARPGROUP.ARRIVE"], "Tensor Cores"),
        ("wait", ["IADD3 R4, R4, 0x1, RZ"], "fixed delay"),
        ("drain", ["EXIT"], "other"),
        ("a new reason", ["EXIT"], "other"),
    ],
)
def test_a_reason_is_told_by_the_instruction_that_waits(reason, texts, means):
    instructions = code(*texts)
    assert wait_of(reason, instructions, len(instructions) - 1) == means


def test_every_reason_has_a_wait_and_every_wait_a_reason():
    found = {wait_of(reason, code("NOP", "NOP"), 1) for reason in REASONS}
    assert found <= set(WAITS)
    assert found | {"copies", "Tensor Cores"} == set(WAITS)
