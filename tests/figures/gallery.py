"""A picture of every kind, in a telling state: what tests of all pictures look at."""

from functools import partial

from gemm_course import widgets as see
from gemm_course.figures import ladder, memory, my_ladder, overlap, owners
from gemm_course.figures.words import in_words
from gemm_course.kernels import LADDER
from gemm_course.widgets import (
    _banks,
    _branch,
    _card,
    _coverage,
    _fragments,
    _heatmap,
    _multiply,
    _occupancy,
    _owners,
    _phases,
    _queue,
    _race,
    _registers,
    _row_lengths,
    _scatter,
    _schedule,
    _strips,
    _swizzle,
    _threads,
    _tile_banks,
    _tiles,
    _turns,
    _two_colours,
    _unrolled,
    _walk,
    _warp_and_memory,
    _warp_reads,
    _wavefronts,
)
from gemm_course.widgets._block_resources import OfStage

_STAGE = LADDER["thread_tiled_1d"]
_KERNELS = [LADDER[name] for name in ("naive_uncoalesced", "naive_coalesced")]


def _overlapping(tid, BN, WM, WN, TN, WNITER):
    return [
        (row, max(column - 3, 0)) for row, column in _owners.owner_map("003: TN 8, WNITER 1").results[tid]
    ]


def _beside_another_gpu():
    """Four GPUs, of which one does not exist; a row has figures of all, of two, or of one."""
    gpus = ("H200", "RTX 3090", "RTX A6000", "Made-up GPU 1")
    speeds = (
        ((0.498, 0.01), (0.27, 0.011), (0.309, 0.013), (0.125, 0.009)),
        ((52.4, 1.02), None, None, (13.1, 0.8)),
    )
    rungs = [
        ladder.Rung(
            name,
            "FP32",
            {gpu: ladder.Speed(*each) for gpu, each in zip(gpus, known, strict=True) if each},
            2,
            0.19,
        )
        for name, known in zip(("naive_uncoalesced", "grouped_blocks"), speeds, strict=True)
    ]
    how = dict(zip(gpus, ("measured", "published", "published", "measured"), strict=True))
    cublas = {("FP32", gpu): 51.2 for gpu in gpus}
    return ladder.ladder(rungs, how, cublas, "Beside another GPU", "A made-up GPU stands beside the H200.")


def _own_ladder(passed: int, own: float | None = None):
    """A learner's ladder of four places: one with all figures, one beyond FP32, one without counts or bet."""
    gpu = "GeForce RTX 3060 Laptop GPU" if own else ""
    places = [
        my_ladder.Place("01 naive", True, "first", 5, 0.51, 0.5, own, gpu, 33, 33),
        my_ladder.Place("11 hopper", True, "second", None, None, 664, own and 30 * own, gpu, None, None, "?"),
        my_ladder.Place("03 shared memory tiles", True, "third", 20, 8.4, 8.2, own, gpu, 2, 1.5),
        my_ladder.Place("04 thread tiles 1d", bet=30),
    ]
    empty = [my_ladder.Place(place.name) for place in places[passed:]]
    return my_ladder.my_ladder([*places[:passed], *empty], "an H200", ["A note."])


def _own(level: str, colour: str):
    return owners.draw(_owners.own_map("003: TN 8, WNITER 1", _overlapping), level, colour, 0, 5)


