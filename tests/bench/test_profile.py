"""Profiles without a GPU: what is launched under Nsight Compute, and what is kept of it."""

import json
import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from numba import cuda
from typer.testing import CliRunner

import gemm_course
from gemm_course import LADDER
from gemm_course.bench.cli import app
from gemm_course.bench.profile import NotProfiled, measure, ncu, own, profiled, record
from gemm_course.bench.profile.cases import ASKED, Asked
from gemm_course.bench.profile.measure import Launch, profile_row, watch
from gemm_course.bench.profile.metrics import REAL, WHOLE
from gemm_course.bench.profile.ncu import NoProfiler
from gemm_course.bench.profile.record import record_profiles
from gemm_course.bench.profile.sources import Source, pickled
from gemm_course.bench.profile.wanted import recorded_ones, wanted
from gemm_course.compiler import Compiled
from gemm_course.profiles import NoProfile, recorded
from gemm_course.records import parse_tiles, profiles
from gemm_course.records.columns import ORIGIN, PROFILE
from lockstep_tests import processes
from tests.bench.nsight import CODE, MEASURED, printed, rows_of

runner = CliRunner()

# --- a row of the table ---------------------------------------------------------------------------------

LAUNCHED = {
    "case": "mine",
    "kernel": "mine",
    "grid": "4x1x1",
    "block": "64x1x1",
    "dynamic_shared_bytes": 0,
    "static_shared_bytes": 512,
    "registers": 40,
    "local_bytes": 0,
}
GPU = SimpleNamespace(name="NVIDIA H200", driver="580", cuda="13.0", compute_capability=(9, 0))


@pytest.fixture
def on_h200(monkeypatch):
    """As if a GPU and Nsight Compute were there; nothing is launched by this."""
    for module in (record, own):
        monkeypatch.setattr(module, "require_gpu", lambda: None)
        monkeypatch.setattr(module, "require_compiler", lambda: None)
    for module in (record, own, measure):
        monkeypatch.setattr(module, "gpu_facts", lambda: GPU)
        monkeypatch.setattr(module, "find_ncu", lambda: "ncu")
    monkeypatch.setattr(measure, "ncu_version", lambda: "2025.3.1.0")


def test_every_measured_column_has_its_metric():
    about = {"stage", "tiles", "m", "n", "k", "file", "ncu", *measure.LAUNCHED, *ORIGIN}
    assert {*REAL, *WHOLE} == set(PROFILE.columns) - about
    assert all(PROFILE.columns[name] == "real" for name in REAL)
    assert all(PROFILE.columns[name] == "whole" for name in WHOLE)
    assert len({*REAL.values(), *WHOLE.values()}) == len(REAL) + len(WHOLE)


def test_a_row_has_what_was_measured_and_nothing_in_place_of_the_rest(on_h200, tmp_path):
    metrics = {
        REAL["issue_slots"]: "63.56",
        REAL["l1_hits"]: "nan",
        WHOLE["warp_instructions"]: "2,499,616,768",
        WHOLE["wgmma_instructions"]: "n/a",
    }
    row = profile_row(Launch(LAUNCHED, metrics, []), {"stage": "mine", "tiles": ""}, "gemm-course profile")
    assert (row["issue_slots"], row["l1_hits"], row["l2_hits"]) == (63.56, None, None)
    assert (row["warp_instructions"], row["wgmma_instructions"], row["float32_fma"]) == (
        2499616768,
        None,
        None,
    )
    assert (row["m"], row["registers"], row["gpu"], row["ncu"]) == (None, 40, "NVIDIA H200", "2025.3.1.0")
    PROFILE.write(tmp_path / "kernels.csv", [row])
    assert PROFILE.rows(tmp_path / "kernels.csv")[0]["warp_instructions"] == 2499616768


# --- one launch under Nsight Compute --------------------------------------------------------------------

