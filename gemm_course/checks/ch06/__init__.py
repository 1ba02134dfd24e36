"""Notebook 06: four floats at a time."""
