"""Emulates, with NumPy, the functions of numba.cuda, ``math``, NumPy and libdevice that a kernel may call."""
