"""Shared memory: its places, and where threads have to wait for each other.

allocate_shared.py   places everything that is in it
place_barriers.py    barriers between accesses that meet
"""
