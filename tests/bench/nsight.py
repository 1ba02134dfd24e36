"""Pages as Nsight Compute prints them, made up, and the machine code that they belong to."""

import csv
import io

from gemm_course.bench.profile import pages
from gemm_course.compiler.disassembly import Instruction

# As ncu 2025.3.1 heads it with --csv --page source, without the columns that repeat others.
REASON_COLUMNS = (
    "stall_barrier,stall_branch_resolving,stall_dispatch,stall_drain,stall_imc,stall_lg,stall_long_sb,"
    "stall_math,stall_membar,stall_mio,stall_misc,stall_no_inst,stall_not_selected,stall_selected,"
    "stall_short_sb,stall_sleep,stall_tex,stall_wait"
).split(",")
ACCESSES = ["L2 Theoretical Sectors Global", "L1 Wavefronts Shared"]
COLUMNS = [
    *(
        "Address",
        "Source",
        "# Samples",
        "Instructions Executed",
        "Predicated-On Thread Instructions Executed",
    ),
    *ACCESSES,
    *REASON_COLUMNS,
    *(f"{name} (Not Issued)" for name in REASON_COLUMNS),
]
BEGIN = 0x7F8C877A0000
CODE = [
    Instruction(16 * place, text, "mine.py", 3 + place)
    for place, text in enumerate(
        ("LDC R1, c[0x0][0x28]", "@!P0 LDG.E R2, desc[UR8][R2.64]", "FFMA R5, R2, R3, R5", "EXIT")
    )
]


def line(place, text, samples=0, begin=BEGIN, executed=8, sectors="0", wavefronts="0", **reasons):
    """A row of the page, as a dictionary."""
    row = dict.fromkeys(COLUMNS, "0") | {f"stall_{name}": str(count) for name, count in reasons.items()}
    return row | {
        "Address": f"{begin + 16 * place:#x}",
        "Source": f"      {text}",
        "# Samples": str(samples or sum(reasons.values())),
        "Instructions Executed": f"{executed:,}",
        "Predicated-On Thread Instructions Executed": f"{32 * executed}",
        "L2 Theoretical Sectors Global": sectors,
        "L1 Wavefronts Shared": wavefronts,
    }


def printed(*kernels, columns=COLUMNS):
    """The page as it is printed, with messages of Nsight Compute's around it."""
    text = io.StringIO()
    write = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow
    for rows in kernels:
        write(["Kernel Name", "mine[abi:v1](Array<float, (int)1, C, mutable, aligned>)", ""])
        write(columns)
        for row in rows:
            write([row[name] for name in columns])
    return ["==PROF== Connected to process 595", *text.getvalue().splitlines(), "==WARNING== no"]


MEASURED = [
    line(0, "LDC R1, c[0x0][0x28]", wait=2, executed=1096),
    line(1, "@!P0  LDG.E R2, desc[UR8][R2.64]", sectors="64", long_sb=5, selected=1),
    line(2, "FFMA R5, R2, R3, R5", samples=10, math=6, wavefronts="7"),
    line(3, "EXIT", drain=1),
    line(4, f"BRA {BEGIN + 64:#x}", executed=0, drain=4, wait=1),
    line(5, "NOP", executed=0),
]


def rows_of(*lines):
    """What is read of a page with these rows."""
    return pages.kernels(printed(lines))[0]
