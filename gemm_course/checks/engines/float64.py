"""Finds in a kernel's source why a line computes in float64, so that the message can name the literal."""

from collections.abc import Collection

from gemm_course.checks.core import Assignment, Branch, Call, Element, Part, Written


def why_float64(written: Written, lines: list[int]) -> str:
    """Return one or two sentences on why these lines, in the file's order, compute in float64."""
    names = written.names & {part.text for part in written.parts if part.line in lines}
    wide = _wide_start_of(names, written)
    if wide is None:
        line = lines[0]
        return (
            _bare_arm(written, line)
            or _literal_in(written, line)
            or _bare_arm_of(names, written)
            or "This line still computes in float64."
        )
    name, value = wide.target.text, wide.value.text
    if wide.target.around[0].text.startswith(f"{name}: "):
        return (
            f"`{name}` starts as `{value}`. Numba ignores annotations: the type must be in the number, "
            "`float32(0)`."
        )
    if any(name in call.names for call in written.calls("float32")):
        return (
            f"`{name}` becomes float32 only at the end. Until then, in every step, it is float64, since it "
            f"starts as `{value}`."
        )
    return _in_words(wide)


def passed_on(written: Written, lines: list[int]) -> tuple[int, str] | None:
    """Return (line, why) of a bare number by which a device function computes in float64, or None.

    The device function, where the lines are, gets the number and returns a new value for the same variable:
    `acc = 0`, later `acc = add_products(acc, ...)`.
    """
    if {part.line for part in written.parts}.intersection(lines):
        return None
    returned = {
        target.text
        for target, value in written.assignments
        if isinstance(value, Call) and target.text in [given.text for given in value.args]
    }
    wide = _wide_start_of(returned & written.names, written)
    return wide and (wide.value.line, _in_words(wide))


def number_beside(written: Written, arrays: Collection[str]) -> tuple[Branch, str] | None:
    """Return the first `A[...] if ... else 0.0` of these arrays, and its bare number; None without one."""
    for choice in written.choices:
        numbers, elements = _arms(choice)
        if numbers and elements and elements[0].array in arrays:
            return choice, numbers[0].text
    return None


def _arms(choice: Branch) -> tuple[list[Part], list[Element]]:
    """Return the bare numbers and the elements among the two sides of a choice."""
    arms = choice.body, choice.otherwise
    return (
        [arm for arm in arms if arm.number is not None],
        [arm for arm in arms if isinstance(arm, Element)],
    )


def _wide_start_of(names: Collection[str], written: Written) -> Assignment | None:
    """Return the first assignment to one of these variables that makes it float64, or None."""
    starts = (start for start in written.assignments if start.target.text in names)
    return next((start for start in starts if _is_wide(start.value)), None)


def _in_words(start: Assignment) -> str:
    name, value = start.target.text, start.value
    shown = f"`{name} = {value.text}`"
    if isinstance(value.number, float):
        return (
            f"{shown} makes a float64, since Numba gives a literal with a point that type. All that is added "
            "to it becomes float64 too."
        )
    if value.number is not None:
        return (
            f"{shown} makes an integer. Integer and float32 together are float64 in Numba, so `{name}` "
            "becomes float64 as well: the zero itself needs the type."
        )
    return f"{shown} asks for float64 by name."


def _bare_arm(written: Written, line: int) -> str | None:
    """Return what to say of a bare number on one side of an `if ... else` of this line, or None."""
    for choice in written.choices:
        numbers, _ = _arms(choice)
        if line in choice.lines and len(numbers) == 1:
            shown = numbers[0].text
            kind = "float64" if "." in shown else "a whole number"
            return (
                f"The `{shown}` beside the `if ... else` is {kind}, and Numba gives both sides one type, "
                f"float64. Write `float32({shown})`."
            )
    return None


def _bare_arm_of(names: Collection[str], written: Written) -> str | None:
    """Return what to say of `acc = A[...] if ... else 0.0`, for one of these variables; None without one."""
    starts = (start for start in written.assignments if start.target.text in names)
    return next(filter(None, (_bare_arm(written, start.target.line) for start in starts)), None)


def _literal_in(written: Written, line: int) -> str | None:
    """Return what to say of a number in the line's arithmetic, outside of calls and indices, or None."""
    for operation in written.operations():
        if operation.line != line:
            continue
        in_an_index = any(isinstance(part, Element) for part in operation.around)
        for number in (side.number for side in operation.sides):
            if isinstance(number, float):
                return f"The literal `{number}` is float64, and so is every product and sum with it."
            if isinstance(number, int) and not in_an_index:
                return (
                    f"The whole number `{number}` in this line makes it float64: Numba turns integer times "
                    "float32 into float64. Leave it out, or give it a type: `float32(...)`."
                )
    return None


def _is_wide(value: Part) -> bool:
    """Return whether a value is a bare number, a call of float64 or float, or an array of that type."""
    if not isinstance(value, Call):
        return value.number is not None
    named = [value.name, *(part.text for part in (*value.args[1:], *value.keywords.values()))]
    return any(text.split(".")[-1] in ("float64", "float") for text in named)
