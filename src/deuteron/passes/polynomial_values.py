"""Polynomials as ops.

emit(b, 128 * pid + k, i32)        arith.addi(arith.muli(%c128, %pid), %k)
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from deuteron.analysis.addresses.polynomial import Polynomial
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp


def emit(b: Builder, polynomial: Polynomial, type: Attribute) -> SSAValue:
    """Ops that compute a polynomial in a type."""
    total = None
    for atoms, factor in polynomial:
        term = None if factor == 1 and atoms else b.constant(factor, type)
        for atom in atoms:
            value = atom.value if atom.value.type == type else b.value(ExtSIOp(atom.value, type))
            term = value if term is None else b.value(arith.MuliOp(term, value))
        total = term if total is None else b.value(arith.AddiOp(total, term))
    return total if total is not None else b.constant(0, type)
