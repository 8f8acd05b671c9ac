"""Rewrites accesses through tensor descriptors to accesses through pointers, with masks for what is out of bounds.

    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %s, %1)       %q = %p + %i * %s + %j
    %x = "tt.descriptor_load"(%d, %i, %j)                 ->   %x = "tt.load"(%q + rows * %s + columns,
                                                         %i + rows < max(%m, 0) & %j + columns < max(%n, 0), 0.0)

Addresses and masks are those of block_addresses.py. Reductions become relaxed atomics. Where the target has TMA, what
that can do stays (see analysis/addresses); a remark at the others says why it cannot. What is made in a branch
is marked as such, before anything is moved: its tensor map need not be one.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from deuteron.analysis.addresses.tma_accesses import tma_obstacles
from deuteron.errors import CompilationError
from deuteron.ir.around import ops_around
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.hints import DIVISIBILITY, promise
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops
from deuteron.ir.remarks import Kind, remark_place
from deuteron.ir.tt.atomic import AtomicRMWOp, MemorySemantic
from deuteron.ir.tt.descriptor import (
    CONDITIONAL,
    BlockAccess,
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceKind,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    MakeTensorDescriptorOp,
    RowAccess,
    atomic_kind,
    descriptor_of,
)
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import shape_of
from deuteron.passes.rewrite import erase, replace
from deuteron.passes.tile.block_addresses import (
    at_least_0,
    block_mask,
    block_pointers,
    num_aligned,
    padding_of,
    row_mask,
    row_pointers,
)


@dataclass(frozen=True)
class RewriteDescriptorsToPointers(ModulePass):
    """Replaces descriptors and the accesses through them but those that TMA does, of blocks of at most `tma_bytes`."""

    name = "rewrite-descriptors-to-pointers"

    tma_bytes: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        obstacles = self._obstacles(op)
        for access in nested_ops(op, BlockAccess | RowAccess):
            obstacle = obstacles.get(access)
            if obstacle is None and access in obstacles:
                continue
            if obstacle is not None:
                remark_place(op, access.location, Kind.NO_TMA, obstacle)
            rewrite_access(access, is_aligned=self.tma_bytes > 0)
        for made in nested_ops(op, MakeTensorDescriptorOp):
            if not list(made.result.uses):
                erase(made)
            elif _is_in_branch(made):
                made.attributes[CONDITIONAL] = UnitAttr()

    def _obstacles(self, module: ModuleOp) -> dict[Operation, str | None]:
        """Why TMA does not do an access, None where it does; nothing where there is no TMA."""
        functions = functions_in(module) if self.tma_bytes else []
        return {op: obstacle for func in functions for op, obstacle in tma_obstacles(func, self.tma_bytes).items()}


def _is_in_branch(op: Operation) -> bool:
    """Whether it may not run where the program does. Of loops it is asked for anyway."""
    return any(isinstance(around, scf.IfOp) for around in ops_around(op))


def rewrite_access(op: BlockAccess | RowAccess, is_aligned: bool = False) -> None:
    """Replace an access through a descriptor by one through pointers. `is_aligned`: what TMA asks of base and strides,
    which launches look at, is promised.
    """
    try:
        made = descriptor_of(op)
    except VerifyException as error:
        raise CompilationError(f"{error}. Make it where it is used.", *from_attribute(op.location)) from error
    b = Builder.before(op)
    sizes = [at_least_0(b, size) for size in made.shape]
    if is_aligned and any(_widened(made.shape[-1]) is _widened(stride) for stride in made.strides[:-1]):
        _promise_aligned(sizes[-1], made.base.type)
    if isinstance(op, RowAccess):
        extent = shape_of(op.desc.type.tile)[1]
        pointers = row_pointers(b, made.base, op.x_offsets, op.y_offset, made.strides, extent)
        mask = row_mask(b, op.x_offsets, op.y_offset, sizes, extent)
    else:
        shape = shape_of(_accessed(op).type)
        pointers = block_pointers(b, made.base, op.indices, made.strides, shape, is_aligned)
        mask = block_mask(b, op.indices, dict(enumerate(sizes)), shape)
    if isinstance(op, DescriptorLoadOp | DescriptorGatherOp):
        other = padding_of(b, op.result.type, made.pads_with_nan) if mask is not None else None
        replace(op, [b.value(LoadOp(pointers, mask, other))])
        return
    if isinstance(op, DescriptorStoreOp | DescriptorScatterOp):
        b.insert(StoreOp(pointers, op.src, mask))
    else:
        assert isinstance(op, DescriptorReduceOp)
        kind = atomic_kind(DescriptorReduceKind(op.kind.value.data), op.desc.type)
        b.insert(AtomicRMWOp(kind, pointers, op.src, mask, MemorySemantic.RELAXED))
    erase(op)


def _accessed(op: BlockAccess) -> SSAValue:
    """What is loaded or stored."""
    return op.result if isinstance(op, DescriptorLoadOp) else op.src


def _widened(value: SSAValue) -> SSAValue:
    """What was widened, if anything was."""
    return value.owner.operands[0] if isinstance(value.owner, ExtSIOp) else value


def _promise_aligned(size: SSAValue, base: Attribute) -> None:
    """A row that is as long as it is far from the next has whole chunks of 16 bytes."""
    if isinstance(size.owner, arith.MaxSIOp):
        promise(size.owner, DIVISIBILITY, [num_aligned(base)])
