"""Says what the picture of an SM's tanks shows: how many blocks fit, and what the next one needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemm_course.figures.svg import capital
from gemm_course.model import Tank

# The tanks stand in this order, from left to right.
ORDER = ("registers", "shared memory", "threads", "blocks")
# These tanks have other names in the picture than in the model.
LABELS = {"threads": "warp slots", "blocks": "block slots"}
_UNIT = {"registers": "register", "threads": "warp slot", "blocks": "block slot"}
_FEW = ("no", "a first", "a second", "a third", "a fourth", "a fifth", "a sixth", "a seventh", "an eighth")


@dataclass(frozen=True)
class Contents:
    """A multiprocessor with `blocks` of a kernel in it.

    ``at_most`` tells whether the registers are the most that a block may take, so that more blocks may fit.
    ``about`` names the kernel and the GPU. ``notes`` say where the figures come from. ``fewer_registers`` is
    the number per thread with which one block more fits, or 0 if there is no such number.
    """

    tanks: Sequence[Tank]
    blocks: int
    about: str
    notes: Sequence[str]
    at_most: bool = False
    fewer_registers: int = 0

    @property
    def ordered(self) -> list[Tank]:
        """The tanks in the order in which they are drawn."""
        return sorted(self.tanks, key=lambda tank: ORDER.index(tank.name))

    @property
    def fits(self) -> int:
        """The number of blocks that fit."""
        return min(tank.fits for tank in self.tanks)

    @property
    def at_least(self) -> bool:
        """True if more blocks may fit, because only the registers are short and a block may take fewer."""
        others = min(tank.fits for tank in self.tanks if tank.name != "registers")
        return self.at_most and self.fits < others

    @property
    def short(self) -> list[Tank]:
        """The tanks that have no room for another block."""
        return [tank for tank in self.ordered if tank.fits <= self.blocks]


def bounded(contents: Contents, tank: Tank, value: int, bound: str) -> str:
    """Return an amount as the picture's table writes it, after ``bound`` if only a bound is known."""
    return _bound(contents, tank, bound) + amount(tank, value)


def _bound(contents: Contents, tank: Tank, bound: str) -> str:
    return f"{bound} " if contents.at_most and tank.name == "registers" else ""


def label(tank: Tank) -> str:
    """Return the tank's name in the picture."""
    return LABELS.get(tank.name, tank.name)


def amount(tank: Tank, value: int) -> str:
    """Return an amount as the picture's table writes it, such as "65,536" or "33.5 KB"."""
    return f"{value / 1024:g} KB" if tank.name == "shared memory" else f"{value:,}"


def title(contents: Contents) -> str:
    """Return the picture's answer, such as "2 blocks fit: registers are full; 16 of 64 warps"."""
    blocks, least = contents.blocks, "at least " if contents.at_least else ""
    if not contents.fits:
        return f"No block fits: {_and(_too_little(tank) for tank in contents.short)}"
    threads = next(tank for tank in contents.tanks if tank.name == "threads")
    warps = f"{blocks * threads.per_block} of {threads.size} warps"
    if blocks < contents.fits:
        held = f"{_count(blocks, 'block')} of {least}{contents.fits}" if blocks else "An empty SM"
        return f"{held}: there is room for {'another' if blocks else 'a block'}; {warps}"
    said = f"{least}{_count(blocks, 'block')} {'fits' if blocks == 1 else 'fit'}"
    return f"{capital(said)}: {_why(contents)}; {warps}"


def sentence(contents: Contents) -> str:
    """Say what the next block needs, and how much is left in the tanks that have too little."""
    next_one = capital(f"{nth(contents.blocks + 1)} block")
    if not contents.short:
        return f"{next_one} (dashed) would find room in every tank."
    lacking = "; ".join(_lack(tank, contents) for tank in contents.short)
    only_registers = [tank.name for tank in contents.short] == ["registers"]
    enough = contents.fewer_registers if only_registers else 0
    fewer = f" With at most {enough} per thread it would fit." if enough else ""
    return f"{next_one} (dashed) would need {lacking}.{fewer}"


def in_words(contents: Contents) -> str:
    """Return the table, the sentence and the notes for readers who cannot see the picture."""
    tanks = contents.ordered
    of_sm = _and(_quantity(tank, tank.size) for tank in tanks)
    of_block = _and(_bound(contents, tank, "at most") + _quantity(tank, tank.per_block) for tank in tanks)
    remains = ((tank, tank.left(contents.blocks)) for tank in tanks)
    left = _and(_bound(contents, tank, "at least") + _quantity(tank, value) for tank, value in remains)
    return (
        f"{contents.about} An SM has {of_sm}. A block takes {of_block}. "
        f"{_count(contents.blocks, 'block')} in it: {left} left. {sentence(contents)} "
        f"{' '.join(contents.notes)}"
    )


def nth(number: int) -> str:
    """Return an ordinal number with its article, such as "a second" or "an 11th"."""
    if number < len(_FEW):
        return _FEW[number]
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number not in (11, 12, 13) else 0, "th")
    return f"{'an' if number in (11, 18) else 'a'} {number}{ending}"


def _why(contents: Contents) -> str:
    """Say which tanks are full, and which have too little for one more block."""
    if contents.at_least:
        return "registers may be full"
    full = [tank for tank in contents.short if not tank.left(contents.blocks)]
    lacking = [tank for tank in contents.short if tank not in full]
    parts = []
    if full:
        one = len(full) == 1 and full[0].name == "shared memory"
        parts.append(f"{_and(label(tank) for tank in full)} {'is' if one else 'are'} full")
    if lacking:
        parts.append(f"{_and(map(_too_little, lacking))} for {nth(contents.blocks + 1)}")
    return ", ".join(parts)


def _too_little(tank: Tank) -> str:
    return f"too {'little' if tank.name == 'shared memory' else 'few'} {label(tank)}"


def _lack(tank: Tank, contents: Contents) -> str:
    """Say what a block needs of a tank and what is left, such as "32,768 registers, and 0 are left"."""
    left, guessed = tank.left(contents.blocks), contents.at_most and tank.name == "registers"
    are = "is" if left == 1 or tank.name == "shared memory" else "are"
    needed, rest = _quantity(tank, tank.per_block), f"{amount(tank, left)} {are} left"
    said = f"up to {needed}, and at least {rest}" if guessed else f"{needed}, and {rest}"
    if tank.name == "registers" and left >= tank.per_block:
        said += ", but a warp's must lie in one quarter of the SM"
    return said


def _quantity(tank: Tank, value: int) -> str:
    if tank.name == "shared memory":
        return f"{amount(tank, value)} of shared memory"
    return _count(value, _UNIT[tank.name])


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _and(parts) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
