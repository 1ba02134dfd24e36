"""How long a learner waits for the course, in one run on one machine that has nothing else to do.

    python -m tests.benchmark --output data/course_benchmark.csv

Checks, pictures, explorers in a browser, whole notebooks, the start of JupyterLab: each with the times it
should not exceed. A test that held them to these times would fail on a busy machine, so none does; what was
measured is on record instead. ``--only checks explorers`` measures some of it.
"""

import argparse
import csv
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lockstep_tests.bench_emulator import origin

NOTEBOOK_SECONDS, LAB_SECONDS = 30, 5


@dataclass(frozen=True)
class Row:
    """What was measured, in milliseconds, and what its median or its slowest should stay below."""

    what: str
    name: str
    times: list[float]
    median_limit: float | None = None
    slowest_limit: float | None = None

    def columns(self) -> dict:
        """The row as the file has it; ``times`` says how many there were."""
        return {
            "what": self.what,
            "name": self.name,
            "times": len(self.times),
            "median_ms": round(statistics.median(self.times), 2),
            "slowest_ms": round(max(self.times), 2),
            "median_limit_ms": self.median_limit,
            "slowest_limit_ms": self.slowest_limit,
        }

    def __str__(self) -> str:
        within = (self.median_limit or self.slowest_limit) > (
            statistics.median(self.times) if self.median_limit else max(self.times)
        )
        found = self.columns()
        return (
            f"{'' if within else 'TOO SLOW ':9}{self.what}, {self.name}: "
            f"median {found['median_ms']} ms, slowest {found['slowest_ms']} ms of {found['times']}"
        )


def milliseconds(action: Callable, *arguments) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    action(*arguments)
    return 1000 * (time.perf_counter() - start)


def checks() -> Iterator[Row]:
    """Every exercise with every wrong solution."""
    from tests.checks.test_wrong_solutions import WRONG

    every = []
    for exercise, answers in WRONG.items():
        times = [milliseconds(answer.verdict) for answer in answers.values()]
        every += times
        yield Row("check of a wrong solution", exercise, times, slowest_limit=5000)
    yield Row("check of a wrong solution", "all exercises", every, median_limit=1000)


