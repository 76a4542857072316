"""SARSOP-like planning with bounds on both sides; one file per step."""
