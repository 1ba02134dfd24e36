"""Counters: the columns, the cases, and reading Nsight Compute's output."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gemm_course.bench.profile import ncu
from gemm_course.bench.profile.metrics import METRICS, TENSOR_METRICS
from gemm_course.bench.profile.ncu import NoProfiler, find_ncu
from gemm_course.bench.profile.sources import Source, gemm_args, stage_cases
from gemm_course.kernels import LADDER
from gemm_course.records.columns import COUNTED, COUNTED_OF_TENSOR_CORES, COUNTERS
from lockstep_tests import processes
from measuring.counters import child, record
from measuring.counters.module import module_cases
from measuring.counters.patterns import INACTIVE, SHARED_BYTES, instructions, wavefront_cases
from measuring.counters.record import pair, parse

ROOT = Path(__file__).parents[2]

# As ncu 2025.3.1 prints it with --csv --page raw, shortened to a few columns.
PRINTED = """\
==PROF== Connected to process 595 (/usr/bin/python3.12)
"ID","Kernel Name","Block Size","Grid Size","l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum","other"
"","","","","",""
"0","k[v1](Array<float, 1, C>)","(256, 1, 1)","(4, 1, 1)","1,096","3.5"
"1","k[v1](Array<float, 1, C>)","(16, 4, 1)","(2, 3, 1)","12","n/a"
==PROF== Disconnected from process 595
""".splitlines()


LOADS = {"global_load_requests": METRICS["global_load_requests"]}


def test_every_column_has_its_metric():
    assert tuple(METRICS) == COUNTED
    assert tuple(TENSOR_METRICS) == COUNTED_OF_TENSOR_CORES
    assert len({*METRICS.values(), *TENSOR_METRICS.values()}) == len(METRICS) + len(TENSOR_METRICS)


def test_the_printed_counts_are_read():
    rows = parse(PRINTED, LOADS)
    assert rows == [
        {"grid": "4x1x1", "block": "256x1x1", "global_load_requests": 1096},
        {"grid": "2x3x1", "block": "16x4x1", "global_load_requests": 12},
    ]
    assert parse(["==PROF== nothing was launched"], LOADS) == []


def test_a_missing_metric_is_named():
    with pytest.raises(NoProfiler, match=r"smsp__inst_executed\.sum"):
        parse(PRINTED, {"a": METRICS["warp_instructions"]})


def test_an_optional_metric_may_be_missing():
    optional = {"mma_instructions": TENSOR_METRICS["mma_instructions"], "other": "other"}
    rows = parse(PRINTED, LOADS, optional)
    assert [row["mma_instructions"] for row in rows] == [None, None]
    assert [row["other"] for row in rows] == [4, None]


# Fails for Tensor Core metrics, like an ncu that does not know them; otherwise prints one launch.
PRETENDED = f"""\
#!{sys.executable}
import csv, json, pathlib, sys
asked = sys.argv[sys.argv.index("--metrics") + 1].split(",") if "--metrics" in sys.argv else []
with open({{asked!r}}, "a") as file:
    print(len(asked), file=file)
if "--version" in sys.argv:
    print("Version 2025.3.1.0")
elif {{knows}} or not any("tensor" in metric for metric in asked):
    launched = dict(case="one", kernel="k", grid="4x1x1", block="256x1x1", dynamic_shared_bytes=0)
    pathlib.Path(sys.argv[-1]).write_text(json.dumps(launched))
    names = ["ID", "Block Size", "Grid Size", *asked]
    row = ["0", "(256, 1, 1)", "(4, 1, 1)", *["12"] * len(asked)]
    log = sys.argv[sys.argv.index("--log-file") + 1]
    with open(log, "w") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([names, [""] * len(row), row])
else:
    sys.exit("==ERROR== Failed to find metric")
