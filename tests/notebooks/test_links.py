"""Every link and every mention of a notebook, an exercise or a solution leads to something that exists."""

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest

from gemm_course import check, road
from tests.notebooks.builder import ROOT, builder

NOTEBOOKS = ROOT / "notebooks"
NAMES, KINDS = builder.names(), tuple(builder.KINDS)
LINK = re.compile(r"\]\(([^)\s]+)\)|href=\"([^\"]+)\"")
NUMBERS = {notebook.number for notebook in road.NOTEBOOKS}
# "notebook 03", "notebooks 03 and 04", "notebooks 01 to 08"
MENTION = re.compile(r"\b[Nn]otebooks?[\s#]+((?:\d\d(?:,? (?:and|or|to) |, )?)+)(?![\d.,]*\d)")
EXERCISE = re.compile(r"\b[Ee]xercises?[\s#]+(\d\d\.\d+)\b")
# What a learner reads: notebooks, quizzes, checks' messages and hints, pictures, pages.
READ = [
    *NOTEBOOKS.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *ROOT.glob("*.md"),
    *(path for path in (ROOT / "gemm_course").rglob("*") if path.suffix in (".py", ".toml", ".md", ".js")),
]


def cells(name: str, kind: str) -> dict[str, str]:
    """The texts of a notebook's cells by their id, "" for code, as a build makes them now."""
    made = builder.whole(name, kind).cells
    return {cell.id: cell.source if cell.cell_type == "markdown" else "" for cell in made}


@pytest.fixture(scope="module")
def built() -> dict[Path, dict[str, str]]:
    """Every notebook that a build makes, by its place."""
    return {builder.target(name, kind): cells(name, kind) for name in NAMES for kind in KINDS}


def links_of(texts: dict[str, str]) -> list[str]:
    prose = (re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL) for text in texts.values())
    return [link for text in prose for found in LINK.findall(text) for link in found if link]


def wrong(link: str, place: Path, built: dict[Path, dict[str, str]]) -> str:
    """What is wrong with a link in the file at ``place``, "" if nothing is."""
    if "://" in link or link.startswith("#"):
        return ""
    path, _, fragment = link.partition("#")
    target = (place.parent / path).resolve()
    if target not in built:
        return "" if target.is_file() and target.suffix != ".ipynb" else f"{link}: there is no such file"
    if fragment and fragment.removeprefix("cell-id=") not in built[target]:
        return f"{link}: no cell of the notebook is called so"
    return ""


def test_every_link_in_every_notebook_leads_to_a_file_and_a_cell(built):
    found = {place: links_of(texts) for place, texts in built.items()}
    assert min(map(len, found.values())) >= 4, "a notebook has its neighbours, contents and glossary"
    assert not [
        (place.name, why)
        for place, links in found.items()
        for link in links
        if (why := wrong(link, place, built))
    ]


@pytest.mark.parametrize(
    "link",
    ["09_copies.ipynb", "solutions/00_welcome.ipynb", "00_welcome.ipynb#cell-id=exercise-00-9", "none.md"],
)
def test_a_link_to_what_does_not_exist_is_found(link, built):
    assert wrong(link, NOTEBOOKS / "01_naive.ipynb", built)


def test_every_link_in_the_pages_leads_to_a_file(built):
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        texts = {"page": page.read_text("utf-8")}
        assert not [why for link in links_of(texts) if (why := wrong(link, page, built))], page.name


def test_every_notebook_leads_to_its_neighbours_at_the_top_and_at_the_end(built):
    names = [notebook.topic for notebook in road.ROAD]
    for place, name in enumerate(names):
        for kind in KINDS:
            texts = built[builder.target(name, kind)]
            around = [other for other in (place - 1, place + 1) if 0 <= other < len(names)]
            first, *_, last = texts
            assert (first, last) == ("navigation-top", "navigation-bottom")
            for end in (first, last):
                assert [links_of({"": texts[end]}).count(_file(names[other], kind)) for other in around] == [
                    1 for _ in around
                ]
                assert "00_welcome.ipynb#cell-id=contents)" in texts[end] and "glossary.md)" in texts[end]


def test_a_side_trip_leads_back_to_the_line_that_leads_to_it(built):
    for trip in road.SIDE_TRIPS:
        for kind in KINDS:
            texts = built[builder.target(trip.topic, kind)]
            cell, beside = f"side-{trip.topic}", builder.target(trip.beside, kind)
            for end in ("navigation-top", "navigation-bottom"):
                assert f"{_file(trip.beside, kind)}#cell-id={cell}" in links_of({"": texts[end]})
            assert any(trip.topic in link for link in links_of({"": built[beside][cell]}))


def _file(name: str, kind: str) -> str:
    return builder.target(name, kind).name


def test_the_contents_list_every_notebook_and_no_other():
    links = links_of({"": cells("welcome", "learner")["contents"]})
    assert [link for link in links if link.endswith(".ipynb")] == [
        f"{each.name}.ipynb" for each in road.NOTEBOOKS
    ]


def test_every_exercise_has_a_place_and_its_solution_below_its_stub():
    for name in NAMES:
        order = list(cells(name, "learner"))
        for each in road.notebook(name).exercises:
            heading, stub = order.index(f"exercise-{each}"), order.index(f"ex-{each}")
            assert heading < stub and order[stub + 1] == f"ex-{each}-folded", each


def test_a_banner_says_which_notebook_has_the_solutions_and_each_leads_back(built):
    for name in NAMES:
        file = road.notebook(name).name
        texts = built[builder.target(name, "solutions")]
        assert "This notebook has the solutions" in texts["navigation-top"]
        assert f"](../{file}.ipynb)" in texts["navigation-top"]
        for identity in (each for each in texts if each.startswith("exercise-")):
            assert f"](../{file}.ipynb#cell-id={identity})" in texts[identity]
        assert (
            f"](solutions/{file}_solutions.ipynb)"
            in built[builder.target(name, "learner")]["navigation-bottom"]
        )


def test_no_text_mentions_a_notebook_or_an_exercise_that_does_not_exist():
    found = {path.relative_to(ROOT).as_posix(): missing(path.read_text("utf-8")) for path in READ}
    assert {path: those for path, those in found.items() if those} == {}


def missing(text: str) -> list[str]:
    """The mentions of notebooks and exercises that do not exist."""
    named = [number for found in MENTION.findall(text) for number in re.findall(r"\d\d", found)]
    return [number for number in named if number not in NUMBERS] + [
        number for number in EXERCISE.findall(text) if number not in exercise_numbers()
    ]


@cache
def exercise_numbers() -> set[str]:
    return {getattr(check, name).number for name in check.exercises()}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Notebook 79 does.", ["79"]),
        ("in notebook\n# 72 tells", ["72"]),
        ("notebooks 08 and 71", ["71"]),
        ("notebooks 01 to 08, notebook 03.", []),
        ("see exercise 02.9", ["02.9"]),
        ("exercise 02.3; a notebook 1,024 wide", []),
    ],
)
def test_a_mention_of_what_does_not_exist_is_found(text, found):
    assert missing(text) == found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_what_ships_has_links_in_its_outputs_that_hold(name, kind, built):
    """Outputs such as the table of progress: what the notebook showed when it was built."""
    place = builder.target(name, kind)
    shown = [
        output["data"]["text/html"]
        for cell in nbformat.read(place, 4).cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    links = links_of(dict(enumerate(map("".join, shown))))
    assert not [why for link in links if (why := wrong(link, place, built))]
    if name == "welcome":
        assert sum("#cell-id=exercise-" in link for link in links) >= len(check.exercises())
