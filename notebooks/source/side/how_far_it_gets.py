# %% [markdown]
# # [[how_far_it_gets.ipynb]] · How far does a block get?
#
# A side trip from [notebook [[hopper.ipynb]]](hopper.ipynb#cell-id=side-how_far_it_gets), and back. There,
# consumers gave each slot back one step late, and a ring of one slot stood still. How far does such a block
# get? And what does it need besides slots?
#
# *Time: about 7 minutes to read, 15 for the exercises. Needs notebook [[hopper.ipynb]] up to exercise
# [[consumer]].*

# %%
import numpy as np

from gemm_course import check, emulate
from gemm_course import widgets as see
from gemm_course.checks.kits import given_producer, later_consumer, two_roles
from lockstep import EmulatorError
from lockstep.intrinsics import tensor_map

# %% [markdown]
# ## When does a ring stand still?
#
# These consumers queue the products of step s, and then give back the slot of step s - LATE. The matrices
# have 10 steps. Change SLOTS and LATE until the block stands still, and then until it just runs. After the
# message, **count for yourself**: how many tiles were multiplied before?

# %%
A, B = np.ones((64, 640), np.float16), np.ones((640, 64), np.float16)
A_map, B_map = (tensor_map(each, each.shape, (64, 64)) for each in (A, B))


def trial(SLOTS, LATE):
    kernel = two_roles(SLOTS, given_producer, later_consumer(LATE))
    C = np.zeros((64, 64), np.float32)
    try:
        emulate(kernel, 1, 160, 640, A_map, B_map, C, shared_bytes=SLOTS * 16384)
        print("It runs to the end.")
    except EmulatorError as error:
        print(error)


# %% id="slots"
SLOTS, LATE = 3, 2
trial(SLOTS, LATE)

# %% [markdown]
# ### Exercise [[standstill]] · How far does it get?
# *core · medium · 10 minutes*
#
# Of `steps` steps, how many do the consumers multiply until all is done, or everybody waits? With `late = 0`
# they give back this step's slot, with 1 that of the step before.


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
# The picture shows a block in which one of two consumers never gives a slot back. How many tiles do the
# consumers multiply, with 2 slots and with 4? Ask your function: how late is "never"? Then step to the end.

# %%
# how_far(2, ..., 10), how_far(4, ..., 10)

# %%
see.phases("consumer 1 does not arrive")

# %% [markdown]
# **What we now know:** a ring needs one slot more than it gives back late, or as many slots as there are
# steps.
#
# ## Who needs how many registers?
#
# A launch gives every thread the same number of registers. But the producer needs a few dozen. A consumer has
# 128 accumulators, and would take all that it can get. So the producer's warpgroup gives some back, and the
# consumers take them: in `warp_specialised` the calls are `registers_down(FEW)` and `registers_up(MANY)`.
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

# %% [markdown]
# `warp_specialised` has two consumers, and FEW is 56. What is MANY? Ask your function. And what happens if
# consumers ask for more than was given back?

# %%
MANY = ...  # your code

# %%
see.fold("224. Who asks for more waits for ever.", first="Answer first, then open this.")

# %% [markdown]
# **What we now know:** registers change hands between warpgroups, so those who wait need not keep them. [Back
# to notebook [[hopper.ipynb]].](hopper.ipynb#cell-id=side-how_far_it_gets)
