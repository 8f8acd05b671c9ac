"""Analyses of tile IR that passes and lowerings ask: what is known of a value, without changing it."""
