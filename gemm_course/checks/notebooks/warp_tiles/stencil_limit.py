"""Checks ``stencil_limit``: the lowest of three roofs over a stencil on an H200, from its counts."""

import math
from typing import Any

from gemm_course.checks.core import Refused, nothing_yet
from gemm_course.checks.engines.tables import Part, Slip, numbers, table_exercise

# The notebook gives these: TB per second and TFLOPS as measured on an H200 (data/h200/roofs.csv and
# compute_roofs.csv), and L1's TFLOPS with one wavefront per multiply-add of a warp (as in notebook `naive`).
DRAM, FP32, L1 = 4.55, 64.8, 16.7
CASES = (
    (3, 2),
    (3, 1),
    (1, 2),
    (5, 2),
    (5, 0.5),
    (3, 0.25),
    (7, 0.25),
    (9, 0.25),
    (9, 1),
    (11, 0.125),
)
LIMITS = ("DRAM", "L1", "FP32")
# L1 and shared memory are the same memory, and arithmetic is what the FP32 units do.
ALSO = {"SHARED MEMORY": "L1", "SHARED": "L1", "L1 AND SHARED MEMORY": "L1", "ARITHMETIC": "FP32"}


def _roofs(side: int, wavefronts: float) -> dict[str, float]:
    """Return the TFLOPS that each part of the GPU allows."""
    return {"DRAM": DRAM * 2 * side**2 / 8, "L1": L1 / wavefronts, "FP32": FP32}


def _lowest(roofs: dict[str, float]) -> tuple[float, str]:
    return min((tflops, name) for name, tflops in roofs.items())


def _without(*names: str):
    """Return the lowest roof as a function of a case, if these roofs are forgotten."""
    return lambda *case: _lowest({name: roof for name, roof in _roofs(*case).items() if name not in names})


