"""Finds the types of a kernel's variables as Numba does, and translates the source for the machine."""
