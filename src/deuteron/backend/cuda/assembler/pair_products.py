"""Both halves of a product of 32 bits by one instruction, where a kernel takes both.

    mul.hi.u32    %r3, %r1, %r2;               mul.wide.u32  product, %r1, %r2;
    ...                                        mov.b64       {%r4, %r3}, product;
    mul.lo.s32    %r4, %r1, %r2;               ...

IMAD.HI and IMAD.WIDE take as long, each twice as long as an IMAD. LLVM takes wide products apart, and ptxas does not
put the halves together. Philox, of which random numbers are made, takes both halves of most of its twenty products:
dropout of 2**27 elements gains 18 % on an H200.

Registers are variables: a loop that carries a factor may change it between the halves. So both are where the first one
was only if nothing in between changes a factor, touches the half that comes early then, or leaves for elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_PRODUCT = re.compile(r"\tmul\.(?:hi\.([us])32|(lo)\.[su]32) \t(%r\d+), (%r\d+), (%r\d+|-?\d+);")
_REGISTER = re.compile(r"%r\d+")
_WRITTEN = re.compile(r"\t(?:@\S+ )?[a-z]\S*\s+(%r\d+|[^,]*)")
_BRANCH = re.compile(r"\t(?:@\S+ )?(?:bra|brx)\b")
_ASSEMBLY = "// begin inline asm", "// end inline asm"


def pair_products(ptx: str) -> str:
    """The text with such pairs joined, all else as it was."""
    if "mul.hi." not in ptx:
        return ptx
    lines = ptx.split("\n")
    for high, low in _pairs(lines):
        (sign, _, upper, x, y), lower = _PRODUCT.match(lines[high]).groups(), _PRODUCT.match(lines[low])[3]
        first, last = sorted((high, low))
        if not _may_come_early(lines[first:last], upper if last == high else lower, (x, y)):
            continue
        wide = f"mul.wide.{sign}32 \tproduct, {x}, {y}; mov.b64 \t{{{lower}, {upper}}}, product;"
        lines[first], lines[last] = f"\t{{ .reg .b64 product; {wide} }}", ""
    return "\n".join(lines)


def _may_come_early(before: Iterable[str], half: str, factors: tuple[str, str]) -> bool:
    """Whether a half of a product may be computed before these lines, the first of which is the other half."""
    return not any(half in _REGISTER.findall(line) or _written(line).intersection(factors) for line in before)


def _written(line: str) -> set[str]:
    """The registers that an instruction may write: the first one, or, of several in braces, all that it names."""
    destination = _WRITTEN.match(line)
    return set(_REGISTER.findall(line if "{" in line or destination is None else destination[1]))


def _pairs(lines: list[str]) -> Iterator[tuple[int, int]]:
    """The lines of the upper and of the lower half of the same product in one block."""
    halves: dict[tuple[str, ...], list[int | None]] = {}
    is_assembly = False
    for number, line in enumerate(lines):
        if line.endswith(":") or _BRANCH.match(line) or line.strip() in _ASSEMBLY:
            halves, is_assembly = {}, line.strip() == _ASSEMBLY[0]
        product = None if is_assembly else _PRODUCT.fullmatch(line)
        if product is None:
            continue
        found = halves.setdefault(tuple(sorted(product.groups()[-2:])), [None, None])
        found[product[2] == "lo"] = number
        if None not in found:
            yield found[0], found[1]
            found[:] = None, None
