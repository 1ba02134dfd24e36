"""Holds the checkers of the notebook ``mma_sync``, on mma.sync."""
