"""The H200 in one picture: every figure in it comes from the package's tables."""

import xml.etree.ElementTree as ElementTree

from gemm_course import records
from gemm_course import widgets as see
from gemm_course.figures import machine
from gemm_course.model.gpus import GPUS


def texts(picture) -> list[str]:
    return [found.text for found in ElementTree.fromstring(picture.data).iter() if found.tag.endswith("text")]


def test_the_figures_are_those_of_the_tables():
    shown = texts(see.machine())
    assert shown.count("up to 16 warps") == shown.count("64 KB") == shown.count("32 per clock") == 4
    assert "Multiprocessor (SM), 1 of 132" in shown
    l2 = records.roofs().set_index("memory")["tb_s"]["L2"]
    assert f"60 MB for all SMs; {l2:.1f} TB/s, measured" in shown
    assert "141 GB: the arrays lie here; 4.8 TB/s" in shown


def test_another_gpu_has_its_own_figures():
    shown = texts(machine.draw(GPUS["RTX 3090"], 2.0, "note"))
    assert shown.count("up to 12 warps") == 4
    assert "up to 100 KB of it shared; 128 bytes per clock" in shown


def test_the_words_say_what_the_picture_shows():
    said = see.machine().alt
    for part in ("132 multiprocessors", "4 schedulers", "16 warps", "228 KB", "DRAM", "NVIDIA H200"):
        assert part in said
