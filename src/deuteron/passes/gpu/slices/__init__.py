"""Tiles of which a thread holds very many elements are computed in slices, by loops.

slice_axes.py    which dimension of an op's operands is cut where one of its result is
groups.py        which ops are computed slice by slice together
slice_tiles.py   the pass
"""
