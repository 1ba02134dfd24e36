"""Provides a drawing surface for pictures made of cells, and writes its few shapes as SVG.

Everything is drawn in units of a page that is ``PAGE`` units wide. A picture is shown 1.2 times as large
where there is room, and shrinks in a narrow window. The smallest text is ``SMALL`` units high, which is still
9 points in a window 600 pixels wide.
"""

from __future__ import annotations

from html import escape

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture

PAGE = 560
SCALE = 1.2
SMALL, NORMAL, LARGE = 14, 15, 18
SANS = "'DejaVu Sans', 'Segoe UI', Arial, sans-serif"
MONO = "'DejaVu Sans Mono', Consolas, Menlo, monospace"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Drawing:
    """A drawing that collects shapes from the back to the front.

    ``picture`` makes a :class:`Picture` of them. ``title`` is the answer that the picture gives, and is
    written on top. ``top`` is where the space below it starts. At least
    ``title_lines`` lines are reserved for the title, so that the pictures of a sequence do not jump.
    """

    def __init__(self, title: str, width: float = PAGE, *, title_lines: int = 1):
        self.title, self.width = title, width
        self._shapes: list[str] = []
        self._bottom = 0.0
        self.top = 8.0
        lines = wrap(title, LARGE, width - 16, bold=True)
        for place, line in enumerate(lines):
            self.text(8, self.top + (LARGE + 4) * (place + 1) - 4, line, size=LARGE, bold=True)
        self.top += (LARGE + 4) * max(title_lines, len(lines)) + 8

    def rect(
        self,
        x,
        y,
        width,
        height,
        fill,
        *,
        stroke="none",
        line=1.0,
        dash="",
        opacity=1.0,
        round_=0.0,
        title="",
    ):
        """Draw a rectangle. ``title`` becomes its tooltip, which a page shows if it draws the SVG itself."""
        self._bottom = max(self._bottom, y + height)
        extra = f' stroke="{stroke}" stroke-width="{_number(line)}"' if stroke != "none" else ""
        extra += f' stroke-dasharray="{dash}"' if dash else ""
        extra += f' opacity="{_number(opacity)}"' if opacity < 1 else ""
        extra += f' rx="{_number(round_)}"' if round_ else ""
        inside = f"<title>{escape(title)}</title></rect>" if title else ""
        self._shapes.append(
            f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
            f' fill="{fill}"{extra}' + (f">{inside}" if inside else "/>")
        )

    def area(self, rectangles, fill):
        """Fill many rectangles (x, y, width, height) with one colour, as a single shape."""
        outline = ""
        for x, y, width, height in rectangles:
            self._bottom = max(self._bottom, y + height)
            outline += f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z"
        self._shapes.append(f'<path d="{outline}" fill="{fill}"/>')

    def circle(self, x, y, radius, fill, *, stroke="none", line=1.0, dash="", since=None):
        """Draw a disc or, with ``fill`` none, a ring.

        With ``since``, the circle glides from that point to its place once it is shown. A reader who prefers
        reduced motion sees it in its place at once if the page draws the SVG itself. In an <img> it glides
        all the same, because Chromium does not pass that preference on to images.
        """
        self._bottom = max(self._bottom, y + radius)
        extra = f' stroke="{stroke}" stroke-width="{_number(line)}"' if stroke != "none" else ""
        extra += f' stroke-dasharray="{dash}"' if dash else ""
        extra += f' class="{self._glide(since[0] - x, since[1] - y)}"' if since else ""
        self._shapes.append(
            f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}" fill="{fill}"{extra}/>'
        )

    def _glide(self, dx: float, dy: float) -> str:
        """Define a movement by (dx, dy), and return its name.

        Styles hold for a whole page, so the name contains dx and dy.
        """
        name = f"glide{_number(dx)}_{_number(dy)}".replace(".", "p").replace("-", "m")
        definition = (
            f"<style>@keyframes {name}{{from{{transform:translate({_number(dx)}px,{_number(dy)}px)}}}}"
            f" .{name}{{animation:{name} 1.2s ease-in-out}}"
            f" @media (prefers-reduced-motion:reduce){{.{name}{{animation:none}}}}</style>"
        )
        self.define(definition)
        return name

    def path(self, points, *, fill="none", stroke="none", line=1.0, dash=""):
        """Draw straight lines from point to point. ``fill`` fills the area that they enclose."""
        self._bottom = max(self._bottom, *(y for _, y in points))
        extra = f' stroke="{stroke}" stroke-width="{_number(line)}"' if stroke != "none" else ""
        extra += f' stroke-dasharray="{dash}"' if dash else ""
        drawn = "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
        self._shapes.append(f'<path d="M{drawn}" fill="{fill}"{extra}/>')

    def text(
        self, x, y, words, *, size=SMALL, fill=colours.INK, anchor="start", bold=False, mono=False, turned=0.0
    ):
        """Write ``words`` with their baseline at ``y``. ``anchor`` is start, middle or end.

        ``turned`` is an angle in degrees, clockwise, about (x, y).
        """
        self._bottom = max(self._bottom, y + 4)
        weight = ' font-weight="bold"' if bold else ""
        weight += f' transform="rotate({_number(turned)} {_number(x)} {_number(y)})"' if turned else ""
        family = f' font-family="{MONO}"' if mono else ""
        self._shapes.append(
            f'<text x="{_number(x)}" y="{_number(y)}" font-size="{size}" fill="{fill}"'
            f' text-anchor="{anchor}"{weight}{family}'
            f' xml:space="preserve">{escape(str(words))}</text>'
        )

    def line(self, x1, y1, x2, y2, *, stroke=colours.INK, width=1.0, dash="", arrow=False):
        """Draw a straight line, with an arrow head at its end if ``arrow``."""
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        extra += f' marker-end="url(#head-{stroke[1:]})"' if arrow else ""
        if arrow:
            self._arrow_head(stroke)
        self._shapes.append(
            f'<line x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" y2="{_number(y2)}"'
            f' stroke="{stroke}"'
            f' stroke-width="{_number(width)}"{extra}/>'
        )

    def curve(self, x1, y1, x2, y2, bend, *, stroke=colours.INK, width=2.0):
        """Draw an arrow from the first point to the second, with its middle pushed ``bend`` units down."""
        self._arrow_head(stroke)
        middle = f"{_number((x1 + x2) / 2)} {_number((y1 + y2) / 2 + 2 * bend)}"
        self._shapes.append(
            f'<path d="M{_number(x1)} {_number(y1)} Q{middle} {_number(x2)} {_number(y2)}" fill="none"'
            f' stroke="{stroke}"'
            f' stroke-width="{_number(width)}" marker-end="url(#head-{stroke[1:]})"/>'
        )

    def hatch(self, x, y, width, height, colour=colours.QUIET):
        """Hatch an area, which marks something unused."""
        name = f"hatch-{colour[1:]}"
        definition = (
            f'<defs><pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse"'
            f' patternTransform="rotate(45)">'
            f'<line x1="0" y1="0" x2="0" y2="6" stroke="{colour}" stroke-width="1.4"/></pattern></defs>'
        )
        self.define(definition)
        self.rect(x, y, width, height, f"url(#{name})")

    def code(self, top: float, number: int | str, words: str) -> float:
        """Draw a line of a kernel in a box, cut off where it is too long. Return the box's lower edge."""
        if text_width(words, 14, mono=True) > self.width - 90:
            words = words[: int((self.width - 90) / text_width("m", 14, mono=True)) - 2].rstrip() + " …"
        self.rect(8, top, self.width - 16, 26, colours.BAND, stroke=colours.EDGE)
        self.text(16, top + 18, number, size=14, mono=True, fill=colours.QUIET)
        self.text(52, top + 18, words, size=14, mono=True)
        return top + 26

    def define(self, definition: str) -> None:
        """Put a definition, such as a gradient, before all shapes. Equal ids must mean equal things."""
        if definition not in self._shapes:
            self._shapes.insert(0, definition)

    def _arrow_head(self, colour: str) -> None:
        definition = (
            f'<defs><marker id="head-{colour[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6"'
            f' markerHeight="6"'
            f' orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker></defs>'
        )
        self.define(definition)

    def picture(self, description: str) -> Picture:
        """Finish the drawing. ``description`` says in words what the title leaves out."""
        width, height = _number(self.width), _number(self._bottom + 8)
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' width="{_number(self.width * SCALE)}"'
            f' height="{_number((self._bottom + 8) * SCALE)}" role="img" font-family="{SANS}">'
            f"<title>{escape(self.title)}</title><desc>{escape(description)}</desc>"
            f'<rect width="{width}" height="{height}" fill="{colours.PAPER}"/>{"".join(self._shapes)}</svg>'
        )
        return Picture(svg, f"{self.title}. {description}", round(self.width * SCALE))


def text_width(words: str, size: float = SMALL, *, mono: bool = False, bold: bool = False) -> float:
    """Return an upper estimate of the width of ``words``. The real width depends on the machine's fonts."""
    if mono:
        return len(words) * size * 0.605
    wider = sum(0.2 if each.isupper() or each == "=" else 0.1 if each.isdigit() else 0 for each in words)
    return size * (len(words) * (0.585 if bold else 0.58) + wider)


def wrap(words: str, size: float, width: float, *, bold: bool = False) -> list[str]:
    """Break ``words`` into lines that fit into ``width`` units."""
    lines: list[str] = []
    # Words with a no-break space between them stay together.
    for word in words.split(" "):
        if lines and text_width(f"{lines[-1]} {word}", size, bold=bold) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def unbroken(words: str) -> str:
    """Return words in which no line break can part a number from its percent sign."""
    return words.replace(" %", "\u00a0%")


def capital(words: str) -> str:
    """Return words with a capital first letter and the rest unchanged."""
    return words[0].upper() + words[1:]
