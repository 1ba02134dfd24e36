"""What a drawn page looks like: is each text on it, and does none lie over another?"""

import xml.etree.ElementTree as ElementTree
from functools import cache
from itertools import combinations

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from gemm_course.figures.picture import Picture

SVG = "{http://www.w3.org/2000/svg}"


@cache
def width_of(words: str, size: float, bold: bool) -> float:
    """In units of the page, in DejaVu Sans, the font that pictures ask for first."""
    font = FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    return TextToPath().get_text_width_height_descent(words.replace("$", "S"), font, False)[0]


def texts(picture: Picture) -> list[tuple[str, float, float, float, float]]:
    """Each text with its box: left, top, right, bottom."""
    found = []
    for text in ElementTree.fromstring(picture.data).iter(f"{SVG}text"):
        words, size = "".join(text.itertext()), float(text.get("font-size"))
        wide = width_of(words, size, text.get("font-weight") == "bold")
        shift = {"start": 0, "middle": wide / 2, "end": wide}[text.get("text-anchor")]
        left, baseline = float(text.get("x")) - shift, float(text.get("y"))
        found.append((words, left, baseline - 0.73 * size, left + wide, baseline))
    return found


def faults(picture: Picture) -> list[str]:
    """Texts that leave the page, lie over one another or are small, and rectangles that leave the page."""
    root = ElementTree.fromstring(picture.data)
    width, height = (float(value) for value in root.get("viewBox").split()[2:])
    written = texts(picture)
    found = [
        f"off the page: {words}"
        for words, left, top, right, bottom in written
        if left < 0 or right > width or top < 0 or bottom > height
    ]
    found += [
        f"over each other: {one[0]} | {other[0]}"
        for one, other in combinations(written, 2)
        if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]
    ]
    found += [f"small: {text.text}" for text in root.iter(f"{SVG}text") if float(text.get("font-size")) < 12]
    for rect in root.iter(f"{SVG}rect"):
        x, y, wide, high = (float(rect.get(name, 0)) for name in ("x", "y", "width", "height"))
        if x < 0 or y < 0 or x + wide > width + 0.1 or y + high > height + 0.1:
            found.append(f"off the page: rectangle at {x}, {y}")
    return found
