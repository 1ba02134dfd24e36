"""`python -m tests.own_kernel.on_pytorch FOLDER`: the files of `edits` called from PyTorch, and timed."""

import sys
from pathlib import Path

import torch

from gemm_course import own

SIZE, TIMES = 4096, 20


def milliseconds(go) -> float:
    """The mean of several calls in a row, by PyTorch's own events."""
    go()
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    for _ in range(TIMES):
        go()
    after.record()
    after.synchronize()
    return before.elapsed_time(after) / TIMES


def main(folder: Path) -> None:
    """Compare both right files with float64, and with PyTorch's own time."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    A, B, C = (torch.randn(SIZE, SIZE, device="cuda") for _ in range(3))
    bias = torch.randn(SIZE, device="cuda")
    product = A.double() @ B.double()
    for name, extras, right, theirs in (
        ("one_tiles", {}, product, lambda: torch.mm(A, B)),
        ("three_fused", {"bias": bias}, torch.relu(product + bias), lambda: torch.addmm(bias, A, B).relu_()),
    ):
        _compare(own(folder / f"{name}.py"), (A, B, C), extras, right, theirs)


def _compare(stage, matrices, extras, right, theirs) -> None:
    A, B, C = matrices
    stage(A, B, out=C, **extras)
    error = float((C - right).norm() / right.norm())
    own_ms, torch_ms = milliseconds(lambda: stage(A, B, out=C, **extras)), milliseconds(theirs)
    print(f"{stage.name}: relative error {error:.1e}, {own_ms:.3f} ms; PyTorch {torch_ms:.3f} ms")
    assert error < 1e-5, "the result is wrong"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