# Stands for ncu: "launches" one kernel, and prints pages that a test has left beside it. Like ncu it fails
# as a whole for a metric that it does not know, and adds the suffix to the name of the report.
PRETENDED = f"""\
#!{sys.executable}
import json, pathlib, sys
here, given = pathlib.Path(__file__).parent, sys.argv
plan = json.loads((here / "plan.json").read_text())
if "-i" in given:
    assert pathlib.Path(given[given.index("-i") + 1]).exists()
    print((here / given[given.index("--page") + 1]).read_text())
    sys.exit()
asked = given[given.index("--metrics") + 1].split(",") if "--metrics" in given else []
with open(here / "asked", "a") as file:
    print(len(asked), file=file)
if plan.get("forbidden"):
    sys.exit("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission")
if plan.get("broken"):
    sys.exit("==ERROR== of its own")
if any(word in metric for metric in asked for word in plan.get("unknown", ())):
    sys.exit("==ERROR== Failed to find metric")
pathlib.Path(given[-1]).write_text(json.dumps(plan["launched"]))
if "error" not in plan["launched"]:
    pathlib.Path(given[given.index("-o") + 1] + ".ncu-rep").write_text("")
"""


def raw_page(**metrics):
    names = {"ID": "0", "Block Size": "(64, 1, 1)", "Grid Size": "(4, 1, 1)", **metrics}
    rows = (names, [""] * len(names), names.values())
    return "\n".join(",".join(f'"{field}"' for field in row) for row in rows)


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """A function that installs the pretended ncu with a plan -> how many metrics each call asked for."""
    folder = tmp_path / "nsight"
    folder.mkdir()
    program = folder / "ncu"
    program.write_text(PRETENDED)
    program.chmod(0o755)
    for module in (ncu, measure, record, own):
        monkeypatch.setattr(module, "find_ncu", lambda: str(program), raising=False)

    def installed(launched=LAUNCHED, source=None, **plan):
        (folder / "plan.json").write_text(json.dumps({"launched": launched, **plan}))
        (folder / "raw").write_text(raw_page(**{WHOLE["samples"]: "24"}))
        (folder / "source").write_text("\n".join(source or printed(MEASURED)))
        return lambda: [int(number) for number in (folder / "asked").read_text().split()]

    return installed


def test_a_launch_is_watched_and_its_report_read(pretend):
    asked = pretend()
    launch = watch(Source("stages", ("block_tiled",)))()
    assert launch.about == LAUNCHED
    assert launch.metrics[WHOLE["samples"]] == "24"
    assert [row.opcode for row in launch.rows][:3] == ["LDC", "LDG.E", "FFMA"]
    assert len(asked()) == 1


@pytest.mark.parametrize("unknown, tries", [(["tensor"], 2), (["tensor", "l1tex"], 3)])
def test_unknown_metrics_are_left_out(pretend, unknown, tries):
    asked = pretend(unknown=unknown)
    assert watch(Source("stages", ("block_tiled",)))().about == LAUNCHED
    assert len(asked()) == tries
    assert asked() == sorted(asked(), reverse=True)


def test_why_there_is_no_profile(pretend):
    source = Source("stages", ("block_tiled",))
    pretend(forbidden=True)
    with pytest.raises(NoProfiler, match=r"only an administrator .*ERR_NVGPUCTRPERM says how"):
        watch(source)
    asked = pretend(launched={"case": "mine", "error": "CudaAPIError: [1] invalid value"})
    with pytest.raises(NotProfiled, match="invalid value"):
        watch(source)
    assert len(asked()) == 2, "a launch that failed is not tried again"
    pretend(broken=True)
    with pytest.raises(NotProfiled, match="ended without a report: ==ERROR== of its own"):
        watch(source)
    pretend(launched=LAUNCHED | {"grid": "5x1x1"})
    with pytest.raises(NotProfiled, match="another launch was reported, of 4x1x1 blocks"):
        watch(source)()
    pretend(source=printed(MEASURED, MEASURED))
    with pytest.raises(NotProfiled, match="one kernel was launched, 1 and 2 were reported"):
        watch(source)()


