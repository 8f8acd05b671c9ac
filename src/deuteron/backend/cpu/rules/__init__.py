"""Lowering rules, one file per op family: `(ctx, op, *fragments) -> fragment`, in tables merged in `table.py`."""
