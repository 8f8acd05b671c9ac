"""A conversion through shared memory, in parts where the whole tile would take too much of it.

    128x128 f32, 64 KB      two parts of 32 KB, one after the other in the same place

A bit of the tile's index that only a register bit of the source decides, and only a register bit of the result, numbers
parts: each has the registers of which that bit is 0, or 1, on both sides. Bits that make vectors are not taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from deuteron.layout.conversion import plan_shared
from deuteron.layout.linear import REGISTER, LinearLayout, log2

# What every GPU gives a CTA without being asked for more, so that several CTAs fit. Not measured.
MAX_BYTES = 48 * 1024


@dataclass(frozen=True)
class SharedConversion:
    """The layouts of one part and of its place in shared memory; which register bits number the parts."""

    src: LinearLayout
    dst: LinearLayout
    scratch: LinearLayout
    src_bits: tuple[int, ...]
    dst_bits: tuple[int, ...]

    @property
    def num_parts(self) -> int:
        return 1 << len(self.src_bits)

    @property
    def num_elements(self) -> int:
        """Elements of one part."""
        return 1 << self.src.total_out_bits

    def src_registers(self, part: int) -> list[int]:
        """The source's registers that are a part, in the order of the part's layout."""
        return _registers(self.src.in_bits(REGISTER), self.src_bits, part)

    def dst_registers(self, part: int) -> list[int]:
        return _registers(self.dst.in_bits(REGISTER), self.dst_bits, part)


@lru_cache(maxsize=1024)
def plan_conversion(src: LinearLayout, dst: LinearLayout, element_bits: int) -> SharedConversion:
    """As few parts as keep one below MAX_BYTES, where that is possible."""
    whole = plan_shared(src, dst, element_bits)
    vector = whole.scratch.columns()[: log2(whole.vector_elements)]
    free = [bit for bit in _register_bits(src) if bit in _register_bits(dst) and 1 << bit not in vector]
    size, taken = (element_bits << src.total_out_bits) // 8, []
    while size > MAX_BYTES and free:
        taken.append(free.pop())
        size //= 2
    if not taken:
        return SharedConversion(src, dst, whole.scratch, (), ())
    places = [tuple(layout.columns(REGISTER).index(1 << bit) for bit in taken) for layout in (src, dst)]
    parts = [_without(layout, taken) for layout in (src, dst)]
    return SharedConversion(*parts, plan_shared(*parts, element_bits).scratch, *places)


def _register_bits(layout: LinearLayout) -> list[int]:
    """The bits of the row-major index that one register bit decides alone, and nothing else."""
    columns = layout.columns()
    return [
        bit
        for bit in range(layout.total_out_bits)
        if 1 << bit in layout.columns(REGISTER) and sum(column >> bit & 1 for column in columns) == 1
    ]


def _without(layout: LinearLayout, bits: Sequence[int]) -> LinearLayout:
    """The layout, over row-major indices, of the elements whose index has 0 in those bits."""
    kept = [bit for bit in range(layout.total_out_bits) if bit not in bits]
    bases = {}
    for name in layout.in_names:
        columns = [column for column in layout.columns(name) if not any(column == 1 << bit for bit in bits)]
        bases[name] = [(sum((column >> bit & 1) << index for index, bit in enumerate(kept)),) for column in columns]
    return LinearLayout.make(bases, {"dim0": 1 << len(kept)})


def _registers(num_bits: int, part_bits: Sequence[int], part: int) -> list[int]:
    """All registers with the bits of `part` in the places `part_bits`, counted through the other bits."""
    rest = [bit for bit in range(num_bits + len(part_bits)) if bit not in part_bits]
    fixed = sum((part >> index & 1) << bit for index, bit in enumerate(part_bits))
    return [fixed | sum((n >> index & 1) << bit for index, bit in enumerate(rest)) for n in range(1 << num_bits)]
