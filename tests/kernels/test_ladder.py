"""The ladder as a registry: its order, its tiles, its rules, its launches."""

import ast
import dataclasses
import difflib
import functools
import inspect
import io
import itertools
import re
import tokenize
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemm_course import kernels
from gemm_course.kernels import LADDER, IllegalTiles, Ladder
from lockstep.limits import MAX_SHARED_BYTES, MAX_THREADS

NAMES = [stage.name for stage in LADDER]
TILED = [LADDER[name] for name in NAMES[3:]]
KERNELS = Path(kernels.__file__).parent
STREAM_K = ("stream_k", "stream_k_fp16")
MOST_NEW_LINES = 45  # in a stage's build, beside the one that it follows
LONGER = {  # how many lines, and why
    "stream_k": (66, "steps shared out are of no use before their parts are added up"),
    "wmma": (58, "fragments replace the thread tiles, from the fetching to the storing"),
    "mma_tma": (48, "TMA and a producer: neither helps here without the other"),
    "wgmma_tma": (
        48,
        "wgmma replaces fragments, and their reads, products and stores; and the producer goes",
    ),
    "stream_k_fp16": (123, "as stream_k; and each warp adds up and stores for itself"),
}
MANY_CHOICES = {"float32": 150, "float16": 100}  # by dtype; a stage may offer fewer where another offers them
ANY_STAGE = pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)


def test_every_file_is_in_the_ladder():
    """What is left out says why, and what to do; nothing else fails for it."""
    if LADDER.left_out:
        pytest.fail("\n".join(LADDER.left_out), pytrace=False)


def test_the_files_are_the_stages_in_teaching_order():
    """Nothing else is in the folder: helpers are in `parts`, kernels beside the ladder in `variants`."""
    files = sorted(path.stem for path in KERNELS.glob("*.py") if path.stem != "__init__")
    left_out = [file for file in files if any(said.startswith(f"{file}.py") for said in LADDER.left_out)]
    names = [file[4:] for file in files if file not in left_out]
    assert names == [name for name in NAMES if name != "wmma_fp16_acc"], (
        "a file is called as its stage: x01_NAME"
    )
    for letter, group in itertools.groupby(files, key=lambda file: file[0]):
        numbers = [file[:4] for file in group]
        assert numbers == [f"{letter}{i:02d}_" for i in range(1, 1 + len(numbers))], "give it the next number"
    assert LADDER["block_tiled"] is LADDER[3]
    assert "kernel5_draft" not in LADDER


def test_the_message_about_an_unknown_stage_lists_the_known_ones():
    with pytest.raises(KeyError, match=r"'block_tilde'.*block_tiled"):
        LADDER["block_tilde"]


@ANY_STAGE
def test_the_stages_form_a_tree_in_teaching_order(stage):
    path = LADDER.path(stage.name)
    assert path[0] is LADDER[0] and path[-1] is stage
    assert [step for step in LADDER if step in path] == list(path)
    for lower, upper in itertools.pairwise(path):
        assert upper.after == lower.name and upper in LADDER.followers(lower.name)
    assert not (stage.side and LADDER.followers(stage.name))


def test_a_path_leaves_out_side_branches():
    names = [stage.name for stage in LADDER.path("block_tiled")]
    assert names == ["naive_uncoalesced", "naive_coalesced", "block_tiled"]
    assert [stage.name for stage in LADDER.followers("naive_coalesced")] == ["penny_xu_tile", "block_tiled"]
    for look_up in (LADDER.path, LADDER.followers):
        with pytest.raises(KeyError, match="no stage is called 'block_tilde'"):
            look_up("block_tilde")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"after": "vectorized"},
            "new follows 'vectorized', but no earlier stage is called that: `after` must",
        ),
        ({"after": "new"}, "new follows 'new', but no earlier stage is called that: `after` must"),
        ({"after": ""}, "new follows '', but no earlier stage is called that: `after` must"),
        ({"after": "penny_xu_tile"}, "new follows penny_xu_tile, but nothing follows a side branch: remove"),
        ({"name": "block_tiled"}, "two stages are called block_tiled: give the new one another name"),
    ],
)
def test_stages_that_form_no_tree_are_refused(changes, message):
    new = dataclasses.replace(LADDER["thread_tiled_1d"], **{"name": "new", **changes})
    with pytest.raises(ValueError, match=f"^{message}"):
        Ladder([*list(LADDER)[:4], new])


def test_the_first_stage_follows_no_other():
    with pytest.raises(ValueError, match=r"^block_tiled follows 'naive_coalesced', but no earlier stage"):
        Ladder([LADDER["block_tiled"]])


