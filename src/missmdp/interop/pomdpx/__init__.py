"""Models (`.pomdpx`) and policies (`.policyx`) in the XML of the APPL toolkit.

- `positioned_xml`: XML whose elements know their line and column
- `variables`, `tables`, `reader`: a model from its variables and conditional tables
- `factorise`, `writer`: a model as observed and hidden variables, written so that products give back the same floats
- `policyx`: α-vectors
"""
