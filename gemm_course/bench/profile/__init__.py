"""Profiles of kernels by Nsight Compute: which are recorded, and how."""
