"""`gemm-course new`, `check`, and the commands that take a file in place of a stage."""

import pytest

from gemm_course.commands import own_kernel
from gemm_course.commands.errors import CourseError
from gemm_course.device import gpu_available
from tests.commands.test_cli import gemm_course
from tests.own_kernel.edits import BUG, EPILOGUE, TILES, edit


@pytest.fixture
def mine(tmp_path):
    return own_kernel.new("mine", "thread_tiled_2d", tmp_path)


@pytest.mark.many(one_in=2)
@pytest.mark.parametrize(
    ("changes", "right", "said"),
    [
        ((), True, "mine with BM=128 BN=128 BK=32 TM=16 TN=4: right in 10 cases"),
        (TILES, True, "mine with BM=128 BN=64 BK=16 TM=8 TN=8: right in 10 cases"),
        (BUG, False, "line 66: Thread"),
        (EPILOGUE, True, "right in 10 cases"),
    ],
    ids=["as written", "tiles", "a bug", "a fused epilogue"],
)
def test_three_edits_are_checked(mine, capsys, changes, right, said):
    assert own_kernel.check(str(edit(mine, changes)), "") == right
    assert said in capsys.readouterr().out


@pytest.mark.full(reason="runs the command many times")
@pytest.mark.waits
def test_the_command_line(tmp_path):
    done = gemm_course("new", "mine", "--from", "block_tiled", "--folder", str(tmp_path))
    assert done.returncode == 0 and "`python3 course.py check mine.py`" in done.stdout
    done = gemm_course("new", "mine", "--folder", str(tmp_path))
    assert done.returncode == 1 and "exists already" in done.stderr
    done = gemm_course("check", str(tmp_path / "mine.py"))
    assert done.returncode == 0 and "right in 10 cases" in done.stdout


def test_a_file_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(CourseError, match=r"course\.py new nowhere"):
        own_kernel.check(str(tmp_path / "nowhere.py"), "")


@pytest.mark.many(one_in=2)
@pytest.mark.skipif(gpu_available(), reason="says what is missing without a GPU")
@pytest.mark.waits
@pytest.mark.parametrize("command", ["bench", "profile"])
def test_measuring_needs_a_gpu_and_says_so(mine, command):
    done = gemm_course(command, str(mine))
    assert done.returncode == 1 and "GPU" in done.stderr and "Traceback" not in done.stderr
    assert not (mine.parent / "measured").exists()
