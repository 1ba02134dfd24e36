"""Offers `profiled`, which returns the recorded profile of a stage, or profiles a learner's own kernel."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gemm_course.bench.profile.measure import profile_content, profile_row, watch
from gemm_course.bench.profile.ncu import find_ncu
from gemm_course.bench.profile.sources import Source, pickled
from gemm_course.compiler import compiled
from gemm_course.compiler.nvidia import require_compiler
from gemm_course.device import gpu_facts, require_gpu
from gemm_course.kernels import Stage, tiles_text
from gemm_course.kernels.parts.own import OwnStage
from gemm_course.profiles import Profile, recorded
from gemm_course.profiles.profile import profile_of
from gemm_course.profiles.store import USUAL


def profiled(
    kernel_or_stage: Any,
    *args: Any,
    tiles: Mapping[str, int] | None = None,
    size: int | tuple[int, int, int] = USUAL,
) -> Profile:
    """Return the profile of a kernel: what was measured of each instruction and line, and of the whole.

    ``kernel_or_stage`` is a stage of the ladder or its name, whose recorded profile is read, without a GPU.
    Or it is a stage of your own, `own("mine.py")`, or a configured kernel, `my_kernel[grid, block]`, which
    are launched on this computer's GPU under Nsight Compute. ``args`` are a kernel's NumPy arrays and
    numbers, which stay as they are. ``tiles`` and ``size`` are those of the stage, as in
    `gemm_course.profiles.recorded`.

    Another process launches the kernel some 40 times. That takes seconds, and far longer if one launch takes
    a second. The profile of a kernel has no m, n and k.

    For a stage of the ladder, raise NoProfile if these tiles and size were not recorded. Otherwise raise
    NoGpu, NoProfiler (Nsight Compute is missing, or may not read the counters) and NoCompiler, each with what
    to do; CannotCompile; NotProfiled if the launch failed; ValueError for arguments that cannot be copied to
    another process, or if the measured code is not the compiled code.
    """
    if isinstance(kernel_or_stage, (str, Stage)):
        if args:
            raise ValueError("A stage's profile takes tiles and a size, but no arguments.")
        if isinstance(kernel_or_stage, OwnStage):
            return _own(kernel_or_stage, tiles, size)
        return recorded(kernel_or_stage, tiles, size)
    if tiles is not None or size != USUAL:
        raise ValueError("tiles and size belong to a stage of the ladder; your own kernel has them built in.")
    _require_configured(kernel_or_stage)
    require_gpu()
    find_ncu()
    require_compiler()
    _require_plain(args)
    return _launched(kernel_or_stage, args)


def _own(stage: OwnStage, tiles: Mapping[str, int] | None, size: int | tuple[int, int, int]) -> Profile:
    require_gpu()
    find_ncu()
    require_compiler()
    stage.require_unchanged()
    shape = (size, size, size) if isinstance(size, int) else tuple(size)
    chosen = stage.complete(tiles)
    code = compiled(stage, tiles=chosen, compute_capability=gpu_facts().compute_capability)
    about = {"stage": stage.name, "tiles": tiles_text(chosen), **dict(zip("mnk", shape, strict=True))}
    source = Source("own", module=str(stage.file), shapes=(shape,), tiles=about["tiles"])
    launch = watch(source)()
    return profile_of(profile_row(launch, about, "gemm_course.profiled"), profile_content(launch, code))


def _launched(configured: Any, args: tuple) -> Profile:
    code = compiled(configured, *args, compute_capability=gpu_facts().compute_capability)
    with tempfile.TemporaryDirectory(prefix="gemm-course-profile-") as folder:
        try:
            source = pickled(configured, args, Path(folder) / "launch.pickle")
        except Exception as error:  # An object that cannot be pickled may raise anything.
            raise ValueError(f"{code.name} cannot be copied to another process: {error}") from error
        launch = watch(source)()
    row = profile_row(launch, {"stage": code.name, "tiles": ""}, "gemm_course.profiled")
    return profile_of(row, profile_content(launch, code))


def _require_configured(kernel: Any) -> None:
    if not all(hasattr(kernel, name) for name in ("dispatcher", "griddim", "blockdim", "sharedmem")):
        raise ValueError(
            "a stage of the ladder or a configured kernel is needed, such as profiled('vectorized') or "
            f"profiled(my_kernel[grid, block], A, B), not {kernel!r}."
        )


def _require_plain(args: tuple) -> None:
    for number, arg in enumerate(args, 1):
        if hasattr(arg, "__cuda_array_interface__"):
            raise ValueError(f"argument {number} is on the GPU: pass a NumPy array, arg.copy_to_host().")
        if isinstance(arg, np.ndarray) and not (arg.flags.c_contiguous or arg.flags.f_contiguous):
            raise ValueError(f"argument {number} is not contiguous: pass np.ascontiguousarray of it.")
