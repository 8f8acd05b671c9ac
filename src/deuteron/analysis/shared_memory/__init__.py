"""Shared memory: how much of it ops need, from where to where, and where threads have to wait."""
