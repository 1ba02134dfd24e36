"""Wrong answers of a chapter: WRONG[exercise][mistake] = (answer, words of the message that name it).

An answer that is a dict is handed over as keyword arguments.

    WRONG, wrong = collector("vector_add", "idle_lanes")

    @wrong("vector_add", "no guard")
    @cuda.jit
    def unguarded(a, b, out): ...

    WRONG["idle_lanes"] = {"all_busy": (0, "one warp")}
"""

from collections.abc import Callable
from typing import Any

Answers = dict[str, dict[str, tuple[Any, str]]]


def collector(*exercises: str) -> tuple[Answers, Callable]:
    """An empty WRONG for these exercises, and the decorator that files an answer under its own name."""
    answers: Answers = {exercise: {} for exercise in exercises}

    def wrong(exercise: str, words: str) -> Callable:
        def keep(answer):
            name = getattr(answer, "py_func", answer).__name__
            if name in answers[exercise]:
                raise ValueError(f"{exercise} has two wrong solutions called {name}")
            answers[exercise][name] = (answer, words)
            return answer

        return keep

    return answers, wrong
