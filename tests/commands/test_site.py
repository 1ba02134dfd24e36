"""``gemm-course site``: what cannot work is one sentence, said before anything is done."""

import pytest

from gemm_course.commands.errors import CourseError
from gemm_course.commands.site import build as builder
from tests.commands.test_cli import gemm_course


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    done = gemm_course("site", str(tmp_path))
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert f"{tmp_path} is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(CourseError, match="is a file"):
        builder.build(tmp_path / "letter.txt")


def test_packages_that_are_missing_are_named_with_the_way_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "NEEDED", ("json", "no_such_package"))
    with pytest.raises(CourseError, match=r"\(no_such_package\).*course.py site"):
        builder.build(tmp_path)