BYTES = (
    Slip(
        "Bytes per result: that is A alone, or `out` alone. An element of A comes from DRAM, and a result "
        "goes there.",
        lambda side, wavefronts: 4,
    ),
    Slip(
        "Bytes per result: that counts every read of a neighbour. DRAM delivers each element of A once; the "
        "tiles, L1 and L2 serve the other reads.",
        lambda side, wavefronts: 4 * side**2 + 4,
    ),
    Slip(
        "Bytes per result: that counts every read of a neighbour, and leaves the result out. DRAM delivers "
        "each element of A once, and takes each result once.",
        lambda side, wavefronts: 4 * side**2,
    ),
    Slip(
        "Bytes per result: 40 are nine reads and a result. But DRAM delivers each element of A once, "
        "whatever the side; the tiles, L1 and L2 serve the other reads.",
        lambda side, wavefronts: 40,
    ),
    Slip(
        "Bytes per result: 36 are nine reads. But DRAM delivers each element of A once, whatever the side, "
        "and takes each result once.",
        lambda side, wavefronts: 36,
    ),
    Slip(
        "Bytes per result: that counts the weights too, as if each result fetched them from DRAM. They are "
        "few, and stay in L1.",
        lambda side, wavefronts: 8 + 4 * side**2,
    ),
    Slip(
        "Bytes per result: the halo is counted as well. DRAM delivers it once, with the block that it "
        "belongs to; the others find it in L2.",
        lambda side, wavefronts: 4 + 4 * ((31 + side) / 32) ** 2,
    ),
    Slip("Bytes per result: those are floats. Each has 4 bytes.", lambda side, wavefronts: 2),
    Slip(
        "Bytes per result: that is for a warp, 32 results. One is asked for.",
        lambda side, wavefronts: 8 * 32,
    ),
    Slip(
        "Bytes per result: that takes sectors of 32 bytes, one for each. Neighbours in x share a sector, so "
        "a float costs its 4 bytes.",
        lambda side, wavefronts: 64,
    ),
)
INTENSITY = (
    Slip(
        "FLOP per byte: a multiply-add counts as one there. It is two FLOP, a product and a sum.",
        lambda side, wavefronts: side**2 / 8,
    ),
    Slip(
        "FLOP per byte: that is upside down, bytes per FLOP.",
        lambda side, wavefronts: 8 / (2 * side**2),
    ),
    Slip(
        "FLOP per byte: those are the FLOP of a result. Divide them by its bytes.",
        lambda side, wavefronts: 2 * side**2,
    ),
    Slip(
        "FLOP per byte: that is for one row of neighbours. A result has side · side of them.",
        lambda side, wavefronts: 2 * side / 8,
    ),
    Slip(
        "FLOP per byte: that is per float. Each float has 4 bytes.",
        lambda side, wavefronts: 2 * side**2 / 2,
    ),
    Slip(
        "FLOP per byte: that divides by the 4 bytes of A alone. The result's 4 bytes go to DRAM too.",
        lambda side, wavefronts: 2 * side**2 / 4,
    ),
    Slip(
        "FLOP per byte: `//` rounds it down to a whole number. Divide with `/`.",
        lambda side, wavefronts: 2 * side**2 // 8,
    ),
)
TFLOPS = (
    Slip(
        "TFLOPS: L1 is forgotten. With `wavefronts` per multiply-add it allows 16.7 / wavefronts.",
        lambda *case: _without("L1")(*case)[0],
    ),
    Slip(
        "TFLOPS: DRAM is forgotten. It allows 4.55 times the FLOP per byte.",
        lambda *case: _without("DRAM")(*case)[0],
    ),
    Slip(
        "TFLOPS: the FP32 units are forgotten. No kernel gets more than their 64.8.",
        lambda *case: _without("FP32")(*case)[0],
    ),
    Slip(
        "TFLOPS: 67 is the data sheet's roof of the FP32 units. Measured, and asked for here, are 64.8.",
        lambda *case: min((_roofs(*case) | {"FP32": 67}).values()),
    ),
    Slip(
        "TFLOPS: that is DRAM's roof alone. The lowest of the three counts.",
        lambda *case: _roofs(*case)["DRAM"],
    ),
    Slip(
        "TFLOPS: that is L1's roof alone. The lowest of the three counts.", lambda *case: _roofs(*case)["L1"]
    ),
    Slip(
        "TFLOPS: that is the highest of the three roofs. A kernel must stay under all of them: `min`.",
        lambda *case: max(_roofs(*case).values()),
    ),
    Slip(
        "TFLOPS: L1's roof is multiplied by the wavefronts. More wavefronts take more clocks: divide.",
        lambda side, wavefronts: min(_roofs(side, 1 / wavefronts).values()),
    ),
    Slip(
        "TFLOPS: L1's roof is divided by the wavefronts of a whole result. `wavefronts` are per "
        "multiply-add, and 16.7 TFLOPS belong to one per multiply-add.",
        lambda side, wavefronts: min(_roofs(side, wavefronts * side**2).values()),
    ),
    Slip(
        "TFLOPS: the times of the three parts are added. They work at the same time, so the slowest alone "
        "counts.",
        lambda *case: 1 / sum(1 / roof for roof in _roofs(*case).values()),
    ),
    Slip(
        "TFLOPS: the intensity is divided by 4.55. FLOP per byte *times* bytes per second is FLOP per "
        "second.",
        lambda side, wavefronts: min(2 * side**2 / 8 / DRAM, L1 / wavefronts, FP32),
    ),
    Slip(
        "TFLOPS: that is the share of 64.8. The question is how many TFLOPS.",
        lambda *case: _lowest(_roofs(*case))[0] / FP32,
    ),
    Slip(
        "TFLOPS: those are FLOP per second. One TFLOPS is 10¹² of them.",
        lambda *case: _lowest(_roofs(*case))[0] * 10**12,
    ),
)
NAMED = (
    Slip(
        'The limit: that is always "DRAM". Which of your three roofs is the lowest depends on the case.',
        lambda *case: "DRAM",
    ),
    Slip(
        'The limit: that is always "L1". Which of your three roofs is the lowest depends on the case.',
        lambda *case: "L1",
    ),
    Slip(
        'The limit: that is always "FP32". Which of your three roofs is the lowest depends on the case.',
        lambda *case: "FP32",
    ),
    Slip(
        "The limit: that names the highest roof. The lowest one limits.",
        lambda *case: max((tflops, name) for name, tflops in _roofs(*case).items())[1],
    ),
    Slip("The limit: L1 is never named.", lambda *case: _without("L1")(*case)[1]),
    Slip("The limit: DRAM is never named.", lambda *case: _without("DRAM")(*case)[1]),
    Slip("The limit: the FP32 units are never named.", lambda *case: _without("FP32")(*case)[1]),
)


