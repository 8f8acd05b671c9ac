"""Rules of the pass `fold`, one file per op family; each is `(op) -> values for its results, or None`.

    @FOLDS.on(AddPtrOp)
    def fold_addptr(op):
        return [op.ptr] if constant_value(op.offset) == 0 else None

A rule inserts new ops before the op where it needs any; where there is nothing to fold it gives None. It never erases
the op.
"""
