"""The emulator finds the mistakes that lock-step hides in the Tensor Core kernels: each slip, by its kind.

compute-sanitizer's racecheck has blind spots where copies are asynchronous; there, these tests stand in.
"""

import dataclasses
import importlib.util
import inspect

import pytest

from gemm_course.kernels import b01_wmma as wmma
from gemm_course.kernels import b03_mma_ring as mma_ring
from gemm_course.kernels import b04_mma_sync as mma_sync
from gemm_course.kernels import c01_mma_tma as mma_tma
from gemm_course.kernels import c02_wgmma_tma as wgmma_tma
from gemm_course.kernels import c03_warp_specialised as warp_specialised
from gemm_course.kernels import c04_persistent as persistent
from gemm_course.kernels import c05_staged_store as staged_store
from gemm_course.kernels import c06_overlapped_store as overlapped_store
from gemm_course.kernels.parts import mma_tiles
from lockstep import Deadlock

LAST_WAIT = "                wgmma_wait(0)\n"
LAST_SLOT = """                if steps > 0 and lane == 0:
                    mbarrier_arrive(empty, before)  # the producer may fetch for the next tile
"""
LOOP_START = """        cp_async_wait(IN_FLIGHT)
        cuda.syncthreads()
        slot"""
LOOP_END = """            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()
            after"""
SLIPS = {
    "the first tile is multiplied before it has arrived": (
        mma_ring,
        (LOOP_START, LOOP_START.replace("(IN_FLIGHT)", "(IN_FLIGHT + 1)")),
        "async_read_too_early",
    ),
    "the next tile is multiplied before it has arrived": (
        mma_ring,
        (LOOP_END, LOOP_END.replace("(IN_FLIGHT)", "(IN_FLIGHT + 1)")),
        "async_read_too_early",
    ),
    "only a part of a tile's copies is committed with it": (
        mma_ring,
        ("if part == STEPS - 1:", "if part == 0:"),
        "async_read_too_early",
    ),
    "a tile is multiplied before everybody has fetched": (
        mma_ring,
        (LOOP_START, LOOP_START.replace("cuda.syncthreads()", "cuda.syncwarp()")),
        "shared_race",
    ),
    "a slot is filled before everybody has read it": (
        mma_ring,
        (LOOP_END, LOOP_END.replace("cuda.syncthreads()", "cuda.syncwarp()")),
        "shared_race",
    ),
    "the slot that is filled is the one that is read": (
        mma_ring,
        (
            "free, slot = slot, u32(0) if after == SLOTS else after",
            "free = slot = u32(0) if after == SLOTS else after",
        ),
        "shared_race",
    ),
    "the wait lets one copy too many be under way": (
        mma_sync,
        (LOOP_END, LOOP_END.replace("(IN_FLIGHT)", "(IN_FLIGHT + 1)")),
        "async_read_too_early",
    ),
    "nobody waits for the others before the next tile": (
        mma_sync,
        (LOOP_END, LOOP_END.replace("cuda.syncthreads()", "cuda.syncwarp()")),
        "shared_race",
    ),
    "the ring is filled where it is being read": (
        mma_sync,
        ("slot, free = u32(0), u32(SLOTS - 1)", "slot, free = u32(0), u32(0)"),
        "shared_race",
    ),
    "results are stored by lanes that did not wait for the warp": (
        mma_tiles,
        (
            "(acc[i, j, h * 2], acc[i, j, h * 2 + 1]))\n            cuda.syncwarp()",
            "(acc[i, j, h * 2], acc[i, j, h * 2 + 1]))",
        ),
        "shared_race",
    ),
    "all warps pass their results through one place": (
        mma_tiles,
        ("store2(Cs, (warp, y, x)", "store2(Cs, (0, y, x)"),
        "shared_race",
    ),
    "the copies are not waited for": (wmma, ("cp_async_wait(0)", "cp_async_wait(1)"), "async_read_too_early"),
    "the tiles are multiplied before everybody has fetched": (
        wmma,
        ("cp_async_wait(0)\n            cuda.syncthreads()", "cp_async_wait(0)\n            cuda.syncwarp()"),
        "shared_race",
    ),
    "the tiles are fetched while others multiply": (
        wmma,
        ("            cuda.syncthreads()\n            k0 += BK", "            k0 += BK"),
        "shared_race",
    ),
    "accumulators are read by lanes that did not wait for the warp": (
        wmma,
        (
            "wmma_store(Cs, (warp, 0, 0), acc[i, j], ROW_MAJOR)\n                cuda.syncwarp()",
            "wmma_store(Cs, (warp, 0, 0), acc[i, j], ROW_MAJOR)",
        ),
        "shared_race",
    ),
    "all warps pass their accumulators through one place": (
        wmma,
        ("wmma_store(Cs, (warp, 0, 0)", "wmma_store(Cs, (0, 0, 0)"),
        "shared_race",
    ),
    "a slot is given back before its last fragments are loaded": (
        mma_tma,
        (
            "if p == 0 and step > 0 and lane == 0:\n                    mbarrier_arrive(empty, before)",
            "if p == 0 and lane == 0:\n                    mbarrier_arrive(empty, slot)",
        ),
        "shared_race",
    ),
    "fragments are loaded from a slot that was given back": (
        mma_tma,
        ("rest(Bs, slot * B_TILE)", "rest(Bs, before * B_TILE)"),
        "shared_race",
    ),
    "a slot is refilled while products still read it": (
        wgmma_tma,
        ("wgmma_wait(1)", "wgmma_wait(2)"),
        "shared_race",
    ),
    "a slot is given back while products still read it": (
        warp_specialised,
        ("wgmma_wait(1)", "wgmma_wait(2)"),
        "shared_race",
    ),
    "products do not wait until the accumulators are zeroed": (
        warp_specialised,
        ("wgmma_fence()", "pass"),
        "missing_fence",
    ),
    "a tile's last slot is given back while products still read it": (
        persistent,
        (LAST_WAIT + LAST_SLOT, LAST_SLOT + LAST_WAIT),
        "shared_race",
    ),
    "results are stored before the last products are complete": (
        persistent,
        (LAST_WAIT, ""),
        "async_read_too_early",
    ),
    "results overwrite those that TMA still reads": (
        staged_store,
        (
            "tma_wait_read(0)\n                    mbarrier_arrive(c_empty, w)",
            "mbarrier_arrive(c_empty, w)\n                    tma_wait_read(0)",
        ),
        "shared_race",
    ),
    "TMA stores results that it cannot see yet": (
        staged_store,
        ("fence_async()\n        cuda.syncwarp()", "cuda.syncwarp()"),
        "missing_fence",
    ),
    "results count as stored while TMA still reads them": (
        staged_store,
        ("tma_wait_read(0)", "pass"),
        "missing_wait",
    ),
}
HANGS = {  # who then waits for what
    "a tile's last slot is never given back": (
        persistent,
        (LAST_SLOT, ""),
        r"warp 0 waits .* of empty\[2\], which still needs 8 arrivals",
    ),
    "consumers begin each tile in the first slot": (
        persistent,
        ("                row0,", "                slot, parity = u32(0), u32(0)\n                row0,"),
        r"warp 0 waits .* of empty\[0\], which still needs 8 arrivals",
    ),
    "results are written without waiting for room": (
        staged_store,
        ("mbarrier_wait(c_empty, w, c_parity ^ 1)", "pass"),
        r"warp 1 waits .* of c_full\[0\], which still needs 4 arrivals",
    ),
    "results are stored without waiting for them": (
        staged_store,
        ("mbarrier_wait(c_full, w, parity)", "pass"),
        r"warps 4 to 7 wait .* of c_empty\[0\], which still needs 1 arrival",
    ),
}
USERS = {mma_tiles: (mma_sync,), staged_store: (staged_store, overlapped_store)}  # of a module's functions
SLIPS_IN_STAGES = [(slip, user) for slip in SLIPS for user in USERS.get(SLIPS[slip][0], (SLIPS[slip][0],))]
RING = {"BM": 128, "BN": 128, "BK": 32, "WM": 64, "SLOTS": 3, "GROUP": 2}
TILES = {
    wgmma_tma: RING,
    warp_specialised: RING,
    persistent: RING | {"BLOCKS": 1},
    staged_store: RING | {"PARTS": 2, "BLOCKS": 1},
    overlapped_store: RING | {"PARTS": 2, "BLOCKS": 1},
    mma_tma: {"BM": 128, "BN": 64, "BK": 32, "WM": 32, "WN": 32, "SLOTS": 3, "GROUP": 1},
    mma_ring: {"BM": 64, "BN": 64, "BK": 32, "WM": 32, "WN": 32, "SLOTS": 3, "GROUP": 1},
    mma_sync: {"BM": 64, "BN": 64, "BK": 32, "WM": 32, "WN": 32, "SLOTS": 3, "GROUP": 1},
    wmma: {"BM": 64, "BN": 64, "BK": 16, "WM": 32, "WN": 32},
}

