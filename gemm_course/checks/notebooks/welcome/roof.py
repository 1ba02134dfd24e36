"""Checks ``roof``: the most TFLOPS that arithmetic and DRAM allow a kernel on an H200."""

import math

from gemm_course.checks.engines.tables import Slip, a_number, table_exercise

# The notebook gives the peak in TFLOPS and the bandwidth in TB per second.
PEAK, BANDWIDTH = 67, 4.8
CASES = (
    (1, 12),
    (2, 1),
    (28, 2),
    (14, 1),
    (1000, 10),
    (2 * 64**3, 12 * 64**2),
    (2 * 1024**3, 12 * 1024**2),
    (3 * 10**9, 10**9),
    (10**6, 0.5 * 10**6),
)

SLIPS = (
    Slip(
        "Your function returns DRAM's limit alone, and for a kernel with many FLOP per byte that is more "
        "than 67 TFLOPS. No kernel computes faster than that: return the smaller of the two.",
        lambda flop, bytes: BANDWIDTH * flop / bytes,
    ),
    Slip(
        "Your function returns 67 for every kernel. Where a kernel does few FLOP per byte, DRAM allows less: "
        "4.8 times the FLOP per byte, in TFLOPS as well.",
        lambda *_: PEAK,
    ),
    Slip(
        "That is the arithmetic intensity, FLOP per byte. Multiply it by the TB per second that DRAM "
        "delivers.",
        lambda flop, bytes: flop / bytes,
    ),
    Slip(
        "The intensity itself is compared with 67. It is FLOP per byte, not TFLOPS: multiply it by 4.8 "
        "first.",
        lambda flop, bytes: min(PEAK, flop / bytes),
    ),
    Slip(
        "The higher of the two roofs. A kernel must stay under both, so the lower one counts: `min`.",
        lambda flop, bytes: max(PEAK, BANDWIDTH * flop / bytes),
    ),
    Slip(
        "The fraction is upside down: bytes per FLOP. The intensity is FLOP per byte, `flop / bytes`.",
        lambda flop, bytes: min(PEAK, BANDWIDTH * bytes / flop),
    ),
    Slip(
        "The intensity is multiplied by 67, and 4.8 is taken for the limit of arithmetic. The other way "
        "round: 4.8 TB per second belongs to the bytes.",
        lambda flop, bytes: min(BANDWIDTH, PEAK * flop / bytes),
    ),
    Slip(
        "The intensity is divided by 4.8. FLOP per byte *times* bytes per second is FLOP per second.",
        lambda flop, bytes: min(PEAK, flop / bytes / BANDWIDTH),
    ),
    Slip(
        "The bytes are counted as floats of 4 bytes. `bytes` are bytes already.",
        lambda flop, bytes: min(PEAK, BANDWIDTH * flop / (4 * bytes)),
    ),
    Slip(
        "The intensity is multiplied by 4, for the bytes of a float. `bytes` are bytes already.",
        lambda flop, bytes: min(PEAK, BANDWIDTH * flop * 4 / bytes),
    ),
    Slip(
        "These are FLOP per second. One TFLOPS is 10¹² of them: divide by 10¹².",
        lambda flop, bytes: min(PEAK * 10**12, BANDWIDTH * 10**12 * flop / bytes),
    ),
    Slip(
        "That is the share of 67 TFLOPS. The question is how many TFLOPS.",
        lambda flop, bytes: min(PEAK, BANDWIDTH * flop / bytes) / PEAK,
    ),
    Slip(
        "That is the share of 67 TFLOPS, in percent. The question is how many TFLOPS.",
        lambda flop, bytes: 100 * min(PEAK, BANDWIDTH * flop / bytes) / PEAK,
    ),
    Slip(
        "With 14 FLOP per byte this gives 67.2, more than 67: the roofs meet at 67 / 4.8 = 13.96, and 14 is "
        "rounded. Take the smaller of the two, `min`.",
        lambda flop, bytes: PEAK if flop / bytes > 14 else BANDWIDTH * flop / bytes,
    ),
    Slip(
        "Only DRAM's limit is here, and its factor is 67 / 14 = 4.79, for 14 is rounded. Multiply by 4.8, "
        "and return never more than 67.",
        lambda flop, bytes: PEAK * flop / bytes / 14,
    ),
    Slip(
        "The slope is 67 / 14 = 4.79 here, for 14 is rounded. Multiply the intensity by 4.8.",
        lambda flop, bytes: min(PEAK, PEAK * flop / bytes / 14),
    ),
    Slip(
        "`//` rounds the intensity down to a whole number. Divide with `/`.",
        lambda flop, bytes: min(PEAK, BANDWIDTH * (flop // bytes)),
    ),
    Slip(
        "The two times are added here. A GPU computes and moves bytes at the same time, so the lower roof "
        "alone counts.",
        lambda flop, bytes: flop / (flop / PEAK + bytes / BANDWIDTH),
    ),
)


def _rounded(answer) -> float:
    """Round a number to five digits: 4.8 * 2 / 3 and 4.8 / 3 * 2 differ in the last bit.

    66.9, as in the plot, and 132 * 4 * 32 * 2 * 1.98e9 / 1e12 are as good as 67.
    """
    number = a_number(answer)
    if 66.9 <= number <= PEAK:
        return float(PEAK)
    return float(f"{number:.5g}") if math.isfinite(number) else number


@table_exercise(
    start="`roof` returns None. Begin with the intensity: FLOP per byte.",
    hints=(
        "There are two roofs. One is the same for every kernel: 67 TFLOPS.",
        "The other is DRAM's: FLOP per byte times TB per second is TFLOPS.",
        "The kernel stays under both: the smaller one, `min(67, 4.8 * flop / bytes)`.",
    ),
    cases=CASES,
    slips=tuple(
        Slip(slip.message, lambda *case, answer=slip.answer: _rounded(answer(*case))) for slip in SLIPS
    ),
    read=_rounded,
    passed=f"{len(CASES)} kernels: DRAM's roof up to some 14 FLOP per byte, from there on 67 TFLOPS.",
)
def roof(flop, bytes):
    """roof(flop, bytes) -> the most TFLOPS of an H200 for so many FLOP, so many bytes from and to DRAM."""
    return _rounded(min(PEAK, BANDWIDTH * flop / bytes))
