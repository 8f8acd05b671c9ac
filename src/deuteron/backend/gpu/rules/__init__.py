"""Lowering rules that every GPU shares, one file per op family: `(ctx, op, *operands) -> operand(s)`.

An operand is a Fragment (a tile) or a Value (a scalar); an op with several results gives a list. Each file ends with
its RULES, by the name of the op; a target joins them with its own.
"""
