"""Kernels of tree search on generative models, a file for each idea."""
