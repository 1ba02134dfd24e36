"""Names the kinds of values in a kernel's words, for sentences about what is wrong with them."""

from lockstep.memory.records import RECORDS
from lockstep.memory.storage import ARRAYS, Unbound
from lockstep.registry import Emulation, Type
from lockstep.values.dtypes import dtype_of
from lockstep.values.geometry import Coordinates
from lockstep.values.lanes import Lanes

_WORDS = {
    Coordinates: "an index with x, y and z",
    Emulation: "a function",
    Type: "a type",
    slice: "a slice",
    str: "a text",
}


def kind_of(value) -> str:
    """Return the kind of a value in words: ``a float32 value``, ``a tuple``, ``the array x``, ``None``."""
    if value is None:
        return "None"
    if isinstance(value, Unbound):
        return "a variable that no thread has set"
    if isinstance(value, ARRAYS):
        return f"the array {value.name}"
    if isinstance(value, RECORDS) or isinstance(getattr(value, "words", None), str):
        return value.words
    for kind, words in _WORDS.items():
        if isinstance(value, kind):
            return words
    if callable(value) and not isinstance(value, Lanes):
        return "a function"
    name = f"{value.dtype} value" if hasattr(value, "dtype") else type(value).__name__
    return ("an " if name[0] in "aeio" else "a ") + name


def type_of(value) -> str:
    """Return the type of a value in words, by which Numba tells whether values of a tuple are alike."""
    if isinstance(value, tuple):
        return f"a tuple of {', '.join(map(type_of, value))}"
    if hasattr(value, "storage"):
        return f"a {value.ndim}-dimensional array of {value.dtype}"
    return str(dtype_of(value) or kind_of(value))
