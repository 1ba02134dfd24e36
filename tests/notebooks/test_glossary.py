"""The glossary holds together: links lead somewhere, the index is complete, the ladder's words are in it."""

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

from gemm_course.kernels import LADDER
from tests.notebooks.builder import builder

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
TEXT = (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
INDEX, BODY = re.split(r"^(?=## )", TEXT, maxsplit=1, flags=re.MULTILINE)
HEADINGS = re.findall(r"^##+ (.+)$", BODY, re.MULTILINE)
TERMS = re.findall(r"^### (.+)$", BODY, re.MULTILINE)


def anchor(heading: str) -> str:
    """The anchor that GitHub and JupyterLab give to a heading; they agree on lower-case words only."""
    return heading.replace(" ", "-")


def section(heading: str) -> str:
    return BODY.split(f"### {heading}\n")[1].split("\n##")[0]


def cells(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, without its head."""
    lines = [line for line in section(heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def sources() -> list[Path]:
    return [*(NOTEBOOKS / "source").rglob("*.py"), *(ROOT / "gemm_course").rglob("*.py"), *ROOT.glob("*.md")]


def test_a_heading_has_the_same_anchor_everywhere():
    assert [heading for heading in HEADINGS if not re.fullmatch(r"[a-z0-9]+([ -][a-z0-9]+)*", heading)] == []


def test_no_term_stands_twice():
    assert [term for term, times in Counter(map(anchor, HEADINGS)).items() if times > 1] == []


def test_every_link_leads_to_a_notebook_that_exists_or_to_an_entry():
    anchors = {f"#{anchor(heading)}" for heading in HEADINGS}
    for link in set(re.findall(r"\]\(([^)]+)\)", re.sub("`[^`]*`", "", TEXT))):
        assert link in anchors if link.startswith("#") else (NOTEBOOKS / link).is_file(), link


def test_a_link_to_a_notebook_shows_its_number():
    assert all(name.startswith(shown) for shown, name in re.findall(r"\[(S?\d\d)\]\((\w+\.ipynb)\)", TEXT))


def test_the_index_has_every_term_in_alphabetical_order():
    entries = re.findall(r"\[([^]]+)\]\(#([^)]+)\)", INDEX.split("By topic:")[1].split("\n\n", 1)[1])
    shown = [name.lower().replace(",", "") for name, _ in entries]
    assert shown == sorted(shown)
    assert {target for _, target in entries} == set(map(anchor, TERMS))


def test_every_term_names_the_notebook_that_teaches_it_or_says_that_none_does():
    for term in TERMS:
        assert re.search(r"\]\(\w+\.ipynb\)|In no notebook", section(term)), term


def test_entries_begin_alike():
    assert "**" not in BODY


@pytest.mark.parametrize("name", ["welcome", "shared_memory_tiles"])
def test_a_notebook_links_to_the_glossary_beside_it(name):
    """The notebooks with the solutions are in another folder."""
    texts = {kind: str(builder.whole(name, kind)) for kind in ("learner", "solutions")}
    assert "](glossary.md)" in texts["learner"] and "](../glossary.md)" in texts["solutions"]


def test_links_to_the_glossary_from_elsewhere_find_their_entry():
    anchors = set(map(anchor, HEADINGS))
    for path in sources():
        for target in re.findall(r"glossary\.md#([^)\s\"']+)", path.read_text(encoding="utf-8")):
            assert target in anchors, f"{path.name}: glossary.md#{target}"


def test_every_tile_parameter_of_the_ladder_is_explained():
    explained = {name.strip() for row in cells("tile parameters") for name in row[0].split(",")}
    assert {name for stage in LADDER for name in stage.tiles} <= explained


def test_the_documents_kernels_have_the_names_that_their_stages_have():
    stages = {}
    for document, name, stage, _ in cells("v00 to v07"):
        for own in re.findall(r"`(\w+)`", stage):
            stages[own] = f"{document}: {name}" if name else document
    for own, document in stages.items():
        beside = f"gemm_course.kernels.variants.{own}"
        known = LADDER[own] if own in LADDER else importlib.import_module(beside).STAGE
        assert known.document == document
    assert {stage.name for stage in LADDER if not stage.document.startswith("beyond")} <= stages.keys()
