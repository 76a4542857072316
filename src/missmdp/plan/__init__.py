"""Planning: from a model to a policy.

`solving` is the contract of solvers and what they return; `sarsop`, `online`, `pomcp` and `ppo` are the solvers, and
`stopping` ends them early. `trace` has the bounds of a search over time.

`reactive` finds policies that act on the last observation alone, with which other searches begin.

`alpha` is a policy by α-vectors, `value_function` its arithmetic, `agent` what is deployed of it; `finite` has
controllers, which track no belief. `acting` is about acting in another model than the policy's own; `load` reads saved
policies of any kind.

`explain` says why a policy does what it does, `graph`, `graph_layout` and `pictures` draw it, and `state_text` has
states in words.
"""
