"""Certificates: how far from optimal a policy can be in the true miss-MDP, given what was learned of it."""
