"""What kind an instruction is of."""

import pytest

from gemm_course.compiler import KINDS, kind_of
from gemm_course.compiler.result import PLURALS
from gemm_course.records.columns import MACHINE_INSTRUCTIONS


@pytest.mark.parametrize(
    ("opcode", "operands", "kind"),
    [
        ("FFMA", "R1, R2, R3, R1", "multiply-add"),
        ("HFMA2.MMA", "R1, R2, R3, R1", "multiply-add"),
        ("HFMA2.MMA", "R21, -RZ, RZ, 0, 0", "move"),
        ("HMMA.16816.F32", "R4, R132, R144, R4", "Tensor Core product"),
        ("HGMMA.64x256x16.F32", "R24, gdesc[UR8], R24", "Tensor Core product"),
        ("FMUL", "R0, R1, R2", "other arithmetic"),
        ("F2FP.F16.F32.PACK_AB", "R0, R1, R2", "other arithmetic"),
        ("LDG.E.128.CONSTANT", "R4, [R2.64]", "global load"),
        ("STG.E", "[R2.64], R4", "global store"),
        ("LDGSTS.E.BYPASS.128", "[R1], [R2.64]", "asynchronous copy"),
        ("UTMALDG.2D", "[UR8], [UR4]", "asynchronous copy"),
        ("LDS.128", "R4, [R2]", "shared load"),
        ("LDSM.16.M88.4", "R4, [R2]", "shared load"),
        ("STS", "[R2], R4", "shared store"),
        ("RED.E.ADD", "[R2.64], R4", "atomic"),
        ("STL", "[R1], R4", "local memory"),
        ("LDL.LU", "R4, [R1]", "local memory"),
        ("IMAD.MOV.U32", "R1, RZ, RZ, R2", "move"),
        ("IMAD.WIDE.U32", "R1, R2, R3, R4", "integer arithmetic"),
        ("UIADD3", "UR6, UR8, 0x50, URZ", "integer arithmetic"),
        ("ISETP.GE.AND", "P0, PT, R0, R1, PT", "compare and select"),
        ("USEL", "UR6, UR8, UR4, UP0", "compare and select"),
        ("BRA", "0x10", "branch"),
        ("EXIT", "", "branch"),
        ("BAR.SYNC.DEFER_BLOCKING", "0x0", "barrier and fence"),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT", "P3, [R204+UR6], R205", "barrier and fence"),
        ("WARPGROUP.DEPBAR.LE", "gsb0, 0x1", "barrier and fence"),
        ("ULDC.64", "UR4, c[0x0][0x220]", "move"),
        ("CS2R", "R100, SRZ", "move"),
        ("SHFL.IDX", "PT, R8, R8, RZ, 0x1f", "other"),
        ("NEVER.HEARD.OF", "R1", "other"),
    ],
)
def test_instructions_have_the_kind_that_they_do(opcode, operands, kind):
    assert kind_of(opcode, operands) == kind


def test_each_kind_is_explained_once():
    assert len(set(KINDS.values())) == len(KINDS)
    assert all(meaning and not meaning.endswith(".") for meaning in KINDS.values())


def test_summaries_and_records_have_the_same_kinds():
    assert set(PLURALS) == set(KINDS)
    assert MACHINE_INSTRUCTIONS == tuple(kind.lower().replace(" ", "_").replace("-", "_") for kind in KINDS)
