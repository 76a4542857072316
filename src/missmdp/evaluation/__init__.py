"""What policies and learned missingness functions are worth.

- `value`: a policy's value by simulation; `compare`: several policies on the same episodes, and the common scale
- `simulation`, `stopping`: the episodes, and how many of them
- `sensitivity`, `perturbed`: values in worlds that differ a little from the model
- `distance`: total variation between missingness functions
- `likelihood`, `heldout`: how probable a log is, and which learner predicts new observations best
- `offpolicy`: what a log itself says of policies
- `certificate`: guaranteed bounds on how far from optimal a policy is
"""
