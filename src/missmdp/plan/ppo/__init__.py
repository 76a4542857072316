"""The PPO baseline: a network that is trained by trial and error in simulated episodes.

Training needs stable-baselines3 and torch, which come with the extra `ppo`; what was trained is arrays, and runs, is
saved and is loaded without them.
"""
