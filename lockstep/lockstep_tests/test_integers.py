"""No array of the emulator has NumPy's default integer, which has only 32 bits in a browser's Python.

Offsets, hashes and counts pass 2^31, and there NumPy wraps around in silence. A kernel's
``int64(i) * 3000000`` was wrong, because the emulator's numbers of threads had 32 bits.
"""

import ast
from pathlib import Path

import pytest

import lockstep

PACKAGE = Path(lockstep.__file__).parent
# These functions make or add up integers. Each takes a dtype at this position, or by its name.
FUNCTIONS = {"arange": 3, "full": 2, "sum": 2, "prod": 2, "cumsum": 2, "cumprod": 2, "multiply": 3}
METHODS = {"sum": 1, "prod": 1, "cumsum": 1, "cumprod": 1}
# In these files pandas adds up columns, which are of int64.
OF_PANDAS = {"report.py"}
WHY = (
    "Without a dtype NumPy makes or adds up its default integers, which have only 32 bits in a browser's "
    "Python: there larger values wrap around in silence. Give a dtype such as np.int64, and np.intp where "
    "NumPy takes nothing else; count booleans by np.count_nonzero, and multiply sizes by math.prod."
)


def default_integers(code: str, pandas: bool = False):
    """Yield (line, expression) for what may have NumPy's default integer as its dtype."""
    for node in ast.walk(ast.parse(code)):
        if (
            isinstance(node, ast.Attribute)
            and of_numpy(node)
            and node.attr in ("int_", "uint", "long", "ulong")
        ):
            yield node.lineno, ast.unparse(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if lacks_a_dtype(node, pandas) or has_int_for_a_dtype(node):
                yield node.lineno, ast.unparse(node)


def lacks_a_dtype(call: ast.Call, pandas: bool) -> bool:
    name, owner = call.func.attr, ast.unparse(call.func.value)
    if owner == "np" and name in ("array", "asarray"):
        position = 1 if lists_numbers(call.args[0]) else None
    elif owner == "np":
        position = FUNCTIONS.get(name)
    else:
        position = None if pandas or owner == "math" else METHODS.get(name)
    named = any(keyword.arg == "dtype" for keyword in call.keywords)
    return position is not None and len(call.args) <= position and not named


def has_int_for_a_dtype(call: ast.Call) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return (of_numpy(call.func) or call.func.attr in ("astype", "view")) and any(
        isinstance(one, ast.Name) and one.id == "int" for one in given
    )


def of_numpy(attribute: ast.Attribute) -> bool:
    return isinstance(attribute.value, ast.Name) and attribute.value.id == "np"


def lists_numbers(value) -> bool:
    """Tell whether an expression spells out Python's numbers, whose dtype NumPy would choose."""
    if isinstance(value, ast.UnaryOp):
        return lists_numbers(value.operand)
    number = isinstance(value, ast.Constant) and type(value.value) is int
    return number or isinstance(value, (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp))


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_every_array_of_integers_has_a_dtype(path):
    found = default_integers(path.read_text(encoding="utf-8"), pandas=path.name in OF_PANDAS)
    lines = [f"line {line}: {expression}" for line, expression in found]
    assert not lines, "\n".join([f"{path}:", *lines, WHY])


@pytest.mark.parametrize(
    "code",
    [
        "np.arange(n)",
        "np.arange(0, n, 32)",
        "np.full(shape, 0)",
        "np.array([1, 2])",
        "np.array([n for n in sizes])",
        "np.asarray(-1)",
        "np.zeros(n, int)",
        "np.zeros(n, dtype=int)",
        "x.astype(int)",
        "np.dtype(np.int_)",
        "x.sum()",
        "(x > 0).sum(axis=1)",
        "np.prod(shape)",
        "np.multiply([n], size)",
    ],
)
def test_what_has_no_dtype_is_found(code):
    assert list(default_integers(code)) == [(1, code if code != "np.dtype(np.int_)" else "np.int_")]


@pytest.mark.parametrize(
    "code",
    [
        "np.arange(n, dtype=np.int64)",
        "np.full(shape, 0, bool)",
        "np.zeros(n)",
        "np.array(values)",
        "np.array([1, 2], np.uint8)",
        "x.astype(np.int64)",
        "x.sum(axis=1, dtype=np.int64)",
        "math.prod(shape)",
        "int(x)",
    ],
)
def test_what_has_a_dtype_or_needs_none_is_not_found(code):
    assert not list(default_integers(code))
