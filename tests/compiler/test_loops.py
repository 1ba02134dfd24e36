"""Loops are found by the jumps that close them."""

from gemm_course.compiler.disassembly import Instruction
from gemm_course.compiler.loops import loops
from gemm_course.compiler.result import Compiled


def code(*texts: str) -> list[Instruction]:
    """Instructions; "BRA >3" jumps to the one with that index."""
    rows = []
    for place, text in enumerate(texts):
        head, arrow, index = text.partition(">")
        rows.append(Instruction(16 * place, f"{head}{16 * int(index):#x}" if arrow else text, "", 0))
    return rows


def found(*texts: str) -> list[list[int]]:
    """The loops as indices of instructions."""
    return [sorted(address // 16 for address in loop) for loop in loops(code(*texts))]


def counted(*texts: str) -> Compiled:
    return Compiled("kernel", "", (9, 0), 32, 0, 0, 0, 0, None, "", code(*texts))


FMA = "FFMA R1, R2, R3, R1"


def test_a_straight_kernel_has_none():
    assert found("MOV R1, R2", "@P0 BRA >3", FMA, "EXIT") == []
    assert counted(FMA, "EXIT").loop is None


def test_a_loop_goes_from_its_head_to_the_jump_back():
    assert found("MOV R1, R2", FMA, "@P0 BRA >1", "EXIT") == [[1, 2]]


def test_a_loop_with_a_test_at_its_head():
    assert found("MOV R1, R2", "@P0 BRA >4", FMA, "BRA >1", "EXIT") == [[1, 2, 3]]


def test_loops_nest():
    nested = found("MOV R1, R2", "MOV R3, R4", FMA, "@P0 BRA >2", "MOV R5, R6", "@P1 BRA >1", "EXIT")
    assert nested == [[1, 2, 3, 4, 5], [2, 3]]


def test_two_jumps_to_one_head_are_one_loop():
    assert found("@P2 BRA >2", "MOV R1, R2", FMA, "@P0 BRA >2", "MOV R3, R4", "@P1 BRA >2", "EXIT") == [
        [2, 3, 4, 5]
    ]


def test_what_is_done_rarely_lies_behind_the_end_and_belongs_to_the_loop_all_the_same():
    #                 0           1    2            3            4       5 elsewhere   6
    assert found("MOV R1, R2", FMA, "@P0 BRA >5", "@P1 BRA >1", "EXIT", "MOV R3, R4", "BRA >3") == [
        [1, 2, 3, 5, 6]
    ]


def test_what_has_two_ways_in_is_no_loop():
    assert found("@P0 BRA >3", "MOV R1, R2", FMA, "MOV R3, R4", "@P1 BRA >2", "EXIT") == []


def test_a_conditional_jump_without_predicate_goes_on_as_well():
    assert found("MOV R1, R2", FMA, "BRA.U UP0, >1", "EXIT") == [[1, 2]]


def test_code_that_nothing_leads_to_has_no_loops():
    assert found("EXIT", FMA, "BRA >1") == []


def test_the_loop_that_counts_has_most_of_the_work_outside_of_inner_loops():
    outer = ["MOV R1, R2", FMA, FMA, "@P0 BRA >2", FMA, "@P1 BRA >1", "EXIT"]
    assert counted(*outer).loop.by_kind["multiply-add"] == 3, "two of its own, one in the inner loop"
    inner = ["MOV R1, R2", "MOV R5, R6", FMA, FMA, "@P0 BRA >2", FMA, "@P1 BRA >1", "EXIT"]
    loop = counted(*inner).loop
    assert [row.address // 16 for row in loop.rows] == [2, 3, 4]
    assert repr(loop) == "2 of 3 instructions are multiply-adds: 67%"


def test_tensor_core_products_count_before_multiply_adds():
    products = counted("HMMA.16816.F32 R4, R8, R12, R4", "@P0 BRA >0", FMA, FMA, "@P1 BRA >2", "EXIT")
    assert products.loop.work == "Tensor Core product" and len(products.loop) == 2