"""


@pytest.mark.parametrize("knows", [True, False])
def test_counts_are_recorded_even_if_tensor_metrics_are_unknown(tmp_path, monkeypatch, knows):
    program, asked, path = tmp_path / "ncu", tmp_path / "asked", tmp_path / "counters.csv"
    program.write_text(PRETENDED.format(asked=str(asked), knows=knows))
    program.chmod(0o755)
    for module in (ncu, record):
        monkeypatch.setattr(module, "find_ncu", lambda: str(program))
    monkeypatch.setattr(record, "require_gpu", lambda: None)
    monkeypatch.setattr(record, "gpu_facts", lambda: SimpleNamespace(name="T4", driver="580", cuda="13.0"))
    assert record.record_counters(Source("stages").program, path, "test") == (1, [])
    (row,) = COUNTERS.rows(path)
    assert (row["warp_instructions"], row["mma_instructions"]) == (12, 12 if knows else None)
    everything = len(METRICS) + len(TENSOR_METRICS)
    assert asked.read_text().split() == [str(everything), *([] if knows else [str(len(METRICS))]), "0"]


def test_counts_are_matched_with_their_launches():
    counted = parse(PRINTED, LOADS)
    launched = [
        {"case": "a", "grid": "4x1x1", "block": "256x1x1"},
        {"case": "b", "grid": "2x3x1", "block": "16x4x1"},
    ]
    assert pair(launched, counted) == [{"global_load_requests": 1096}, {"global_load_requests": 12}]
    with pytest.raises(RuntimeError, match="after a belong to another launch"):
        pair(launched[::-1][1:] + launched[:1], counted[::-1])
    with pytest.raises(RuntimeError, match="1 kernels were launched, 2 were counted"):
        pair(launched[:1], counted)


def test_without_ncu_there_is_a_sentence(monkeypatch):
    monkeypatch.setattr("gemm_course.bench.profile.ncu.shutil.which", lambda *_, **__: None)
    with pytest.raises(NoProfiler, match="is not installed here"):
        find_ncu()


def test_a_source_can_be_sent_to_another_process():
    source = Source("stages", ("block_tiled",), ((64, 64, 64), (33, 17, 29)), betas=(0.0, 0.5))
    assert Source.from_text(source.as_text()) == source
    with pytest.raises(ValueError, match="no kind of source"):
        Source("magic").cases()


def test_stages_become_cases():
    cases = stage_cases((), ((64, 64, 64), (33, 17, 29)))
    assert len(cases) == 3 * len(LADDER)
    case = next(case for case in cases if case.name == "block_tiled 33x17x29 beta=0.5")
    m, n, k, alpha, A, _, beta, C = case.make_args()
    assert (m, n, k, alpha, beta) == (33, 17, 29, 1, 0.5)
    assert A.shape == (33, 29)
    assert np.isfinite(C).all()
    assert case.grid == LADDER["block_tiled"].grid(33, 17)


def test_arguments_have_poisoned_padding():
    *_, A, B, _, C = gemm_args((5, 7, 6), 16, 0.0)
    assert A.shape == (5, 8)
    assert np.isnan(A[:, 6:]).all()
    assert np.isnan(B[:, 7:]).all()
    assert np.isnan(C).all()


def test_cases_come_from_a_module(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from types import SimpleNamespace\n"
        "CASES = [SimpleNamespace(name='one', kernel=None, grid=1, block=32, make_args=lambda: ())]\n"
    )
    (case,) = module_cases(path)
    assert (case.name, case.grid, case.shared_bytes) == ("one", 1, 0)
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(ValueError, match="has no CASES"):
        module_cases(tmp_path / "empty.py")
    with pytest.raises(ValueError, match="there is no file"):
        module_cases(tmp_path / "none.py")


def test_some_cases_of_a_file():
    path = Path("lockstep/lockstep_tests/counter_cases.py")
    names = [case.name for case in module_cases(path, ("strided", "transpose"))]
    assert names == ["strided_gather", "transpose_without_padding", "transpose_with_padding"]
    with pytest.raises(ValueError, match="no case called nowhere"):
        module_cases(path, ("nowhere",))


def test_the_emulators_cases_can_be_counted():
    cases = module_cases(Path("lockstep/lockstep_tests/counter_cases.py"))
    assert len(cases) >= 10
    assert len({case.name for case in cases}) == len(cases)


def test_the_watched_process_launches_the_cases_of_a_file(tmp_path):
    """Without a GPU no launch succeeds, and the report says so for each case."""
    file, report = tmp_path / "mine.py", tmp_path / "report"
    file.write_text(
        "from types import SimpleNamespace\n"
        "def kernel(): pass\n"
        "def refused(): raise ValueError('no arguments')\n"
        "CASES = [SimpleNamespace(name=name, kernel=kernel, grid=2, block=32, make_args=refused) "
        "for name in ('one', 'two', 'three')]\n"
    )
    program = [sys.executable, *child.of_module(file, ("one", "three")), str(report)]
    done = processes.run(program, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert [line["case"] for line in lines] == ["one", "three"]
    assert {line["error"] for line in lines} == {"ValueError: no arguments"}


def test_wavefront_instructions_are_legal_and_distinct():
    found = instructions()
    assert found == instructions()
    assert len({one.name for one in found}) == len(found) > 1000
    for one in found:
        active = [word for word in one.word_index if word != INACTIVE]
        assert len(one.word_index) == 32
        assert all(word * 32 % one.bits == 0 for word in active)
        assert all(0 <= 4 * word <= SHARED_BYTES - one.bits // 8 for word in active)


def test_wavefront_cases_access_the_words_they_list():
    from lockstep import emulate

    for one, case in list(zip(instructions(), wavefront_cases()))[::37]:
        report = emulate(
            case.kernel, case.grid, case.block, *case.make_args(), shared_bytes=case.shared_bytes
        )
        rows = report.accesses[report.accesses["space"] == "shared"]
        assert rows["op"].tolist() == [one.op]
        assert rows["bits"].tolist() == [one.bits]
        assert rows["lanes"].tolist() == [sum(word != INACTIVE for word in one.word_index)]


@pytest.mark.gpu
def test_counters_of_a_stage_are_recorded(tmp_path):
    path = tmp_path / "counters.csv"
    try:
        source = Source("stages", ("naive_coalesced",), ((64, 64, 64),))
        rows, failed = record.record_counters(source.program, path, "test")
    except NoProfiler as reason:
        pytest.skip(str(reason))
    assert (rows, failed) == (1, [])
    (row,) = COUNTERS.read(path).itertuples()
    assert row.float32_fma == 64**3
