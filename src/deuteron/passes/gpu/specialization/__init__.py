"""Copies of what products read given to warps of their own.

specialize_warps.py   where, and with how many buffers
ring_buffers.py       which loads
channels.py           the buffers that take turns, and their barriers
slice_loads.py        what these warps compute
partition_warps.py    the rewrite of a function
"""
