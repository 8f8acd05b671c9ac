"""Builds tile IR: inserts ops at a point and stamps each with the location and the Python name that are current.

xDSL leaves locations unknown; every op of ours goes through `Builder.insert`, the one place that fills them in.
Passes replace ops through xDSL's rewriter; `passes.rewrite` gives the new ops the location of the op they replace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.ir.arith import constant, has_constants
from deuteron.ir.location import is_unknown
from deuteron.ir.tt.convert import FpToFpOp, RoundingMode
from deuteron.ir.types import element_type_of, f32, with_element_type

OpT = TypeVar("OpT", bound=Operation)

# Of a kernel. They take 3 KB and 80 us each, so that one is refused after some 5 s, and what compiles them in the end
# more than twice the time for twice as many: 48,000 elementwise ops took 16 s on the CPU, 180,000 816 s, and Triton 3.9
# more than 200 s for the former.
MOST_OPS = 64_000


class Builder:
    """Inserts ops at `insertion_point`; new ops take `location`."""

    def __init__(self, insertion_point: InsertPoint, location: LocationAttr = UNKNOWN_LOC):
        self.insertion_point = insertion_point
        self.location = location
        self.num_inserted = 0

    @staticmethod
    def at_end(block: Block, location: LocationAttr = UNKNOWN_LOC) -> Builder:
        return Builder(InsertPoint.at_end(block), location)

    @staticmethod
    def before(op: Operation) -> Builder:
        return Builder(InsertPoint.before(op), op.location)

    @staticmethod
    def after(op: Operation) -> Builder:
        return Builder(InsertPoint.after(op), op.location)

    def insert(self, op: OpT) -> OpT:
        """Insert an op (with the ops in its regions) that has no parent yet."""
        self._stamp(op)
        self.num_inserted += 1
        point = self.insertion_point
        if point.insert_before is None:
            point.block.add_op(op)
        else:
            point.block.insert_op_before(op, point.insert_before)
        return op

    def _stamp(self, op: Operation) -> None:
        """What has a location in its regions was inserted there, with all that is in it: branches in branches would be
        walked by the square of their depth.
        """
        pending = [op]
        while pending:
            new = pending.pop()
            if is_unknown(new.location):
                new.location = self.location
            for block in (block for region in new.regions for block in region.blocks):
                for argument in block.args:
                    if is_unknown(argument.location):
                        argument.location = self.location
                pending += [inner for inner in block.ops if is_unknown(inner.location)]

    def value(self, op: Operation) -> SSAValue:
        """Insert an op and return its only result."""
        return self.insert(op).results[0]

    def constant(self, value: bool | int | float, type: Attribute) -> SSAValue:
        """A number everywhere; converted from f32 where the type has no constants."""
        if has_constants(type):
            return self.value(constant(value, type))
        wide = self.constant(value, with_element_type(type, f32))
        return self.value(FpToFpOp(wide, element_type_of(type), RoundingMode.RTNE))

    @contextmanager
    def located(self, location: LocationAttr) -> Iterator[None]:
        """Within, new ops take this location."""
        outer, self.location = self.location, location
        try:
            yield
        finally:
            self.location = outer

    @contextmanager
    def at(self, block: Block) -> Iterator[None]:
        """Within, insert at the end of a block."""
        outer, self.insertion_point = self.insertion_point, InsertPoint.at_end(block)
        try:
            yield
        finally:
            self.insertion_point = outer
