"""nvdisasm's text is read: labels, lines, inlined functions, NVIDIA's own functions, padding."""

from gemm_course.compiler.disassembly import instructions

TEXT = """
\t.target\tsm_90a
//--------------------- .text._Z3kernelB2v1 --------------------------
        .type           _Z3kernelB2v1,@function
_Z3kernelB2v1:
.text._Z3kernelB2v1:
\t//## File "/course/kernel.py", line 7
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA `(.L_x_1) ;
.L_x_0:
\t//## File "/course/tiles.py", line 38 inlined at "/course/kernel.py", line 9
\t//## File "/course/kernel.py", line 9
        /*0020*/                   FFMA R2, R3, R4, R2 ;
\t//## File "/lib/numba/builtins.py", line 5 inlined at "/course/kernel.py", line 10
\t//## File "/course/kernel.py", line 10
        /*0030*/                   IMNMX R5, R6, R7, !PT ;
.L_x_2:
\t//## File "/lib/numba/builtins.py", line 6
        /*0040*/                   MOV R2, 32@lo((_Z3kernelB2v1 + .L_x_0@srel)) ;
        /*0050*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64) ;
.L_x_1:
\t//## File "/course/kernel.py", line 11
        /*0060*/                   EXIT ;
        .type           $__internal_0_$__cuda_sm20_div_s64,@function
$__internal_0_$__cuda_sm20_div_s64:
        /*0070*/                   RET.REL.NODEC R2 `(_Z3kernelB2v1) ;
.L_x_3:
        /*0080*/                   BRA `(.L_x_3);
        /*0090*/                   NOP;
        /*00a0*/                   NOP;
.L_x_4:
"""
FILES = {"/course/kernel.py": "kernel.py", "/course/tiles.py": "tiles.py"}
ROWS = instructions(TEXT, "_Z3kernelB2v1", "kernel", FILES)


def test_instructions_have_addresses_texts_and_parts():
    assert [row.address for row in ROWS] == list(range(0, 0x80, 16))
    assert ROWS[1].predicate == "@!P0" and ROWS[1].opcode == "BRA"
    assert ROWS[2].text == "FFMA R2, R3, R4, R2" and ROWS[2].operands == "R2, R3, R4, R2"
    assert ROWS[6].opcode == "EXIT" and ROWS[6].operands == ""


def test_labels_become_addresses_and_mangled_names_the_kernels():
    assert ROWS[1].text == "@!P0 BRA 0x60"
    assert ROWS[5].text == "CALL.REL.NOINC 0x70"
    assert ROWS[7].text == "RET.REL.NODEC R2 kernel"


def test_lines_are_those_of_the_innermost_function_of_ones_own():
    places = [(row.file, row.line) for row in ROWS]
    assert places[:4] == [("kernel.py", 7), ("kernel.py", 7), ("tiles.py", 38), ("kernel.py", 10)]
    assert places[4:6] == [("", 0)] * 2, "nobody's own file"
    assert places[6] == ("kernel.py", 11)
    assert places[7] == ("", 0), "a function of NVIDIA's"


def test_a_function_with_a_section_of_its_own_follows_the_kernel():
    own = """
\t.section\t.text.divide,"ax",@progbits
        .type           divide,@function
divide:
        /*0000*/                   MUFU.RCP R1, R2 ;
        /*0010*/                   RET.REL.NODEC R4 `(divide) ;
        /*0020*/                   NOP;
"""
    both = instructions(
        own + '\t.section\t.text._Z3kernelB2v1,"ax"\n' + TEXT, "_Z3kernelB2v1", "kernel", FILES
    )
    assert both[: len(ROWS)] == ROWS
    rest = [(row.address, row.opcode) for row in both[len(ROWS) :]]
    assert rest == [(len(ROWS) * 16, "MUFU.RCP"), (len(ROWS) * 16 + 16, "RET.REL.NODEC")]


def test_padding_is_left_out():
    assert ROWS[-1].opcode == "RET.REL.NODEC"
