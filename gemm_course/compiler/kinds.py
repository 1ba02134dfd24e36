"""Says what each machine instruction does, in kinds that a newcomer understands.

NVIDIA documents the opcodes by name only ("CUDA Binary Utilities", "Instruction Set Reference"). An opcode
that is not listed here is of the kind "other".
"""

from __future__ import annotations

import functools
from types import MappingProxyType

MULTIPLY_ADD, TENSOR_CORE = "multiply-add", "Tensor Core product"

# Each row has a kind, its meaning, and its opcodes without modifiers. Kinds are shown in this order.
_TABLE = (
    (MULTIPLY_ADD, "a · b + c in floating point, the work that a kernel is for", "FFMA DFMA HFMA2 FFMA32I"),
    (
        TENSOR_CORE,
        "a product of small matrices, which a warp or four warps compute with one instruction",
        "HMMA HGMMA IMMA IGMMA DMMA BMMA BGMMA QMMA QGMMA OMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA",
    ),
    (
        "other arithmetic",
        "floating point without a multiply-add: sums, products, conversions, roots",
        "FADD FMUL FADD2 FMUL2 FADD32I FMUL32I DADD DMUL HADD2 HMUL2 HADD2_32I MUFU FCHK FRND FSWZADD F2F "
        "F2FP F2I F2IP I2F I2FP I2IP",
    ),
    ("global load", "reads global memory; LD, where the compiler does not know which memory it is", "LDG LD"),
    (
        "global store",
        "writes global memory; ST, where the compiler does not know which memory it is",
        "STG ST",
    ),
    (
        "asynchronous copy",
        "asks for a copy between global and shared memory that goes on while the warp does",
        "LDGSTS UBLKCP UBLKRED UBLKPF UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH",
    ),
    ("shared load", "reads shared memory", "LDS LDSM"),
    ("shared store", "writes shared memory", "STS STSM"),
    ("atomic", "reads, changes and writes memory as one step", "ATOM ATOMG ATOMS RED REDG SUATOM SURED"),
    (
        "local memory",
        "reads or writes memory that stands in for registers: spilled values, arrays indexed by variables",
        "LDL STL",
    ),
    (
        "integer arithmetic",
        "addresses, indices, counters, and shifts and masks of bits",
        "IADD IADD3 IADD32I IADD64 VIADD IMAD IMAD32I IMUL IMUL32I ISCADD ISCADD32I LEA LOP LOP3 LOP32I PLOP "
        "SHF SHL SHR IABS FLO POPC BREV BMSK SGXT PRMT IDP IDP4A XMAD VABSDIFF VABSDIFF4 BFE BFI I2I IDE",
    ),
    (
        "compare and select",
        "a comparison, logic of its results, and the choice of one value of two",
        "ISETP ISET ICMP FSETP FSET FCMP DSETP DSET HSETP2 HSET2 PLOP3 PSETP PSET CSETP CSET SEL FSEL FMNMX "
        "FMNMX3 DMNMX IMNMX VIMNMX VIMNMX3 VIADDMNMX HMNMX2 P2R R2P",
    ),
    (
        "branch",
        "a jump, a call, the end, and where a warp's threads part and meet again",
        "BRA BRX BRXU JMP JMX JMXU CALL CAL RET EXIT KILL BPT RTT BREAK BRK BSSY BSYNC SSY SYNC BMOV "
        "WARPSYNC YIELD RPCMOV LEPC",
    ),
    (
        "barrier and fence",
        "waits for other threads, for copies or for Tensor Cores, and orders accesses to memory",
        "BAR B2R MEMBAR FENCE ERRBAR DEPBAR LDGDEPBAR ARRIVES SYNCS WARPGROUP WARPGROUPSET CCTL CCTLL CCTLT "
        "NANOSLEEP CGAERRBAR CGABAR_ARV CGABAR_WAIT ACQBULK ACQSHMINIT",
    ),
    (
        "move",
        "puts a constant, an argument or a thread's number into a register, or copies a register",
        "MOV MOV32I MOVM CS2R S2R S2UR R2UR UR2UP P2UR LDC LDCU",
    ),
    ("other", "all else: values passed between the lanes of a warp, votes, instructions that do nothing", ""),
)

KINDS = MappingProxyType({kind: meaning for kind, meaning, _ in _TABLE})
OTHER = _TABLE[-1][0]

_KIND_OF = {opcode: kind for kind, _, opcodes in _TABLE for opcode in opcodes.split()}
_MOVES = ("IMAD.MOV", "UIMAD.MOV")


def kind_of(opcode: str, operands: str = "") -> str:
    """Return the kind of an instruction, a key of KINDS: `kind_of("FFMA")`, `kind_of("LDG.E.128")`.

    ``operands`` are as disassembled, "R1, R2, R3, R1". They distinguish a multiply-add from an instruction
    that only moves a constant, 0 · 0 + c.
    """
    if opcode.startswith("HFMA2") and operands.replace(" ", "").split(",")[1:3] == ["-RZ", "RZ"]:
        return "move"
    return _kind_of(opcode)


@functools.cache
def _kind_of(opcode: str) -> str:
    if opcode.startswith(_MOVES):
        return "move"
    root = opcode.split(".")[0]
    # An instruction that runs once for all lanes of a warp has the same name with a U in front.
    return _KIND_OF.get(root) or _KIND_OF.get(root.removeprefix("U"), OTHER)
