"""Speed, measured as ratios within one run: machines differ and are noisy, ratios less so."""
