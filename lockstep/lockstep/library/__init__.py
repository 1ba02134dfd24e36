"""The functions that a kernel may call: those of numba.cuda, ``math``, NumPy and libdevice, done by NumPy."""
