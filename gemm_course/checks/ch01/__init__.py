"""Notebook 01: the naive kernel."""
