"""One meaning per colour, in one table; text and marks can be seen, also with another sense of colour."""

import ast
import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from gemm_course.figures import colours
from tests.figures.gallery import GALLERY
from tests.figures.page import SVG

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gemm_course"
HERE = PACKAGE / "figures" / "colours.py"
LITERAL = re.compile(r"#(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})\b|\b(?:rgb|hsl)a?\(")
NAMED = {name: value for name, value in vars(colours).items() if name.isupper() and name != "MEANINGS"}
PLAIN = {name: value for name, value in NAMED.items() if isinstance(value, str)}
MARKS = ("A", "B", "C", "COUNTED", "WARN", "INK", "QUIET", "PASSED", "OPEN")
OUTLINED = ("NOW", "MOVED", "OTHER")
GROUNDS = ("PAPER", "IDLE", "BAND", "STRIPE", "NOW_PALE", "WARN_PALE")

# Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency",
# IEEE TVCG 15 (2009), table 1: linear RGB as it is seen with one kind of cone missing.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
APART = 14  # in CIELAB; two colours that are just noticeably different are some 2 apart


def seen(colour: str, sight: str) -> np.ndarray:
    """CIELAB of a colour as it is seen."""
    rgb = np.array([colours._linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5)])
    xyz = TO_XYZ @ np.clip(SIGHT[sight] @ rgb, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# ---- the table ---------------------------------------------------------------------------------------------


def test_every_colour_has_one_meaning():
    assert list(colours.MEANINGS) == list(dict.fromkeys(colours.MEANINGS)) and NAMED.keys() == set(
        colours.MEANINGS
    )
    assert len(set(colours.MEANINGS.values())) == len(colours.MEANINGS)
    own = [value for name, value in PLAIN.items() if name not in ("BUSY", "LIMIT")]  # shades of SCALE
    every = [*own, *colours.PALE.values(), *colours.SCALE]
    assert len(set(every)) == len(every), "two names for a colour"


def test_no_module_has_a_colour_of_its_own():
    found = {
        str(path.relative_to(ROOT)): own
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != HERE and (own := colours_in(path.read_text("utf-8")))
    }
    assert not found, f"colours belong into {HERE.relative_to(ROOT)}, with their meaning"


def colours_in(source: str) -> list[str]:
    """The strings of a module that have a colour in them."""
    if not LITERAL.search(source):  # most modules: they need not be parsed
        return []
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and LITERAL.search(text)]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("fill = '#0057A8'", ["#0057A8"]),
        ("fill = f'{width} rgb(1, 2, 3)'", [" rgb(1, 2, 3)"]),
        ("fill = A  # as '#0057A8'", []),
        ("text = 'exercise #12'", []),
    ],
)
def test_a_colour_in_a_module_is_found(source, found):
    assert colours_in(source) == found


# ---- contrast ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "known"),
    [
        ("#000000", "#FFFFFF", 21),
        ("#777777", "#FFFFFF", 4.48),
        ("#FF0000", "#FFFFFF", 4.0),
        ("#123456", "#123456", 1),
    ],
)
def test_contrast_is_that_of_the_guidelines(one, other, known):
    assert colours.contrast(one, other) == colours.contrast(other, one) == pytest.approx(known, abs=0.01)


@pytest.mark.parametrize("name", MARKS)
def test_a_mark_stands_out_from_every_ground(name):
    for ground in (*(PLAIN[ground] for ground in GROUNDS), *colours.PALE.values()):
        assert colours.contrast(PLAIN[name], ground) >= 3 or PLAIN[name] in (colours.COUNTED,)
    assert colours.contrast(PLAIN[name], colours.PAPER) >= 4.5


def test_text_can_be_read_on_every_fill():
    fills = [*PLAIN.values(), *colours.PALE.values(), *colours.SCALE]
    fills += [*colours.OF_WAIT.values(), *colours.OF_KIND.values()]
    for fill in fills:
        assert colours.contrast(colours.text_on(fill), fill) >= 4.5, fill


@pytest.mark.parametrize("ground", ["PAPER", "NOW_PALE", "BAND"])
def test_every_word_of_a_source_can_be_read(ground):
    for kind, colour in colours.OF_CODE.items():
        assert colours.contrast(colour, PLAIN[ground]) >= 4.5, kind


