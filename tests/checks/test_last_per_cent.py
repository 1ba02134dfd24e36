"""The exercises of the notebook `last_per_cent`: right answers in other styles."""

from numba import cuda, float32, int32

from gemm_course import check


@cuda.jit
def counted_down(k, left, right, parts_done, counts, out):
    """Every thread asks for the count through another kind of flag."""
    last = cuda.shared.array((1,), int32)
    i = cuda.blockIdx.y * 8 + cuda.threadIdx.y
    j = cuda.blockIdx.x * 8 + cuda.threadIdx.x
    z, many = cuda.blockIdx.z, cuda.gridDim.z
    total = float32(0)
    for p in range(k * z // many, k * (z + 1) // many):
        total += left[i, p] * right[p, j]
    parts_done[z, i, j] = total
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x + cuda.threadIdx.y == 0:
        found = cuda.atomic.add(counts, (cuda.blockIdx.y, cuda.blockIdx.x), 1) + 1
        last[0] = 1 if found == many else 0
        if found == many:
            counts[cuda.blockIdx.y, cuda.blockIdx.x] = 0
    cuda.syncthreads()
    if last[0]:
        cuda.threadfence()
        total = float32(0)
        for p in range(many):
            total += parts_done[p, i, j]
        out[i, j] = total


@cuda.jit
def reset_by_all(k, A, B, partials, done, C):
    """All threads of the last block store the same 0."""
    before = cuda.shared.array(1, int32)
    row = cuda.blockIdx.y * 8 + cuda.threadIdx.y
    col = cuda.blockIdx.x * 8 + cuda.threadIdx.x
    part, parts = cuda.blockIdx.z, cuda.gridDim.z
    mine = float32(0)
    for p in range(k * part // parts, k * (part + 1) // parts):
        mine += A[row, p] * B[p, col]
    partials[part, row, col] = mine
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
        before[0] = cuda.atomic.add(done, (cuda.blockIdx.y, cuda.blockIdx.x), 1)
        cuda.threadfence()  # one thread's, and then a barrier, as in stream_k_fp16
    cuda.syncthreads()
    if before[0] == parts - 1:
        total = float32(0)
        for p in range(parts):
            total += partials[p, row, col]
        C[row, col] = total
        done[cuda.blockIdx.y, cuda.blockIdx.x] = 0


def test_another_way_to_say_who_is_last_passes():
    assert check.last_arrival(counted_down).passed


def test_all_threads_of_the_last_block_may_reset_the_count():
    assert check.last_arrival(reset_by_all).passed


def test_a_generator_of_lists_passes():
    def parts(block, blocks, tiles, steps):
        at, stop = (tiles * steps * b // blocks for b in (block, block + 1))
        for tile in range(tiles):
            a, z = max(at, tile * steps), min(stop, (tile + 1) * steps)
            if a < z:
                yield [tile, a - tile * steps, z - tile * steps]

    assert check.stream_k_parts(parts).passed


def test_waves_by_rounding_pass():
    import math

    def waves(m, n, BM, BN):
        tiles = math.ceil(m / BM) * math.ceil(n / BN)
        return [tiles, math.ceil(tiles / 132), tiles % 132 or 132]

    assert check.last_wave(waves).passed
