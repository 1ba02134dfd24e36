"""Where records of GPUs are looked for, and what each is called."""

import os
import shutil

import pytest

from gemm_course import records
from gemm_course.records import folders
from tests.records.made_up import made_up_gpu

NAME = "Made-up GPU 1"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A made-up GPU's folder, outside `data/`, that the variable names."""
    folder = made_up_gpu(tmp_path / "mine" / "made_up_1", NAME)
    monkeypatch.setenv(records.VARIABLE, os.pathsep.join(["off", str(folder)]))
    return folder


def test_without_the_variable_there_is_what_the_course_brings():
    assert [place.name for place in records.places()] == records.gpus()
    assert records.gpus()[0] == "h200" and records.place("h200") is records.SHIPPED
    assert records.SHIPPED.gpu == "NVIDIA H200" and records.SHIPPED.short == "H200"


def test_a_gpus_folder_is_found_by_its_name_and_by_its_path(elsewhere, monkeypatch):
    assert records.gpus() == ["h200", "made_up_1"]
    for name in ("made_up_1", NAME, str(elsewhere), f"{elsewhere}/"):
        assert records.place(name) == records.Place("made_up_1", elsewhere.resolve())
    assert records.place("made_up_1").gpu == NAME
    monkeypatch.setenv(records.VARIABLE, "off")
    assert records.place(str(elsewhere)).gpu == NAME  # by its path alone
    assert set(records.ladder(str(elsewhere))["gpu"]) == {NAME}


def test_every_reader_reads_the_folder_that_is_named(elsewhere):
    for read in (records.ladder, records.sweep, records.row_lengths, records.roofs, records.compute_roofs):
        frame = read("made_up_1")
        assert len(frame) and set(frame["gpu"]) == {NAME}
        assert len(frame) != len(read()) or set(read()["gpu"]) == {"NVIDIA H200"}
    assert len(records.peers("made_up_1")) == 0  # not measured there
    assert records.best_tiles("vectorized", "made_up_1")


def test_a_folder_of_folders_and_several_parts(elsewhere, tmp_path, monkeypatch):
    other = made_up_gpu(tmp_path / "other", "NVIDIA GeForce RTX 9999")
    (tmp_path / "mine" / "notes").mkdir()
    (tmp_path / "mine" / "published.csv").write_text("source\n")  # no table of a GPU's
    monkeypatch.setenv(records.VARIABLE, os.pathsep.join(["off", str(tmp_path / "mine"), "", str(other)]))
    assert records.gpus() == ["h200", "made_up_1", "other"]
    assert records.place("RTX 9999").name == "other"
    assert records.place("other").short == "RTX 9999" and records.place("other").an == "the RTX 9999"


def test_a_name_that_is_taken_gets_a_number(tmp_path, monkeypatch):
    one, two = tmp_path / "one" / "h200", tmp_path / "two" / "h200"
    for folder in (one, two):
        shutil.copytree(records.DATA / "h200" / "counters", folder / "counters")
    monkeypatch.setenv(records.VARIABLE, os.pathsep.join(map(str, ("off", one, two, one))))
    assert records.gpus() == ["h200", "h200_2", "h200_3"]
    assert records.place("h200") is records.SHIPPED  # never another's figures under the course's name
    assert [records.short_of(each) for each in records.places()] == ["H200", "H200 (h200_2)", "H200 (h200_3)"]


def test_another_h200_by_its_path_has_another_name(tmp_path):
    shutil.copytree(records.DATA / "h200" / "counters", tmp_path / "mine" / "counters")
    other = records.place(str(tmp_path / "mine"))
    assert other.gpu == "NVIDIA H200" and records.short_of(other) == "H200 (mine)"
    assert records.short_of(records.SHIPPED) == "H200"


def test_an_unknown_name_lists_those_that_there_are(elsewhere, tmp_path, monkeypatch):
    with pytest.raises(records.UnknownGpu, match="called rtx_1 were found; there are h200, made_up_1"):
        records.ladder("rtx_1")
    monkeypatch.setenv(records.VARIABLE, os.pathsep.join(["off", str(tmp_path / "nowhere")]))
    with pytest.raises(ValueError, match=r"GEMM_COURSE_DATA names .*nowhere, where no records"):
        records.place("made_up_1")
    assert records.gpus() == ["h200"]


def test_blanks_and_quotes_around_a_path_do_not_count(elsewhere, monkeypatch):
    monkeypatch.setenv(records.VARIABLE, os.pathsep.join(["off ", f'"{elsewhere}"']))
    assert records.gpus() == ["h200", "made_up_1"]


def test_a_file_in_another_encoding_does_not_hide_the_others(elsewhere, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ladder.csv").write_bytes("stage,gpu\n".encode("utf-16"))
    monkeypatch.setenv(records.VARIABLE, os.pathsep.join(["off", str(elsewhere), str(tmp_path / "other")]))
    assert [records.short_of(each) for each in records.places()] == ["H200", NAME, "other"]


def test_a_file_that_grows_is_read_again(elsewhere):
    assert records.place("made_up_1").gpu == NAME
    made_up_gpu(elsewhere, "Made-up GPU 2")
    assert records.place("made_up_1").gpu == "Made-up GPU 2"


def test_the_list_of_tables_is_that_of_the_files_in_the_courses_folder():
    there = [table for table in folders.TABLES if (records.SHIPPED.folder / table).is_file()]
    assert set(folders.TABLES) == set(there)


def test_what_a_learner_added_to_data_is_found_unless_it_is_off(tmp_path, monkeypatch):
    """`gemm-course bench` writes there."""
    for name in ("h200", "rtx_3060"):
        made_up_gpu(tmp_path / name, f"Made-up {name}", ("ladder.csv",))
    monkeypatch.setattr(folders, "DATA", tmp_path)
    monkeypatch.delenv(records.VARIABLE)
    assert records.gpus() == ["h200", "rtx_3060"]
    monkeypatch.setenv(records.VARIABLE, "off")
    assert records.gpus() == ["h200"]
