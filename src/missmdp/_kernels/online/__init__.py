"""Kernels of the search with bounds: what an expansion does, and where the search goes next."""
