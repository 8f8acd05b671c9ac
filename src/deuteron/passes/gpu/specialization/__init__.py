"""Copies of what products read given to warps of their own.

specialize_warps.py   where, and with how many slots
bundle_loads.py       which loads, and which of them share a ring
carry_positions.py    the position in each ring, through control flow
slice_loads.py        what these warps compute
partition_warps.py    the rewrite of a function
"""
