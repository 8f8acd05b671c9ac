"""A seed -> a program. Statements of many families are drawn, each from what is in scope; what is not used is stored.

    case = generate(7)
    print(case.source)

Which families a program has, and how often, is drawn anew for each program, so that rare ones meet.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from tests.fuzz.case import Case
from tests.fuzz.generator import (  # noqa: F401 (each adds its statements to FAMILIES)
    addresses,
    any_descriptors,
    any_dots,
    assembly,
    atomics,
    block_pointers,
    calls,
    control,
    descriptors,
    dot_addresses,
    dot_chains,
    dot_graphs,
    dot_loops,
    dots,
    elementwise,
    far_loops,
    few_bits,
    flat_loops,
    in_order,
    indexing,
    indirect,
    iterations,
    large,
    locks,
    maps,
    memory,
    memory_state,
    needed_rows,
    neighbours,
    promises,
    promotion,
    reductions,
    rounds,
    scores,
    shapes,
    sorting,
    tables,
    tails,
    tiles_in_order,
    tuples,
    watched,
)
from tests.fuzz.generator.builder import FAMILIES, Builder


def generate(
    seed: int,
    families: Collection[str] = (),
    without: Collection[str] = (),
    lengths: Sequence[int] = (3, 6, 10, 15, 25),
) -> Case:
    """`families`: which a program has much of; `without`: which it has none of; `lengths`: its statements."""
    rng = random.Random(seed)
    weights = {name: rng.choice((0, 0.3, 1, 1, 3)) * (0.3 if families else 1) for name in FAMILIES}
    weights |= {**dict.fromkeys(families, 8), **dict.fromkeys(without, 0)}
    builder = Builder(rng, weights, memory.load)
    memory.begin(builder)
    for _ in range(rng.choice(lengths)):
        builder.statement()
    memory.store_unused(builder)
    return Case(seed, builder.source(), tuple(builder.arguments), builder.grid, _options(rng, builder))


def _options(rng: random.Random, builder: Builder) -> dict:
    options = {"num_warps": rng.choice((1, 2, 4, 4, 4, 8, 8, 16)), "num_stages": rng.choice((1, 2, 3, 4))}
    if rng.random() < 0.08:
        options["num_ctas"] = rng.choice((2, 4))
    if rng.random() < 0.5:
        options["enable_fp_fusion"] = False
    if rng.random() < 0.08:
        options["maxnreg"] = rng.choice((32, 64, 128, 255))
    if rng.random() < 0.1:
        options |= {"debug": True, "sanitize_overflow": False}
    return options
