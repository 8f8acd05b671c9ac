"""Lowering rules, one file per op family.

def addi(ctx, op, x, y):                                what is computed lane by lane: fragments in, a fragment out
    return algebra.add(ctx.emitter, x, y)               integer floating convert memory program, merged in table.py

reduce.py region.py scan.py matrix.py                   what has loops of its own
scalar.py lanes.py atomic.py debug.py                   what has an effect and is done where it stands
control_flow.py                                         the items of a region in order; loops and branches
"""
