"""The shape of most instructions: a NumPy function of the sources, thread by thread.

return elementwise(d, np.add, "s32", "s32", "s32")       destination type, source types, in operand order
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.machine.group import Group
from deuteron.ptx.syntax import Register


def elementwise(d: Decoding, function: Callable[..., np.ndarray], result: str, *types: str) -> Callable[[Group], None]:
    """`run` for destination = function(sources)."""
    write = d.destination(0, result)
    positions = range(1, len(types) + 1)
    has_register = any(isinstance(d.operand(p), Register) for p in positions)
    read = d.scalar_or_source if has_register else d.source
    sources = [read(p, type) for p, type in zip(positions, types, strict=True)]
    return _closure(write, function, sources)


def _closure(write, function, sources) -> Callable[[Group], None]:
    if len(sources) == 1:
        (a,) = sources
        return lambda group: write(group, function(a(group)))
    if len(sources) == 2:
        a, b = sources
        return lambda group: write(group, function(a(group), b(group)))
    return lambda group: write(group, function(*[source(group) for source in sources]))
