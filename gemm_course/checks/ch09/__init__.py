"""Notebook 09: overlap."""