def test_a_process_that_is_interrupted_is_ended_with_all_it_started(tmp_path, monkeypatch):
    program, begun = tmp_path / "ncu", tmp_path / "begun"
    program.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {begun}.part\nmv {begun}.part {begun}\nwait\n")
    program.chmod(0o755)
    communicate = subprocess.Popen.communicate

    def interrupted(process, *args, **options):
        monkeypatch.setattr(subprocess.Popen, "communicate", communicate)
        assert processes.wait_for(begun.exists)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ncu.watched(str(program), [], Source("stages").program, tmp_path)
    assert processes.wait_for(lambda: has_ended(int(begun.read_text())))


def has_ended(number: int) -> bool:
    try:
        return psutil.Process(number).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_launch_that_takes_too_long_is_given_up(on_h200, monkeypatch):
    def late(*_):
        raise subprocess.TimeoutExpired("ncu", measure.SECONDS)

    monkeypatch.setattr(measure, "watched", late)
    with pytest.raises(NotProfiled, match="took more than 300 seconds"):
        watch(Source("stages", ("block_tiled",)))


# --- many of them ---------------------------------------------------------------------------------------


def code_of(stage, tiles, compute_capability):
    """What `compiled` would return for any stage."""
    return Compiled(stage.name, "", compute_capability, 40, 0, 0, 512, 512, None, "NVVM 13", CODE)


@pytest.fixture
def launches_of(on_h200, monkeypatch):
    """Replaces Nsight Compute and the compiler -> the list of stages that were launched."""
    done = []

    def watched(source):
        done.append(source.stages[0])
        if source.stages[0] == "wmma":
            raise NotProfiled("it does not like this GPU")
        rows = MEASURED if source.stages[0] != "vectorized" else [*MEASURED[:2], *MEASURED[1:]]
        return lambda: Launch(LAUNCHED, {WHOLE["samples"]: "24", WHOLE["nanoseconds"]: "1e6"}, rows_of(*rows))

    monkeypatch.setattr(record, "watch", watched)
    monkeypatch.setattr(record, "compiled", code_of)
    return done


@pytest.fixture
def commands_gpu(monkeypatch):
    """A GPU for what the command itself asks."""
    for place in ("gemm_course.device", "gemm_course.device.facts"):
        monkeypatch.setattr(f"{place}.gpu_facts", lambda: GPU)


CUBE = (4096,) * 3


def test_profiles_are_kept_in_the_ladders_order_and_read_back(launches_of, tmp_path):
    chosen = [
        *wanted(["kernel5_spread", "block_tiled"], [], [CUBE]),
        *wanted(["naive_coalesced"], ["BN=64", ""], [CUBE, (256, 512, 128)]),
    ]
    done = record_profiles(chosen, tmp_path / "h200", "gemm-course profile")
    assert (done.profiled, done.there, done.left, done.failed) == (6, 0, 0, [])
    rows = profiles("h200", tmp_path)
    assert list(rows["file"]) == [
        "naive_coalesced.json.xz",
        "naive_coalesced-BN64.json.xz",
        "naive_coalesced-256x512x128.json.xz",
        "naive_coalesced-BN64-256x512x128.json.xz",
        "block_tiled.json.xz",
        "kernel5_spread.json.xz",
    ]
    found = recorded("naive_coalesced", {"BN": 64}, (256, 512, 128), data=tmp_path)
    assert (found.samples, found.measured["samples"], found.code.rows) == (24, 24, CODE)
    assert found.waits["Tensor Cores"] == 4 / 24
    assert recorded("kernel5_spread", data=tmp_path).tiles.endswith("SPREAD=1")


