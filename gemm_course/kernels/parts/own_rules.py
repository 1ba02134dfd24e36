"""Checks that the fields of a STAGE can be used, and says in a sentence which field cannot, and why."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import SimpleNamespace

from gemm_course.kernels.parts.base import Stage

DTYPES = ("float32", "float16")


def broken_rules(stage: Stage) -> Iterator[str]:
    """Yield a sentence for each field of a STAGE that cannot be used. Nothing is built or launched."""
    for name in ("dtype", "accumulate"):
        if getattr(stage, name) not in DTYPES:
            yield f'{name} must be "float32" or "float16", not {getattr(stage, name)!r}'
    if not isinstance(stage.tiles, Mapping) or not all(_is_size(size) for size in stage.tiles.values()):
        yield f'tiles must be sizes by their names, as in {{"BM": 64}}, not {stage.tiles!r}'
        return
    if not isinstance(stage.options, Mapping) or not all(
        _are_sizes(offer) for offer in stage.options.values()
    ):
        yield f'options must be what the sliders offer, as in {{"BM": (32, 64)}}, not {stage.options!r}'
    if not _is_size(stage.alignment) or stage.alignment < 4 or stage.alignment & (stage.alignment - 1):
        yield f"alignment must be a number of bytes such as 4, 8 or 16, not {stage.alignment!r}"
    yield from _of_build(stage)
    yield from _of_the_launch(stage)
    if unusable := list(_of_the_extras(stage)):
        yield from unusable
        return
    yield from _of_the_epilogue(stage)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_sizes(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(map(_is_size, value))


def _of_build(stage: Stage) -> Iterator[str]:
    if not callable(stage.build):
        yield f"build must be a function that takes the tiles and returns a kernel, not {stage.build!r}"
        return
    takes = inspect.signature(stage.build)
    try:
        takes.bind(**stage.tiles)
    except TypeError:
        yield f"build takes {takes}, but tiles have {', '.join(stage.tiles) or 'no sizes'}"


def _of_the_launch(stage: Stage) -> Iterator[str]:
    t = SimpleNamespace(**stage.tiles)
    asked = {
        "threads": ("threads=lambda t: (t.BN, t.BM)", lambda: stage.threads(t)),
        "blocks": (
            "blocks=lambda m, n, t: (-(-n // t.BN), -(-m // t.BM))",
            lambda: stage.blocks(100, 100, t),
        ),
    }
    for name, (example, ask) in asked.items():
        try:
            given = ask()
        except Exception as error:  # whatever the learner's function raises
            yield f"{name} stops with {type(error).__name__}: {error}. It is called as in {example}"
            continue
        if not _are_sizes(given) or not 1 <= len(given) <= 3 or min(given) < 1:
            yield f"{name} must give one to three numbers of at least 1, as in {example}; it gives {given!r}"
    try:
        for _holds, _words in stage.requirements(t):
            pass
    except Exception as error:
        yield (
            f"requirements must give pairs (does it hold, the rule), as in "
            f'[(t.BM % 8 == 0, "BM must be a multiple of 8")]: {type(error).__name__}: {error}'
        )


def _of_the_extras(stage: Stage) -> Iterator[str]:
    """Yield a sentence if the extras are no names with shapes of the letters m and n."""
    if not isinstance(stage.extras, Mapping):
        yield f'extras must be shapes by their names, as in {{"bias": "n"}}, not {stage.extras!r}'
        return
    for name, shape in stage.extras.items():
        if not isinstance(shape, str) or not shape or set(shape) - {"m", "n"}:
            yield (
                f"the extras' shape of {name} must be made of the letters m and n, such as "
                f'{{"{name}": "n"}} for an element per column of C, not {shape!r}'
            )


def _of_the_epilogue(stage: Stage) -> Iterator[str]:
    """Yield a sentence if the epilogue does not take C and the arrays that the extras name."""
    if stage.epilogue is None:
        return
    try:
        takes = inspect.signature(stage.epilogue)
    except ValueError:  # a built-in function may not tell its parameters
        return
    try:
        takes.bind("C", *stage.extras)
    except TypeError:
        names, parameters = (", ".join(each) or "nothing" for each in (stage.extras, takes.parameters))
        yield (
            f"the epilogue takes {parameters}, but after C the extras name {names}. "
            'STAGE needs both, as in extras={"bias": "n"}, epilogue=lambda C, bias: np.maximum(C + bias, 0)'
        )
