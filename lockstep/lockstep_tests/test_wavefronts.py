"""Wavefronts of one shared-memory instruction: as measured on an H200, and general properties."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep import wavefronts
from lockstep_tests.sampling import examples
from lockstep_tests.scalar import plain_wavefronts

MEASURED = Path(__file__).parents[1] / "recorded" / "shared_memory_wavefronts.csv"
WARP = 32
OPS = st.sampled_from(["load", "store"])
WIDTHS = st.sampled_from([32, 64, 128])
MANY = settings(max_examples=examples(50, one_in=2))


def measured():
    with MEASURED.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lane_words(bits, highest=256):
    """Word indices an instruction of this width may have: multiples of its width, -1 for an idle lane."""
    step = bits // 32
    word = st.integers(0, highest // step - 1).map(lambda unit: unit * step)
    few = st.sampled_from([0, step, 2 * step, 32, 64])
    return st.one_of(
        st.lists(word, min_size=WARP, max_size=WARP),
        st.lists(few, min_size=WARP, max_size=WARP),
        st.lists(st.one_of(word, st.just(-1)), min_size=WARP, max_size=WARP),
    )


INSTRUCTIONS = WIDTHS.flatmap(lambda bits: st.tuples(lane_words(bits), st.just(bits), OPS))


def test_every_measured_instruction():
    rows = measured()
    assert len(rows) >= 54, f"{MEASURED.name} has lost rows: {len(rows)}"
    wrong = []
    for row in rows:
        lanes = [int(word) for word in row["lane_word_index"].split()]
        got = wavefronts(lanes, int(row["bits"]), row["op"])
        counted = int(row["data_stage_wavefronts"])
        if got != counted:
            wrong.append(f"{row['pattern']}, {row['op']} of {row['bits']}: {got}, measured {counted}")
    assert not wrong, "\n".join(wrong)


def test_the_measurements_cover_every_width_both_ops_and_idle_lanes():
    rows = measured()
    assert {(row["op"], row["bits"]) for row in rows} >= {
        (op, bits) for op in ("load", "store") for bits in ("32", "64", "128")
    }
    assert sum("-1" in row["lane_word_index"].split() for row in rows) >= 20


def test_the_rule_in_plain_loops_explains_every_measurement():
    for row in measured():
        lanes = [int(word) for word in row["lane_word_index"].split()]
        assert plain_wavefronts(lanes, int(row["bits"]), row["op"]) == int(row["data_stage_wavefronts"]), row


@MANY
@given(INSTRUCTIONS)
def test_agrees_with_the_rule_in_plain_loops(instruction):
    assert wavefronts(*instruction) == plain_wavefronts(*instruction)


@MANY
@given(INSTRUCTIONS)
def test_between_ideal_and_one_per_lane(instruction):
    lanes, bits, op = instruction
    active = sum(lane >= 0 for lane in lanes)
    distinct = len({lane + part for lane in lanes if lane >= 0 for part in range(bits // 32)})
    got = wavefronts(lanes, bits, op)
    assert got >= -(-distinct // 32), "every wavefront serves at most 32 words"
    assert (got == 0) == (active == 0)
    assert got <= active


@MANY
@given(INSTRUCTIONS, st.integers(0, 40))
def test_shifting_all_lanes_by_whole_rows_of_banks_changes_nothing(instruction, rows):
    lanes, bits, op = instruction
    shifted = [lane + 32 * rows if lane >= 0 else -1 for lane in lanes]
    assert wavefronts(shifted, bits, op) == wavefronts(lanes, bits, op)


@MANY
@given(INSTRUCTIONS, st.integers(0, 31))
def test_shifting_all_lanes_by_one_access_changes_nothing(instruction, units):
    lanes, bits, op = instruction
    shifted = [lane + units * (bits // 32) if lane >= 0 else -1 for lane in lanes]
    assert wavefronts(shifted, bits, op) == wavefronts(lanes, bits, op)


@MANY
@given(lane_words(32), OPS, st.permutations(range(WARP)))
def test_order_of_lanes_does_not_matter_at_32_bits(lanes, op, order):
    assert wavefronts([lanes[lane] for lane in order], 32, op) == wavefronts(lanes, 32, op)


@MANY
@given(lane_words(32), OPS, st.permutations(range(32)))
def test_the_numbering_of_banks_does_not_matter_at_32_bits(lanes, op, order):
    renamed = [lane // 32 * 32 + order[lane % 32] if lane >= 0 else -1 for lane in lanes]
    assert wavefronts(renamed, 32, op) == wavefronts(lanes, 32, op)


@MANY
@given(lane_words(32))
def test_loads_and_stores_cost_the_same_at_32_bits(lanes):
    assert wavefronts(lanes, 32, "load") == wavefronts(lanes, 32, "store")


@MANY
@given(INSTRUCTIONS, st.integers(0, WARP - 1))
def test_an_idle_lane_never_costs_more_at_32_bits(instruction, lane):
    lanes, _, op = instruction
    fewer = [*lanes[:lane], -1, *lanes[lane + 1 :]]
    assert wavefronts(fewer, 32, op) <= wavefronts(lanes, 32, op)


@MANY
@given(st.sampled_from([8, 16]), lane_words(32), OPS)
def test_narrow_accesses_count_like_32_bits(bits, lanes, op):
    assert wavefronts(lanes, bits, op) == wavefronts(lanes, 32, op)


def test_an_idle_warp_costs_nothing():
    for bits in (32, 64, 128):
        assert wavefronts([-1] * WARP, bits, "load") == wavefronts([-1] * WARP, bits, "store") == 0


def test_numpy_arrays_and_ranges_are_accepted():
    assert wavefronts(range(WARP)) == wavefronts(np.arange(WARP), bits=32, op="load") == 1


@pytest.mark.parametrize(
    "lanes, bits, op", [(range(31), 32, "load"), (range(32), 48, "load"), (range(32), 32, "add")]
)
def test_invalid_arguments_are_refused(lanes, bits, op):
    with pytest.raises(ValueError):
        wavefronts(lanes, bits, op)


def test_wavefront_rows_are_instructions_of_one_warp():
    frame = pd.read_csv(MEASURED)
    lanes = frame["lane_word_index"].str.split().map(lambda words: [int(word) for word in words])
    assert (lanes.map(len) == 32).all()
    assert set(frame["bits"]) == {32, 64, 128}
    assert (lanes.map(min) == -1).sum() > 500  # with inactive lanes
    assert frame["wavefronts"].between(1, 32).all()


def rule_of_the_readme(lanes, bits, op):
    """The wavefronts of one instruction by the rules in lockstep/recorded/README.md."""
    count = bits // 32
    groups = [range(start, start + 32 // count) for start in range(0, 32, 32 // count)]
    active = [lane for lane in range(32) if lanes[lane] >= 0]
    partners = [all(lanes[lane ^ step] in (lanes[lane], -1) for lane in active) for step in (1, 2)]
    if op == "load" and count > 1 and any(partners):
        groups = [[*first, *second] for first, second in zip(groups[::2], groups[1::2])]
    return sum(
        _most_in_a_bank({lanes[lane] + i for lane in group if lanes[lane] >= 0 for i in range(count)})
        for group in groups
    )


def _most_in_a_bank(words):
    return max((sum(word % 32 == bank for word in words) for bank in range(32)), default=0)


def test_the_data_stage_follows_the_rules_of_the_readme():
    frame = pd.read_csv(MEASURED)
    for row in frame.itertuples():
        lanes = [int(word) for word in row.lane_word_index.split()]
        assert rule_of_the_readme(lanes, row.bits, row.op) == row.data_stage_wavefronts, row
    assert (frame["wavefronts"] == frame["data_stage_wavefronts"]).mean() > 0.9
