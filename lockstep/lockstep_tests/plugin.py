"""What every test may rely on: markers for slow tests and tests on a GPU; samples; repeatable random cases.

Without ``--all`` no test marked full runs, and of tests with many cases only a fixed sample: see sampling.py.
"""

import gc
import os
import signal
from collections.abc import Callable, Collection
from functools import cache, partial
from itertools import chain, groupby, islice
from types import SimpleNamespace

import pytest
from hypothesis import settings

from lockstep_tests import processes, sampling

LEFT_OUT = pytest.StashKey[int]()
LEFT_RUNNING = pytest.StashKey[list[str]]()
RUN = pytest.StashKey[processes.Run]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run everything: all of many cases, all slow tests")
    parser.addoption("--gpu", choices=("only", "without"), help="run only what needs a GPU, or all the rest")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Two workers more than processors: tests in the browser and of child processes mostly wait.

    With -s a test uses the terminal, so it must run in this process.
    """
    return 0 if config.option.capture == "no" else (os.cpu_count() or 1) + 2


def pytest_configure(config: pytest.Config) -> None:
    """A quick run is repeatable; one with --all looks at other random cases each time, except in CI."""
    sampling.everything = config.getoption("--all")
    repeatable = not sampling.everything or "CI" in os.environ
    settings.register_profile("course", deadline=None, derandomize=repeatable)
    settings.load_profile("course")


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")  # one of several processes that run tests, started by xdist


@pytest.hookimpl(tryfirst=True)  # before the workers start
def pytest_sessionstart(session: pytest.Session) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a script's background job starts so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not _is_worker(session.config):
        session.config.stash[RUN] = processes.Run()


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and not among what stays: this saves the tests of kernels 7 % of their time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.hookimpl(trylast=True)  # after the workers' end
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Let a run in which all tests passed fail if a test left a process running."""
    gc.collect()
    gc.freeze()  # pytest collects five times more, among all that the tests have cached
    config = session.config
    if _is_worker(config):
        config.workeroutput["left_out"] = config.stash.get(LEFT_OUT, 0)
    elif exitstatus == pytest.ExitCode.OK and (left := config.stash[RUN].left_running()):
        config.stash[LEFT_RUNNING] = left
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    if run := config.stash.get(RUN, None):
        run.close()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """Take the number from any worker: all of them collect, and leave out, the same tests."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    for line in config.stash.get(LEFT_RUNNING, []):
        terminalreporter.write_line(f"FAILED: a test left this process running: {line}", red=True)
    if left_out := config.stash.get(LEFT_OUT, 0):
        if sampling.everything:
            line = f"A fixed sample of what machines make: {left_out} tests more run if named, or with -k."
        else:
            line = f"A quick run: a fixed sample. --all runs up to {left_out} tests more."
        terminalreporter.write_line(line)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enable Numba's runtime on the GPU, without which Numba assigns no array to a part of another one."""
    monkeypatch.setattr("numba.cuda.config", SimpleNamespace(CUDA_ENABLE_NRT=True), raising=False)


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Callable[..., list]:
    """``sample(cases, one_in=8)``: the cases of a test that loops over many.

    With --all it returns all of them, or one in ``with_all``. It returns all for a test that is named on the
    command line, that -k selects with --all, or that failed last time (--lf).
    """
    if _wanted(request.config, [request.node]):
        return lambda cases, one_in, with_all=1: list(cases)
    return partial(sampling.sample, seed=request.node.nodeid)


@pytest.hookimpl(trylast=True)  # after -k and -m, so that at least one case stays of what they select
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if which := config.getoption("--gpu"):
        _keep(config, items, [item for item in items if _needs_gpu(item) == (which == "only")])
    _keep_the_sample(config, items)
    _skip_what_needs_a_gpu(items)
    workers = config.workerinput["workercount"] if _is_worker(config) else 1
    items[:] = slow_ones_first(items, workers)


def slow_ones_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Bring slow tests to the front, so that at the end no worker has one while the others are idle.

    Each worker begins with an equal part of the tests, in their order, and later takes over what others have
    left. So the slow ones are dealt out: first those that wait for other processes, then those that compute.
    The browser tests of a file go to one worker, because each worker would start a JupyterLab of its own for
    them. Tests of the course's site all go to the first worker, because others would wait for the site.
    """
    of_the_site = [item for item in items if "course_site" in item.fixturenames]
    others = [item for item in items if item not in set(of_the_site)]
    waiting = [item for item in others if _has(item, "browser", "waits")]
    slow = [*waiting, *(item for item in others if _has(item, "long", "full") and item not in waiting)]
    rest = iter([item for item in others if item not in set(slow)])
    hands = [
        list(hand) for _, hand in groupby(slow, lambda item: item.path if _has(item, "browser") else item)
    ]
    size, ordered = -(-len(items) // workers), [*of_the_site]
    dealt_to = range(1 if of_the_site and workers > 1 else 0, workers)
    for part in range(workers):
        if part in dealt_to:
            ordered += chain.from_iterable(hands[part - dealt_to.start :: len(dealt_to)])
        ordered += islice(rest, max((part + 1) * size - len(ordered), 0))
    return ordered


def _hand(item: pytest.Item) -> object:
    """Return what is equal for tests that one worker should run."""
    return item.path if _has(item, "browser") else item


def _has(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) for name in names)


def _keep_the_sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is neither in the sample nor wanted."""
    kept = sampling.select(items) | _wanted(config, items)
    config.stash[LEFT_OUT] = len(items) - len(kept)
    _keep(config, items, kept)


def _keep(config: pytest.Config, items: list[pytest.Item], kept: Collection[pytest.Item]) -> None:
    kept = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _needs_gpu(item: pytest.Item) -> bool:
    return item.get_closest_marker("gpu") is not None


def _wanted(config: pytest.Config, items: list[pytest.Item]) -> set[pytest.Item]:
    """What runs whole: named on the command line, by -k with --all as well, or failed last time (--lf)."""
    if sampling.everything and config.getoption("keyword"):
        return set(items)
    named = tuple(argument for argument in config.args if "::" in argument)
    failed = {}
    if config.getoption("lf", False) or config.getoption("failedfirst", False):
        failed = config.cache.get("cache/lastfailed", {})
    return {item for item in items if item.nodeid in failed or item.nodeid.startswith(named)}


def _skip_what_needs_a_gpu(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none, and say so."""
    needs_gpu = [item for item in items if _needs_gpu(item)]
    if needs_gpu and (reason := why_no_gpu()):
        skip(needs_gpu, f"needs a GPU. {reason}")


def skip(items: list[pytest.Item], reason: str) -> None:
    for item in items:
        item.add_marker(pytest.mark.skip(reason=reason))


@cache
def why_no_gpu() -> str | None:
    """Why kernels cannot run on a GPU here, as a sentence; None if they can."""
    from numba import config, cuda  # imported here, for a few light tests can run without Numba

    if config.ENABLE_CUDASIM:
        return "NUMBA_ENABLE_CUDASIM is set, so Numba simulates CUDA."
    return None if cuda.is_available() else "Numba finds none that it can compile for."
