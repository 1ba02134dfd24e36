"""A profile of a few instructions, made up: a kernel of a loop, a function inlined into it, and no line."""

from gemm_course.compiler import Compiled
from gemm_course.compiler.disassembly import NOWHERE, SIZE, Instruction
from gemm_course.profiles import Profile
from gemm_course.records.columns import PROFILE

KERNEL, HELPER = "gemm_course/kernels/small.py", "gemm_course/kernels/parts/help.py"
SOURCES = {
    KERNEL: {
        10: "    def small(A, C):",
        11: "        acc = float32(0)",
        12: "        for p in range(8 < 9):",
        13: "            acc += A[p] * A[p]",
        14: "        help(C, acc)",
    },
    HELPER: {3: "@cuda.jit(device=True)", 4: "def help(C, value):", 5: "    C[0] = value"},
}
_CODE = (
    *[((KERNEL, 11), "MOV R1, RZ", 10, 1)],
    *[((KERNEL, 13), "LDG.E R2, desc[UR4][R4.64]", 80, 50)],
    *[((KERNEL, 13), f"FFMA R1, R{number}, R2, R1", 80, 4) for number in range(6)],
    *[((KERNEL, 12), "ISETP.GE.AND P0, PT, R3, 0x8, PT", 80, 5)],
    *[((KERNEL, 12), "@!P0 BRA 0x10", 80, 10)],
    *[(NOWHERE, "IMAD.HI.U32 R7, R7, R8, RZ", 10, 0)],
    *[((HELPER, 5), "STG.E desc[UR4][R6.64], R1", 10, 10)],
    *[((HELPER, 5), "EXIT", 10, 0)],
)
EXECUTED, SAMPLES = (sum(row[column] for row in _CODE) for column in (2, 3))


def small_profile() -> Profile:
    """10 warps; 100 samples, 74 of them at line 13, which is waited for in global memory most of the time."""
    rows = [Instruction(SIZE * i, text, *place) for i, (place, text, *_) in enumerate(_CODE)]
    code = Compiled("small", "BM=8", (9, 0), 16, 0, 0, 0, 0, None, "nvJitLink 13.0", rows)
    executed = [row[2] for row in _CODE]
    loads = [one.opcode.startswith("LDG") for one in rows]
    content = {
        "executed": executed,
        "threads": [32 * count for count in executed],
        "global_sectors": [0] * len(rows),
        "shared_wavefronts": [0] * len(rows),
        "samples": {
            "long_sb": [row[3] if load else 0 for row, load in zip(_CODE, loads, strict=True)],
            "selected": [0 if load else row[3] for row, load in zip(_CODE, loads, strict=True)],
        },
        "sources": {
            file: {str(line): text for line, text in lines.items()} for file, lines in SOURCES.items()
        },
    }
    measured = dict.fromkeys(PROFILE.columns) | {
        **{"stage": "small", "tiles": "BM=8", "m": 8, "n": 8, "k": 8, "samples": SAMPLES},
        **{"gpu": "NVIDIA H200", "driver": "580.1", "date": "2026-11-23", "ncu": "2025.3"},
    }
    return Profile("small", "BM=8", measured, code, content)
