"""Which arguments of the kernel a pointer, a tile of pointers or a descriptor may point into.

    points_to(%p)   %p an argument, or tt.addptr, tt.splat, arith.select, tt.make_tensor_descriptor ... of one    {%p}
                    what a loop carries, and a branch gives: of all that it may be       src, dst = dst, src:   {%a, %b}
                    the null pointer, and what a path has for one that it has not (UNREAD)                      {}
                    null and an offset, whichever way it got to it: it may be any address                       unknown
                    loaded, made of an integer, given by what is not known to compute it                        unknown

What is unknown may be anything: it shares every argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue

from deuteron.ir.effects import is_pure
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.reached import reached
from deuteron.ir.tt.convert import UNREAD, IntToPtrOp
from deuteron.ir.tt.descriptor import TensorDescType
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.types import is_pointer


@dataclass(frozen=True)
class Targets:
    """The arguments that something may point into; without `is_known`, they and anything else."""

    arguments: frozenset[SSAValue] = frozenset()
    is_known: bool = True

    def __or__(self, other: Targets) -> Targets:
        return Targets(self.arguments | other.arguments, self.is_known and other.is_known)

    def __bool__(self) -> bool:
        return bool(self.arguments) or not self.is_known

    def shares(self, other: Targets) -> bool:
        """Whether both may point into the same argument. Whether different ones are apart, `apart.py` says."""
        if not self or not other:
            return False
        return not (self.is_known and other.is_known) or bool(self.arguments & other.arguments)


UNKNOWN = Targets(is_known=False)


def points_to(pointer: SSAValue | None) -> Targets:
    """Where a pointer or descriptor may point; None: anywhere."""
    if pointer is None:
        return UNKNOWN
    arguments = set()
    for current, is_moved in reached([(pointer, False)], _sources):
        if is_argument(current):
            arguments.add(current)
        elif not (address_sources(current) or _is_unread(current) or (_is_null(current) and not is_moved)):
            return UNKNOWN
    return Targets(frozenset(arguments))


def _sources(place: tuple[SSAValue, bool]) -> list[tuple[SSAValue, bool]]:
    """With whether they have been moved."""
    current, is_moved = place
    return [(source, is_moved or _moves(current)) for source in address_sources(current)]


def is_argument(value: SSAValue | None) -> bool:
    """Whether it is an argument of a kernel: those of other functions may be anything."""
    func = value.block.parent_op() if isinstance(value, BlockArgument) else None
    return isinstance(func, FuncOp) and not func.is_private


def _moves(value: SSAValue) -> bool:
    """Whether it is another address than what it is computed from: null and an offset may be any address."""
    return isinstance(value.owner, AddPtrOp)


def _is_unread(value: SSAValue) -> bool:
    """Whether it stands for a pointer on a path that has none."""
    return isinstance(value.owner, IntToPtrOp) and UNREAD in value.owner.attributes


def _is_null(value: SSAValue) -> bool:
    """Whether it is made of the constant 0: nobody reads or writes through it."""
    if not isinstance(value.owner, IntToPtrOp) or not isinstance(value.owner.src.owner, ConstantOp):
        return False
    constant = value.owner.src.owner.value
    is_tile = isinstance(constant, DenseIntOrFPElementsAttr)
    return constant.is_splat() and constant.get_values()[0] == 0 if is_tile else constant.value.data == 0


def address_sources(value: SSAValue) -> Sequence[SSAValue]:
    """The values one of which this one is, or is computed from by moving, repeating and reshaping; none: not known."""
    if not _computes(value):
        return forwarded_from(value)
    return [operand for operand in value.op.operands if is_address(operand.type)]


def _computes(value: SSAValue) -> bool:
    """Whether an op only computes addresses of addresses."""
    if not isinstance(value, OpResult) or not is_address(value.type):
        return False
    return not value.op.regions and is_pure(value.op)


def is_address(type: Attribute) -> bool:
    """Whether values of a type are pointers, tiles of them, or descriptors."""
    return is_pointer(type) or isinstance(type, TensorDescType)
