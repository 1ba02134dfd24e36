"""Notebook 02: coalesced access."""
