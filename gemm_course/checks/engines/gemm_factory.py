"""How a learner's factory of tiled GEMM kernels is tried: several tile choices, problems, then lessons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gemm_course.checks.core import call, factory_of, kernel_of

from .findings import FINDINGS
from .gemm import GEMM, GemmTrial, Likely, hold_to_numbers, try_on
from .lessons import Lesson, check_tiles_used
from .mistakes import along_k
from .problem import Geometry, Problem, adversarial
from .tiles import Tiles


@dataclass(frozen=True)
class Proof:
    """What was tried: the number of problems, and each choice's trial on whole tiles."""

    problems: int
    whole: dict[Tiles, GemmTrial]


@dataclass(frozen=True, kw_only=True)
class GemmFactory:
    """An exercise whose answer is a factory (sizes) -> kernel (m, n, k, alpha, A, B, beta, C).

    tiles: the choices tried; the first on every kind of problem, the others on whole tiles and a ragged
    problem. geometry: the launch for a choice. likely: what goes wrong in this exercise; slips along k and
    the findings of tiled kernels are added. lessons: what a right kernel is also held to, on whole tiles.
    begun: raises where the trials are a stub's. before_numbers: further refusals that come before wrong
    numbers. problems: (factory, tiles) -> other problems than these. whole: other problems of whole tiles,
    for some of the choices. row_multiple: elements that the length of every row is a multiple of.
    """

    tiles: Sequence[Tiles]
    geometry: Callable[[Tiles], Geometry]
    likely: Callable[[Tiles], Likely] = lambda tiles: Likely()
    lessons: Sequence[Lesson] = ()
    begun: Callable[..., None] = check_tiles_used
    before_numbers: Callable[[Sequence[GemmTrial]], None] = lambda trials: None
    problems: Callable[[GemmFactory, Tiles], Sequence[Problem]] | None = None
    whole: Mapping[Tiles, Problem] = field(default_factory=dict)
    row_multiple: int = 1

    def prove(self, given: Any) -> Proof:
        """Hold a factory to all of it; raises Refused with the first thing wrong."""
        make = factory_of(given, self.tiles[0].names)
        kernels = {tiles: kernel_of(call(make, *tiles), GEMM) for tiles in self.tiles}
        whole = {tiles: self.try_whole(kernel, tiles) for tiles, kernel in kernels.items()}
        self.begun(*whole.values())
        self.before_numbers(list(whole.values()))
        tried = [self.hold_to_numbers(trial.kernel, tiles, [trial]) for tiles, trial in whole.items()]
        for trial in whole.values():
            for lesson in self.lessons:
                lesson(trial)
        return Proof(sum(map(len, tried)), whole)

    def try_whole(self, kernel: Any, tiles: Tiles, **options) -> GemmTrial:
        """The kernel on whole tiles. options: emulate's."""
        return try_on(kernel, self.geometry(tiles), self.whole_tiles(tiles), tiles=tiles, **options)

    def hold_to_numbers(self, kernel: Any, tiles: Tiles, made: Sequence[GemmTrial] = ()) -> list[GemmTrial]:
        """Refuse wrong numbers on this choice's problems; return the trials. made: trials made before."""
        likely, depth = self.likely(tiles), tiles.block_tile[2]
        all_likely = Likely(
            (*likely.results, *along_k(depth, tiles.depth_name)),
            likely.guards,
            {**FINDINGS, **likely.findings},
            likely.too_coarse,
        )
        problems = (self.problems or GemmFactory.usual_problems)(self, tiles)
        return hold_to_numbers(
            kernel, self.geometry(tiles), all_likely, depth=depth, problems=problems, tiles=tiles, made=made
        )

    def usual_problems(self, tiles: Tiles) -> list[Problem]:
        """Every kind for the first choice; whole tiles and a ragged problem for the others."""
        if tiles != self.tiles[0]:
            return [self.whole_tiles(tiles), self.ragged(tiles)]
        every_kind = adversarial(self.geometry(tiles), tiles.block_tile[2])
        return [problem.but(row_multiple=self.row_multiple) for problem in every_kind]

    def whole_tiles(self, tiles: Tiles) -> Problem:
        """One row of two blocks, three tiles along k, unless the exercise has another one for this choice."""
        BM, BN, BK = tiles.block_tile
        return self.whole.get(tiles) or Problem(BM, 2 * BN, 3 * BK, row_multiple=self.row_multiple)

    def ragged(self, tiles: Tiles) -> Problem:
        """Sizes that are no multiples of anything."""
        m, n = self.geometry(tiles).ragged()
        depth = tiles.block_tile[2] + 1
        return Problem(m, n, depth, alpha=1.5, beta=-0.5, padding=3, row_multiple=self.row_multiple)
