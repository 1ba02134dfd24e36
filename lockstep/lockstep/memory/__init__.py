"""Where a kernel's values are: global, shared and local memory, records in them, atomics on them."""
