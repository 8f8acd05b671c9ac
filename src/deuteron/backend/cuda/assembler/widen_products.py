"""Takes the 32-bit products that ptxas 13.4 and 13.5 get wrong through 64 bits.

    or.b32        %r3, %r1, 1;                 or.b32        %r3, %r1, 1;
    or.b32        %r4, %r2, 1;                 or.b32        %r4, %r2, 1;
    mul.lo.s32    %r5, %r3, %r4;               mul.wide.u32  %product, %r3, %r4;
                                               cvt.u32.u64   %r5, %product;

Where the lowest bits of both factors are known, down to and with the lowest one, these assemblers take the bits of the
product that follow from them for zeros: `(a | 1) * (b | 1) & 1` becomes 0. Seen on an H200 for `mul.lo` and `mad.lo` of
two registers of 32 bits, from 13.4.59 to 13.5.37, not with 13.3.73; products of 16 and 64 bits, wide ones, and those by
a number are right. Drivers that have these assemblers compile PTX too, so the pattern is in no PTX of ours, whichever
ptxas is there. Of a guarded product of inline assembly only the result is: no block has a guard.
"""

from __future__ import annotations

import re

from deuteron.backend.cuda.assembler.known_bits import ANYTHING, known_bits

_PRODUCT = re.compile(r"(@!?%?\w+\s+)?(?:mul|mad)\.lo\.[su]32\s+(%\w+), (%\w+), (%\w+)(?:, (%\w+|-?\d+))?;")


def widen_products(ptx: str) -> str:
    """The text with such products through 64 bits, all else as it was."""
    products = [match.groups()[1:] for match in _PRODUCT.finditer(ptx)]
    if not products:
        return ptx
    factors = _Factors(ptx, products)

    def widened(match: re.Match[str]) -> str:
        guard, result, a, b, addend = match.groups(default="")
        if not (factors.may_be_known(a) and factors.may_be_known(b)):
            return match[0]
        lines = [f"mul.wide.u32 \tproduct, {a}, {b};", f"{guard}cvt.u32.u64 \t{result}, product;"]
        if addend:
            lines[1:] = ["cvt.u32.u64 \tlow, product;", f"{guard}add.s32 \t{result}, low, {addend};"]
        return "{ .reg .b64 product; .reg .b32 low; " + " ".join(lines) + " }"

    return _PRODUCT.sub(widened, ptx)


class _Factors:
    """Of which registers the lowest bits may be known, or those of one of their factors: `(x * a) * b` is as well
    assembled as `x * (a * b)`.
    """

    def __init__(self, ptx: str, products: list[tuple[str | None, ...]]):
        self._factors: dict[str, set[str]] = {}
        for result, a, b, addend in products:
            self._factors.setdefault(result, set()).update(() if addend else (a, b))
        self._known = known_bits(ptx, {factor for _, a, b, _ in products for factor in (a, b)})

    def may_be_known(self, register: str) -> bool:
        left, seen = [register], set()
        while left:
            name = left.pop()
            if self._known.get(name, ANYTHING).lowest_one is not None:
                return True
            seen.add(name)
            left.extend(self._factors.get(name, set()) - seen)
        return False
