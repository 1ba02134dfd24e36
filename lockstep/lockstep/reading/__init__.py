"""Reads a kernel's source before it runs: its names, constants, dead branches and needed accesses."""
