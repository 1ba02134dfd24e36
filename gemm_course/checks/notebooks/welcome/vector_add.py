"""Checks ``vector_add``: the first kernel, adding two vectors."""

import numpy as np

from gemm_course.checks.core import Refused, exercise, kernel_of
from gemm_course.checks.engines.one_each import guard_of, hold_to_one_each, try_one_each
from gemm_course.checks.engines.trial import Trial

THREADS = 128
LENGTHS = (128, 1000, 129, 127, 1)
# A vector of this length takes several blocks, which shows the index that was used.
LONG = 1000
NAMES = ("a", "b", "out")


@exercise(
    start="the kernel does nothing. Each thread must add one element: which one?",
    hints=(
        "`cuda.grid(1)` is the number of this thread among all threads of the launch.",
        "The last block has more threads than there are elements left. Those must do nothing.",
        "`if i < out.size:`, then `out[i] = a[i] + b[i]`. No loop: every thread does one element.",
    ),
)
def vector_add(vector_add):
    """A kernel (a, b, out): out = a + b, a thread per element, in blocks of 128 threads."""
    kernel = kernel_of(vector_add, NAMES)
    trials = {n: _trial(kernel, n) for n in LENGTHS}
    hold_to_one_each(
        list(trials.values()),
        lambda trial: trial.before["a"] + trial.before["b"],
        lambda trial, where: (
            _by_index(trials[LONG], where)
            or _by_strays(trial, where)
            or _by_repeats(trial, where)
            or _by_value(trial, where)
        ),
    )
    lengths = ", ".join(map(str, sorted(LENGTHS)))
    return (
        f"Vectors of {lengths} elements: each sum right, each stored exactly once, nothing outside touched."
    )


