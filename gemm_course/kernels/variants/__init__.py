"""Kernels beside the ladder, which notebooks and exercises look at."""
