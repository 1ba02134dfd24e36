"""Decides whose figures a picture shows: the GPU that ``on`` names, or that is chosen above the picture.

Where only the H200 has records, there is nothing to choose, and every picture is the one in the notebooks.
Where `gemm_course.records.folders` finds more GPUs, pictures of speeds offer all of them. If this picture's
table lacks one, the picture says what to run. Pictures of Nsight Compute's figures, which few learners
measure, offer only the GPUs that have some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

from gemm_course import records
from gemm_course.compiler.limits import has_instructions
from gemm_course.figures.picture import Picture
from gemm_course.figures.words import in_words
from gemm_course.kernels import Stage
from gemm_course.model.gpus import Gpu, by_driver
from gemm_course.profiles import NoProfile
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets import _calls
from gemm_course.widgets._explorer import Described, Explorer

CONTROL, LABEL = "on", "measured on"
TABLE = "lockstep/lockstep/limits.py"
# These commands belong to the package `measuring`, which only a clone of the course has.
MAINTAINERS = ("counters", "roofs")
_remembered: list[Any] = [_calls._made]
_stamps: dict[str, Any] = {}


class NotKnown(ValueError):
    """The error for a figure that is not known of this GPU. Its message says what to do."""


class Unmeasured(NoProfile):
    """The error for a stage of the ladder that was not profiled. Its message says which command does it."""


def remembered(function: Callable) -> Any:
    """Cache what a function reads from records until a learner's folders change."""
    cached = lru_cache(function)
    _remembered.append(cached)
    return cached


def shown(
    draw: Callable[..., Picture],
    on: str | None,
    controls: Described | None = None,
    having: Callable[[Place], Any] | None = None,
    **options: Any,
) -> Explorer | Picture:
    """Return what a ``see`` function shows, which is an Explorer if there are controls and else a Picture.

    ``draw`` takes the controls' values by name and ``on``, a Place. ``on`` is a GPU's name, or None to choose
    it where there are several. ``having`` returns the records that a GPU must have to be offered. ``options``
    are those of Explorer. Raise UnknownGpu for an unknown GPU.
    """
    gpus = control(on, having)
    if gpus:
        return Explorer(or_sentence(draw), {**gpus, **(controls or {})}, **options)
    fixed = partial(or_sentence(draw), on=named(on))
    return Explorer(fixed, controls, **options) if controls else fixed()


def of_gpus(make: Callable) -> Callable:
    """Mark a function whose only control is the GPU.

    With one GPU it returns a Picture, and nothing is stored.
    """
    see = _calls.explorer(make)
    see.without_frames = True
    return see


def control(on: str | None, having: Callable[[Place], Any] | None = None) -> dict[str, tuple]:
    """Return the control for the GPU, as Explorer takes it.

    It is empty if ``on`` names a GPU or there is only one.
    """
    look_again()
    if on is not None:
        return {}
    offered = [
        place for place in records.places() if having is None or place == SHIPPED or len(having(place))
    ]
    texts = [(records.short_of(place), place) for place in offered]
    return {CONTROL: (LABEL, texts, SHIPPED)} if len(texts) > 1 else {}


def named(on: str | None) -> Place:
    """Return the GPU of that name, or the H200 without a name. Raise UnknownGpu for an unknown one."""
    return SHIPPED if on is None else records.place(on)


def or_sentence(draw: Callable[..., Picture]) -> Callable[..., Picture]:
    """Return ``draw`` with a sentence in place of figures that are missing.

    These are a stage that is not measured yet, or figures that another GPU lacks.
    """

    def drawn(**state: Any) -> Picture:
        try:
            return draw(**state)
        except Unmeasured as reason:
            return in_words(str(reason))
        except (NotKnown, NoProfile) as reason:
            if state.get(CONTROL, SHIPPED) == SHIPPED:
                raise
            return in_words(str(reason.args[0]))

    return drawn


def hardware(on: Place) -> Gpu | None:
    """Return a GPU of the course's table, or None if it is not there."""
    return by_driver(on.gpu)


def not_in_the_table(gpu: str) -> str:
    """Return a sentence about a GPU that the course's table does not have."""
    return f"What the {gpu} can hold and reach is not in the course's table of GPUs ({TABLE})."


def to_measure(what: str, on: Place, command: str) -> str:
    """Return a sentence that says what was not measured, and which command measures it.

    ``command`` is one of `gemm-course`, or of `python -m measuring`, which only a clone of the course has.
    """
    # Every stage of the ladder will be measured on the GPU of the course's own records.
    yet = " yet" if on == SHIPPED else ""
    if command.split()[0] in MAINTAINERS:
        told = f"on that machine, in a clone of the course, `python -m measuring {command}`"
    else:
        told = f"on that machine, `gemm-course {command}`"
    return f"{what} not measured on {on.an}{yet}: {told} does it."


def left_out(stages: Iterable[Stage], on: Place, command: str) -> str:
    """Name the stages that were not measured on a GPU, and say why or what measures them.

    Return "" for none.
    """
    missing, gpu = list(stages), hardware(on)
    cannot = [each for each in missing if gpu and not has_instructions(each, gpu.compute_capability)]
    can = [each for each in missing if each not in cannot]
    told = []
    if can:
        names = ", ".join(each.name for each in can)
        verb = "was" if len(can) == 1 else "were"
        told.append(to_measure(f"{names} {verb}", on, f"{command} {' '.join(each.name for each in can)}"))
    if cannot:
        told.append(f"{on.short} cannot run {', '.join(each.name for each in cannot)}.")
    return " ".join(told)


def look_again() -> None:
    """Forget what was read if a learner's folder has appeared, disappeared or grown since."""
    found = {place.name: (place.folder, place.stamps) for place in records.places() if place != SHIPPED}
    if found != _stamps:
        _stamps.clear()
        _stamps.update(found)
        for cached in _remembered:
            cached.cache_clear()


def with_gpu(texts: list[str], controls: Any) -> list[str]:
    """Return a state's texts, with the first GPU added if the state is from before a GPU could be chosen."""
    places: Mapping[str, Any] = controls.by_name
    if CONTROL in places and len(texts) == len(controls.all) - 1:
        at = list(places).index(CONTROL)
        return [*texts[:at], records.short_of(SHIPPED), *texts[at:]]
    return texts
