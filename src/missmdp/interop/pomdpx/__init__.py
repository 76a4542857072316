"""Models (`.pomdpx`) and policies (`.policyx`) in the XML of the APPL toolkit.

- `positioned_xml`: XML whose elements know their line and column
- `variables`, `tables`, `document`: a file's variables and conditional tables
- `reader`: a POMDP, multiplied out; `by_features`, `shown`: a miss-MDP, feature by feature
- `factorise`, `writer`: a model as observed and hidden variables, written so that products give back the same floats
- `feature_writer`, `sums`: a miss-MDP feature by feature; `lines`: what both writers write
- `policyx`: α-vectors
"""
