# %% [markdown]
# # [[how_far_it_gets.ipynb]] · How far does a block get?
#
# A side trip from [notebook [[hopper.ipynb]]](hopper.ipynb#cell-id=side-how_far_it_gets), and back.
#
# *Time: about 15 minutes to read, 10 for the exercises. Needs notebook [[hopper.ipynb]].*

# %%
import numpy as np
import pandas as pd
from numba import cuda, float32, uint64
from numba.types import float16

from gemm_course import check, emulate, records
from gemm_course import widgets as see
from gemm_course.checks.kits import two_roles
from lockstep import EmulatorError
from lockstep.intrinsics import (
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    tensor_map,
    tma_acquire,
    tma_load,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)

# %% [markdown]
# ### Exercise [[standstill]] · How far does it get?
# *core · medium · 10 minutes*
#
# Suppose consumers queue the products of step s, and then give back the slot of step s - `late`. With `late =
# 0` it is this step's, with 1 that of the step before. Of `steps` steps, how many do they multiply until all
# is done, or everybody waits?


# %% id="ex-standstill"
def how_far(SLOTS, late, steps):
    ### BEGIN SOLUTION
    multiplied, given_back = 0, 0
    while multiplied < steps and multiplied < given_back + SLOTS:
        multiplied += 1
        given_back = max(0, multiplied - late)
    return multiplied
    ### STUB
    # return None
    ### END SOLUTION


check.standstill(how_far)

# %% [markdown]
# ## Registers change hands
#
# A launch gives every thread the same number of registers. But the producer needs a few dozen, and consumers
# with 128 accumulators each need all they can get. So the producer's warpgroup gives some back, and the
# consumers take them: `registers_down(56)`, `registers_up(224)` (PTX `setmaxnreg`).
#
# ### Exercise [[handed_over]] · Handed over
# *stretch · medium · 5 minutes*
#
# An SM has 65,536 registers, and the block is alone on it. It has some warpgroups of consumers and one for
# the producer, 128 threads each. All numbers are per thread and in multiples of 8, rounded down. How many
# does a thread get at the launch? Then the producer keeps `kept` of what it got and hands over the rest: how
# many can a consumer have?


# %% id="ex-handed_over"
def registers(consumers, kept):
    ### BEGIN SOLUTION
    start = 65_536 // (128 * (consumers + 1)) // 8 * 8
    return start, (start + (start - kept) // consumers) // 8 * 8
    ### STUB
    # return None, None  # at the launch, a consumer's afterwards
    ### END SOLUTION


check.handed_over(registers)
