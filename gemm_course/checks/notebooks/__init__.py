"""Holds the checkers, a folder for each notebook of the road: its exercises and those of its side trips."""
