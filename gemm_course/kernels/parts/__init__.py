"""Holds what the kernels of several stages share, and defines what a stage is."""
