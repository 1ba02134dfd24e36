"""Checks ``fragment_registers``: the registers that a lane needs for accumulators and sets of fragments."""

from itertools import product

from gemm_course.checks.engines.tables import Slip, a_whole_number, names_without_effect, table_exercise

CASES = tuple(product((16, 32, 64, 128), (32, 64, 128, 256), (1, 2)))

SLIPS = (
    Slip(
        "That counts FP16 values of the fragments. A register holds two of them.",
        lambda WM, WN, sets: WM * WN // 32 + sets * (WM + WN) // 2,
    ),
    Slip(
        "The sets hold operands only. The accumulators are there once: every product adds to the same ones.",
        lambda WM, WN, sets: sets * (WM * WN // 32 + (WM + WN) // 4),
    ),
    Slip("The accumulators are missing.", lambda WM, WN, sets: sets * (WM + WN) // 4),
    Slip("The operands are missing.", lambda WM, WN, sets: WM * WN // 32),
    Slip("B's fragments are missing.", lambda WM, WN, sets: WM * WN // 32 + sets * WM // 4),
    Slip("A's fragments are missing.", lambda WM, WN, sets: WM * WN // 32 + sets * WN // 4),
    Slip(
        "The accumulators are float32: one register each, WM · WN / 32 of them.",
        lambda WM, WN, sets: WM * WN // 64 + sets * (WM + WN) // 4,
    ),
    Slip(
        "That counts fragments of A and of B. A fragment has 256 values: 8 per lane, 4 registers.",
        lambda WM, WN, sets: WM * WN // 32 + sets * (WM + WN) // 16,
    ),
    Slip(
        "That is for the whole warp. Each of its 32 lanes holds a share.",
        lambda WM, WN, sets: WM * WN + sets * (WM + WN) * 8,
    ),
    Slip(
        "Those are all values of the warp, each in a register of its own. A lane holds a 32nd of them, and "
        "two FP16 values in one register.",
        lambda WM, WN, sets: WM * WN + sets * (WM + WN) * 16,
    ),
    Slip(
        "16 columns of B are two fragments of 16 × 8, 2 registers each. Here it is one.",
        lambda WM, WN, sets: WM * WN // 32 + sets * (WM // 16 * 4 + WN // 16 * 2),
    ),
    Slip(
        "The operands are four times too many. A lane's share of a 16 × 16 fragment is 8 values, in 4 "
        "registers; and a set holds *one* step of 16 along k.",
        lambda WM, WN, sets: WM * WN // 32 + sets * (WM + WN),
    ),
    Slip(
        "Each fragment of A serves a whole row of products: WM / 16 of A *plus* WN / 16 of B, not times.",
        lambda WM, WN, sets: WM * WN // 32 + sets * (WM // 16) * (WN // 16) * 4,
    ),
)


@table_exercise(
    start="how many accumulators has a lane, and how many registers takes a 16 × 16 fragment of FP16 values?",
    hints=(
        "The warp's tile has WM · WN accumulators, float32, over 32 lanes.",
        "A 16 × 16 fragment of operands has 256 FP16 values: 8 per lane, two in a register, so 4 registers.",
        "Per step there are WM / 16 fragments of A and WN / 16 of B, in each of the sets.",
        "`WM * WN // 32 + sets * (WM + WN) // 4`.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=a_whole_number("the number of registers", floats=True),
    otherwise=names_without_effect("WM", "WN", "sets"),
    passed="Right. A warp tile of 64 × 64 takes 160 registers with one set of fragments and 192 with "
    "two, of at most 255: what is left must do for addresses. 128 × 64 takes 304 with one set, more than a "
    "thread can have.",
)
def fragment_registers(WM, WN, sets):
    """registers(WM, WN, sets) -> 32-bit registers of a lane for accumulators and operands."""
    return WM * WN // 32 + sets * (WM + WN) // 4