GALLERY = {
    "grid": partial(_threads.draw_grid, (10, 18), (8, 4), (1, 2), (3, 1)),
    "grid, outside": partial(_threads.draw_grid, (10, 18), (8, 4), (2, 2), (3, 3)),
    "block": partial(_threads.draw_block, (16, 8), (3, 2)),
    "addresses": partial(memory.row_major, (5, 13), 13, (2, 12)),
    "overlap": partial(overlap.timeline, 3, 6, 4),
    "warp and memory, loads": partial(_warp_and_memory.draw, _KERNELS, 5, ("load", "A")),
    "warp and memory, stores": partial(_warp_and_memory.draw, _KERNELS, 2, ("store", "C"), kernel=1),
    "phases": partial(_phases.draw, 9, "none", 2, "quick"),
    "phases, overwritten": partial(_phases.draw, 13, "producer does not wait", 4, "quick"),
    "phases, a standstill": partial(_phases.draw, 14, "consumer 1 does not arrive", 2, "quick"),
    "race": partial(_race.draw, "after loading", "(1, 0)"),
    "multiply": lambda: _multiply.draw("naive_coalesced", 3, _multiply.LEVELS[1], 2, 3),
    "walk, a load": partial(_walk.draw, 1, (1, 1), (0, 1)),
    "walk, a barrier": partial(_walk.draw, 2, (0, 0), (1, 0)),
    "walk, the end": partial(_walk.draw, 12, (0, 1), (1, 0)),
    "card": lambda: _card.card(LADDER["block_tiled"]),
    "banks": lambda: _banks.draw("As[tx, p]", (32, 32)),
    "tile banks": lambda: _tile_banks.draw("Bs", 0, next(iter(_tile_banks.COLUMNS))),
    "strips": lambda: _strips.draw(stage := next(iter(_strips.KERNELS)), _strips.KERNELS[stage].registers[0]),
    "tiles over time": partial(_schedule.draw, "a block per tile", 256, 4096),
    "tiles over time, shared": partial(_schedule.draw, "stream-K", 256, 3072),
    "occupancy": partial(_occupancy.draw, OfStage(_STAGE), "H200", _STAGE.complete(), (9, 0)),
    "coverage": partial(_coverage.draw, _coverage._stage("kernel5"), (16, 16), 8, (1, 2)),
    "filling": partial(_coverage.draw_step, _coverage._stage("kernel5"), 3, (16, 16), 8, (1, 2)),
    "scatter, the load": partial(_scatter.draw, 0, 29, 16, 4),
    "scatter, a store": partial(_scatter.draw, 2, 29, 16, 4),
    "wavefronts": lambda: _wavefronts.draw(next(iter(_wavefronts.ACCESSES)), 16, 4),
    "warp reads": partial(_warp_reads.draw, "8 × 4", "in one piece", "As", "one float"),
    "warp reads, wide": partial(_warp_reads.draw, "4 × 8", "runs of four", "Bs", "four floats"),
    "turns": partial(_turns.draw, 1, "2 × 16", "in one piece", "Bs"),
    "turns, joined": partial(_turns.draw, 0, "16 × 2", "runs of four", "Bs"),
    "two colours": partial(_two_colours.draw, 5, "dark"),
    "queue": partial(_queue.draw, "a column of A", 8),
    "queue, of a row": partial(_queue.draw, "a row of B", 0),
    "branch": partial(_branch.draw, 1, "31 even, one odd"),
    "unrolled": partial(_unrolled.draw, 16),
    "unrolled, speeds": partial(_unrolled.draw, 8, evidence=False),
    "registers": partial(_registers.draw, "thread_tiled_1d", {"TM": 8}, 5, 3),
    "registers, a long column": partial(
        _registers.draw, "thread_tiled_2d", {"TM": 64, "TN": 1}, 5, 3, _registers._ROOMY
    ),
    "owners": partial(_owners.draw, "003: TN 8, WNITER 2", "block", "warp", 1, 9),
    "owners, lanes": partial(_owners.draw, "003: TN 8, WNITER 2", "warp", "lane", 0, 29),
    "owners, steps": partial(_owners.draw, "warp_tiled: 4 × 8 lanes", "sub-tile", "owner", 0, 29),
    "owners, a thread": partial(_owners.draw, "warp_tiled: 4 × 8 lanes", "thread", "owner", 0, 29),
    "own owners": partial(_own, "block", "warp"),
    "own owners, lanes": partial(_own, "warp", "lane"),
    "own owners, a thread": partial(_own, "thread", "warp"),
    "fragment": partial(_fragments.draw, "A", 3, 5),
    "fragment's rows": partial(_fragments.draw_rows, 32, 0),
    "operand of mma.sync": partial(_fragments.draw_mma, "B", 3, 5),
    "swizzle": partial(_swizzle.draw, "piece ^ row % pieces", 4, 1),
    "heat map": partial(_heatmap.best_of_others, LADDER["thread_tiled_2d"], "TM", "TN"),
    "tiles": partial(_tiles.choice, _STAGE, _STAGE.tiles),
    "tiles around": partial(_tiles.around, _STAGE, _STAGE.tiles),
    "counts": partial(see.counts, "naive_coalesced", (64, 64, 64), global_load_requests=1),
    "machine": see.machine,
    "row lengths": partial(_row_lengths.draw, "naive_uncoalesced", "BM=32 BN=32", 4096, 8),
    "compare": partial(see.compare, "thread_tiled_2d", "vectorized", {}, "global_load_requests"),
    "ladder": see.ladder,
    "ladder, another GPU": _beside_another_gpu,
    "my ladder, empty": partial(_own_ladder, 0),
    "my ladder, half": partial(_own_ladder, 2),
    "my ladder, with a GPU": partial(_own_ladder, 4, 3.25),
    "limits": partial(see.limits, "block_tiled", "vectorized"),
    "waits": partial(see.waits, "block_tiled", "vectorized"),
    "a roofline": partial(see.roofline, "block_tiled", limits="warp_tiled"),
    "all on one roofline": partial(see.roofline, until="wmma_fp16_acc"),
    "words": partial(in_words, "A sentence " * 20),
}
