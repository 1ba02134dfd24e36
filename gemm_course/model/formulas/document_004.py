"""Holds document 004's formulas (Lei Mao): the kernels v00 to v07, from one element per thread to fragments.

The document's d_bm, d_bn, d_bk are BM, BN, BK here, d_tm and d_tn are TM and TN, d_wm and d_wn are WM and WN,
and m_t by n_t lanes of a warp are LANES_Y by LANES_X. ``tid`` is the document's thread_linear_idx, and
`iteration` its load_idx.
"""

from __future__ import annotations

from gemm_course.model.formulas.registry import formula

# A 128-bit access moves this many floats, the document's NUM_VECTOR_UNITS.
VECTOR = 4

# A place is (row, column).
Place = tuple[int, int]
# A block, a thread and the size of a grid are (x, y).
Block = tuple[int, int]


def _over(length: int, tile: int) -> int:
    return (length + tile - 1) // tile


# ---- v00, v01: one thread per element ----------------------------------------------------------------------


@formula("004.naive_loads", "Naive implementation: D = sum over t_k of A B + C")
def naive_loads(m: int, n: int, k: int) -> int:
    """Return how many elements of A and B all threads of v00 or v01 load: k of each per element of C."""
    return 2 * m * n * k


@formula("004.flops", "General matrix multiplication: D = A B + C")
def flops(m: int, n: int, k: int) -> int:
    """Return the operations of the sums: a multiplication and an addition for each t_k."""
    return 2 * m * n * k


@formula("004.v00_element", "v00: C_row_idx, C_col_idx")
def v00_element(block: Block, thread: Block, block_dim: Block) -> Place:
    """Return the row and the column of C in v00, where x goes down the rows."""
    return tuple(b * d + t for b, d, t in zip(block, block_dim, thread, strict=True))


@formula("004.v01_element", "v01: C_col_idx, C_row_idx")
def v01_element(block: Block, thread: Block, block_dim: Block) -> Place:
    """Return the row and the column of C in v01, where x goes along the columns."""
    column, row = v00_element(block, thread, block_dim)
    return row, column


@formula("004.v00_grid", "v00: grid_dim")
def v00_grid(m: int, n: int, block_dim: Block) -> Block:
    return _over(m, block_dim[0]), _over(n, block_dim[1])


@formula("004.v01_grid", "v01 and later: grid_dim")
def v01_grid(m: int, n: int, block_dim: Block) -> Block:
    """Return the grid (x, y) of v01 and later.

    ``block_dim`` is the columns and rows of C that a block covers.
    """
    return _over(n, block_dim[0]), _over(m, block_dim[1])


# ---- v02: tiles in shared memory -------------------------------------------------------------------------


@formula("004.tiles_along_k", "2D block tiling: num_thread_block_tiles")
def tiles_along_k(k: int, BK: int) -> int:
    """Return how many tiles of A and of B a block fetches one after another."""
    return _over(k, BK)


@formula("004.blocks", "2D block tiling: b_m in [1, m/d_bm], b_n in [1, n/d_bn]")
def blocks(m: int, n: int, BM: int, BN: int) -> int:
    return _over(m, BM) * _over(n, BN)


@formula("004.v02_threads", "2D block tiling: d_bm × d_bn threads per block")
def v02_threads(BM: int, BN: int) -> int:
    return BM * BN


@formula("004.tiled_loads", "2D block tiling: d_bm × d_bk of A and d_bk × d_bn of B, k/d_bk times")
def tiled_loads(m: int, n: int, k: int, BM: int, BN: int) -> int:
    """Return how many elements of A and B all blocks load from global memory. BM must divide m, and BN n."""
    return m * n * k // BN + m * n * k // BM


@formula("004.A_iterations", "load_data_to_shared_memory: iterations for A")
def iterations_for_a(BM: int, BK: int, threads: int) -> int:
    return (BM * BK + threads - 1) // threads


@formula("004.B_iterations", "load_data_to_shared_memory: iterations for B")
def iterations_for_b(BK: int, BN: int, threads: int) -> int:
    return (BK * BN + threads - 1) // threads


