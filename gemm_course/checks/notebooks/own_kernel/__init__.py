"""Holds the checkers of the notebook ``own_kernel``, on a kernel of one's own."""
