"""Holds numbers that differ from lane to lane, with the dtypes that Numba gives them, and their threads."""
