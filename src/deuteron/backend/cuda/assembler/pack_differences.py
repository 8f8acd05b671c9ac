"""Differences of 16-bit floats as fused multiply-adds, of which ptxas makes one instruction for two.

    sub.f16  %rs3, %rs1, %rs2;        fma.rn.f16  %rs3, %rs2, -1, %rs1;

ptxas packs sums, products and multiply-adds of halves that lie beside each other, and takes differences apart. Both
forms round x - y once, and have the same zeros, infinities and NaN.
"""

from __future__ import annotations

import re

_DIFFERENCE = re.compile(r"^\tsub(?:\.rn)?\.(b?f16) \t(%rs\d+), (%rs\d+), (%rs\d+);$", re.MULTILINE)
_MINUS_ONE = {"f16": "0xBC00", "bf16": "0xBF80"}


def pack_differences(ptx: str) -> str:
    """The text with such differences written anew, all else as it was."""
    return _DIFFERENCE.sub(_multiply_add, ptx)


def _multiply_add(difference: re.Match) -> str:
    type, result, x, y = difference.groups()
    minus_one = f".reg .b16 minus_one; mov.b16 minus_one, {_MINUS_ONE[type]};"
    return f"\t{{ {minus_one} fma.rn.{type} \t{result}, {y}, minus_one, {x}; }}"
