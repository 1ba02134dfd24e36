"""`gemm-course compile`: what stages compile to, shown and recorded, with or without NVIDIA's compiler."""

import pytest

from gemm_course.commands import machine_code
from gemm_course.commands.errors import CourseError
from gemm_course.compiler import CannotCompile, recorded
from gemm_course.compiler import compile as asking
from gemm_course.kernels import LADDER
from tests.commands.test_cli import gemm_course

MISSING = "NVIDIA's compiler is not installed: do."


@pytest.fixture
def no_compiler(monkeypatch):
    for module in (asking, machine_code):
        monkeypatch.setattr(module, "why_no_compiler", lambda: MISSING)


def test_a_summary_and_all_the_code_are_shown_from_the_record(no_compiler, capsys):
    machine_code.show(["naive_coalesced"], "8.6", "", text=False)
    assert capsys.readouterr().out.startswith("naive_coalesced (BM=")
    machine_code.show(["naive_coalesced"], "8.6", "", text=True)
    assert capsys.readouterr().out == recorded("naive_coalesced", (8, 6)).text + "\n"


@pytest.mark.parametrize(
    ("stage", "capability", "tiles", "said"),
    [
        ("nonsense", "9.0", "", "no stage is called nonsense; the ladder is "),
        ("vectorized", "nonsense", "", "the compute capability must be 7.5, 8.0, "),
        ("vectorized", "9.0", "nonsense", "tiles are written BM=128"),
        ("vectorized", "9.0", "TM=3", "vectorized cannot run with "),
        ("persistent", "8.0", "", "persistent needs compute capability 9.0, Hopper"),
        ("vectorized", "9.0", "BK=16", MISSING),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(no_compiler, stage, capability, tiles, said):
    with pytest.raises(CourseError, match="^" + said.replace(".", r"\.")):
        machine_code.show([stage], capability, tiles, text=False)


def test_of_the_whole_ladder_only_what_such_a_gpu_can_run_is_shown(no_compiler, capsys):
    machine_code.show([], "8.6", "", text=False)
    said = capsys.readouterr()
    shown = [line.split(" ")[0] for line in said.out.splitlines() if " for compute capability 8.6: " in line]
    left_out = [line.removeprefix("a block of ").split(" ")[0] for line in said.err.splitlines() if line]
    can = [stage.name for stage in LADDER if recorded(stage, (8, 6)) is not None]
    assert shown == can and left_out == [stage.name for stage in LADDER if stage.name not in can]


def test_a_stage_that_cannot_be_compiled_is_not_recorded_and_the_reason_is_a_sentence(monkeypatch, tmp_path):
    def refuse(stage, compute_capability):
        raise CannotCompile(f"Numba cannot compile {stage.name}, line 33.")

    monkeypatch.setattr(machine_code, "why_no_compiler", lambda: None)
    monkeypatch.setattr(machine_code, "compiled", refuse)
    with pytest.raises(CourseError, match=r"^Numba cannot compile block_tiled, line 33\.$"):
        machine_code.write(["block_tiled"], "gemm-course compile --record", tmp_path)
    assert not list(tmp_path.rglob("*.xz"))


def test_nothing_is_recorded_without_the_compiler(no_compiler, tmp_path):
    with pytest.raises(CourseError, match="do"):
        machine_code.write([], "gemm-course compile --record", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_stages_are_recorded(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(machine_code, "why_no_compiler", lambda: None)
    monkeypatch.setattr(
        machine_code, "compiled", lambda stage, compute_capability: recorded(stage, compute_capability)
    )
    machine_code.write(["naive_coalesced", "persistent"], "gemm-course compile --record", tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in said[:-1]] == [
        *(f"naive_coalesced for {capability}" for capability in ("8.0", "8.6", "9.0")),
        "persistent for 9.0",
    ]
    assert said[-1].startswith("4 rows of ")
    assert recorded("persistent", (9, 0), tmp_path).text == recorded("persistent", (9, 0)).text


def test_the_command_ends_with_a_sentence():
    done = gemm_course("compile", "nonsense")
    assert done.returncode == 1 and done.stderr.startswith("no stage is called nonsense")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.many(one_in=2)
@pytest.mark.parametrize("options", [["--record", "--tiles", "BK=16"], ["--folder", "here"]])
def test_options_that_would_be_ignored_are_refused(options):
    done = gemm_course("compile", "vectorized", *options)
    assert done.returncode == 1 and "--record" in done.stderr
