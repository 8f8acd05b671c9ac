"""How many registers the values of a kernel fill at once, estimated from its PTX.

    ld.global.b32  %r1, [%rd1];
    ld.global.b64  %rd2, [%rd1+8];      %r1, %rd1 and %rd2 live: 5 registers
    ...

A value lives from its first to its last place in the text. That leaves out what a loop carries back, and ptxas orders
instructions anew, so that it is an estimate: the kernels of `make bench` have up to 248, those of linear attention
with tiles of 64x64 in one warp 1,200 to 2,000, and a loop unrolled into 20,000 instructions 49.
"""

from __future__ import annotations

import re
from itertools import accumulate

_DECLARED = re.compile(r"\.reg \.[bfsu](\d+)\s+%([a-z]+)<")
_VALUE = re.compile(r"%[a-z]+\d+")
_WORD_BITS = 32


def live_registers(ptx: str) -> int:
    """Of one thread, 32 bits each; predicates have registers of their own."""
    words = {prefix: -(-int(bits) // _WORD_BITS) for bits, prefix in _DECLARED.findall(ptx)}
    values = _VALUE.findall(ptx)
    places = range(len(values))
    last = dict(zip(values, places, strict=True))
    first = dict(zip(reversed(values), reversed(places), strict=True))
    changes = [0] * (len(values) + 1)
    for value, place in first.items():
        size = words.get(value.rstrip("0123456789")[1:], 0)
        changes[place] += size
        changes[last[value]] -= size
    return max(accumulate(changes))
