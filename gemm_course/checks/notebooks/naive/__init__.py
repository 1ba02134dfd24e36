"""Holds the checkers of the notebook ``naive``, on the naive kernel."""
