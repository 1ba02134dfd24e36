"""What becomes of small programs on an H100, and here: recorded/gpu_facts.csv has the H100's outcomes."""

import csv
from pathlib import Path

import pytest

from lockstep import emulated
from lockstep_tests import gpu_facts

RECORD = Path(__file__).parents[1] / "recorded" / "gpu_facts.csv"
ON_GPU = {row["fact"]: row["outcome"] for row in csv.DictReader(RECORD.open(encoding="utf-8"))}
# The emulator finds by these kinds or says in these words what is wrong where a GPU hangs or fails.
HERE = {
    "grid_barrier_after_the_first_thread_of_a_block_has_returned": "barrier_divergence",
    "grid_barrier_after_a_block_has_returned": "barrier_divergence",
    "grid_barrier_with_more_blocks_than_there_is_room_for": "holds at most 4,224 blocks of 64 threads",
    "random_states_for_far_too_few_threads": "out_of_bounds",
    "a_local_array_of_800_000_bytes": "a thread has at most 524,288 bytes of local memory",
    "constant_memory_of_160_000_bytes": "160,000 bytes of constant memory",
    "a_default_argument_left_out": "with_a_default takes 2 arguments (out, value), not 1",
    "a_vote_of_floats": "takes a boolean or an integer, not a float64 value",
    "an_exception_of_a_kernel_with_debug": "tid=[0, 0, 1] ctaid=[0, 0",
}


def test_every_program_is_recorded():
    assert set(ON_GPU) == set(gpu_facts.FACTS)
    failed = {name for name, told in ON_GPU.items() if told == gpu_facts.HANGS or "Error: " in told}
    assert failed | {"random_states_for_far_too_few_threads"} == set(HERE)


@pytest.mark.parametrize("name", gpu_facts.FACTS)
def test_the_emulator_has_the_same_outcome_or_says_what_is_wrong(name):
    with emulated("h100") as session:
        outcome = gpu_facts.outcome(name)
    kinds = [found.kind for found in session.errors]
    if name in HERE:
        assert HERE[name] in outcome or HERE[name] in kinds, (outcome, kinds)
    else:
        assert (outcome, kinds) == (ON_GPU[name], [])
