"""POMCP: planning while acting, by Monte Carlo tree search."""
