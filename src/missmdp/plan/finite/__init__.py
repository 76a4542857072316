"""Finite controllers: `controller` is the policy and its agents, `plan` the nodes as arrays."""
