"""Layouts: where the elements of a tile live, as linear maps over F2. Pure algebra; imports nothing of ours.

f2.py            vectors and matrices over F2 as Python integers
linear.py        LinearLayout: (register, lane, warp, block) or (offset, block) bits -> tile coordinates
distributed.py   the named layouts of registers: blocked, slices, mma accumulators and operands
wgmma.py         the layouts of wgmma: accumulator, operand, matrices in shared memory
shared.py        the named layouts of shared memory: row-major, swizzled, for matrix products
shared_access.py how a warp accesses shared memory: in vectors, by matrices; bank conflicts
steps.py         whether the elements of a tile in memory are at different places
conversion.py    how a tile gets from one layout into another: registers, shuffles, shared memory
"""
