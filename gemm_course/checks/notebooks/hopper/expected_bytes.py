"""Checks ``expected_bytes``: how many copies a step requests, and how many bytes its barrier must expect."""

from gemm_course.checks.engines.tables import Slip, table_exercise, whole_numbers

# A box of B has 64 columns.
PANEL = 64
# Each case is BM, BN, BK, and how many rows, columns and steps the matrices have from the corner on.
CASES = (
    (128, 256, 64, 128, 256, 64),
    (128, 256, 64, 500, 700, 900),
    (128, 64, 64, 128, 64, 64),
    (64, 128, 32, 64, 128, 32),
    (128, 256, 64, 20, 256, 64),
    (128, 256, 64, 128, 100, 64),
    (128, 256, 64, 128, 256, 8),
    (192, 128, 64, 5, 3, 7),
)


def _inside(BM, BN, BK, rows, columns, depth):
    return min(BM, rows), min(BN, columns), min(BK, depth)


def _bytes(BM, BN, BK):
    return 2 * (BM * BK + BK * BN)


def _requests(BN):
    return 1 + BN // PANEL


SLIPS = (
    Slip(
        "At the edge you expect only what exists. But TMA writes the whole box into shared memory, zeros "
        "included, and all of it counts.",
        lambda *of: (_requests(of[1]), _bytes(*_inside(*of))),
    ),
    Slip(
        "At the edge you expect only what exists, and leave out whole panels. The requests are the same "
        "everywhere: TMA fills what is outside with zeros, and they count.",
        lambda *of: (1 + -(-_inside(*of)[1] // PANEL), _bytes(*_inside(*of))),
    ),
    Slip(
        "The two numbers are swapped: first the requests, then the bytes.",
        lambda BM, BN, BK, *_: (_bytes(BM, BN, BK), _requests(BN)),
    ),
    Slip(
        "These are elements. An FP16 value has 2 bytes.",
        lambda BM, BN, BK, *_: (_requests(BN), _bytes(BM, BN, BK) // 2),
    ),
    Slip(
        "A float32 has 4 bytes; these are FP16 values, of 2.",
        lambda BM, BN, BK, *_: (_requests(BN), _bytes(BM, BN, BK) * 2),
    ),
    Slip(
        "One request for B is not enough: its box has 64 columns, and the tile has BN.",
        lambda BM, BN, BK, *_: (2, _bytes(BM, BN, BK)),
    ),
    Slip(
        "B's tile comes in several boxes, and all of them count. You expect the bytes of one.",
        lambda BM, BN, BK, *_: (_requests(BN), _bytes(BM, PANEL, BK)),
    ),
    Slip(
        "B's tile comes in several boxes: one request for each 64 columns, and all their bytes.",
        lambda BM, BN, BK, *_: (2, _bytes(BM, PANEL, BK)),
    ),
    Slip(
        "The request for A's tile is missing in the first number.",
        lambda BM, BN, BK, *_: (BN // PANEL, _bytes(BM, BN, BK)),
    ),
    Slip(
        "A's box may have 256 rows: its tile comes as one, not as one for each 64 rows.",
        lambda BM, BN, BK, *_: (BM // 64 + BN // PANEL, _bytes(BM, BN, BK)),
    ),
    Slip(
        "These are the bytes of the tile of C. A step copies BM × BK and BK × BN values.",
        lambda BM, BN, BK, *_: (_requests(BN), 2 * BM * BN),
    ),
)


def _otherwise(cases, answers):
    # A learner may count only the boxes that are not wholly outside.
    left = [1 + -(-_inside(*case)[1] // PANEL) for case in cases]
    if [requests for requests, _ in answers] == left[: len(answers)]:
        return (
            "Every box is requested, even one that lies wholly outside: the number of requests is the same "
            "in every step."
        )
    return "Not all answers are right."


@table_exercise(
    start="one box of A, BM × BK values; how many boxes of BK × 64 does B's tile need?",
    hints=(
        "A's tile is one box, B's is `BN // 64` of them.",
        "An FP16 value has 2 bytes: A's box has 2 · BM · BK.",
        "What is outside a matrix arrives as zeros. Does `fetch` above come to an end if it expects less "
        "than the whole box? Try it.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=whole_numbers("requests", "bytes"),
    otherwise=_otherwise,
    passed="Right, at the edges, too: a barrier expects whole boxes, always. So the producer needs no bounds "
    "check, and the number is a constant of the kernel.",
)
def expected_bytes(BM, BN, BK, rows, columns, depth):
    """expected_bytes(BM, BN, BK, rows, columns, depth) -> (requests, bytes) of one step."""
    return _requests(BN), _bytes(BM, BN, BK)