def test_a_profile_is_found_on_a_gpu_with_another_number_of_multiprocessors(
    launches_of, tmp_path, monkeypatch
):
    chosen = wanted(["persistent"], ["BLOCKS=132", "BLOCKS=64"], [CUBE])
    record_profiles(chosen, tmp_path / "h200", "test")
    monkeypatch.setattr("gemm_course.kernels.parts.base.multiprocessors", lambda: 82)
    assert recorded("persistent", {"BLOCKS": 132}, data=tmp_path).tiles.endswith("BLOCKS=132")
    assert recorded("persistent", data=tmp_path).tiles.endswith("BLOCKS=132")
    with pytest.raises(NoProfile, match="BLOCKS=82 at 4096"):
        recorded("persistent", {"BLOCKS": 82}, data=tmp_path)
    with pytest.raises(NoProfile, match="SLOTS=3"):
        recorded("persistent", {"SLOTS": 3}, data=tmp_path)


def test_a_kernel_that_fails_stops_no_other(launches_of, tmp_path):
    chosen = wanted(["wmma", "vectorized", "block_tiled"], [], [CUBE])
    done = record_profiles(chosen, tmp_path / "h200", "gemm-course profile")
    assert done.profiled == 1
    refused, other = done.failed
    assert refused.startswith("wmma BM=") and refused.endswith("it does not like this GPU")
    assert other.startswith("vectorized BM=") and "Nsight Compute measured other code" in other
    assert list(profiles("h200", tmp_path)["stage"]) == ["block_tiled"]
    assert not (tmp_path / "h200" / "profile" / "vectorized.json.xz").exists()


def test_it_resumes_and_replaces_only_if_asked(launches_of, tmp_path):
    folder = tmp_path / "h200"
    chosen = wanted(["block_tiled", "kernel5", "naive_coalesced"], [], [CUBE])
    record_profiles(chosen[:1], folder, "first")
    done = record_profiles(chosen, folder, "second")
    assert (done.profiled, done.there) == (2, 1)
    assert launches_of == ["block_tiled", "kernel5", "naive_coalesced"]
    assert list(profiles("h200", tmp_path)["command"]) == ["second", "first", "second"]
    assert record_profiles(chosen, folder, "third", again=True).profiled == 3
    assert list(profiles("h200", tmp_path)["command"]) == ["third"] * 3
    (folder / "profile" / "kernel5.json.xz").unlink()
    assert record_profiles(chosen, folder, "fourth").profiled == 1


def test_a_row_of_what_was_the_default_once_goes_with_its_file(launches_of, tmp_path):
    folder = tmp_path / "h200"
    chosen = wanted(["block_tiled"], [], [CUBE])
    record_profiles(chosen, folder, "first")
    table = folder / "profile" / "kernels.csv"
    (row,) = PROFILE.rows(table)
    PROFILE.write(table, [row | {"tiles": "BM=64 BN=64 BK=8"}])
    assert record_profiles(chosen, folder, "second").profiled == 1
    assert [row["command"] for row in PROFILE.rows(table)] == ["second"]


def test_no_kernel_is_begun_after_the_time_is_up(launches_of, tmp_path):
    chosen = wanted(["block_tiled", "kernel5"], [], [CUBE])
    done = record_profiles(chosen, tmp_path / "h200", "test", until=-math.inf)
    assert (done.left, done.profiled, launches_of) == (2, 0, [])


@pytest.mark.parametrize(
    "words, says",
    [
        (["nothing"], "no stage is called nothing; there is naive_uncoalesced"),
        (["vectorized", "--tiles", "BM=1"], "vectorized cannot run with BM=1"),
        (["vectorized", "--tiles", "BM:1"], "tiles are written BM=128"),
        (["vectorized", "--sizes", "big"], "sizes are written 4096 or 1023x517x769"),
    ],
)
def test_what_the_command_cannot_understand(launches_of, commands_gpu, tmp_path, words, says):
    done = runner.invoke(app, ["profile", *words, "--folder", str(tmp_path)])
    assert (done.exit_code, launches_of) == (1, [])
    assert says in " ".join(done.output.split())


