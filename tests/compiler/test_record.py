"""The record of the ladder's machine code: complete, small, and of the kernels as they are."""

import lzma

import pytest

from gemm_course import LADDER, compiled, records
from gemm_course.compiler import KINDS, recorded
from gemm_course.compiler.limits import shown, why_not
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.compiler.record import RECORDED, record, versions
from gemm_course.kernels import tiles_text
from gemm_course.records import DATA
from gemm_course.records.columns import COMPILERS, MACHINE_INSTRUCTIONS
from tests.unmeasured import MACHINE_CODE, measured_stages, stages_in, why_unmeasured

FOLDER = DATA / "machine_code"
TABLE = records.machine_code()
EVERY = [
    (stage, capability)
    for stage in measured_stages(MACHINE_CODE)
    for capability in RECORDED
    if not why_not(stage, None, capability)
]
IDS = [f"{stage.name} {shown(capability)}" for stage, capability in EVERY]
AGAIN = "record it again: gemm-course compile --record"


@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
def test_a_stage_is_on_record(stage):
    if stage.name not in stages_in(MACHINE_CODE):
        if reason := why_no_compiler():
            pytest.skip(f"{why_unmeasured(stage, MACHINE_CODE)}. But here: {reason}")
        pytest.fail(why_unmeasured(stage, MACHINE_CODE))


def test_what_is_recorded_is_of_default_tiles_wherever_a_stage_runs():
    found = list(zip(TABLE["stage"], TABLE["compute_capability"], TABLE["tiles"]))
    wanted = [(stage.name, shown(capability), tiles_text(stage.complete())) for stage, capability in EVERY]
    assert found == wanted, AGAIN
    assert {path.name for path in FOLDER.iterdir()} == {
        "stages.csv",
        *(f"{name}.txt.xz" for name in stages_in(MACHINE_CODE)),
    }


def test_each_row_names_what_compiled_it():
    for column in (*COMPILERS, "date", "command"):
        assert (TABLE[column] != "").all(), column
        assert column in ("date", "command") or TABLE[column].nunique() == 1, f"{column}: {AGAIN}"
    assert TABLE["command"].str.startswith("gemm-course compile").all()


@pytest.mark.many(one_in=4, with_all=2)
@pytest.mark.parametrize(("stage", "capability"), EVERY, ids=IDS)
def test_the_table_counts_the_instructions_that_are_recorded(stage, capability):
    found = recorded(stage, capability)
    rows = TABLE[(TABLE["stage"] == stage.name) & (TABLE["compute_capability"] == shown(capability))]
    (row,) = rows.to_dict("records")
    assert row["instructions"] == len(found) == len(found.instructions)
    assert [row[kind] for kind in MACHINE_INSTRUCTIONS] == list(found.by_kind.values())
    loop = found.loop
    assert row["loop_instructions"] == len(loop)
    assert [row[f"loop_{kind}"] for kind in MACHINE_INSTRUCTIONS] == list(loop.by_kind.values())
    assert (row["registers"], row["spilled_bytes"]) == (found.registers, found.spilled_bytes)
    assert found.seconds is None and "recorded, NVVM " in repr(found)


@pytest.mark.parametrize(("stage", "capability"), EVERY, ids=IDS)
def test_nearly_every_recorded_opcode_is_known(stage, capability):
    found = recorded(stage, capability)
    rare = {row.opcode.split(".")[0] for row in found.rows if row.kind == list(KINDS)[-1]}
    assert rare <= {"ELECT", "NOP", "SHFL", "USETMAXREG", "VOTE", "VOTEU"}


def test_the_record_is_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2_000_000


def test_a_gpu_is_no_machine_code():
    assert "machine_code" not in records.gpus()


def test_what_is_not_recorded_is_none():
    assert recorded("persistent", (8, 0)) is None
    assert recorded("vectorized", (12, 0)) is None
    with pytest.raises(KeyError, match="nonsense"):
        recorded("nonsense", (9, 0))


# A change of a kernel changes its code for every GPU; one for a compute capability changes many kernels.
COMPILED = [case for place, case in enumerate(EVERY) if case[1] == (9, 0) or place % 8 == 0]


@pytest.mark.compiler
@pytest.mark.many(one_in=48, with_all=12)
@pytest.mark.parametrize(
    ("stage", "capability"), COMPILED, ids=[f"{stage.name} {shown(where)}" for stage, where in COMPILED]
)
def test_the_record_is_of_the_kernels_as_they_are(stage, capability):
    old = recorded(stage, capability)
    row = TABLE.iloc[0]
    other = {name: version for name, version in versions().items() if row[name] != version}
    if other:
        pytest.skip(f"recorded with other versions than {other}")
    new = compiled(stage, compute_capability=capability)
    again = f"{AGAIN} {stage.name}"
    assert new.text == old.text, again
    for name in ("tiles", "registers", "spilled_bytes", "local_bytes", "shared_bytes", "static_shared_bytes"):
        assert getattr(new, name) == getattr(old, name), again


def test_what_is_recorded_is_read_as_it_was(tmp_path):
    stages = [LADDER["naive_coalesced"], LADDER["wgmma_tma"]]

    def write(command):
        return record(stages, lambda stage, capability: recorded(stage, capability), command, tmp_path)

    rows = write("gemm-course compile --record")
    assert [(row["stage"], row["compute_capability"]) for row in rows] == [
        *(("naive_coalesced", capability) for capability in ("8.0", "8.6", "9.0")),
        ("wgmma_tma", "9.0"),
    ]
    for stage in stages:
        assert recorded(stage, (9, 0), tmp_path).text == recorded(stage, (9, 0)).text
    files = {path.name: path.read_bytes() for path in (tmp_path / "machine_code").iterdir()}
    write("another command")
    again = {path.name: path.read_bytes() for path in (tmp_path / "machine_code").iterdir()}
    assert files == again, "what is as recorded keeps its date and command"


def test_a_stage_that_is_gone_is_dropped_from_the_record(tmp_path):
    folder = tmp_path / "machine_code"
    folder.mkdir()
    (folder / "gone.txt.xz").write_bytes(lzma.compress(b"== 9.0\n"))
    stage = LADDER["naive_coalesced"]
    record([stage], lambda stage, capability: recorded(stage, capability), "", tmp_path)
    assert {path.name for path in folder.iterdir()} == {"stages.csv", "naive_coalesced.txt.xz"}