def pictures() -> Iterator[Row]:
    """Every picture made of cells, warm; the steps of some explorers; the sliders of tile choices."""
    from gemm_course.kernels import LADDER
    from gemm_course.widgets import _banks, _race, _roofline, _scatter, _tiles, _wavefronts
    from tests.figures.test_pictures import CELLS

    TRAIL = ("thread_tiled_1d", "thread_tiled_2d", "vectorized")
    for name, draw in CELLS.items():
        draw()
        yield Row("picture of cells", name, [milliseconds(draw) for _ in range(7)], median_limit=10)
    for name, draw in {
        "scatter": lambda step: _scatter.draw(step, 5, 16, 4),
        "banks": lambda step: _banks.draw("As[tx, p]", (32, 32), _banks.PADDING[step % 5]),
        "race": lambda step: _race.draw(list(_race.MISSING)[step % 3], "(0, 0)"),
        "roofline": lambda step: _roofline.moved(TRAIL, TRAIL[step % 3]),
        "wavefronts": lambda step: _wavefronts.draw(list(_wavefronts.ACCESSES)[step % 4], 16, 4),
    }.items():
        draw(0)
        times = [milliseconds(draw, step) for step in range(8)]
        yield Row("explorer's step", name, times, median_limit=30)
    for name in ("block_tiled", "thread_tiled_2d", "warp_tiled_tm1", "warp_tiled"):
        stage, cells, charts = LADDER[name], [], []
        choices = stage.legal_choices()
        for chosen in choices[:: max(1, len(choices) // 12)]:
            drawn = (_tiles.choice, _tiles.around)
            cells.append(sum(milliseconds(draw, stage, chosen) for draw in drawn))
            charts.append(cells[-1] + milliseconds(_tiles.on_roofline, stage, chosen))
        yield Row("tile choice, pictures of cells", name, cells, median_limit=80)
        yield Row("tile choice, with its chart", name, charts, median_limit=150)


def reading() -> Iterator[Row]:
    """The largest record, read again and made ready for sliders."""
    from gemm_course import records
    from gemm_course.kernels import LADDER
    from gemm_course.widgets import _measured

    def for_sliders():
        for remembered in (_measured._sweep, _measured._choices):
            remembered.cache_clear()
        _measured.best(LADDER["warp_tiled"])

    for name, action in {"read": records.sweep, "made ready for sliders": for_sliders}.items():
        action()  # pandas is imported once
        yield Row("sweep", name, [milliseconds(action) for _ in range(7)], median_limit=100)


def machine_code() -> Iterator[Row]:
    """Compiling stages and exercise answers, the disassembly included; reading the record of the stages."""
    from gemm_course.compiler import compiled, recorded
    from gemm_course.compiler.compile import _compiled_stage
    from gemm_course.compiler.record import _read
    from gemm_course.kernels import LADDER
    from tests.compiler.answers import ANSWERS, outcome

    compiled("naive_coalesced")  # Numba's tables are filled once
    stages = list(LADDER)
    _compiled_stage.cache_clear()
    times = [milliseconds(compiled, stage) for stage in stages]
    yield Row("machine code", "the stages, compiled", times, median_limit=3000)
    times = [milliseconds(outcome, *answer) for answer in ANSWERS]
    yield Row("machine code", "exercise answers, compiled or refused", times, median_limit=3000)
    recorded("naive_coalesced", (9, 0))  # pandas is imported once
    _read.cache_clear()
    times = [milliseconds(recorded, stage, (9, 0)) for stage in stages]
    yield Row("machine code", "the stages, from the record", times, median_limit=100)


def notebooks() -> Iterator[Row]:
    """Every notebook from top to bottom, the start of its kernel included."""
    from tests.notebooks.test_run import NOTEBOOKS, run

    for name in NOTEBOOKS:
        for kind in ("learner", "solutions"):
            times = [milliseconds(run, name, kind)]
            yield Row(f"notebook, {kind}", name, times, slowest_limit=1000 * NOTEBOOK_SECONDS)


def lab() -> Iterator[Row]:
    """A second start of `gemm-course lab`, until the page is served."""
    from tests.commands.test_lab import serve

    times = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as home:
            start = time.perf_counter()
            with serve(Path(home)):
                times.append(1000 * (time.perf_counter() - start))
    yield Row("start", "gemm-course lab", times, median_limit=1000 * LAB_SECONDS)


# How long after a key an explorer's next picture was decoded.
_WATCH = """
root => {
    const image = root.querySelector('img.gemm-picture');
    window.moved = null;
    document.addEventListener('keydown', () => { window.pressed = performance.now(); },
                              {capture: true, once: true});
    window.watch?.disconnect();
    window.watch = new MutationObserver(() => image.decode().then(() => {
        window.moved ??= performance.now() - window.pressed;
    }));
    window.watch.observe(image, {attributeFilter: ['src']});
}
"""


def explorers() -> Iterator[Row]:
    """Every slider of every explorer in a browser, from the key to the next picture, decoded."""
    from playwright.sync_api import sync_playwright

    from tests.browser.lab import Lab, copy_of_notebooks, jupyterlab
    from tests.browser.test_notebooks_in_the_browser import NAMES
    from tests.conftest import find_chromium

    every = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium())
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        with jupyterlab(copy_of_notebooks(Path(folder) / "notebooks")) as base:
            opened = Lab(context, base)
            for name in NAMES:
                with opened.open(f"{name}.ipynb") as notebook:
                    notebook.run_all()
                    for place, explorer in enumerate(notebook.explorers()):
                        times = [time for slider in explorer.ranges() for time in _moved(slider)]
                        if times:
                            every += times
                            title = f"{name}, {place + 1}"
                            yield Row("explorer", title, times, median_limit=100, slowest_limit=300)
        browser.close()
    yield Row("explorer", "all", every, median_limit=100, slowest_limit=300)


def _moved(slider) -> list[float]:
    """Press four keys; return the milliseconds until the next picture, for those that changed it."""
    times = []
    for key in ("End", "Home", "ArrowRight", "ArrowLeft"):
        slider.locator.focus()
        slider.explorer.root.evaluate(_WATCH)
        slider.press(key)
        if (took := slider.page.evaluate("() => window.moved")) is not None:
            times.append(took)
    return times


# How long after a key or a click the instructions of another line were drawn.
_WATCH_LINES = """
root => {
    window.drawn = [];
    const begin = () => { window.begun = performance.now(); };
    for (const kind of ['keydown', 'click']) document.addEventListener(kind, begin, {capture: true});
    new MutationObserver(() => requestAnimationFrame(() => setTimeout(() =>
        window.drawn.push(performance.now() - window.begun)))
    ).observe(root.querySelector('.gemm-instructions'), {childList: true});
}
"""


def lines() -> Iterator[Row]:
    """Machine code by lines in a browser, from the key or click to another line's instructions, drawn."""
    from playwright.sync_api import sync_playwright

    from tests.browser.lab import Lab, jupyterlab
    from tests.browser.test_machine_code_in_the_browser import NAME, Shown, write
    from tests.conftest import find_chromium

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write(Path(folder) / NAME)
        browser = playwright.chromium.launch(executable_path=find_chromium())
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        with jupyterlab(Path(folder)) as base, Lab(context, base).open(NAME) as notebook:
            notebook.run_all()
            shown = Shown(notebook, 0).ready()
            shown.list.focus()
            shown.press("Home")
            shown.root.evaluate(_WATCH_LINES)
            found = shown.root.locator(".gemm-line")
            ways = {
                "key": [lambda: notebook.page.keyboard.press("ArrowDown")] * (found.count() - 1),
                "click": [found.nth(place).click for place in range(found.count() - 1)],
            }
            for way, actions in ways.items():
                times = [_drawn(notebook.page, action) for action in actions]
                yield Row("machine code by lines", way, times, median_limit=100)
        browser.close()


def _drawn(page, action: Callable) -> float:
    """Choose a line; return the milliseconds until its instructions were drawn."""
    page.evaluate("() => { window.drawn = []; }")
    action()
    page.wait_for_function("() => window.drawn.length > 0")
    return page.evaluate("() => window.drawn[0]")


GROUPS = {
    group.__name__: group
    for group in (checks, pictures, reading, machine_code, notebooks, lab, explorers, lines)
}


def write(rows: Iterable[Row], command: str, path: Path) -> None:
    """Write the rows with where and when they were measured."""
    where = origin(command)
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = [row.columns() | where for row in rows]
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    rows = []
    for name in options.only:
        for row in GROUPS[name]():
            print(row, flush=True)
            rows.append(row)
    if options.output:
        only = [] if options.only == list(GROUPS) else ["--only", *options.only]
        write(rows, " ".join(["python -m tests.benchmark", *only]), options.output)


if __name__ == "__main__":
    main()