def code_lines(stage):
    """The lines of a stage's build without indentation, comments, docstrings and blank lines."""
    build = stage.build.func if isinstance(stage.build, functools.partial) else stage.build
    source = inspect.getsource(build)
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            for row in range(docstring.lineno, docstring.end_lineno + 1):
                lines[row - 1] = ""
    return [line.strip() for line in lines if line.strip()]


def new_lines(stage):
    """How many lines of a stage's build are not in that of the stage which it follows."""
    before = code_lines(LADDER[stage.after]) if stage.after else []
    changes = difflib.SequenceMatcher(None, before, code_lines(stage), autojunk=False).get_opcodes()
    return sum(end - start for kind, _, _, start, end in changes if kind != "equal")


@ANY_STAGE
def test_a_stage_adds_few_lines_to_the_one_that_it_follows(stage):
    lines = new_lines(stage)
    most, _ = LONGER.get(stage.name, (MOST_NEW_LINES, ""))
    assert lines <= most, f"{stage.name} adds {lines} lines to {stage.after}: split it, or say why not"
    assert stage.name not in LONGER or lines > MOST_NEW_LINES, f"{stage.name} is no longer an exception"


def test_every_exception_is_a_stage():
    assert [name for name in NAMES if name in LONGER] == list(LONGER)


FOUR = LADDER["block_tiled"]


def other_parameters(m, n, k, A, B, C):
    pass


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("a16_mine", {}, "its stage is called block_tiled: write name='mine', as the file is called"),
        ("a16_mine", {"name": "mine"}, "mine: its kernel's function is called block_tiled: call it mine"),
        (
            "a16_block_tiled",
            {"tiles": {**FOUR.tiles, "BM": 64}},
            "block_tiled: its default tiles are not leg",
        ),
        (
            "a16_block_tiled",
            {"options": {"BK": (1, 2)}},
            "block_tiled: its default, BK=64, must be among its",
        ),
        (
            "a16_block_tiled",
            {"tiles": {"BM": 32}},
            "block_tiled: build takes (BM, BN, BK), but tiles",
        ),
        ("a16_block_tiled", {"build": lambda BM, BN, BK: None}, "block_tiled: its build must return the ker"),
        (
            "a16_other_parameters",
            {"name": "other_parameters", "build": lambda BM, BN, BK: other_parameters},
            "other_parameters: its kernel must take m, n, k, alpha, A, B, beta, C, and more only after",
        ),
    ],
)
def test_a_file_whose_stage_cannot_be_used_is_refused(file, changes, message):
    """Left out of the ladder, it fails one test; in it, it would fail every test of the whole ladder."""
    stage = dataclasses.replace(FOUR, **changes)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        kernels.stages_of(SimpleNamespace(STAGE=stage), file)


def test_a_file_without_a_stage_is_refused():
    with pytest.raises(ValueError, match="it has no STAGE: at its end"):
        kernels.stages_of(SimpleNamespace(), "a16_mine")


@pytest.mark.parametrize("stage", TILED, ids=lambda stage: stage.name)
def test_a_tiled_stage_offers_many_legal_choices(stage):
    choices, many = stage.legal_choices(), MANY_CHOICES[stage.dtype]
    assert len(choices) >= 10
    if len(choices) < many and stage.name != "stream_k_fp16":  # whose tiles follow from the shape
        assert any(offers_all(other, stage) for other in LADDER if len(other.legal_choices()) >= many), (
            f"{stage.name} offers {len(choices)} choices of tiles, and no stage with at least {many} "
            "offers them as well: give `options` more values"
        )


def offers_all(other, stage) -> bool:
    """Whether another stage offers every choice of a stage, perhaps with more sizes to choose."""
    if not other.tiles.keys() >= stage.tiles.keys():
        return False
    offered = {tuple(choice[name] for name in stage.tiles) for choice in other.legal_choices()}
    return all(tuple(choice.values()) in offered for choice in stage.legal_choices())


@ANY_STAGE
def test_every_legal_choice_can_be_launched(stage):
    for tiles in stage.legal_choices():
        threads = int(np.prod(stage.block(tiles)))
        bounds, resident = stage.launch_bounds(tiles)
        assert 1 <= threads == bounds <= MAX_THREADS
        assert threads * resident <= 2048 or resident == 1
        assert stage.shared_bytes(tiles) <= MAX_SHARED_BYTES


def test_kernels_are_cached_by_their_tiles():
    stage = LADDER["block_tiled"]
    assert stage.kernel() is stage.kernel(dict(stage.tiles))
    assert stage.kernel({"BM": 8}) is not stage.kernel()


