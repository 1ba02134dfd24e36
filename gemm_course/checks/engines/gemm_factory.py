"""Tries a learner's factory of tiled GEMM kernels with several tile choices and problems, then lessons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from gemm_course.checks.core import Refused, call, factory_of, kernel_of
from lockstep import Finding

from .findings import FINDINGS
from .gemm import GEMM, GemmTrial, Likely, hold_to_numbers, try_on
from .lessons import Lesson, check_tiles_used, no_float64, uninitialised
from .mistakes import along_k
from .problem import Geometry, Problem, adversarial
from .registers import kept_in_registers
from .tiles import Tiles


@dataclass(frozen=True)
class Proof:
    """The outcome for a right answer: how many problems were tried, and each choice's trial on whole tiles.

    registers: a sentence on whether local arrays stay in registers, or "".
    """

    problems: int
    trials: dict[Tiles, GemmTrial]
    registers: str = ""


@dataclass(frozen=True, kw_only=True)
class GemmFactory:
    """An exercise whose answer is a factory (sizes) -> kernel (m, n, k, alpha, A, B, beta, C).

    Each choice of tiles is tried on a problem of whole tiles and a ragged one, the first choice on every kind
    of problem. Then the lessons look at the trials on whole tiles.

    tiles: the choices; keep the first one small. geometry: the launch for a choice. likely: what goes wrong
    in this exercise; mistakes along k and the findings of tiled kernels are added. lessons: what a kernel
    with the right numbers must also do. begun: (trials on whole tiles) raises NothingYet if the kernel is the
    stub. at_first: (the first choice's trial) raises Refused for what would take minutes with wider tiles.
    before_numbers: (trials on whole tiles) raises Refused for what the learner should hear before any wrong
    number. more_problems: tiles -> further problems. whole_only: choices tried on whole tiles alone.
    whole_problems: a problem of whole tiles to use for a choice instead of the usual one. row_multiple: every
    row's length is a multiple of this number. in_registers: whether local arrays must stay in registers; the
    choice with the most results per thread decides. why_not_in_registers: (trial of that choice, lines, names
    of arrays) -> the reason and its line, or None for the usual words.
    """

    tiles: Sequence[Tiles]
    geometry: Callable[[Tiles], Geometry]
    likely: Callable[[Tiles], Likely] = lambda tiles: Likely()
    lessons: Sequence[Lesson] = ()
    begun: Callable[..., None] = check_tiles_used
    at_first: Callable[[GemmTrial], None] = lambda trial: None
    before_numbers: Callable[[Sequence[GemmTrial]], None] = lambda trials: None
    more_problems: Callable[[Tiles], Sequence[Problem]] = lambda tiles: ()
    whole_only: Sequence[Tiles] = ()
    whole_problems: Mapping[Tiles, Problem] = field(default_factory=dict)
    row_multiple: int = 1
    in_registers: bool = False
    why_not_in_registers: Callable[[GemmTrial, list[int], list[str]], tuple[str, int] | None] | None = None

    def prove(self, given: Any) -> Proof:
        """Try the factory's kernels and return the outcome. Raise Refused at the first mistake."""
        make = factory_of(given, self.tiles[0].names)
        kernels = {tiles: kernel_of(call(make, *tiles), GEMM) for tiles in self.tiles}
        first = self.tiles[0]
        whole = {first: self.try_on_whole_tiles(kernels.pop(first), first)}
        self.at_first(whole[first])
        whole |= {tiles: self._try_on_others(kernel, tiles) for tiles, kernel in kernels.items()}
        self.begun(*whole.values())
        self.before_numbers(list(whole.values()))
        trials = [tried for trial in whole.values() for tried in self._try_all(trial)]
        for trial in whole.values():
            for lesson in self.lessons:
                lesson(trial)
        # Where beta is not 0 another line stores, and that line may compute in float64.
        if no_float64 in self.lessons:
            for trial in trials:
                no_float64(trial)
        most = max(whole.values(), key=lambda trial: trial.multiply_adds_per_step)
        why = self.why_not_in_registers and partial(self.why_not_in_registers, most)
        return Proof(len(trials), whole, kept_in_registers(most, why) if self.in_registers else "")

    def try_on_whole_tiles(self, kernel: Any, tiles: Tiles, **options) -> GemmTrial:
        """Run the kernel on :meth:`whole_problem`. options: passed to `emulate`."""
        return try_on(kernel, self.geometry(tiles), self.whole_problem(tiles), tiles=tiles, **options)

    def _try_on_others(self, kernel: Any, tiles: Tiles) -> GemmTrial:
        """Try a later choice on whole tiles. The first choice ran, so a refusal names the sizes."""
        try:
            return self.try_on_whole_tiles(kernel, tiles)
        except Refused as refused:
            if refused.where:
                refused.where = f"{refused.where.removesuffix('.')}. With {tiles}."
            raise

    def _try_all(self, whole: GemmTrial) -> list[GemmTrial]:
        """Run all problems of a choice and return the trials; refuse wrong numbers.

        whole: the trial on whole tiles, which is not run again.
        """
        tiles = whole.tiles
        return hold_to_numbers(
            whole.kernel,
            whole.geometry,
            self.all_likely(tiles),
            depth=tiles.block_tile[2],
            problems=self.problems(tiles),
            tiles=tiles,
            made=[whole],
        )

    def all_likely(self, tiles: Tiles) -> Likely:
        """Return what goes wrong in this exercise, then what goes wrong in any tiled kernel."""
        own = self.likely(tiles)
        results = (*own.results, *along_k(tiles.block_tile[2], tiles.depth_name))
        return replace(own, results=results, findings=_in_turn(own.findings, SHARED_FINDINGS))

    # ---- the problems --------------------------------------------------------------------------------------

    def problems(self, tiles: Tiles) -> list[Problem]:
        """Return all problems on which a choice is tried, whole tiles first."""
        if tiles in self.whole_only:
            usual = [self.whole_problem(tiles)]
        elif tiles == self.tiles[0]:
            every_kind = adversarial(self.geometry(tiles), tiles.block_tile[2])
            usual = [problem.but(row_multiple=self.row_multiple) for problem in every_kind]
        else:
            usual = [self.whole_problem(tiles), self.ragged_problem(tiles)]
        return [*usual, *self.more_problems(tiles)]

    def whole_problem(self, tiles: Tiles) -> Problem:
        """Return the exercise's own problem of whole tiles, or else two blocks in a row, by three tiles."""
        BM, BN, BK = tiles.block_tile
        return self.whole_problems.get(tiles) or Problem(BM, 2 * BN, 3 * BK, row_multiple=self.row_multiple)

    def ragged_problem(self, tiles: Tiles) -> Problem:
        """Return a problem whose sizes are not multiples of the tiles' sizes."""
        m, n = self.geometry(tiles).ragged()
        depth = tiles.block_tile[2] + 1
        return Problem(m, n, depth, alpha=1.5, beta=-0.5, padding=3, row_multiple=self.row_multiple)


Words = Callable[[Finding, GemmTrial], str | None]
SHARED_FINDINGS = {**FINDINGS, "uninitialised_read": uninitialised}


def _in_turn(own: Mapping[str, Words], shared: Mapping[str, Words]) -> dict[str, Words]:
    """Return for each kind of finding the exercise's own words, or the shared ones where it has none."""

    def either(kind: str) -> Words:
        asked = [words[kind] for words in (own, shared) if kind in words]
        return lambda finding, trial: next(filter(None, (say(finding, trial) for say in asked)), None)

    return {kind: either(kind) for kind in {*own, *shared}}
