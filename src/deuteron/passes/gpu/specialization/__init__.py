"""Warp specialisation: warps of their own (producers) copy what dots read, the others (consumers) compute.

choose_functions.py   where
specialize_warps.py   what becomes of them
bundle_loads.py       which loads, and which of them share a ring
plan_slots.py         how many slots each ring gets
carry_positions.py    the position in each ring, through control flow
slice_loads.py        what these warps compute
partition_warps.py    the rewrite of a function
"""
