"""Notebook 03: tiles in shared memory."""
