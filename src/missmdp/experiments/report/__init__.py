"""What a run found as one self-contained page."""
