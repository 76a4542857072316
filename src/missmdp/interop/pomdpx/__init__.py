"""Models (`.pomdpx`) and policies (`.policyx`) in the XML of the APPL toolkit.

- `positioned_xml`: XML whose elements know their line and column
- `variables`, `tables`, `document`: a file's variables and conditional tables
- `reader`: reads a POMDP, multiplied out; `by_features`, `shown`: read a miss-MDP, feature by feature
- `factorise`, `writer`: write a model as observed and hidden variables, so that products give back the same floats
- `feature_writer`, `sums`: write a miss-MDP feature by feature; `lines`: what both writers share
- `policyx`: α-vectors
"""
