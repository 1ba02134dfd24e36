"""Checks ``naive_counts``: requests and sectors of the naive kernel's loads, as formulas."""

from gemm_course.checks.engines.tables import Part, Slip, names_without_effect, table_exercise, whole_numbers

SIZES = (
    (32, 32, 1),
    (64, 32, 1),
    (32, 96, 1),
    (32, 32, 8),
    (64, 32, 8),
    (128, 64, 40),
    (256, 192, 7),
    (1024, 1024, 1024),
)
# A warp has 32 lanes. In each step along k it loads 33 sectors of A and B together.
WARP, SECTORS = 32, 33

REQUEST_SLIPS = (
    Slip(
        "Those are elements, one per lane. A request is one access of a whole warp, for 32 lanes: divide.",
        lambda m, n, k: 2 * m * n * k,
    ),
    Slip(
        "Those are the requests for one matrix. A warp loads from A and from B in each step.",
        lambda m, n, k: m * n * k // WARP,
    ),
    Slip(
        "That is one step of the loop. A warp takes k steps.",
        lambda m, n, k: 2 * m * n // WARP,
    ),
    Slip("Those are the requests of one warp. How many warps are there?", lambda m, n, k: 2 * k),
    Slip(
        "That counts blocks for warps. A block of 32 × 32 threads is 32 warps.",
        lambda m, n, k: 2 * k * (m * n // WARP**2),
    ),
    Slip(
        "The stores of C are counted in. The question is about loads.",
        lambda m, n, k: 2 * m * n * k // WARP + m * n // WARP,
    ),
)
SECTOR_SLIPS = (
    Slip(
        "That counts 33 sectors for each *thread*. They are those of a warp's two requests, and there are "
        "mn / 32 warps.",
        lambda m, n, k: SECTORS * m * n * k,
    ),
    Slip(
        "That takes 9 sectors for a warp's step, as in blocks of 8 × 32. Here a warp has 32 rows of A.",
        lambda m, n, k: 9 * m * n * k // WARP,
    ),
    Slip(
        "Those are the sectors of A alone: 32 per k step of a warp. B takes one more.",
        lambda m, n, k: m * n * k,
    ),
    Slip(
        "That takes 32 sectors for B as well. All lanes read the same element of B: a broadcast, 1 sector.",
        lambda m, n, k: 2 * m * n * k,
    ),
    Slip(
        "That is one step of the loop. A warp takes k steps.",
        lambda m, n, k: SECTORS * m * n // WARP,
    ),
    Slip("Those are the sectors of one warp. How many warps are there?", lambda m, n, k: SECTORS * k),
    Slip(
        "That is 33 sectors for a block in each step. It has 32 warps, and each of them touches 33.",
        lambda m, n, k: SECTORS * k * (m * n // WARP**2),
    ),
    Slip(
        "That takes each sector of A once for 8 steps. L1 still holds it then, but every request touches its "
        "32 sectors again, and they count again.",
        lambda m, n, k: (WARP // 8 + 1) * m * n * k // WARP,
    ),
    Slip(
        "The stores of C are counted in. The question is about loads.",
        lambda m, n, k: SECTORS * m * n * k // WARP + m * n,
    ),
)
SWAPPED = Slip(
    "The two are swapped: return the requests first, then the sectors.",
    lambda m, n, k: (SECTORS * m * n * k // WARP, 2 * m * n * k // WARP),
)


@table_exercise(
    start="`load_counts` returns None. Begin with one warp and one step along k: how many requests does it "
    "make, how many sectors do they touch?",
    hints=(
        "In one step a warp makes two requests: one for A, 32 sectors, and one for B, 1 sector.",
        "There are `m * n // 32` warps, and each takes k steps.",
        "`2 * m * n * k // 32` requests, `33 * m * n * k // 32` sectors.",
    ),
    cases=SIZES,
    slips=(SWAPPED,),
    parts=(Part("requests", 0, REQUEST_SLIPS), Part("sectors", 1, SECTOR_SLIPS)),
    otherwise=names_without_effect("m", "n", "k"),
    read=whole_numbers("requests", "sectors", floats=True),
    passed=f"Right for {len(SIZES)} sizes. Now compare with the emulator and with the hardware's counters.",
)
def naive_counts(m, n, k):
    """load_counts(m, n, k) -> (requests, sectors) of all loads of naive_uncoalesced; m, n multiples of 32."""
    steps = m * n * k // WARP
    return 2 * steps, SECTORS * steps
