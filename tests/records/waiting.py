"""Stages whose choices, counters and sanitizer's verdicts have not been recorded yet.

They were measured at their defaults, beside cuBLAS, and checked at odd shapes. Once there is a record of one,
the tests fail until it is taken off the list.
"""

WAITING = {"async_copy", "read_ahead", "mma_ring", "persistent", "staged_store", "stream_k_fp16"}
