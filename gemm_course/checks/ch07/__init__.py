"""Notebook 07: warp tiles."""
