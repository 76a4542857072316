"""The PPO baseline: a network that is trained by trial and error in simulated episodes.

`solver` is `PPO`, `settings` its hyperparameters, `encoding` what the network sees, `policy` what comes out, and
`training` the part that loads stable-baselines3 and torch, which come with the extra `ppo` (`extra`). What was trained
is arrays: it runs, is saved and is loaded without them.
"""
