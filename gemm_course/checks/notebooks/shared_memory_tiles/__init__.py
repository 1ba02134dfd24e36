"""Holds the checkers of the notebook ``shared_memory_tiles``, on tiles in shared memory."""