@formula("004.A_tile_idx", "load_data_to_shared_memory: A_thread_block_tile_row_idx and _col_idx")
def place_in_a_tile(tid: int, iteration: int, threads: int, BK: int) -> Place:
    return (tid + iteration * threads) // BK, (tid + iteration * threads) % BK


@formula("004.B_tile_idx", "load_data_to_shared_memory: B_thread_block_tile_row_idx and _col_idx")
def place_in_b_tile(tid: int, iteration: int, threads: int, BN: int) -> Place:
    return (tid + iteration * threads) // BN, (tid + iteration * threads) % BN


@formula("004.A_idx", "load_data_to_shared_memory: A_row_idx, A_col_idx")
def element_of_a(block_y: int, tile: int, place: Place, BM: int, BK: int) -> Place:
    """Return the element of A that belongs at a place of the tile number `tile` along k."""
    return block_y * BM + place[0], tile * BK + place[1]


@formula("004.B_idx", "load_data_to_shared_memory: B_row_idx, B_col_idx")
def element_of_b(block_x: int, tile: int, place: Place, BN: int, BK: int) -> Place:
    """Return the element of B that belongs at a place of the tile number `tile` along k."""
    return tile * BK + place[0], block_x * BN + place[1]


@formula("004.v02_reads", "2D block tiling and 1D thread tiling: 2 d_bk before")
def v02_reads(BK: int) -> int:
    """Return how many elements of shared memory are read for one result in a tile."""
    return 2 * BK


# ---- v03, v04: several results per thread ----------------------------------------------------------------


@formula("004.v03_threads", "v03: NUM_THREADS; t_m in [1, d_bm/d_tm], t_n in [1, d_bn]")
def v03_threads(BM: int, BN: int, TM: int) -> int:
    return BM * BN // TM


@formula("004.v03_reads", "1D thread tiling: d_bk × d_tm + d_bk")
def v03_reads(BK: int, TM: int) -> int:
    """Return how many elements of shared memory a thread reads in a tile, for its TM results."""
    return BK * TM + BK


@formula("004.v03_reads_per_result", "1D thread tiling: d_bk + d_bk/d_tm")
def v03_reads_per_result(BK: int, TM: int) -> float:
    return BK + BK / TM


@formula("004.v03_element", "v03: C_row_idx, C_col_idx")
def v03_element(block: Block, tid: int, i: int, BM: int, BN: int, TM: int) -> Place:
    """Return the row and the column of C of a thread's i-th result."""
    return block[1] * BM + tid // BN * TM + i, block[0] * BN + tid % BN


@formula("004.v03_A_read", "v03: A_thread_block_tile_row_idx in the inner loop")
def v03_row_of_a(tid: int, i: int, BN: int, TM: int) -> int:
    """Return the row of A's tile that a thread reads for its i-th result."""
    return tid // BN * TM + i


@formula("004.v04_threads", "v04: NUM_THREADS; t_m in [1, d_bm/d_tm], t_n in [1, d_bn/d_tn]")
def v04_threads(BM: int, BN: int, TM: int, TN: int) -> int:
    return BM * BN // (TM * TN)


@formula("004.v04_reads", "2D thread tiling: d_bk × (d_tm + d_tn)")
def v04_reads(BK: int, TM: int, TN: int) -> int:
    """Return how many elements of shared memory a thread reads in a tile, for its TM by TN results."""
    return BK * (TM + TN)


@formula("004.v04_reads_per_result", "2D thread tiling: d_bk/d_tm + d_bk/d_tn")
def v04_reads_per_result(BK: int, TM: int, TN: int) -> float:
    """Return how many elements of shared memory are read for one of TM by TN results in a tile."""
    return BK / TM + BK / TN


