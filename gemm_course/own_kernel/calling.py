"""Calls a stage on the caller's arrays: CuPy's and PyTorch's on their GPU and stream, or NumPy's."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemm_course.kernels.parts.own import OwnStage
from gemm_course.launching import run


@dataclass(frozen=True)
class Memory:
    """An array as a kernel sees it: its address, its shape, the elements from row to row, and its dtype.

    ``owner`` keeps the memory alive.
    """

    pointer: int
    shape: tuple[int, ...]
    row_length: int
    dtype: np.dtype
    owner: Any

    @property
    def whole_rows(self) -> tuple[int, ...]:
        """The shape with the padding of its rows."""
        return (*self.shape[:-1], self.row_length)


def multiplied(
    stage: OwnStage,
    A: Any,
    B: Any,
    out: Any,
    alpha: float,
    beta: float,
    tiles: Mapping[str, int] | None,
    extras: Mapping[str, Any],
) -> Any:
    """Compute what `Mine.__call__` describes, and return out."""
    if all(isinstance(array, np.ndarray) for array in (A, B, *([] if out is None else [out]))):
        return _of_numpy(stage, A, B, out, alpha, beta, tiles, extras)
    if out is None and beta != 0:
        raise ValueError(f"beta is {beta:g}, so out is read: pass it, or beta=0")
    _same_extras(stage, extras)
    given = {"A": A, "B": B, "out": out} | {name: extras[name] for name in stage.extras}
    seen = {name: memory_of(array, name) for name, array in given.items() if array is not None}
    problems = _problems(stage, seen)
    if problems:
        raise ValueError("; ".join(problems))
    (m, k), n = seen["A"].shape, seen["B"].shape[1]
    with on_its_gpu(A):
        if out is None:
            out = _like(A, (m, n))
            seen["out"] = memory_of(out, "out")
        a, b, c, *others = (device_array(seen[name]) for name in ("A", "B", "out", *stage.extras))
        standard = (m, n, k, np.float32(alpha), a, b, np.float32(beta), c, *others)
        _queue(stage.launches(*standard, tiles=tiles), current_stream(A))
    return out


def memory_of(array: Any, name: str) -> Memory:
    """Return the memory of an array on a GPU.

    Raise ValueError, with what to do, if the array is not on a GPU or is transposed.
    """
    about = _interface(array, name)
    shape, dtype = tuple(about["shape"]), np.dtype(about["typestr"])
    strides = about.get("strides")
    if strides is None:
        row_length = shape[-1] if shape else 1
    else:
        *outer, inner = strides or (dtype.itemsize,)
        if inner != dtype.itemsize and shape[-1] > 1:
            raise ValueError(
                f"the elements of a row of {name} are not neighbours in memory, as in a transposed matrix: "
                "pass a contiguous copy of it"
            )
        row_length = outer[-1] // dtype.itemsize if outer and shape[0] > 1 else shape[-1]
    return Memory(int(about["data"][0]), shape, row_length, dtype, array)


def _interface(array: Any, name: str) -> Mapping[str, Any]:
    """Return an array's `__cuda_array_interface__`, or if it has none, CuPy's by way of DLPack."""
    if getattr(array, "requires_grad", False):
        raise ValueError(f"PyTorch would have to differentiate through {name}: pass {name}.detach()")
    about = getattr(array, "__cuda_array_interface__", None)
    if about is None and hasattr(array, "__dlpack__"):
        from gemm_course.bench.cublas import NoCublas, cupy

        try:
            about = cupy().from_dlpack(array).__cuda_array_interface__
        except (NoCublas, BufferError, RuntimeError, ValueError, TypeError) as error:
            raise ValueError(f"{name} cannot be read as an array on the GPU: {error}") from None
    if about is None:
        raise ValueError(
            f"{name} is {_called(array)}, which is no array on a GPU; A, B and out must all be on one GPU, "
            "or all be NumPy arrays"
        )
    return about


def _called(array: Any) -> str:
    """Return what an array is, for messages, such as "a torch.Tensor"."""
    kind = type(array)
    return (
        f"a {kind.__module__.split('.')[0]}.{kind.__name__}" if kind.__module__ != "builtins" else repr(array)
    )


def _same_extras(stage: OwnStage, extras: Mapping[str, Any]) -> None:
    if set(extras) != set(stage.extras):
        wanted = ", ".join(f"{name}=..." for name in stage.extras) or "nothing"
        given = ", ".join(extras) or "nothing"
        raise ValueError(f"{stage.name} takes {wanted} beside A, B and out; {given} was given")


def _problems(stage: OwnStage, seen: Mapping[str, Memory]) -> list[str]:
    """Return what is wrong with shapes, dtypes and addresses."""
    found = [
        f"{name} holds {memory.dtype}, and {stage.name} computes with {stage.dtype}"
        for name, memory in seen.items()
        if memory.dtype != stage.dtype
    ]
    if any(len(seen[name].shape) != 2 for name in ("A", "B")):
        return [*found, "A and B must be matrices, with two axes"]
    (m, k), (other_k, n) = seen["A"].shape, seen["B"].shape
    if k != other_k:
        return [*found, f"A has {k} columns and B has {other_k} rows: they must be equal"]
    sizes = {"m": m, "n": n}
    wanted = {"out": (m, n)} | {
        name: tuple(sizes[letter] for letter in shape) for name, shape in stage.extras.items()
    }
    for name, shape in wanted.items():
        if name in seen and seen[name].shape != shape:
            found.append(f"{name} is {seen[name].shape}; it must be {shape}")
    matrices = {name: seen[name] for name in ("A", "B", "out") if name in seen}
    for name, memory in matrices.items():
        row_bytes = memory.row_length * memory.dtype.itemsize
        if memory.pointer % stage.alignment or (memory.shape[0] > 1 and row_bytes % stage.alignment):
            found.append(
                f"each row of {name} must begin at a multiple of {stage.alignment} bytes; its rows are "
                f"{row_bytes} bytes apart"
            )
    return found


def _of_numpy(stage, A, B, out, alpha, beta, tiles, extras) -> np.ndarray:
    result = run(stage, A, B, out, alpha=alpha, beta=beta, tiles=tiles, extras=extras).C
    if out is None:
        return result
    out[...] = result
    return out


# --- the GPU's side -----------------------------------------------------------------------------------------


def _library(array: Any) -> str:
    return type(array).__module__.split(".")[0]


def current_stream(array: Any) -> int:
    """Return the current stream of an array's library, or 0, the default stream, if it has none."""
    if _library(array) == "torch":
        return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
    if _library(array) == "cupy":
        return importlib.import_module("cupy").cuda.get_current_stream().ptr
    return 0