MANY_TILES = (300, 130, 96)
SHAPES = {persistent: MANY_TILES, staged_store: MANY_TILES, overlapped_store: MANY_TILES}


def altered(module, change, folder):
    """The module with one change in its source, loaded from a file of its own."""
    before, after = change
    source = inspect.getsource(module)
    assert source.count(before) == 1, before
    path = folder / "altered.py"
    path.write_text(source.replace(before, after))
    spec = importlib.util.spec_from_file_location("altered", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def stage_of(user, module, loaded, monkeypatch):
    """The stage of `user` with what it takes from `module` as in the altered copy; nothing is built yet."""
    if user is module:
        return loaded.STAGE
    for name, function in vars(module).items():
        if inspect.isfunction(function) and getattr(user, name, None) is function:
            monkeypatch.setattr(user, name, getattr(loaded, name))
    return dataclasses.replace(user.STAGE)


@pytest.mark.long
@pytest.mark.many(one_in=15, with_all=2)
@pytest.mark.parametrize(
    ("slip", "user"), SLIPS_IN_STAGES, ids=lambda value: getattr(value, "__name__", value).split(".")[-1]
)
def test_the_slip_is_found(slip, user, emulated, tmp_path, monkeypatch):
    module, change, kind = SLIPS[slip]
    stage = stage_of(user, module, altered(module, change, tmp_path), monkeypatch)
    report = emulated(stage, *SHAPES.get(user, (64, 64, 192)), tiles=TILES[user]).report
    assert kind in {finding.kind for finding in report.errors}, [str(finding) for finding in report.findings]


@pytest.mark.many(one_in=2)
@pytest.mark.parametrize("slip", HANGS)
def test_a_kernel_that_would_hang_says_who_waits_for_what(slip, emulated, tmp_path):
    module, change, message = HANGS[slip]
    loaded = altered(module, change, tmp_path)
    with pytest.raises(Deadlock, match=message):
        emulated(loaded.STAGE, *SHAPES[module], tiles=TILES[module])
