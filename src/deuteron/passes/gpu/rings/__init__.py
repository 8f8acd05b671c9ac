"""Rings of buffers in shared memory, which loads are copied into ahead of what reads them.

ring.py             slots and positions; fill, wait, release
buffered_loads.py   which loads can be copied, and into which buffers

Their users: pipelining/, where the warps that read fill as well, and specialization/, where others do.
"""
