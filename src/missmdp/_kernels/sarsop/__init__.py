"""Kernels of the point-based solver: one file per step, arrays in, arrays out."""
