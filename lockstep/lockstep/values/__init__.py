"""Numbers that differ from lane to lane, the dtypes that Numba gives them, and the threads they belong to."""
