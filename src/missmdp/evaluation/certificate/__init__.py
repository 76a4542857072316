"""Certificates: how far from optimal a policy can be in the true miss-MDP, given what was learned of it.

- `certify`: computes a certificate; `certificate`: what it says and what it rests on
- `alternatives`: the bounds to choose from, made of `uniform` (any policy) and `controller_value` (the policy graph,
  with equal states merged by `state_aggregation`)
- `learned`: what certificates need from a learner
- `plan_data`: how much data a certificate of a given size takes
- `value_interval`: an interval for a policy's value, without a guarantee
"""
