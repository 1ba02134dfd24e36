"""Checks ``l1_queue``: how many deliveries L1 needs for the floats of a warp's request."""

from collections import Counter, defaultdict
from itertools import groupby

from gemm_course.checks.engines.tables import Slip, a_whole_number, table_exercise
from lockstep import wavefronts

# A float has 4 bytes, and a line of 128 bytes has 32 places for floats.
FLOAT, SECTOR, LINE = 4, 32, 128
PLACES = LINE // FLOAT

# Each is the byte address that a lane asks for, as Python. Rows of 4096 floats are 16,384 bytes apart. Each
# line costs L1 a quarter of a clock besides, so no request here has more than four lines per delivery.
REQUESTS = (
    "4 * lane",
    "16384 * lane",
    "4096",
    "4 * lane + 20",
    "(16384 + 64) * lane",
    "(16384 + 32) * lane + 12",
    "16384 * (lane // 2)",
    "16384 * (lane % 8) + 4 * (lane // 8)",
    "16384 * (lane // 8) + 4 * (lane % 8)",
    "16384 * (31 - lane) + 40",
    "4 * (lane * 5 % 32) + 132",
    "8 * lane",
    "16384 * (lane % 16) + 20 * (lane // 16)",
    "16384 * (lane % 24) + 4 * (lane // 24)",
    "16384 * max(lane - 15, 0)",
    "16384 * lane + 4 * (lane > 0)",
    "16384 * (lane // 4) + 36 * (lane % 4)",
    # Lanes that want the same float are no neighbours.
    "16384 * (lane % 2)",
    "16384 * (lane % 16)",
)


def addresses_of(request: str) -> list[int]:
    """Return the 32 byte addresses of a request that is written as in REQUESTS."""
    return [eval(request, {"lane": lane}) for lane in range(32)]


WRITTEN = {tuple(addresses_of(request)): request for request in REQUESTS}


def _shown(case: tuple[list[int]]) -> str:
    return f"wavefronts([{WRITTEN[tuple(case[0])]} for lane in range(32)])"


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _queues(addresses: list[int], places: int = PLACES) -> dict[int, set[int]]:
    """Return place -> the different floats there, for lines with so many places."""
    queues = defaultdict(set)
    for address in addresses:
        queues[address // FLOAT % places].add(address // FLOAT)
    return queues


def _lengths(addresses: list[int], places: int = PLACES) -> list[int]:
    return [len(queue) for queue in _queues(addresses, places).values()]


def _difference(case: tuple[list[int]], answer: int, right: int) -> str:
    queues = _queues(case[0])
    place = max(queues, key=lambda place: len(queues[place]))
    floats = f"{right} different floats wait" if right > 1 else "one float waits"
    return f"`{_shown(case)}` gives {answer}, right is {right}: {floats} at place {place}, nowhere more."


def _otherwise(cases: list[tuple], answers: list[int]) -> str:
    queues = [_queues(*case) for case in cases]
    if all(
        len(each.get(answer, ())) == max(map(len, each.values())) for each, answer in zip(queues, answers)
    ):
        return "That is the place with the longest queue. The answer is how many floats wait there."
    right = sum(answer == wavefronts(_words(*case)) for case, answer in zip(cases, answers))
    return (
        f"{right} of {len(cases)} answers are right. For each place, how many different floats do the lanes "
        "want there?"
    )


SLIPS = (
    Slip(
        "That counts lanes. Lanes that want the *same* float are served together, so count the different "
        "floats at a place.",
        lambda addresses: max(Counter(word % PLACES for word in _words(addresses)).values()),
    ),
    Slip(
        "That drops a float only where the lane before wants the same. Lanes that share a float need not be "
        "neighbours.",
        lambda addresses: max(
            Counter(word % PLACES for word, _ in groupby(_words(addresses))).values(),
        ),
    ),
    Slip(
        "That counts sectors, what a request touches. Deliveries are counted by places: the floats of a "
        "sector have places of their own, and so may floats of different sectors.",
        lambda addresses: len({address // SECTOR for address in addresses}),
    ),
    Slip(
        "That counts lines. Two floats of different lines take turns only if they have the same place.",
        lambda addresses: len({address // LINE for address in addresses}),
    ),
    Slip(
        "That is the sum of all queues, the number of different floats. All places are served side by side: "
        "the longest queue decides.",
        lambda addresses: sum(_lengths(addresses)),
    ),
    Slip(
        "That is the number of places in use. The answer is the length of the longest queue.",
        lambda addresses: len(_queues(addresses)),
    ),
    Slip(
        "That is the shortest queue. L1 goes on until the longest is served.",
        lambda addresses: min(_lengths(addresses)),
    ),
    Slip(
        "That is the mean of the queues. The longest decides: while it is served, other places are idle.",
        lambda addresses: -(-sum(_lengths(addresses)) // len(_lengths(addresses))),
    ),
    Slip(
        "That is the queue at the place of lane 0. Another place may have a longer one.",
        lambda addresses: len(_queues(addresses)[addresses[0] // FLOAT % PLACES]),
    ),
    Slip(
        "That takes a line for 128 places. It has 128 *bytes*, and a place is 4 of them: 32 places.",
        lambda addresses: max(_lengths(addresses, LINE)),
    ),
    Slip(
        "That has only 8 places, as a sector has, or as the *byte* address modulo 32 gives. A float's number "
        "is its address divided by 4; its place is that number modulo 32.",
        lambda addresses: max(_lengths(addresses, SECTOR // FLOAT)),
    ),
)


# ---- the exercise ------------------------------------------------------------------------------------------


def _words(addresses: list[int]) -> list[int]:
    return [address // FLOAT for address in addresses]


@table_exercise(
    start="the number of a float is `address // 4`. Which numbers do the lanes want, each counted once?",
    hints=(
        "Make a set of the floats' numbers, `address // 4`: lanes that want the same float share it.",
        "The place of a float is its number modulo 32. Make a list of the places, one for each different "
        "float.",
        "The answer is how often the most frequent place occurs: `max(places.count(place) for place in "
        "places)`.",
    ),
    cases=[(addresses_of(request),) for request in REQUESTS],
    slips=SLIPS,
    read=a_whole_number("the number of deliveries", floats=True),
    show=_shown,
    difference=_difference,
    otherwise=_otherwise,
    passed=f"Right for {len(REQUESTS)} requests, as the emulator counts wavefronts: rows and columns, padded "
    "rows, broadcasts, in any order. The same rule returns in notebook [[shared_memory_tiles.ipynb]].",
)
def l1_queue(addresses):
    """wavefronts(addresses) -> deliveries of L1 for 32 byte addresses of floats; equal floats count once."""
    return wavefronts(_words(addresses))
