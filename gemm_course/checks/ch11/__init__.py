"""Notebook 11: Hopper."""
