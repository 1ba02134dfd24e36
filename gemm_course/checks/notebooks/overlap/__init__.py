"""Holds the checkers of the notebook ``overlap``, on overlap."""