def on_its_gpu(array: Any) -> AbstractContextManager:
    """Make an array's GPU the current one of Numba."""
    if _library(array) not in ("torch", "cupy"):
        return nullcontext()
    from numba import cuda

    device = array.device
    return cuda.gpus[device.index if _library(array) == "torch" else device.id]


def device_array(memory: Memory) -> Any:
    """Return Numba's view of the memory, with whole rows, as a kernel takes it. Nothing is copied."""
    from numba import cuda

    described = {
        "data": (memory.pointer, False),
        "shape": memory.whole_rows,
        "typestr": memory.dtype.str,
        "strides": None,
        "version": 3,
    }
    return cuda.from_cuda_array_interface(described, owner=memory.owner, sync=False)


def _queue(launches, stream: int) -> None:
    """Queue launches on a stream, given by CUDA's number for it."""
    from numba import cuda

    from gemm_course.device import compile_for
    from gemm_course.device.launch import allow_shared_memory, must_opt_in

    queue = cuda.external_stream(stream) if stream else cuda.default_stream()
    for each in launches:
        taken = compile_for(each.kernel, each.arguments)
        if must_opt_in(each.shared_bytes, taken):
            allow_shared_memory(each.kernel, each.shared_bytes)
        each.kernel[each.grid, each.block, queue, each.shared_bytes](*each.arguments)


def _like(array: Any, shape: tuple[int, int]) -> Any:
    """Return an uninitialised array on the same GPU, of the same library and dtype."""
    if _library(array) == "torch":
        return array.new_empty(shape)
    if _library(array) == "cupy":
        return importlib.import_module("cupy").empty(shape, array.dtype)
    raise ValueError("pass out: only CuPy and PyTorch can make a new array like A")
