"""Which rewrites are done where, by a seed.

drawn(3, launch.passes, ["reorder", "split_loop"])     {17: [reorder, split_loop], 29: [reorder]}
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equal_ir import indices, loops, ops
from equal_ir.launches import Rewrite

REWRITES: dict[str, Rewrite] = {
    rewrite.__name__: rewrite
    for rewrite in (
        ops.reorder,
        ops.duplicate,
        ops.swap_operands,
        ops.choose_same,
        ops.wrap_in_branch,
        loops.rotate_carried,
        loops.carry_unused,
        loops.carry_twice,
        loops.carry_invariant,
        indices.carry_index,
        indices.carry_computed,
        loops.split_loop,
        loops.peel_first,
        loops.nest_loop,
        indices.count_from_zero,
        indices.widen_index,
    )
}


def drawn(seed: int, passes: Sequence[str], names: Sequence[str] = tuple(REWRITES)) -> dict[int, list[Rewrite]]:
    """One to three rewrites after each of one to four passes; -1 is before the first."""
    rng = np.random.default_rng(seed)
    places = rng.choice(np.arange(-1, len(passes)), size=int(rng.integers(1, 5)), replace=False)
    return {
        int(place): [REWRITES[name] for name in rng.choice(names, size=int(rng.integers(1, 4)))] for place in places
    }
