"""Rules of the pass `fold`, one file per op family; each is `(op) -> values for its results, or None`."""
