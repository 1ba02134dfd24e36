"""A case: a kernel with all that one launch of it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One launch. `make_args()` returns NumPy arrays and scalars; shared_bytes is dynamic shared memory."""

    name: str
    kernel: Any
    grid: Any
    block: Any
    make_args: Callable[[], Sequence[Any]]
    shared_bytes: int = 0
    setting: dict[str, Any] = field(default_factory=dict)  # m, n, k and tiles, where the case is a GEMM