def test_the_command_says_what_it_did(launches_of, commands_gpu, tmp_path):
    folder = ["--folder", str(tmp_path / "h200")]
    done = runner.invoke(app, ["profile", "block_tiled", "wmma", "--sizes", "4096,512", *folder])
    assert done.exit_code == 1
    assert done.output.count("not profiled: wmma BM=") == 2
    assert f"2 profiles written to {tmp_path / 'h200' / 'profile'}" in done.output
    again = runner.invoke(app, ["profile", "block_tiled", "--sizes", "512", *folder])
    assert again.exit_code == 0
    assert again.output.startswith("1 were profiled before; --again does so anew\n0 profiles written")
    none = runner.invoke(app, ["profile", "kernel5", "--sizes", "512", "--minutes", "0", *folder])
    assert none.output.startswith("1 are left: there was no time; the same command goes on\n0 profiles")


@pytest.mark.full(reason="copies all kernels to be profiled, as many as are recorded")
def test_the_command_profiles_all_that_is_recorded(launches_of, commands_gpu, tmp_path):
    done = runner.invoke(app, ["profile", "--folder", str(tmp_path)])
    refused = launches_of.count("wmma") + launches_of.count("vectorized")  # as `launches_of` has it
    assert len(launches_of) == len(recorded_ones())
    assert done.output.count("not profiled") == refused > 0
    assert len(PROFILE.rows(tmp_path / "profile" / "kernels.csv")) == len(recorded_ones()) - refused


# --- which ----------------------------------------------------------------------------------------------


def test_by_default_it_is_the_ladder_and_all_that_is_asked_for():
    found = recorded_ones()
    assert [one.stage for one in found[: len(LADDER)]] == list(LADDER)
    assert all(one.shape == CUBE and one.tiles == one.stage.complete() for one in found[: len(LADDER)])
    assert len({one.key for one in found}) == len({one.file for one in found}) == len(found)
    keys = {one.key for one in found}
    for asked in ASKED:
        assert asked.why
        for size in asked.sizes:
            (one,) = wanted([asked.stage], [asked.tiles], [(size,) * 3])
            assert one.key in keys


def test_of_a_stage_it_is_all_that_is_asked_for(monkeypatch):
    asked = (Asked("wmma", "PAD=0", (4096, 512), "why"), Asked("kernel5", "", (4096,), "why"))
    monkeypatch.setattr("gemm_course.bench.profile.wanted.ASKED", asked)
    assert [one.file for one in recorded_ones(["kernel5_draft", "wmma"])] == [
        "wmma.json.xz",
        "wmma-PAD0.json.xz",
        "wmma-PAD0-512.json.xz",
        "kernel5_draft.json.xz",
    ]
    assert len(recorded_ones()) == len(LADDER) + 2
    with pytest.raises(ValueError, match="no stage is called nothing"):
        recorded_ones(["wmma", "nothing"])


def test_a_size_that_is_no_cube_is_one_launch():
    (one,) = wanted(["vectorized"], [], [(1023, 517, 769)])
    (case,) = one.source.cases()
    assert case.name == "vectorized 1023x517x769" and Source.from_text(one.source.as_text()) == one.source


def test_a_case_names_all_that_a_child_needs():
    (one,) = wanted(["kernel5_spread"], ["SPREAD=0"], [CUBE])
    (case,) = Source.from_text(one.source.as_text()).cases()
    assert case.setting == {"m": 4096, "n": 4096, "k": 4096, "tiles": one.about["tiles"]}
    assert parse_tiles(case.setting["tiles"])["SPREAD"] == 0
    assert case.grid == one.stage.grid(4096, 4096, one.tiles)
    with pytest.raises(ValueError, match="no stage is called nothing"):
        wanted(["nothing"], [], [CUBE])
    with pytest.raises(ValueError, match="cannot run with"):
        wanted(["vectorized"], ["BM=1"], [CUBE])


# --- a kernel of one's own ------------------------------------------------------------------------------

FACTOR = 3


@cuda.jit(device=True)
def scaled(value):
    return value * FACTOR


