"""What a kernel may call: functions of numba.cuda, ``math``, NumPy and libdevice, as NumPy computes them."""
