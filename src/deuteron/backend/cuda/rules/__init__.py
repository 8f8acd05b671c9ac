"""Lowering rules, one file per op family: `(ctx, op, *operands) -> operand(s)`, in tables merged in `table.py`.

An operand is a Fragment (a tile) or a Value (a scalar); an op with several results gives a list.
"""