def test_the_message_about_illegal_tiles_names_the_rule_the_values_and_a_legal_choice():
    stage = LADDER["thread_tiled_1d"]
    with pytest.raises(IllegalTiles) as error:
        stage.kernel({"BM": 64, "BN": 64, "TM": 24})
    message = str(error.value)
    assert "BM (64) must be a multiple of TM (24)" in message
    assert "BM=64 BN=64 BK=8 TM=24" in message
    assert stage.rules(error.value.nearest) == []
    assert "TM=32" in message or "TM=16" in message


@pytest.mark.parametrize("value", [0, -8, 2.0, "8", True, None])
def test_a_tile_size_is_a_positive_whole_number(value):
    (rule,) = LADDER["thread_tiled_2d"].rules({"BK": value})
    assert "BK must be a whole number and at least 1" in rule
    assert LADDER["thread_tiled_2d"].rules(LADDER["thread_tiled_2d"].nearest_legal({"BK": value})) == []


def test_tile_sizes_may_be_numpy_integers():
    stage = LADDER["thread_tiled_2d"]
    assert stage.rules({"BK": np.int64(8)}) == []
    assert stage.kernel({"BK": np.int64(8)}) is stage.kernel({"BK": 8})


@pytest.mark.parametrize("gpu", [84, None])
def test_there_is_a_block_for_each_multiprocessor_of_the_gpu_at_hand(monkeypatch, gpu):
    device = SimpleNamespace() if gpu is None else SimpleNamespace(MULTIPROCESSOR_COUNT=gpu)
    monkeypatch.setattr("numba.cuda.is_available", lambda: True)
    monkeypatch.setattr("numba.cuda.get_current_device", lambda: device)
    for name in ("persistent", "staged_store", "overlapped_store", *STREAM_K):
        stage = LADDER[name]
        assert stage.complete()["BLOCKS"] == (gpu or 132)  # a simulated GPU has none
        assert stage.complete({"BLOCKS": 5})["BLOCKS"] == 5
        assert stage.grid(8192, 8192) == (gpu or 132,)


def test_padding_may_be_zero():
    assert LADDER["vectorized"].rules({"PAD": 0}) == []
    assert LADDER["vectorized"].rules({"PAD": 2}) != []


def test_an_unknown_tile_is_refused():
    with pytest.raises(ValueError, match="no tile size called TN; it has BM, BN, BK"):
        LADDER["block_tiled"].rules({"TN": 4})


@given(data=st.data())
def test_the_nearest_legal_choice_is_legal_and_legal_choices_stay(data):
    stage = data.draw(st.sampled_from(list(LADDER)))
    tiles = {name: data.draw(st.integers(1, 300)) for name in stage.tiles}
    nearest = stage.nearest_legal(tiles)
    assert stage.rules(nearest) == []
    assert stage.nearest_legal(nearest) == nearest


@given(m=st.integers(0, 3000), n=st.integers(0, 3000), data=st.data())
def test_a_grid_covers_c_without_an_idle_row_of_blocks(m, n, data):
    stage = data.draw(st.sampled_from(list(LADDER)))
    tiles = data.draw(st.sampled_from(stage.legal_choices()))
    rows, columns = -(-m // tiles["BM"]), -(-n // tiles["BN"])
    needed = min(rows * columns, tiles.get("BLOCKS", rows * columns))
    if stage.name in STREAM_K and needed:  # a tile may take several blocks
        needed = tiles["BLOCKS"]
    assert int(np.prod(stage.grid(m, n, tiles))) == needed


def test_a_grid_that_is_too_tall_is_refused_with_the_limit():
    with pytest.raises(ValueError, match=r"needs 65536 blocks along y.*at most 65535"):
        LADDER["block_tiled"].grid(65536 * 16, 1)


@ANY_STAGE
def test_rows_must_be_aligned_where_16_bytes_move_at_a_time(stage):
    broken = stage.leading_dimension_rules(A=16, B=33, C=34)
    if stage.alignment == 16:
        assert len(broken) == 2
        elements = {"float32": "floats", "float16": "FP16 values"}[stage.dtype]
        assert broken[0].startswith(f"the rows of B are 33 {elements} long")
    else:
        assert broken == []


def test_rows_of_fp16_values_are_counted_in_bytes():
    stage = dataclasses.replace(LADDER["vectorized"], dtype="float16")
    (broken,) = stage.leading_dimension_rules(A=16, B=20, C=24)
    assert broken == (
        "the rows of B are 20 FP16 values long; vectorized reads 16 bytes at a time and needs a multiple of 8"
    )
