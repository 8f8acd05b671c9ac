"""The interpreter with every licence that the language gives taken at random: stochastic arithmetic.

    rules = perturbed_rules(np.random.default_rng(1), Licence(fuses=True))

The interpreter defines one result. Others are as good: sums in another order, a product that is fused with a sum, the
last bits of `exp`, what a masked lane loads, which of two lanes' stores wins, the order of the programs. A run with
these rules gives one of the other results. What differs between some such runs is not determined, and by how much it
differs says how precisely a float is; what does not differ has to be exact.

A perturbation is as large as the licence, in a random direction, so that the spread of a few runs is of the size of the
error that is allowed. Where an operation is exact (no bit was rounded off) nothing is perturbed.

noise.py      what a run may do, random numbers of the size of an error, random bits where nothing is said
integers.py   quotients and shifts, where MLIR leaves open what they are
floats.py     products, sums, functions, extremes, conversions
memory.py     masked lanes, stores and atomics to one address, which NaN is stored
along_axis.py reductions and scans in another order
dots.py       matrix products of partial sums in any order
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.interpreter.rules import RULES
from deuteron.ir.rule_table import Rule
from tests.fuzz.perturb.along_axis import AlongAxis
from tests.fuzz.perturb.dots import Dots
from tests.fuzz.perturb.floats import Floats
from tests.fuzz.perturb.integers import Integers
from tests.fuzz.perturb.memory import Memory
from tests.fuzz.perturb.noise import Licence, Noise

__all__ = ["Licence", "perturbed_rules"]


def perturbed_rules(rng: np.random.Generator, licence: Licence) -> dict[str, Callable]:
    """The rules of one run."""
    table: dict[str, Rule] = dict(RULES)
    noise = Noise(rng, licence)
    for topic in (Integers, Floats, Memory, AlongAxis, Dots):
        for op_class, wrap in topic(noise).wrappers().items():
            table[op_class.name] = wrap(table[op_class.name])
    return table
