"""The solutions with one small slip each, made by machine: no checker lets one of them pass."""

import ast
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.checks.cells import checked_cells, verdict_of

SOLUTIONS = {
    name: source for name, source in checked_cells("solution").items() if "def " in source
}  # the others are numbers

COMPARED = {ast.Lt: (ast.LtE, ast.Gt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,)}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
}

# What lies past k stands beside a zero of the other tile: in every kernel that loads tiles like this.
FETCHED = {
    "As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(1)",
    "As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(-1)",
    "Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(1)",
    "Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(-1)",
}

# Slips that change nothing, such as what stands beside a zero in a product.
HARMLESS = {
    "two_slots": {"k // 15", "(3, 16, 16)", "17, 16)", "16, 17)"},  # as many tiles; longer rows, padding
    "ring_places": {"(t - SLOTS - 1) % SLOTS"},  # the same slot
    "any_ring": {
        "device=0",
        "device=2",
        "5 if p < k",
        "5 if q < k",
        "k else 1)",  # a byte of B beside a zero of A, or the other way round
        "k else -1)",
        "SLOTS, 17, 16)",
        "SLOTS, 16, 17)",
        "(k + 15) // 15",  # a tile of zeros more
        "(k + 16) // 16",
        "(t - SLOTS - 1) % SLOTS",
    },
    "several_warps": {  # as many fragments; longer rows of Cs, fragments that are not used
        "WM // 15",
        "WN // 15",
        "(WARPS, 17, 24)",
    },
    "ring_and_swizzle": {  # unused room, the same slot, and the same numbers of tiles, steps and pieces
        "(SLOTS, 17, 64)",
        "(SLOTS, 65, 64)",
        "array((9, 4)",
        "(k + 63) // 65",
        "(k + 62) // 64",
        "range(0, 63, 16)",
        "(t - SLOTS - 1) % SLOTS",
        "b[4:9]",
        "p // 7",
    },
    "reads_ahead": {  # longer rows, sets that are not used, the same slot, the same set, all zeroed in turn
        "BK, 33)",
        "array((3, 4)",
        "array((2, 5)",
        "array((5, 4)",
        "array((4, 5)",
        "acc[j, i] = 0",
        "(t - SLOTS - 1) % SLOTS",
        "(p - 1) % 2",
    },
    "shared_walk": {"if i % 2 != 0", "if i % 2 == 1"},  # the first row from the right
    "ring_goes_on": {"device=2"},
    "fused_epilogue": {"col <= n else", "n else float32(1)", "n else float32(-1)"},  # columns not stored
    "last_arrival": {  # any thread may count; rows from the end, as long as all agree
        "device=0",
        "device=2",
        "x == 1",
        "y == 1",
        "array(2, int32)",
        "8 - y",
        "8 - x",
        "before[-1]",
        "if y == 0:\n            done",  # several threads store the same 0
        "if x == 0:\n            done",
        "if True:\n            done",
        "if x == 0 or y == 0:\n            done",
        "if x != 0 and y == 0:\n            done",
        "if x == 0 and y != 0:\n            done",
    },
    "by_hand": {"array((3, 4)", "b[4:9]"},  # unused registers; a slice ends where the array ends
    "swizzle": {"piece - step"},  # rows may be moved either way
    "swizzle_any": {"9 // pieces"},  # the same for these lengths
    "legal_tiles": {"threads <= 1025"},  # threads come by 32
    "slices": {"device=2"},
    "coalesced_b": {"device=2"},
    "no_conflicts": {"BK + 2"},  # two words of padding do as well
    "ragged_fours": {  # zeros past k and below m stand beside zeros of Bs, or in rows that C does not have
        "float32(1)",
        "float32(-1)",
        "device=2",
    },
    "tile_sectors": {"32 // BK * max(1, BK // 7)"},  # for BK up to 32, a power of two
    "ragged_product": {
        "k else float16(1)",
        "k else float16(-1)",
        "n else float16(1)",
        "n else float16(-1)",
    },
    "consumer": {  # step 0 gives none back; any lane may arrive, and a wait for all products is long enough
        "before = 1",
        "before = -1",
        "pass\n    for step",
        "lane == 1",
        "wgmma_wait(0)\n        if",
        "range(0, 63, 16)",
        "device=2",
    },
    "standstill": {"given_back = (0, 1)", "given_back = (-1, 0)"},  # a turn more; counted anew in the first
    "producer": {"device=2"},
    "expected_bytes": {"BN // 63"},  # the same for tiles of up to 256 columns
    "handed_over": {"65537", "(127 * "},  # the same after rounding down
    "fragments_once": {"array((3, 16), float16)", "array((3, 2, 8)", "array((2, 3, 8)"},  # unused registers
    "tile_kernel": {
        "As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(1)",
        "As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(-1)",
        "Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(1)",
        "Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(-1)",
    },
}


def _slips(node: ast.AST) -> Iterator[Callable[[ast.AST], object]]:
    """What can be changed in a node, as functions that change it in place."""
    match node:
        case ast.Compare(ops=[operator]):
            for other in COMPARED.get(type(operator), ()):
                yield lambda n, other=other: n.ops.__setitem__(0, other())
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in COMPUTED:
            yield lambda n: setattr(n, "op", COMPUTED[type(n.op)]())
        case ast.BoolOp():
            yield lambda n: setattr(n, "op", ast.And() if isinstance(n.op, ast.Or) else ast.Or())
            for position in range(len(node.values)):
                yield lambda n, position=position: n.values.pop(position)
        case ast.Subscript(slice=ast.Tuple()):
            yield lambda n: n.slice.elts.reverse()
        case ast.Constant(value=int()):
            yield lambda n: setattr(n, "value", n.value + 1)
            yield lambda n: setattr(n, "value", n.value - 1)
        case ast.FunctionDef() | ast.For() | ast.If() | ast.While():
            for position in range(len(node.body)):
                yield lambda n, position=position: n.body.__setitem__(position, ast.Pass())


def _mutants(source: str) -> list[Callable[[], str]]:
    """Functions that write a mutant each: of many, only a sample is tried."""
    nodes = enumerate(ast.walk(ast.parse(source)))
    return [partial(_mutant, source, place, slip) for place, node in nodes for slip in _slips(node)]


def _mutant(source: str, place: int, slip: Callable[[ast.AST], object]) -> str:
    tree = ast.parse(source)
    slip(list(ast.walk(tree))[place])
    return ast.unparse(ast.fix_missing_locations(tree))


@pytest.mark.many(one_in=2)
@pytest.mark.long
@pytest.mark.parametrize("name", SOLUTIONS)
def test_no_slip_passes(name, sample):
    mutants, passed = _mutants(SOLUTIONS[name]), []
    assert len(mutants) >= 5
    for write in sample(mutants, one_in=80, with_all=8):
        mutant = write()
        if any(line in mutant for line in FETCHED | HARMLESS.get(name, set())):
            continue
        if verdict_of(mutant).passed:
            passed.append(mutant)
    assert not passed, "\n\n".join(passed)