def shapes(data: str):
    """Each shape of a picture with its box: left, top, right, bottom; those of a path are many."""
    for shape in ElementTree.fromstring(data).iter():
        if shape.tag == f"{SVG}rect" and shape.get("x") is not None:
            x, y, wide, high = (float(shape.get(key)) for key in ("x", "y", "width", "height"))
            yield shape, [(x, y, x + wide, y + high)]
        elif shape.tag == f"{SVG}path" and "h" in shape.get("d", ""):
            boxes = re.findall(r"M([\d.-]+) ([\d.-]+)h([\d.]+)v([\d.]+)", shape.get("d"))
            yield shape, [(x, y, x + w, y + h) for x, y, w, h in (map(float, box) for box in boxes)]
        elif shape.tag == f"{SVG}text":
            yield shape, []


def middle_of(text) -> tuple[float, float]:
    """About the middle of its first letter, or of its last if it ends there."""
    size = float(text.get("font-size"))
    aside = {"start": 0.3, "middle": 0, "end": -0.3}[text.get("text-anchor")]
    return float(text.get("x")) + aside * size, float(text.get("y")) - 0.35 * size


def under(at: tuple[float, float], below: list) -> str:
    """The fill that lies highest at a place."""
    for shape, boxes in reversed(below):
        fill = shape.get("fill")
        if fill.startswith("#") and any(x1 <= at[0] <= x2 and y1 <= at[1] <= y2 for x1, y1, x2, y2 in boxes):
            return fill
    return colours.PAPER


@pytest.mark.many(one_in=4, with_all=2)
@pytest.mark.parametrize("name", GALLERY)
def test_every_text_of_a_picture_can_be_read_where_it_stands(name):
    below, faint = [], []
    for shape, boxes in shapes(GALLERY[name]().data):
        if boxes:
            below.append((shape, boxes))
            continue
        words, ground = "".join(shape.itertext()), under(middle_of(shape), below)
        contrast = colours.contrast(shape.get("fill"), ground)
        if words.strip() and contrast < 4.5 and words not in MARKS_AS_TEXT:
            faint.append((words, shape.get("fill"), ground, round(contrast, 2)))
    assert not faint


MARKS_AS_TEXT = "●▲■◆"  # a GPU's mark: drawn as a letter, over a larger one in ink


@pytest.mark.many(one_in=20, with_all=4)
@pytest.mark.parametrize("name", GALLERY)
def test_a_mark_that_is_pale_is_outlined(name):
    pale = {PLAIN[each] for each in OUTLINED}
    drawn = [(shape, box) for shape, boxes in shapes(GALLERY[name]().data) for box in boxes]
    outlines = [box for shape, box in drawn if colours_of_edge(shape)]
    bare = [
        (shape.get("fill"), box)
        for shape, box in drawn
        if shape.get("fill") in pale
        and not colours_of_edge(shape)
        and not any(around(box, o) for o in outlines)
    ]
    assert not bare


def colours_of_edge(shape) -> bool:
    edge = shape.get("stroke", "none")
    return edge.startswith("#") and colours.contrast(edge, colours.PAPER) >= 3


def around(box, outline) -> bool:
    """Whether an outline goes around a box, or around some of which it is one; a matrix's frame does not."""
    (left, top, right, bottom), (x1, y1, x2, y2) = box, outline
    inside = x1 - 3.5 <= left and y1 - 3.5 <= top and right <= x2 + 3.5 and bottom <= y2 + 3.5
    return inside and (x2 - x1) * (y2 - y1) <= 10_000


# ---- other senses of colour --------------------------------------------------------------------------------


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_that_stand_beside_each_other_can_be_told_apart(sight):
    for one, other in combinations(("A", "B", "C", "MOVED", "NOW", "WARN"), 2):
        distance = np.linalg.norm(seen(PLAIN[one], sight) - seen(PLAIN[other], sight))
        assert distance >= APART, f"{one} and {other}: {distance:.1f}"


@pytest.mark.parametrize("sight", SIGHT)
def test_the_scale_darkens_step_by_step(sight):
    lightness = [seen(shade, sight)[0] for shade in colours.SCALE]
    assert (np.diff(lightness) < -4).all()


def test_the_simulation_is_the_published_one():
    assert np.allclose(SIGHT["deuteranopia"].sum(axis=1), 1, atol=1e-4), "white stays white"
    red, green = "#FF0000", "#00B000"
    apart = {sight: np.linalg.norm(seen(red, sight) - seen(green, sight)) for sight in SIGHT}
    assert apart["deuteranopia"] < 0.5 * apart["normal"] and apart["tritanopia"] > 0.8 * apart["normal"]
