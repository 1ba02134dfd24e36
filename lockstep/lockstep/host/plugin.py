"""Lets pytest run tests of kernels without a GPU, and fails the tests in which the emulator finds an error.

``pytest --emulate-cuda`` runs all tests on the emulator, and ``@pytest.mark.emulate_cuda(gpu="ada")`` runs
one of them. The fixture ``emulated_cuda`` gives a test its session. Without any of these nothing is emulated.
But the plugin imports the package, so kernels with signatures can be defined where there is no GPU.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

END = pytest.StashKey[Callable[[], None]]()
SESSION = pytest.StashKey[Any]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("emulate-cuda", "numba.cuda without a GPU (lockstep)")
    group.addoption("--emulate-cuda", action="store_true", help="run numba.cuda on the emulator in all tests")
    group.addoption(
        "--emulate-gpu", metavar="GPU", help="the emulated GPU, such as h200 (the default) or ada"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "emulate_cuda(gpu=None): numba.cuda runs on the emulator in this test; errors it finds fail it",
    )
    if config.getoption("--emulate-cuda"):
        config.stash[SESSION], config.stash[END] = _begin(config.getoption("--emulate-gpu"))


def pytest_unconfigure(config: pytest.Config) -> None:
    if end := config.stash.get(END, None):
        end()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if session := config.stash.get(SESSION, None):
        for found in session.findings:  # These findings are from launches outside of tests, as in an import.
            terminalreporter.write_line(str(found), red=found.severity == "error")
        terminalreporter.write_line(f"numba.cuda ran on an emulated {session.gpu.name}.")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail the run if a launch outside of tests has errors."""
    emulated = session.config.stash.get(SESSION, None)
    if emulated is not None and not emulated.ok and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _begin(gpu: Any) -> tuple[Any, Callable[[], None]]:
    from .session import Session, begin

    session = Session(_profile(gpu))
    return session, begin(session)


@pytest.fixture
def emulated_cuda(request: pytest.FixtureRequest) -> Any:
    """Return the session in which the test's kernels run, with its launches, counts and findings."""
    return _session_of(request.node)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Give a test that asks for an emulated GPU its own session, from its first fixture to its last."""
    marker = item.get_closest_marker("emulate_cuda")
    asked = marker is not None or "emulated_cuda" in getattr(item, "fixturenames", ())
    if not asked:
        return (yield)
    item.stash[SESSION], end = _begin(_gpu_of(marker) or item.config.getoption("--emulate-gpu"))
    try:
        return (yield)
    finally:
        end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Stop the run before it begins if a marker names a GPU that the emulator does not know."""
    for item in items:
        for marker in item.iter_markers("emulate_cuda"):
            _profile(_gpu_of(marker), item)


def _gpu_of(marker: pytest.Mark | None) -> Any:
    """Return the GPU that a marker names, as a positional or keyword argument, or None."""
    if marker is None or not (marker.args or marker.kwargs):
        return None
    given = [*marker.args, *marker.kwargs.values()]
    if len(given) > 1 or marker.kwargs.keys() - {"gpu"}:
        raise pytest.UsageError("the marker emulate_cuda takes one argument, gpu, such as gpu='ada'")
    return given[0]


def _profile(gpu: Any, item: pytest.Item | None = None) -> Any:
    """Return the profile of a GPU. Raises UsageError for an unknown name."""
    from lockstep.errors import LaunchError
    from lockstep.limits import profile

    try:
        return profile(gpu)
    except LaunchError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}" if item is not None else str(error)) from None


def _session_of(item: pytest.Item) -> Any:
    return item.stash.get(SESSION, None) or item.config.stash.get(SESSION, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    return (yield from _checked(item, "setup"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    return (yield from _checked(item, "call"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    return (yield from _checked(item, "teardown"))


def _checked(item: pytest.Item, phase: str) -> Iterator[None]:
    """Run a phase of a test, and fail the test if the emulator finds errors in its launches."""
    session = _session_of(item)
    before = len(session.launches) if session is not None else 0
    try:
        result = yield
    except BaseException as error:
        if session is not None and (found := _take_findings(item, session, before)):
            item.add_report_section(phase, "emulator", "\n".join(map(str, found)))
        _shorten(item, error)
        raise
    if session is None:
        return result
    found = _take_findings(item, session, before)
    if any(one.severity == "error" for one in found):
        pytest.fail("\n".join(map(str, found)), pytrace=False)
    return result


def _shorten(item: pytest.Item, error: BaseException) -> None:
    """Shorten the emulator's tracebacks to the lines of the test and the kernel, except with --full-trace."""
    if "lockstep.launching" in sys.modules and not item.config.getoption("fulltrace"):
        from .errors import without_our_frames

        without_our_frames(error)


def _take_findings(item: pytest.Item, session: Any, before: int) -> list:
    """Return the findings of a phase's launches, the launches from number ``before`` on.

    Remove these launches from the session of the whole run, which keeps only launches outside of tests.
    """
    from .session import found_in

    found = found_in(session.launches[before:])
    if SESSION not in item.stash:
        del session.launches[before:]
    return found