def _rounded(number: float) -> float:
    """Round to four digits: 4.55 * 18 / 8 and 4.55 * 2.25 differ in the last bit."""
    return float(f"{number:.4g}") if math.isfinite(number) else number


_three = numbers("bytes", "FLOP per byte", "TFLOPS")


def _read(answer: Any) -> tuple:
    if not isinstance(answer, (tuple, list)) or len(answer) != 4:
        raise Refused(
            "The answer must be three numbers and a name, `(bytes, FLOP per byte, TFLOPS, limit)`; this is "
            f"`{answer!r}`."
        )
    if all(part is None or part is Ellipsis for part in answer):
        raise nothing_yet()
    return (*map(_rounded, _three(answer[:3])), _limit(answer[3]))


def _limit(name: Any) -> str:
    known = name.strip().upper() if isinstance(name, str) else ""
    known = ALSO.get(known, known)
    if known not in LIMITS:
        raise Refused(f'The limit must be "DRAM", "L1" or "FP32"; this is `{name!r}`.')
    return known


def _part(name: str, where: int, slips: tuple[Slip, ...]) -> Part:
    if name == "limit":
        return Part(name, where, slips)
    rounded = (
        Slip(slip.message, lambda *case, answer=slip.answer: _rounded(answer(*case))) for slip in slips
    )
    return Part(name, where, tuple(rounded))


def _passed(right) -> str:
    mine, spare, wide = (right(*case) for case in ((3, 2), (3, 1), (9, 0.25)))
    return (
        f"{len(CASES)} stencils. 3 × 3 with 2 wavefronts stays under {mine[2]:g} TFLOPS: {mine[3]} is its "
        f"lowest roof, as it was in [[tile_kernel]]. With one wavefront {spare[3]} is, {spare[2]:g}. Only a "
        f"wide stencil with few reads, 9 × 9 with a quarter, could keep the {wide[3]} units busy."
    )


@table_exercise(
    start="begin with the bytes: what of A and of `out` must pass DRAM for one result?",
    hints=(
        "Each element of A comes from DRAM once, however many tiles hold it, and each result goes there "
        "once: two floats. Neighbouring blocks find their halo in L2.",
        "A result takes side · side multiply-adds, two FLOP each. Divide by its bytes.",
        "Three roofs: 4.55 times the FLOP per byte, 16.7 / wavefronts, and 64.8. The lowest one counts, and "
        "its name is the limit.",
    ),
    cases=CASES,
    parts=(
        _part("bytes", 0, BYTES),
        _part("FLOP per byte", 1, INTENSITY),
        _part("TFLOPS", 2, TFLOPS),
        _part("limit", 3, NAMED),
    ),
    read=_read,
    passed=_passed,
)
def stencil_limit(side, wavefronts):
    """stencil_limit(side, wavefronts) -> (bytes, FLOP per byte, TFLOPS, limit) of a side x side stencil.

    wavefronts: those of L1 and shared memory that a warp's reads take per multiply-add. limit: "DRAM", "L1"
    or "FP32".
    """
    tflops, limit = _lowest(_roofs(side, wavefronts))
    return 8, _rounded(2 * side**2 / 8), _rounded(tflops), limit
