"""Collects findings: what is wrong or slow in a kernel, each with a message and its place in the source."""

from dataclasses import dataclass, field

ERRORS = (
    "out_of_bounds",
    "shared_race",
    "global_race",
    "uninitialised_read",
    "unset_variable",
    "barrier_divergence",
    "warp_divergence",
    "misaligned_access",
    "async_read_too_early",
    "missing_fence",
    "missing_wait",
)
ADVICE = (
    "float64_arithmetic",
    "dynamic_local_index",
    "negative_index",
    "equal_stores",
    "absent_lane",
    "barrier_after_exit",
    "barrier_in_branch",
    "unused_allowance",
)


@dataclass
class Finding:
    """One problem in a kernel, at its first occurrence.

    ``kind`` is one of ERRORS or ADVICE. ``line`` is the source line. For a race, ``line`` is that of the
    later access; ``other_line``, ``other_function`` and ``other_file`` say where the earlier one is, and it
    may be in another file. ``element`` is the index in ``array``. ``block`` and each of ``threads`` are
    (x, y, z). ``count`` is the number of affected lanes, or for a race the number of elements.
    """

    kind: str
    line: int
    message: str
    array: str | None = None
    element: tuple | None = None
    block: tuple | None = None
    threads: list = field(default_factory=list)
    function: str | None = None
    site: int | None = None
    other_line: int | None = None
    other_function: str | None = None
    other_file: str | None = None
    count: int = 1
    # `file` is the file of the line, where the site lies in another file.
    file: str | None = None

    @property
    def severity(self) -> str:
        return "error" if self.kind in ERRORS else "advice"

    def __str__(self):
        return f"line {self.line}: {self.message}"


class Findings:
    """A collection of findings, one per kind, site and array. Further occurrences are only counted."""

    def __init__(self, silencing=None):
        self._found = {}
        self._silencing = silencing

    def add(self, key, count, make):
        """Add the finding ``make()`` if ``key`` is new. Add ``count`` occurrences in any case."""
        known = self._found.get(key)
        if known is None:
            known = self._found[key] = make()
            known.count = count
        else:
            known.count += count

    def listed(self, silenced=False) -> list[Finding]:
        """Return the findings that are not silenced, or only the silenced ones, errors first, by line."""
        covers = self._silencing.covers if self._silencing is not None else lambda finding: False
        chosen = [finding for finding in self._found.values() if covers(finding) == silenced]
        races = [f for f in chosen if f.kind == "global_race"]
        raced = {(f.array, line) for f in races for line in (f.line, f.other_line)}
        # Beside an error for the same store, it would not be true that the order does not matter.
        told = (f for f in chosen if f.kind != "equal_stores" or (f.array, f.line) not in raced)
        return sorted(told, key=_rank)

    def final(self) -> list[Finding]:
        """Return all findings that are not silenced, with advice about each comment that silences nothing."""
        unused = self._silencing.unused(self._found.values()) if self._silencing is not None else []
        return sorted([*self.listed(), *unused], key=_rank)


def _rank(finding: Finding):
    return finding.severity != "error", finding.line, finding.kind


def place(array: str, element: tuple) -> str:
    """Return an element in the notation of a kernel, ``As[0, 3]``, or ``points[3].x`` of a record."""
    *index, last = element or ("",)
    if not isinstance(last, str) or last == ":":
        return f"{array}[{', '.join(map(str, element))}]"
    return f"{array}[{', '.join(map(str, index))}]{last}" if index else f"{array}{last}"


def leaves_registers(name: str, elements: int, counted: bool) -> str:
    """Return the message about an access that keeps a local array out of the registers.

    counted: whether a loop of unknown length counts the index up. An array of up to 8 elements may stay in
    registers all the same, if the compiler selects the element with comparisons. It does so for some kernels.
    """
    if counted:
        why = (
            f"How often the loop around this line runs is known only at run time, and {name} has {elements} "
            "elements: the compiler does not write out all iterations that there may be. So the array goes "
            "to local memory, which is as slow as global memory"
        )
    else:
        why = (
            f"Which element of {name} is meant is known only at run time, and a register has no address. So "
            "the array goes to local memory, which is as slow as global memory"
        )
        if elements <= 8:
            why += f", or the index is compared with each of its {elements} places"
    return f"{why}. Only the compiler says for certain how many bytes of local memory a kernel takes."


def equal_stores(who: str, where: str) -> str:
    """Return the message about threads that store the same value to one element."""
    sentence = (
        f"{who} and others write {where}, in no defined order, but all the same value, so it does not matter "
        "which comes first: one of them could write it."
    )
    return sentence[0].upper() + sentence[1:]


def lost_updates(cure: str) -> str:
    """Return how a race of threads that load, change and store one element ends, with what prevents it."""
    return (
        "each loads the old value before the other has stored its own, so updates are lost, and no barrier "
        f"helps. {cure}"
    )


def thread_name(thread: tuple, block: tuple | None = None) -> str:
    """Return a thread's name: ``thread (1, 0, 0)``, or ``thread (1, 0, 0) of block (2, 0, 0)``."""
    name = f"thread {_short(thread)}"
    return name if block is None else f"{name} of block {_short(block)}"


def _short(coordinates: tuple) -> str:
    return "(" + ", ".join(map(str, coordinates)) + ")"
