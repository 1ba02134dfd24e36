"""What the browser tests type into a cell of each notebook, by topic: a wrong solution and a right one."""

_COALESCED = """@cuda.jit
def coalesced(m, n, k, alpha, A, B, beta, C):
    {order} = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]


check.coalesced(coalesced)"""

_ADD = """@cuda.jit
def vector_add(a, b, out):
    i = cuda.grid(1)
    {guard}
        out[i] = a[i] + b[i]


check.vector_add(vector_add)"""

_WAVES = """def last_wave(m, n, BM, BN):
    tiles = -(-m // BM) * -(-n // BN)
    return tiles, -(-tiles // 132), {last}


check.last_wave(last_wave)"""

_OWNERS = """def elements(tid, BN, WM, WN, TN, WNITER):
    WMITER = WM * WN // (32 * TN * WNITER)
    WSUBM, WSUBN = WM // WMITER, WN // WNITER
    row = tid // 32 // (BN // WN) * WM + tid % 32 // (WSUBN // TN)
    col = tid // 32 % (BN // WN) * WN + tid % 32 % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i{stride}, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


check.owner_map(elements)"""

_WAVEFRONTS = """wavefronts = {{
    "8 × 4": ((2, 1), (2, 4)),
    "4 × 8": ((1, 2), (2, {b})),
    "4 × 8, runs of four": ((1, 1), (2, 4)),
    "16 × 2, runs of four": ((2, 1), (2, 2)),
}}

check.warp_wavefronts(wavefronts)"""

_FETCH_B = """def make_fetch_b(BM, BN, BK, TM, TN):
    @cuda.jit(device=True)
    def fetch_b(m, n, k, k0, A, B, As, Bs):
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col0 = cuda.blockIdx.x * BN
        for r in range(ty, BK, BM // TM):
            for j in range(TN):
                c = {column}
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)

    return fetch_b


check.coalesced_b(make_fetch_b)"""

_STRIP = """def make_strip(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        count = min(R, (n - first + 31) // 32)
        for i in range(R):
            acc[i] = 0
        for p in range(k):
            for i in range({loop}):
                if first + 32 * i < n:
                    acc[i] += x[p] * A[p, first + 32 * i]
        for i in range(R):
            if first + 32 * i < n:
                y[first + 32 * i] = acc[i]

    return strip


check.in_registers(make_strip)"""

TYPED = {
    "warps_in_waiting": (
        "ex-tile_sectors",
        "check.tile_sectors(lambda BK: 32 // BK)",
        "check.tile_sectors(lambda BK: 32 // BK * max(1, BK // 8))",
    ),
    "kernel5": (
        "ex-coalesced_b",
        _FETCH_B.format(column="tx * TN + j"),
        _FETCH_B.format(column="tx + j * (BN // TN)"),
    ),
    "kernels_on_trial": (
        "ex-smallest_failing_shape",
        "check.smallest_failing_shape(a=(1, 1, 1), b=(1, 1, 1), c=(2, 1, 1), d=(1, 1, 5))",
        "check.smallest_failing_shape(a=(1, 1, 1), b=(1, 1, 5), c=(2, 1, 1), d=(1, 1, 5))",
    ),
    "welcome": (
        "ex-vector_add",
        _ADD.format(guard="if i <= out.size:"),
        _ADD.format(guard="if i < out.size:"),
    ),
    "naive": (
        "ex-naive_sectors",
        "check.naive_sectors(A=32, B=1, C=32)",
        "check.naive_sectors(A=8, B=1, C=8)",
    ),
    "coalesced": (
        "ex-coalesced",
        _COALESCED.format(order="row, col"),
        _COALESCED.format(order="col, row"),
    ),
    "shared_memory_tiles": (
        "ex-first_loads",
        'check.first_loads([("A", 1, 0), ("B", 3, 0), ("A", 3, 0), ("B", 3, 2)])',
        'check.first_loads([("A", 0, 1), ("B", 0, 3), ("A", 0, 3), ("B", 2, 3)])',
    ),
    "thread_tiles_1d": (
        "ex-in_registers",
        _STRIP.format(loop="count"),
        _STRIP.format(loop="R"),
    ),
    "thread_tiles_2d": (
        "ex-draft_is_right",
        "check.draft_is_right(lambda BM, BN, BK, TM, TN: BK <= BN // TN and BK <= BM // TM)",
        "check.draft_is_right(lambda BM, BN, BK, TM, TN: BK == BN // TN == BM // TM)",
    ),
    "vectorized_access": (
        "ex-scatter_padding",
        "check.scatter_padding(wavefronts=[4, 1, 2], take=2)",
        "check.scatter_padding(wavefronts=[4, 1, 2], take=4)",
    ),
    "warp_loops": (
        "ex-owner_map",
        _OWNERS.format(stride=""),
        _OWNERS.format(stride=" * WSUBM"),
    ),
    "warp_tiles": (
        "ex-warp_wavefronts",
        _WAVEFRONTS.format(b=4),
        _WAVEFRONTS.format(b=8),
    ),
    "tensor_cores": (
        "ex-padding_wavefronts",
        "check.padding_wavefronts((8, 2, 1))",
        "check.padding_wavefronts((8, 1, 2))",
    ),
    "overlap": (
        "ex-ring_places",
        "check.ring_places(lambda t, SLOTS: (t % SLOTS, t % SLOTS, t + SLOTS - 1))",
        "check.ring_places(lambda t, SLOTS: (t % SLOTS, (t - 1) % SLOTS, t + SLOTS - 1))",
    ),
    "mma_sync": (
        "ex-swizzle",
        "def place(row, piece):\n    return piece\n\n\ncheck.swizzle(place)",
        "def place(row, piece):\n    return piece ^ row % 8\n\n\ncheck.swizzle(place)",
    ),
    "hopper": (
        "ex-parities",
        "check.parities(lambda step, SLOTS: (step % SLOTS, step // SLOTS % 2, step // SLOTS % 2))",
        "check.parities(lambda step, SLOTS: (step % SLOTS, step // SLOTS % 2, 1 - step // SLOTS % 2))",
    ),
    "last_per_cent": (
        "ex-last_wave",
        _WAVES.format(last="tiles % 132"),
        _WAVES.format(last="(tiles - 1) % 132 + 1"),
    ),
}
