"""Says in the kernel's words why a call failed: too many arguments, or no array where one is needed."""

import inspect

from lockstep.errors import KernelTypeError
from lockstep.memory.storage import DeviceArray
from lockstep.registry import name_of

from .words import kind_of

# The machine passes these parameters, so they are not in the call in the kernel's source.
_GIVEN_BY_THE_MACHINE = ("machine", "site", "_M", "self")


def what_is_wrong(function, arguments: tuple, keywords: dict) -> KernelTypeError | None:
    """Return what is wrong with the arguments of a call that failed; None if nothing is."""
    name = name_of(function) or _own_name(function)
    parameters = _parameters(function)
    wrong = _arguments_wrong(parameters, arguments, keywords)
    if wrong:
        return KernelTypeError(f"{name}() {wrong}")
    for position in {*getattr(function, "reads", ()), *getattr(function, "writes", ())}:
        if position < len(arguments) and not isinstance(arguments[position], DeviceArray):
            which = parameters[position].name if position < len(parameters) else f"argument {position + 1}"
            return KernelTypeError(
                f"{name}() needs an array as its {which}, not {kind_of(arguments[position])}"
            )


def _parameters(function) -> list[inspect.Parameter]:
    code = inspect.unwrap(getattr(function, "function", getattr(function, "code", function)))
    found = inspect.signature(code).parameters.values()
    return [p for p in found if p.name not in _GIVEN_BY_THE_MACHINE]


def _arguments_wrong(parameters, arguments, keywords) -> str | None:
    signature = inspect.Signature(parameters)
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        names = [p.name for p in parameters]
        unknown = [name for name in keywords if name not in names]
        if unknown:
            return f"has no argument named {unknown[0]}"
        count = len(arguments) + len(keywords)
        least = sum(p.default is p.empty for p in parameters)
        if least <= count <= len(parameters):
            return f"cannot take these arguments: {error}"
        takes = str(len(parameters)) if least == len(parameters) else f"{least} to {len(parameters)}"
        hint = ""
        if count > len(parameters) and any("index" in name for name in names):
            hint = "; an index is one argument, a tuple such as (row, column)"
        plural = "" if takes == "1" else "s"
        listed = f" ({', '.join(names)})" if names else ""
        return f"takes {takes} argument{plural}{listed}, not {count}{hint}"


def _own_name(function) -> str:
    code = getattr(function, "code", function)
    return getattr(code, "__name__", type(function).__name__)
