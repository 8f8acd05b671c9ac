"""Tiles of which a thread holds very many elements are computed in slices, by loops.

slice_axes.py       which dimension of an op's operands is cut where one of its result is
groups.py           which ops are computed slice by slice together
block_groups.py     the groups of a block, and which of them saves most
live_tiles.py       how many registers tiles fill at once
loop_dots.py        loops along K of dots that are many instructions
shared_slices.py    slices of what was loaded from shared memory
carry_in_memory.py  what a loop carries stays in memory of each thread
give_in_memory.py   what a branch gives stays there, too
move_accesses.py    tiles are stored there where they are made, and loaded where they are needed
rolled_loops.py     loops that stay loops
slice_tiles.py      the pass
"""
