"""Lists the kernels that are profiled beside the ladder at its default tiles and the usual size.

Each kernel is one change away from another profiled kernel, with registers and blocks per multiprocessor as
equal as possible, so that a difference between the two has one cause.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """A profile that a figure or a text of the course needs.

    ``stage`` is the name of a stage or of a variant. ``tiles`` are sizes to change from the defaults, as in
    "BM=64 BN=64", or "". ``sizes`` are m = n = k of each launch. ``why`` is the question that the profile
    answers.
    """

    stage: str
    tiles: str
    sizes: tuple[int, ...]
    why: str


USUAL = (4096,)

# The notebooks naive and coalesced ask about sectors, lines and where rows begin.
NAIVE = (
    Asked(
        "naive_uncoalesced",
        "BM=4 BN=64",
        USUAL,
        "A warp is 4 rows by 8 columns: 5 sectors per k step, as naive_coalesced with 32 x 32, but 5 lines "
        "instead of 2. Is it as fast?",
    ),
    Asked(
        "naive_uncoalesced",
        "",
        (4104,),
        "Rows are 8 floats longer, no multiple of 128 bytes; sectors and lines are those of 4096. Does L1 "
        "look up lines one by one, or only those that fall into the same sets?",
    ),
    Asked(
        "naive_uncoalesced",
        "",
        (2048, 2049, 2050, 2052, 2056, 2064),
        "Each lane in a line of its own, in all. How many wavefronts does L1 take for a request of A, "
        "as rows get longer: as many as lanes meet in a bank?",
    ),
    Asked(
        "naive_coalesced",
        "BM=32 BN=32",
        USUAL,
        "The block of naive_uncoalesced, so that only the order of the threads differs; and the block of "
        "penny_xu_tile, so that only shared memory differs.",
    ),
    Asked(
        "naive_coalesced",
        "BM=16 BN=16",
        USUAL,
        "4 sectors per k step where 32 x 32 has 5, but 3 lines instead of 2. Are fewer sectors faster?",
    ),
)

# The notebooks on thread tiles and Tensor Cores compare the same machine code with fewer blocks on a
# multiprocessor. In all cases that are compared, shared memory takes as much of L1 as it can, so that L1 is
# equally small in each. For wmma_fp16_acc the size of L1 matters little, because its copies bypass L1.
DOCUMENT_V03 = "BM=64 BN=64 BK=8 TM=8"
RESIDENCY = (
    Asked(
        "thread_tiled_1d_fewer_blocks",
        f"{DOCUMENT_V03} SPARE=52",
        USUAL,
        "Document 004's tiles with 32 registers: 4 blocks per multiprocessor, 64 warps.",
    ),
    Asked(
        "thread_tiled_1d_fewer_blocks",
        f"{DOCUMENT_V03} SPARE=108",
        USUAL,
        "The same code with 2 blocks, 32 warps.",
    ),
    Asked(
        "thread_tiled_1d_fewer_blocks",
        f"{DOCUMENT_V03} SPARE=200",
        USUAL,
        "The same code with one block, 16 warps, as with 96 registers. Do its warps wait at the barrier?",
    ),
    Asked(
        "thread_tiled_2d_fewer_blocks",
        "SPARE=80",
        USUAL,
        "The default tiles: 2 blocks per multiprocessor, 16 warps.",
    ),
    Asked(
        "thread_tiled_2d_fewer_blocks",
        "SPARE=150",
        USUAL,
        "The same code with one block, 8 warps. Are 64 independent accumulators enough, with so few warps "
        "and barriers between them?",
    ),
    Asked(
        "wmma_fp16_acc_fewer_blocks",
        "SPARE=60",
        USUAL,
        "Two blocks, as wmma has, where FP16 accumulators leave room for three. Is the third block what "
        "makes wmma_fp16_acc faster?",
    ),
)

# The notebooks on thread tiles ask about local memory, thread tiles and banks.
DOCUMENT_V04 = "BM=128 BN=128 BK=16 TM=8 TN=8"
THREAD_TILES = (
    Asked(
        "thread_tiled_1d",
        "BM=32 BN=64 BK=64 TM=32",
        USUAL,
        "The most local memory per thread in the sweep. What does it wait for?",
    ),
    Asked(
        "thread_tiled_2d",
        DOCUMENT_V04,
        USUAL,
        "8 x 8 results: 20 wavefronts per step, in 4 wide reads. Is shared memory the limit?",
    ),
    Asked(
        "thread_tiled_2d",
        "BK=16",
        USUAL,
        "16 x 4 results, and everything else as with 8 x 8: 12 wavefronts per step, in 5 wide reads.",
    ),
    Asked(
        "kernel5",
        DOCUMENT_V04,
        USUAL,
        "thread_tiled_2d's arithmetic at the same tiles. What do 32 sectors per request of B cost?",
    ),
    Asked(
        "kernel5_spread",
        "PAD=0",
        USUAL,
        "Half of kernel5's wavefronts, and more instructions. Which counts?",
    ),
)

# The notebooks vectorized_access and warp_tiles ask about parts of vectorized, its padding, and which lanes
# read together.
VECTORIZED = (
    Asked(
        "vectorized_apart",
        "FOURS=1 TRANSPOSED=0",
        USUAL,
        "128-bit accesses without transposing, between thread_tiled_2d and vectorized at their tiles.",
    ),
    Asked(
        "vectorized_apart",
        "FOURS=0 TRANSPOSED=1 PAD=4",
        USUAL,
        "Transposing without 128-bit accesses, between thread_tiled_2d and vectorized at their tiles.",
    ),
    Asked(
        "vectorized",
        "PAD=0",
        USUAL,
        "8 wavefronts per transposing store instead of 4. Is the padding worth it, and by what?",
    ),
    Asked(
        "vectorized",
        f"{DOCUMENT_V04} PAD=0",
        USUAL,
        "20 wavefronts per step where warp_tiled has 12; the tiles and the number of instructions in the "
        "loop are the same.",
    ),
    Asked(
        "vectorized",
        "BM=128 BN=128 BK=16 TM=4 TN=16 PAD=4",
        USUAL,
        "Wide results: the lanes' pieces of Bs lie 16 floats apart. Do the conflicts explain the speed?",
    ),
    Asked(
        "warp_tiled",
        "WM=16 WN=128",
        USUAL,
        "2 x 16 lanes, as in vectorized: runs of four, and no other warp tile. Do the runs do it alone?",
    ),
    Asked("warp_tiled", "WM=64 WN=32", USUAL, "8 x 4 lanes: as many wavefronts as with 4 x 8."),
    Asked("warp_tiled", "WM=128 WN=16", USUAL, "16 x 2 lanes: 8 wavefronts instead of 12. Is it faster?"),
    Asked(
        "warp_tiled",
        "BM=128 BN=256 BK=8 WM=64 WN=64 TM=16 TN=8 PAD=4",
        USUAL,
        "The tiles of double_buffered, without its second pair of tiles: what does fetching ahead save?",
    ),
)

# The notebook tensor_cores asks about depth, padding and half-used sectors of the Tensor Core kernel.
SMALL_BLOCKS = "BM=64 BN=64 BK=64 WM=32 WN=64"
TENSOR_CORES = (
    Asked("wmma", "BK=16", USUAL, "Barriers four times as often, the same wavefronts. What waits?"),
    Asked("wmma", "PAD=0", USUAL, "8 wavefronts per 8 rows of A's fragments instead of 1."),
    Asked(
        "wmma",
        f"{SMALL_BLOCKS} PAD=8",
        USUAL,
        "Fewer wavefronts than with a padding of 16, and slower: because rows begin inside a sector?",
    ),
    Asked("wmma", f"{SMALL_BLOCKS} PAD=16", USUAL, "Twice the wavefronts of a padding of 8, and faster."),
)

ASKED = (*NAIVE, *RESIDENCY, *THREAD_TILES, *VECTORIZED, *TENSOR_CORES)
