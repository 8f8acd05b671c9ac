"""How `group_programs.py` makes one program of several that are neighbours.

lift_programs.py    they run in step: what varies between them gets one more dimension
widen_programs.py   a dimension of their tiles goes on from program to program: it becomes longer
program_builder.py  what both build alike: branches, loops, accesses under masks
"""
