"""Emulates the functions that a kernel may call, of numba.cuda, ``math``, NumPy and libdevice, with NumPy."""
