"""Finite controllers: policies that remember one of finitely many nodes, and nothing else."""