@formula("004.v04_element", "v04 and v05: C_row_idx, C_col_idx")
def v04_element(block: Block, tid: int, i: int, j: int, BM: int, BN: int, TM: int, TN: int) -> Place:
    """Return the row and the column of C of a thread's result (i, j)."""
    return block[1] * BM + tid // (BN // TN) * TM + i, block[0] * BN + tid % (BN // TN) * TN + j


# ---- v05: four floats at a time --------------------------------------------------------------------------


@formula("004.v05_A_iterations", "load_data_..._transposed_vectorized: iterations for A")
def v05_iterations_for_a(BM: int, BK: int, threads: int) -> int:
    return (BM * (BK // VECTOR) + threads - 1) // threads


@formula("004.v05_B_iterations", "load_data_..._transposed_vectorized: iterations for B")
def v05_iterations_for_b(BK: int, BN: int, threads: int) -> int:
    return (BK * (BN // VECTOR) + threads - 1) // threads


@formula("004.v05_A_tile_idx", "load_data_..._transposed_vectorized: A's place in its tile")
def v05_place_in_a_tile(tid: int, iteration: int, threads: int, BK: int) -> Place:
    """Return the row and the column of the first of four elements. Element e goes to As[column + e, row]."""
    number = tid + iteration * threads
    return number // (BK // VECTOR), number % (BK // VECTOR) * VECTOR


@formula("004.v05_B_tile_idx", "load_data_..._transposed_vectorized: B's place in its tile")
def v05_place_in_b_tile(tid: int, iteration: int, threads: int, BN: int) -> Place:
    """Return the row and the column of the first of four elements."""
    number = tid + iteration * threads
    return number // (BN // VECTOR), number % (BN // VECTOR) * VECTOR


@formula("004.alignment", "load_data_..._transposed_vectorized: (BLOCK_TILE_SIZE_Y + SKEW) * sizeof(T) % 16")
def rows_are_aligned(width: int, pad: int) -> bool:
    """Tell whether every row of a shared tile of float32 starts at a multiple of 16 bytes."""
    return (width + pad) * 4 % 16 == 0


# ---- v06: warp tiles -------------------------------------------------------------------------------------


@formula("004.v06_lanes", "2D warp tiling: m_t × n_t = 32")
def v06_lanes(LANES_X: int, LANES_Y: int) -> bool:
    """Tell whether so many columns and rows of lanes make a warp."""
    return LANES_X * LANES_Y == 32


@formula("004.v06_warps", "v06: NUM_WARPS_X, NUM_WARPS_Y")
def v06_warps(BM: int, BN: int, WM: int, WN: int) -> tuple[int, int]:
    """Return how many warps a block has along x and along y."""
    return BN // WN, BM // WM


@formula("004.v06_threads", "v06: NUM_THREADS")
def v06_threads(BM: int, BN: int, WM: int, WN: int, LANES_X: int, LANES_Y: int) -> int:
    warps_x, warps_y = v06_warps(BM, BN, WM, WN)
    return warps_x * LANES_X * (warps_y * LANES_Y)


@formula("004.v06_tiles_per_warp", "2D warp tiling: (d_wm/m_t)/d_tm and (d_wn/n_t)/d_tn")
def v06_thread_tiles(WM: int, WN: int, TM: int, TN: int, LANES_X: int, LANES_Y: int) -> tuple[int, int]:
    """Return how many thread tiles each lane computes, down and across the warp tile."""
    return WM // (TM * LANES_Y), WN // (TN * LANES_X)


@formula("004.v06_warp_idx", "v06: warp_row_idx, warp_col_idx")
def v06_warp(tid: int, BN: int, WN: int) -> Place:
    """Return the row and the column of a thread's warp among those of the block."""
    return tid // 32 // (BN // WN), tid // 32 % (BN // WN)


@formula("004.v06_lane_idx", "v06: thread_linear_row_idx_in_warp, thread_linear_col_idx_in_warp")
def v06_lane(tid: int, LANES_X: int) -> Place:
    """Return the row and the column of a thread among those of its warp."""
    return tid % 32 // LANES_X, tid % 32 % LANES_X


@formula("004.v06_owner", "2D warp tiling: thread (t_m mod m_t, t_n mod n_t)")
def v06_owner(tile_row: int, tile_col: int, LANES_X: int, LANES_Y: int) -> Place:
    """Return the row and the column of the lane that computes a thread tile of the warp tile."""
    return tile_row % LANES_Y, tile_col % LANES_X


@formula("004.v06_A_read", "v06: A_thread_block_tile_row_idx in the inner loop")
def v06_row_of_a(tid: int, i: int, BN: int, WM: int, WN: int, TM: int, LANES_X: int, LANES_Y: int) -> int:
    """Return the first column of transposed As that a lane reads for its i-th thread tile down."""
    repeats = WM // (TM * LANES_Y)
    return v06_warp(tid, BN, WN)[0] * WM + i * (WM // repeats) + v06_lane(tid, LANES_X)[0] * TM


@formula("004.v06_B_read", "v06: B_thread_block_tile_col_idx in the inner loop")
def v06_column_of_b(tid: int, j: int, BN: int, WN: int, TN: int, LANES_X: int) -> int:
    """Return the first column of Bs that a lane reads for its j-th thread tile across."""
    repeats = WN // (TN * LANES_X)
    return v06_warp(tid, BN, WN)[1] * WN + j * (WN // repeats) + v06_lane(tid, LANES_X)[1] * TN


@formula("004.v06_reads", "v06: A_vals and B_vals, filled for each k_i")
def v06_reads(WM: int, WN: int, TM: int, TN: int, LANES_X: int, LANES_Y: int) -> int:
    """Return how many elements of shared memory a thread reads in one step along k."""
    down, across = v06_thread_tiles(WM, WN, TM, TN, LANES_X, LANES_Y)
    return down * TM + across * TN


# ---- v07: Tensor Cores -----------------------------------------------------------------------------------

# A fragment has this many rows, columns and steps of depth, the document's d_tm, d_tn and d_tk.
WMMA = 16


@formula("004.v07_threads", "v07: NUM_THREADS_PER_BLOCK")
def v07_threads(BM: int, BN: int, WM: int, WN: int) -> int:
    warps_x, warps_y = v06_warps(BM, BN, WM, WN)
    return warps_x * warps_y * 32


@formula("004.v07_tiles", "v07: NUM_WMMA_TILES_Y, _X, _K")
def v07_fragments(WM: int, WN: int, BK: int) -> tuple[int, int, int]:
    """Return how many fragments a warp's tile has down and across, and along k in a tile of the block."""
    return WM // WMMA, WN // WMMA, BK // WMMA


@formula("004.v07_mma", "v07: mma_sync in its three loops")
def v07_products(WM: int, WN: int, BK: int) -> int:
    """Return how many multiply-adds one warp does for one tile along k: 16 · 16 · 16 per call."""
    down, across, deep = v07_fragments(WM, WN, BK)
    return down * across * deep * WMMA**3


@formula("004.v07_A_fragment", "v07: the address in load_matrix_sync of a_frags")
def v07_place_in_as(warp_row: int, i: int, step: int, WM: int) -> Place:
    """Return the row of A's tile and the column along k where a warp's i-th fragment starts.

    As holds it transposed.
    """
    return warp_row * WM + i * WMMA, step * WMMA


@formula("004.v07_B_fragment", "v07: the address in load_matrix_sync of b_frags")
def v07_place_in_bs(warp_col: int, j: int, step: int, WN: int) -> Place:
    """Return the row and the column of B's tile at which a warp's j-th fragment across starts."""
    return step * WMMA, warp_col * WN + j * WMMA


@formula("004.v07_C", "v07: the address in store_matrix_sync, in rows and columns")
def v07_element(block: Block, warp: Place, i: int, j: int, BM: int, BN: int, WM: int, WN: int) -> Place:
    """Return the row and the column of C at which a warp's fragment (i, j) starts."""
    row = block[1] * BM + warp[0] * WM + i * WMMA
    return row, block[0] * BN + warp[1] * WN + j * WMMA
