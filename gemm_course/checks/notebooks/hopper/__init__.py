"""Holds the checkers of the notebook ``hopper``, on Hopper."""