def kernel_with(offset):
    @cuda.jit(fastmath=True)
    def mine(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = scaled(x[i]) + offset

    return mine


@pytest.mark.full(reason="another process imports the course")
@pytest.mark.compiler
def test_a_kernel_is_copied_to_another_process_with_all_it_uses(tmp_path):
    x = np.ones(64, np.float32)
    source = pickled(kernel_with(5)[2, 32, 0, 128], (x, x), tmp_path / "launch.pickle")
    program = (
        "import sys\n"
        "from gemm_course import compiled\n"
        "from gemm_course.bench.profile.sources import Source\n"
        "(case,) = Source.from_text(sys.argv[1]).cases()\n"
        "one, other = case.make_args()\n"
        "print(case.name, case.grid, case.block, case.shared_bytes, one is other)\n"
        "print(case.kernel.targetoptions['fastmath'])\n"
        "print('\\n'.join(compiled(case.kernel, one, other).instructions['opcode']))\n"
    )
    (tmp_path / "elsewhere").mkdir()
    done = processes.run([sys.executable, "-c", program, source.as_text()], cwd=tmp_path / "elsewhere")
    about, fast, *opcodes = done.stdout.splitlines()
    assert (about, fast) == ("mine (2, 1, 1) (32, 1, 1) 128 True", "True")
    assert opcodes == list(gemm_course.compiled(kernel_with(5), x, x).instructions["opcode"])


def test_a_profile_of_ones_own_kernel_has_the_shape_of_a_recorded_one(on_h200, monkeypatch):
    x = np.ones(64, np.float32)
    monkeypatch.setattr(own, "compiled", lambda *_, **__: code_of(SimpleNamespace(name="mine"), "", (9, 0)))
    monkeypatch.setattr(own, "pickled", lambda configured, args, path: Source("pickled", module=str(path)))
    metrics = {WHOLE["samples"]: "24", WHOLE["nanoseconds"]: "2,000,000"}
    monkeypatch.setattr(own, "watch", lambda source: lambda: Launch(LAUNCHED, metrics, rows_of(*MEASURED)))
    found = profiled(kernel_with(5)[2, 32], x, x)
    assert repr(found).startswith("mine on an NVIDIA H200: 2 ms; a warp's time: busy unit 25%")
    assert (found.measured["m"], found.tflops, found.samples) == (None, None, 24)
    assert set(found.measured) == set(PROFILE.columns)
    assert found.by_line.loc[("mine.py", 5), "multiply-add"] == 8


def test_why_a_kernel_of_ones_own_is_not_profiled(on_h200):
    x = np.ones(64, np.float32)
    mine = kernel_with(5)
    with pytest.raises(ValueError, match=r"a configured kernel is needed, such as .* profiled\(my_kernel"):
        profiled(mine, x, x)
    with pytest.raises(ValueError, match="tiles and size belong to a stage"):
        profiled(mine[2, 32], x, x, tiles={"BM": 64})
    with pytest.raises(ValueError, match="takes tiles and a size, but no arguments"):
        profiled("vectorized", x)
    with pytest.raises(ValueError, match="argument 1 is not contiguous"):
        profiled(mine[2, 32], x[::2], x)
    with pytest.raises(ValueError, match=r"argument 2 is on the GPU: pass .*copy_to_host"):
        profiled(mine[2, 32], x, SimpleNamespace(__cuda_array_interface__={}))


def test_without_ncu_there_is_a_sentence(on_h200, monkeypatch):
    monkeypatch.setattr(own, "find_ncu", ncu.find_ncu)
    monkeypatch.setattr(ncu.shutil, "which", lambda *_, **__: None)
    with pytest.raises(NoProfiler, match="is not installed here"):
        profiled(kernel_with(5)[2, 32], np.ones(64, np.float32), np.ones(64, np.float32))


def test_the_emulator_has_no_profiles():
    from gemm_course.device import NoGpu

    with gemm_course.emulated(), pytest.raises(NoGpu, match="emulated at the moment"):
        profiled(kernel_with(5)[2, 32], np.ones(64, np.float32), np.ones(64, np.float32))
