"""Tables: written rows are read back with their types; wrong ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemm_course.kernels import tiles_text
from gemm_course.records import origin, parse_tiles, provenance
from gemm_course.records.tables import Table

TABLE = Table({"name": "text", "count": "whole", "size": "real"})
ROWS = [
    {"name": 'a, "b"', "count": 3, "size": 0.5},
    {"name": "", "count": None, "size": None},
    {"name": "NA", "count": 0, "size": float("nan")},
]


def test_rows_are_read_back_with_their_types(tmp_path):
    path = tmp_path / "deep" / "file.csv"
    TABLE.append(path, ROWS[:1])
    TABLE.append(path, ROWS[1:])
    frame = TABLE.read(path)
    assert list(frame["name"]) == ['a, "b"', "", "NA"]
    assert frame["count"].tolist()[0] == 3
    assert frame["count"].isna().tolist() == [False, True, False]
    assert frame["size"].isna().tolist() == [False, True, True]
    assert path.read_text().count("name,count,size") == 1


@given(
    st.lists(
        st.tuples(st.text(st.characters(codec="ascii", exclude_characters="\r\n\0")), st.integers(0, 9**9))
    )
)
def test_any_text_and_number_is_read_back(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("rows") / "file.csv"
    TABLE.append(path, [{"name": name, "count": count, "size": None} for name, count in values])
    frame = TABLE.read(path)
    assert list(zip(frame["name"], frame["count"])) == values


def test_rows_can_be_written_again(tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    TABLE.append(first, ROWS)
    TABLE.append(second, TABLE.rows(first))
    assert first.read_bytes() == second.read_bytes()


def test_a_missing_file_has_no_rows(tmp_path):
    frame = TABLE.read(tmp_path / "none.csv")
    assert list(frame.columns) == list(TABLE.columns)
    assert len(frame) == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name,count,size\nx,1,2\ny,2,fast\n", r"file.csv, line 3: size cannot be fast: measure again"),
        ("name;count;size\nx;1;2\n", r"file.csv lacks name, count, size and has columns that are not known"),
        ("name,count,size\nx,1,2,3\nx,1,2,3,4\n", r"file.csv is no CSV file with commas, in UTF-8"),
        ("name,size,count\nx,1,2\n", r"file.csv has its columns in another order"),
        ("name,count,size\nx,1,2\n".encode("utf-16"), r"file.csv is no CSV file with commas, in UTF-8"),
    ],
)
def test_a_file_that_was_damaged_says_what_is_wrong_and_what_to_do(tmp_path, content, said):
    path = tmp_path / "file.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=said):
        TABLE.read(path)


def test_a_speed_is_not_negative(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text("size,tflops\n-1,1\n1,-2\n")
    with pytest.raises(ValueError, match=r"file.csv, line 3: tflops cannot be -2: measure again"):
        Table({"size": "real", "tflops": "real"}).read(path)


def test_an_empty_file_has_no_rows(tmp_path):
    (tmp_path / "file.csv").touch()
    assert len(TABLE.read(tmp_path / "file.csv")) == 0


def test_other_columns_are_refused(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text("name,size\nx,1\n")
    with pytest.raises(ValueError, match=r"file.csv lacks count: measure again"):
        TABLE.read(path)
    with pytest.raises(ValueError, match=r"file.csv lacks count"):
        TABLE.append(path, ROWS)
    with pytest.raises(ValueError, match=r"lacks \['count'\] and has \['colour'\]"):
        TABLE.append(tmp_path / "new.csv", [{"name": "x", "size": 1, "colour": "red"}])
    assert not (tmp_path / "new.csv").exists()


def test_older_files_may_lack_later_columns(tmp_path):
    old, path = Table({"name": "text", "size": "real"}), tmp_path / "file.csv"
    new = Table({"name": "text", "count": "whole", "size": "real"}, later=("count",))
    old.append(path, [{"name": "x", "size": 1.5}])
    assert new.rows(path) == [{"name": "x", "count": None, "size": 1.5}]
    new.append(path, [{"name": "y", "count": 2, "size": None}])
    assert path.read_text() == "name,count,size\nx,,1.5\ny,2,\n"
    with pytest.raises(ValueError, match=r"file.csv has columns that are not known, count"):
        old.read(path)


def test_a_file_is_rewritten_completely_or_not_at_all(tmp_path):
    path = tmp_path / "file.csv"
    TABLE.append(path, ROWS)
    TABLE.write(path, ROWS[:1])
    assert len(TABLE.read(path)) == 1
    whole = path.read_bytes()
    with pytest.raises(ValueError, match="lacks"):
        TABLE.write(path, [{"name": "x"}])
    assert path.read_bytes() == whole
    TABLE.write(path, [])
    assert len(TABLE.read(path)) == 0


def test_a_half_written_line_is_cut_off(tmp_path):
    path = tmp_path / "file.csv"
    TABLE.append(path, ROWS[:1])
    whole = path.read_bytes()
    path.write_bytes(whole + b"half,1")
    TABLE.cut_partial_line(path)
    assert path.read_bytes() == whole
    TABLE.cut_partial_line(tmp_path / "none.csv")


@given(st.dictionaries(st.sampled_from(["BM", "BN", "BK", "TM", "SLOTS"]), st.integers(0, 512)))
def test_tiles_are_written_and_read(tiles):
    assert parse_tiles(tiles_text(tiles)) == tiles


@pytest.mark.parametrize("text", ["BM", "BM=x", "128", "BM=1=2"])
def test_text_that_names_no_tiles_is_refused(text):
    with pytest.raises(ValueError, match="tiles are written"):
        parse_tiles(text)


def test_provenance_names_everything_once():
    import pandas as pd

    row = origin("NVIDIA H200", "580", "13.0", "gemm-course bench")
    frame = pd.DataFrame([row | {"date": "2026-11-20"}, row | {"date": "2026-11-21"}])
    assert provenance(frame).startswith("NVIDIA H200, driver 580, CUDA 13.0")
    assert provenance(frame).endswith("2026-11-20 to 2026-11-21")
    assert provenance(pd.DataFrame({"tflops": [1.0]})) == ""
