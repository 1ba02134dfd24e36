"""Remembers the call of a ``see`` function that made an explorer, so that Python can make it again.

A call whose arguments can be written down, such as ``see.fragment(by="lane")``, can be repeated in any
kernel. An explorer of something that only this kernel has, such as a learner's function, is kept under a
generated name until the kernel ends.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from gemm_course.kernels import Stage
from gemm_course.widgets import _showing
from gemm_course.widgets._stages import stage_of

# Only this many explorers of the kernel's own functions are kept, as each takes memory.
_HELD = 200
_THIS_KERNEL = uuid.uuid4().hex[:8]
_own: OrderedDict[str, Any] = OrderedDict()


class Gone(LookupError):
    """The error for an explorer that another kernel held."""


@dataclass(frozen=True)
class Call:
    """A call of a ``see`` function: its name, and as JSON the arguments that differ from their defaults."""

    name: str
    # The JSON object has the arguments under their names, and those of *args under "*".
    arguments: str

    @property
    def slug(self) -> str:
        """The call as a file name, such as "fragment-by_lane"."""
        words = [self.name]
        for name, value in json.loads(self.arguments).items():
            words += value if name == "*" else [name if value is True else f"{name}_{value}"]
        return "-".join(re.sub(r"\W+", "_", str(word)).strip("_") for word in words)

    def explorer(self):
        """Make the explorer anew. Raise Gone if the name is not that of an explorer."""
        return _made(self.name, self.arguments)


def explorer(make: Callable) -> Callable:
    """Return a function that calls ``make`` and shows the explorer that it returns.

    Anything else that ``make`` returns, such as a Picture, is returned.
    """

    @wraps(make)
    def see(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        if not hasattr(made, "controls"):
            return made
        return _showing.show(made, call_of(make, args, kwargs))

    see.makes_explorer = make
    return see


def call_of(make: Callable, args: tuple, kwargs: dict) -> Call | None:
    """Return the call as it can be written down, or None if it cannot.

    Raise TypeError for wrong arguments.
    """
    bound, parameters = signature(make).bind(*args, **kwargs), signature(make).parameters
    try:
        given = {
            key: _text(each)
            for name, value in bound.arguments.items()
            for key, each in _by_key(parameters[name], value)
        }
    except (TypeError, ValueError, KeyError):
        # A KeyError means that the stage is the learner's own.
        return None
    usual = {name: json.dumps(each.default, default=repr) for name, each in parameters.items()}
    given = {name: json.loads(value) for name, value in given.items() if value != usual.get(name)}
    return Call(make.__name__, json.dumps(given))


def _by_key(parameter: Parameter, value: Any) -> Iterable[tuple[str, Any]]:
    """Return a parameter's values by name.

    Those of *args are under "*", and those of **kwargs under their names.
    """
    if parameter.kind is Parameter.VAR_KEYWORD:
        return value.items()
    return [("*" if parameter.kind is Parameter.VAR_POSITIONAL else parameter.name, value)]


def _text(value: Any) -> str:
    return json.dumps([_named(each) for each in value] if isinstance(value, tuple) else _named(value))


def _named(value: Any) -> Any:
    """Return the name of a stage of the course, which is the same in every kernel.

    Return all else as it is.
    """
    if isinstance(value, Stage) and stage_of(value.name) is value:
        return value.name
    return value


def keep(made: Any) -> str:
    """Keep an explorer while this kernel lives. Return the name under which `kept` finds it."""
    name = f"{_THIS_KERNEL}-{len(_own)}-{uuid.uuid4().hex[:4]}"
    _own[name] = made
    while len(_own) > _HELD:
        _own.popitem(last=False)
    return name


def kept(name: str) -> Any:
    """Return the explorer of that name. Raise Gone if this kernel has none."""
    if name not in _own:
        raise Gone(name)
    return _own[name]


@lru_cache(64)
def _made(name: str, arguments: str):
    see = import_module("gemm_course.widgets")
    make = getattr(getattr(see, name, None), "makes_explorer", None)
    if name not in see.__all__ or make is None:
        raise Gone(name)
    given = {key: _as_given(value) for key, value in json.loads(arguments).items()}
    args = given.pop("*", ())
    try:
        signature(make).bind(*args, **given)
    except TypeError:
        raise Gone(name) from None
    made = make(*args, **given)
    if not hasattr(made, "controls"):
        raise Gone(name)
    return made


def _as_given(value: Any) -> Any:
    """Return a value with tuples where JSON made lists of them, such as ("vectorized", {"TM": 8})."""
    if isinstance(value, list):
        return tuple(map(_as_given, value))
    if isinstance(value, dict):
        return {key: _as_given(each) for key, each in value.items()}
    return value
