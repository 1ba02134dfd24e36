"""Holds a kernel's values: global, shared and local memory, records in them, atomics on them."""
