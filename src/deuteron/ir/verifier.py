"""What must hold at a stage, beyond what each op verifies of itself.

At every stage of tile IR: one module of `tt.func`s, each tile's extents powers of two and at most 2^20 elements,
only ops of the stage, every location known.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from deuteron.errors import InternalError
from deuteron.ir.location import from_attribute, is_unknown
from deuteron.ir.types import num_elements_of, shape_of

MAX_TILE_ELEMENTS = 1 << 20
TTIR_DIALECTS = frozenset({"builtin", "tt", "ttg", "arith", "math", "scf"})


def verify_ttir(module: ModuleOp, after: str) -> None:
    """Raise InternalError, naming the pass or frontend step `after` which the module broke."""
    try:
        module.verify()
        for op in module.walk():
            _check_op(op)
    except VerifyException as error:
        raise InternalError(f"tile IR does not verify after {after}: {error}") from error


def _check_op(op: Operation) -> None:
    location, call_chain = from_attribute(op.location)
    if op.name.split(".")[0] not in TTIR_DIALECTS:
        raise InternalError(f"{op.name} does not belong into ttir", location, call_chain)
    if is_unknown(op.location) and not isinstance(op, ModuleOp):
        raise InternalError(f"{op.name} has no location")
    for value in (*op.operands, *op.results):
        check_tile_shape(value.type)


def check_tile_shape(type: Attribute) -> None:
    """Raise VerifyException unless every extent is a power of two and the tile is not too large."""
    shape = shape_of(type)
    if any(extent < 1 or extent & (extent - 1) for extent in shape):
        raise VerifyException(f"extents must be powers of two, got {type}")
    if num_elements_of(type) > MAX_TILE_ELEMENTS:
        raise VerifyException(f"a tile has at most {MAX_TILE_ELEMENTS} elements, got {type}")
