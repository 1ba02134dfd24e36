# %% [markdown]
# # [[roofline.ipynb]] · How fast can a kernel be at most?
#
# A side trip from [notebook [[welcome.ipynb]]](welcome.ipynb#cell-id=side-roofline), and back.
#
# A GPU has two speeds: how fast it computes, and how fast it gets its numbers. NVIDIA's data sheet for the
# H200 says **67 TFLOPS** for floats of 32 bits (FP32), and **4.8 TB per second** from DRAM. One TB is
# $10^{12}$ bytes. Take the kernel that adds two vectors:

# %%
from gemm_course import check
from gemm_course import widgets as see

see.predict("welcome.intensity")

# %% [markdown]
# *Time: about 15 minutes to read, 8 for the exercises. Needs notebook [[welcome.ipynb]]; the last section
# needs [[coalesced.ipynb]] as well, and gives away speeds of [[naive.ipynb]] and [[coalesced.ipynb]]. Before
# it, a link leads back.*
#
# ## Where do 67 TFLOPS come from?
#
# A scheduler starts one instruction per clock, for 32 lanes. That can be a *fused multiply-add*: a
# multiplication and an addition in one instruction, two FLOP for each lane. What else you need stands in the
# picture. (So does some that is for later notebooks.) Write the 67 TFLOPS as a product, in the cell below it.

# %%
see.machine()

# %% id="peak"
### BEGIN SOLUTION
132 * 4 * 32 * 2 * 1.98e9 / 1e12
### STUB
# # your code: one line
### END SOLUTION

# %% [markdown]
# **What we now know:** the 67 are what the machine does if no scheduler ever waits. The course's own test
# programs came close to both speeds: 65 TFLOPS, and 4.5 TB per second.
#
# ## Which of the two speeds is the limit?
#
# That depends on the kernel: **how many operations does it do for each byte that it moves?** This number is
# its *arithmetic intensity*, in FLOP per byte. Times the bytes per second of a memory, it is the most FLOP
# per second that this memory allows: the memory's **roof**. Arithmetic has a roof as well, here 67 TFLOPS.
#
# ### Exercise [[roof]] · The roof
# *core · easy · 5 minutes*
#
# Write `roof(flop, bytes)`: the most TFLOPS that an H200 can reach with a kernel that does `flop` operations
# and moves `bytes` bytes from and to DRAM. Take 67 TFLOPS and 4.8 TB per second.


# %% id="ex-roof"
def roof(flop, bytes):
    ### BEGIN SOLUTION
    dram = 4.8 * flop / bytes
    return min(67, dram)
    ### STUB
    # return None  # TFLOPS
    ### END SOLUTION


check.roof(roof)

# %% [markdown]
# The product of two n × n matrices takes $2n^3$ FLOP. If each element of the three matrices moved just once,
# that would be $3 \cdot n^2 \cdot 4 = 12n^2$ bytes. So the intensity is $n/6$: it grows with n.
#
# The plot below is your function, and is called a **roofline**. Both axes are logarithmic. Its slanted part
# is DRAM's limit, its flat part the limit of arithmetic (66.9, not rounded). The slider doubles n. Between
# which two n does the limit change? Then compute the very n, in the cell after it.

# %%
see.roofline()

# %% id="ridge"
### BEGIN SOLUTION
67 / 4.8 * 6
### STUB
# # your code: one line
### END SOLUTION

# %% [markdown] tags=["thought"]
# Between 64 and 128. The roofs meet at 67 / 4.8, some 14 FLOP per byte: n / 6 = 14, so from n = 84 on.

# %%
see.predict("welcome.twice")

# %% [markdown]
# **What we now know:** below 14 FLOP per byte DRAM is the limit, and moving less helps. Above, it is
# arithmetic. A large matrix product *could* keep the arithmetic busy.
#
# ## Can a kernel stand above a roof?
#
# *Stop here if you have not done notebook [[coalesced.ipynb]] yet: [back to notebook
# [[welcome.ipynb]]](welcome.ipynb#cell-id=side-roofline).*
#
# Notebook [[coalesced.ipynb]] has the kernel `naive_coalesced`. In a step of its loop, a warp reads one float
# of A, and 32 neighbours of B: 1 + 4 = 5 sectors, 160 bytes. With them it does 32 multiplications and 32
# additions. What does your `roof` say of it?

# %% id="its-roof"
### BEGIN SOLUTION
roof(32 + 32, 160)
### STUB
# # your code: one line
### END SOLUTION

# %% [markdown]
# At DRAM's 4.8 TB per second that makes 1.9 TFLOPS. But it reaches 6.6.

# %%
see.predict("welcome.above")

# %%
see.fold(lambda: see.roofline(until="naive_coalesced"))

# %% [markdown]
# Both points stand **above** DRAM's roof. The axis counts the bytes that warps ask L1 for. What L1 or L2
# holds never comes from DRAM. Each memory has a roof of its own, for its own bytes. **A roofline without the
# name of its bytes on the axis says nothing.**
#
# And what of DRAM's own bytes? `naive_uncoalesced` is the kernel of notebook [[naive.ipynb]]. By the
# hardware's count it does 16 FLOP for each byte from and to DRAM. That is to the right of 14, so this roof is
# 67 TFLOPS. The kernel reaches less than one percent of it: DRAM is busy 1 % of the time, L1 99 %.
#
# **What we now know:** a roof is a limit, not a forecast. The lowest roof may belong to another memory.
#
# ## The way back
#
# Two speeds and one number, FLOP per byte, tell how fast a kernel can be at most. [Back to notebook
# [[welcome.ipynb]]](welcome.ipynb#cell-id=side-roofline).
