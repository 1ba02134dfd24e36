"""Records Nsight Compute's hardware counters for any list of kernels, each launched once.

`record` starts Nsight Compute on a process that launches the kernels, and pairs each launch with its
counters.
"""