def _trial(kernel, n: int) -> Trial:
    rng = np.random.default_rng(n)
    a, b = rng.uniform(1, 2, n).astype(np.float32), rng.uniform(4, 8, n).astype(np.float32)
    blocks = -(-n // THREADS)
    about = f"With n = {n}: {blocks} block{'s' * (blocks > 1)}, {blocks * THREADS} threads"
    return try_one_each(kernel, NAMES, (THREADS,), a, b, out=np.full(n, np.nan, np.float32), about=about)


# ---- what goes wrong ---------------------------------------------------------------------------------------

# Each entry has a message, and the element that thread t of block b stores.
INDICES = (
    (
        "Only `out[0]` is ever stored, by all threads: each uses index 0. A thread asks for its own, "
        "`cuda.grid(1)`.",
        lambda b, t: 0 * t,
    ),
    (
        "`out[0]` is never stored: the first thread has number 0, so nothing is added to it.",
        lambda b, t: np.minimum(b * THREADS + t + 1, LONG - 1),
    ),
    (
        f"Only the first {THREADS} elements are stored: every block does the same ones. `cuda.threadIdx.x` "
        "starts at 0 again in each block; add the elements of the blocks before.",
        lambda b, t: t,
    ),
    (
        "All threads of a block store the same element: `cuda.blockIdx.x` is the same for all of them. The "
        "block begins at element `blockIdx.x * blockDim.x`; add `threadIdx.x`.",
        lambda b, t: b + 0 * t,
    ),
    (
        f"Neighbouring threads store elements that are {THREADS} apart: the factor `blockDim.x` belongs to "
        "`blockIdx.x`, which counts the blocks before this one, not to `threadIdx.x`.",
        lambda b, t: t * THREADS + b,
    ),
    (
        "The last element is never stored: the guard is one too strict.",
        lambda b, t: np.minimum(b * THREADS + t, LONG - 2),
    ),
)

ONLY_Y = (
    "Only `out[0]` is ever stored, by all threads. The launch has one dimension, so `y` is 0 for everybody "
    "and "
    "only x tells threads apart: `cuda.grid(1)`."
)


def _asks_for_y(trial: Trial) -> bool:
    """Return whether the kernel takes an index along y."""
    return "cuda.grid(2)" in trial.written.text or ".y" in trial.written.text


def _by_index(long: Trial, where: str) -> Refused | None:
    """Return a refusal that tells by the elements stored of the long vector which index a thread takes."""
    b, t = np.ogrid[: long.grid[0], :THREADS]
    written = long.touched("out")
    reached = int(written.sum())
    if reached < LONG - 1 and written[:reached].all() and long.lanes("store", "out") == reached:
        return Refused(
            f"Only the first {reached} elements are stored: the guard lets no other thread through. Compare "
            "with the array's size.",
            where,
        )
    if written.tolist() == [True] + [False] * (LONG - 1) and _asks_for_y(long):
        return Refused(ONLY_Y, where)
    for message, index in INDICES:
        predicted = np.isin(np.arange(LONG), index(b, t))
        if (written == predicted).all():
            return Refused(message, where)
    return None if written.all() else _by_distance(long, written, b, t, where)


def _by_distance(long: Trial, written: np.ndarray, b, t, where: str) -> Refused | None:
    """Return a refusal that says how far apart the blocks begin, where that is not a block's size."""
    for apart in range(1, LONG - THREADS):
        if apart != THREADS and (written == np.isin(np.arange(LONG), b * apart + t)).all():
            begin = f"each begins {apart} element{'s' * (apart > 1)} after the one before"
            wrong = "The blocks overlap" if apart < THREADS else "There are gaps between the blocks"
            if "gridDim" in long.written.text:
                begin += ", since `gridDim.x` is the number of blocks"
            return Refused(
                f"{wrong}: {begin}. A block covers {THREADS} elements, so it begins at "
                "`blockIdx.x * blockDim.x`.",
                where,
            )
    return None


def _by_repeats(trial: Trial, where: str) -> Refused | None:
    """Return a refusal of an index cut off for surplus threads: they store an element once more."""
    race = trial.error("global_race")
    known = {(0,): "the first elements", (trial.after["out"].size - 1,): "its last element"}
    if race is None or race.element not in known or trial.lanes("store", "out") != trial.threads:
        return None
    return Refused(
        f"The surplus threads of the last block do {known[race.element]} once more. They must do nothing: "
        "that is the guard, `if i < out.size:`.",
        where,
    )


def _by_strays(trial: Trial, where: str) -> Refused | None:
    """Return a refusal that tells by the number of strays which guard let them through."""
    finding, strays = trial.error("out_of_bounds"), max(map(trial.strays, NAMES))
    loads, stores = max(map(trial.strays, NAMES[:-1])), trial.strays("out")
    if finding is None:
        return None
    surplus = trial.grid[0] * THREADS - trial.after["out"].size
    if strays == surplus and surplus != 1 and not stores:
        message = (
            "The guard comes too late: `a` or `b` is read before it, by the surplus threads as well. The "
            "loads belong inside the `if`, beside the store."
        )
    elif strays == surplus and surplus != 1 and (not loads or trial.written.choices):
        message = (
            "`... if ... else ...` chooses a value, but stops nobody: the surplus threads go on and store. "
            "The guard is an `if` with the store inside."
            if trial.written.choices
            else "The loads are guarded, the store is not: the surplus threads store outside `out`."
        )
    elif strays == surplus and surplus != 1 and guard_of(trial):
        message = (
            f"Your guard, `{guard_of(trial)}`, lets surplus threads through. Compare the thread's "
            "index in the whole launch with the array's size."
        )
    elif strays == surplus and surplus != 1:
        message = (
            "There is no guard: the last block has more threads than elements are left, and the surplus ones "
            "work outside the vectors. On a GPU that mostly goes unnoticed, and sometimes not."
        )
    elif strays == 1:
        message = _one_too_many(guard_of(trial))
    else:
        message = "The kernel works outside the vectors."
    return Refused(message, f"{trial.line(finding)}. {finding.message} {where}")


def _one_too_many(guard: str) -> str:
    """Return what to say of a guard that lets the thread behind the last element through."""
    begin = "One thread too many gets through the guard"
    if ">" in guard and ">=" not in guard:
        return f"{begin}, `{guard}`: the thread with i = n must leave as well, so `>=`, not `>`."
    return f"{begin}: `n` elements have the indices 0 to n - 1, so `<`, not `<=`."


def _by_value(trial: Trial, where: str) -> Refused | None:
    a, b, got = trial.before["a"], trial.before["b"], trial.after["out"]
    written = trial.touched("out")
    known = {"only `a`": a, "only `b`": b, "the product": a * b, "the difference": a - b}
    for what, values in known.items():
        if written.any() and np.allclose(got[written], values[written], rtol=1e-5):
            return Refused(f"`out` holds {what}, not the sum.", where)
    return None
