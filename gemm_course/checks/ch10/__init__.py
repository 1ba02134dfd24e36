"""Notebook 10: mma.sync."""
