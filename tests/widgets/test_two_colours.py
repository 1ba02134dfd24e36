"""The strip of two colours: each stretch has its colour without colours, and its waits are an mbarrier's."""

import re

import numpy as np
import pytest
from numba import cuda, float32, uint64

from gemm_course import widgets as see
from gemm_course.figures import two_colours as figure
from gemm_course.figures.two_colours import ARRIVALS, COLOURS, STRETCHES
from gemm_course.widgets import _two_colours
from lockstep import EmulatorError, emulate
from lockstep.intrinsics import mbarrier_arrive, mbarrier_init, mbarrier_wait
from tests.figures.page import faults, texts

STATES = [(step, colour) for step in range(ARRIVALS * STRETCHES) for colour in COLOURS]


def test_it_begins_before_the_first_arrival_and_all_states_are_stored():
    states = see.two_colours.makes_explorer().states_to_store()
    assert len(states) == len(STATES)
    assert len(see.two_colours.makes_explorer("dark").states_to_store()) == len(STATES) / 2
    assert see.two_colours.makes_explorer("dark").controls.start()["step"] == 0


def test_another_colour_is_refused():
    with pytest.raises(ValueError, match="must be one of dark, light, not 'red'"):
        see.two_colours.makes_explorer("red")


@pytest.mark.parametrize(("step", "colour"), STATES)
def test_nothing_lies_over_anything_and_all_are_equally_high(step, colour):
    picture = _two_colours.draw(step, colour)
    assert faults(picture) == []
    assert height(picture) == height(_two_colours.draw(0, "dark"))


def height(picture):
    return re.search(r'viewBox="[\d.]+ [\d.]+ [\d.]+ ([\d.]+)"', picture.data)[1]


@pytest.mark.parametrize(("step", "colour"), STATES)
def test_its_words_say_all_that_it_shows(step, colour):
    picture = _two_colours.draw(step, colour)
    running = step // ARRIVALS
    said = picture.alt.replace("\u00a0", " ")
    does = ["stands" if COLOURS[stretch % 2] == colour else "goes on" for stretch in range(running + 1)]
    title = f"Stretch {running}, {COLOURS[running % 2]}: who waits for {colour} {does[-1]}."
    assert said.startswith(title)
    assert f"{step} arrivals so far, {step % ARRIVALS} of {ARRIVALS} in the stretch that runs" in said
    for stretch, words in enumerate(does):
        assert f"{stretch}, {COLOURS[stretch % 2]}: {words}" in said
    shown = [each[0] for each in texts(picture)]
    assert shown.count("stands") + shown.count("goes on") == running + 1


def test_the_colours_differ_without_colour():
    dark, light = (_two_colours.draw(step, "dark").data for step in (0, ARRIVALS))
    hatches = [len(re.findall(r"<(?:path|line|pattern|polyline)\b", each)) for each in (dark, light)]
    assert hatches[0] < hatches[1]


def made(arrivals, parity):
    @cuda.jit
    def kernel(out):
        barrier = cuda.shared.array(1, uint64)
        if cuda.threadIdx.x == 0:
            mbarrier_init(barrier, 0, ARRIVALS)
            for _ in range(arrivals):
                mbarrier_arrive(barrier, 0)
            mbarrier_wait(barrier, 0, parity)
            out[0] = float32(1)

    return kernel


@pytest.mark.parametrize(("step", "colour"), STATES)
def test_a_wait_returns_as_that_of_an_mbarrier_does(step, colour):
    out = np.zeros(1, np.float32)
    kernel = made(step, COLOURS.index(colour))
    if figure.passes(step // ARRIVALS, colour):
        assert not emulate(kernel, 1, 32, out).errors and out[0] == 1
    else:
        with pytest.raises(EmulatorError, match="continue"):
            emulate(kernel, 1, 32, out)
