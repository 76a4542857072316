"""What a log itself says of policies: of the one that made it, and of others.

- `decisions`: a log's decisions and rewards; `logged`: what the policy that made the log earned
- `value`: what another policy would have earned; `result`: the answer in numbers and words
- `target`: with which probabilities a policy does what was done; `behaviour`, `contexts`, `predictors`: the same for
  the policy that made the log, learned from it
- `weights`, `estimators`: importance weights and what is made of them; `doubts`: whether that can be believed
- `fitted`, `modelled`: the action values that the doubly robust estimate starts from
"""
