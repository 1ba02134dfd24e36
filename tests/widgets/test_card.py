"""A card of a kernel of one's own: its roof, its line of text, its files, and what gets none."""

import xml.etree.ElementTree as ElementTree

import pytest

from gemm_course import widgets as see
from gemm_course.compiler import NoCompiler
from gemm_course.figures.saving import save_picture
from gemm_course.own_kernel import own_with
from gemm_course.widgets import _card, _two_colours
from tests.own_kernel.edits import BUG, EPILOGUE

PNG = b"\x89PNG\r\n\x1a\n"
MEASURED = _card.Here("NVIDIA H200", 37.0, 34.0, 51.0, date="2026-11-28")


@pytest.fixture
def unmeasured(monkeypatch):
    monkeypatch.setattr(_card, "_measured_here", lambda *_: _card.Here())


@pytest.fixture
def no_compiler(monkeypatch):
    def refuse(*_, **__):
        raise NoCompiler("There is none.")

    monkeypatch.setattr(_card, "compiled", refuse)


def test_a_card_is_saved_and_a_line_is_printed(tmp_path, capsys, unmeasured, no_compiler):
    mine = own_with("thread_tiled_2d")
    picture = see.card(mine, save=tmp_path / "mine.svg")
    said = capsys.readouterr().out
    assert f"Saved as {tmp_path / 'mine.svg'}" in said
    line = said.strip().splitlines()[-1]
    assert line.startswith("mine, begun as thread_tiled_2d, BM=128") and "speed not measured" in line
    assert "right in 10 cases" in line and "cuBLAS" in line and "not compiled" in line
    root = ElementTree.parse(tmp_path / "mine.svg").getroot()
    assert "its roof, H200" in "".join(root.itertext()) and "The lowest roof of mine" in picture.alt


def test_a_card_is_saved_as_png(tmp_path, unmeasured, no_compiler):
    see.card(own_with("thread_tiled_2d"), save=tmp_path / "mine.png")
    assert (tmp_path / "mine.png").read_bytes().startswith(PNG)


def test_a_png_of_what_it_cannot_draw_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a PNG has no"):
        save_picture(_two_colours.draw(3, "dark"), tmp_path / "strip.png")


@pytest.mark.parametrize(("file", "said"), [("mine.pdf", "as .svg or .png"), ("no/mine.png", "no folder")])
def test_what_cannot_be_saved_is_said_before_anything_is_counted(tmp_path, file, said):
    with pytest.raises(ValueError, match=said):
        see.card(own_with("thread_tiled_2d"), save=tmp_path / file)


def test_a_wrong_kernel_gets_no_card():
    with pytest.raises(ValueError, match="No card for a kernel that is wrong"):
        _card.card_of(own_with("thread_tiled_2d", *BUG))


def test_a_kernel_whose_file_has_changed_is_not_called_wrong():
    mine = own_with("thread_tiled_2d")
    mine.file.write_text(f"{mine.text}\n# another line\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has changed since it was read"):
        _card.card_of(mine)


def test_a_measured_card_has_its_speed_in_title_bars_and_line(monkeypatch, no_compiler):
    monkeypatch.setattr(_card, "_measured_here", lambda *_: MEASURED)
    made = _card.card_of(own_with("thread_tiled_2d"))
    assert "37 TFLOPS at 4096³ on NVIDIA H200, 2026-11-28, 73% of cuBLAS there" in made.line
    assert "mine: 37 TFLOPS on this machine" in made.picture.alt and "mine 37." in made.picture.alt


@pytest.mark.parametrize(
    ("start", "changes", "said"),
    [("naive_coalesced", (), "by its L1"), ("thread_tiled_2d", EPILOGUE, "by its peak of arithmetic")],
    ids=["below the rungs", "with an epilogue"],
)
def test_other_kernels_have_cards(unmeasured, no_compiler, start, changes, said):
    assert said in _card.card_of(own_with(start, *changes)).picture.alt
