"""Waiting for a value in memory: `tt.atomic_poll` of Triton's ttir, which is a loop of `tt.atomic_load` here.

%r = tt.atomic_poll acquire, gpu, %p, %x timeout %t : !tt.ptr<i32>, i32 -> i1

    ->  %first = tt.atomic_load acquire, gpu, %p
        %r = %first == %x
        while not all of %r, and while the timer has not gone on by %t nanoseconds:
            %again = tt.atomic_load acquire, gpu, %p, not %r
            %r = %r | %again == %x

The op is in no stage: whoever reads a text makes the loop of it at once, as the frontend does of `tl.atomic_poll`.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.arith import CmpIOp
from deuteron.ir.builder import Builder
from deuteron.ir.member import member_of
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.atomic import AtomicLoadOp, MemoryScope, MemorySemantic
from deuteron.ir.tt.memory import check_access
from deuteron.ir.tt.program import GlobalTimerOp
from deuteron.ir.tt.reduce import ReduceOp, ReduceReturnOp
from deuteron.ir.types import element_type_of, i1, i16, i32, i64, is_tile, with_element_type

POLL_SEMANTICS = (MemorySemantic.RELAXED, MemorySemantic.ACQUIRE)


@irdl_op_definition
class AtomicPollOp(IRDLOperation):
    """Waits until memory holds what is expected, `timeout` nanoseconds at most; gives whether it did."""

    name = "tt.atomic_poll"
    ptr = operand_def()
    expected = operand_def()
    timeout = opt_operand_def(i64)
    result = result_def()
    sem = prop_def(member_of(MemorySemantic))
    scope = prop_def(member_of(MemoryScope))

    def verify_(self) -> None:
        check_access(self, self.ptr, self.expected.type, None)
        if element_type_of(self.expected.type) not in (i16, i32, i64):
            raise VerifyException(f"tt.atomic_poll waits for integers of 16, 32 and 64 bits, not {self.expected.type}")
        if self.result.type != with_element_type(self.expected.type, i1):
            raise VerifyException(f"tt.atomic_poll for {self.expected.type} gives {self.result.type}")
        if self.sem.value.data not in POLL_SEMANTICS:
            raise VerifyException(f"tt.atomic_poll has no order {self.sem.value.data}")


def expand_polls(module: ModuleOp) -> None:
    """Make loops of the polls in a module. Those that do not verify stay, for who verifies the module."""
    for op in nested_ops(module, AtomicPollOp):
        if _verifies(op):
            sem, scope = MemorySemantic(op.sem.value.data), MemoryScope(op.scope.value.data)
            matched = poll(Builder.before(op), op.ptr, op.expected, op.timeout, sem, scope)
            matched.name_hint = op.result.name_hint
            op.result.replace_all_uses_with(matched)
            op.detach()
            op.erase()


def _verifies(op: Operation) -> bool:
    try:
        op.verify()
    except VerifyException:
        return False
    return True


def poll(
    b: Builder,
    ptr: SSAValue,
    expected: SSAValue,
    timeout: SSAValue | None,
    sem: MemorySemantic,
    scope: MemoryScope,
) -> SSAValue:
    """Insert the loop; gives where memory held `expected`. `timeout` is an i64 without sign, None waits for ever."""
    begin = None if timeout is None else b.value(GlobalTimerOp())
    first = _matches(b, AtomicLoadOp(ptr, None, sem, scope), expected)
    before, after = Block(arg_types=[first.type]), Block(arg_types=[first.type])
    with b.at(before):
        goes_on = _any(b, _inverted(b, before.args[0]))
        if begin is not None:
            passed = b.value(arith.SubiOp(b.value(GlobalTimerOp()), begin))
            goes_on = b.value(arith.AndIOp(goes_on, b.value(CmpIOp(passed, timeout, "ult"))))
        b.insert(scf.ConditionOp(goes_on, before.args[0]))
    with b.at(after):
        matched = after.args[0]
        again = _matches(b, AtomicLoadOp(ptr, _inverted(b, matched), sem, scope), expected)
        b.insert(scf.YieldOp(b.value(arith.OrIOp(matched, again))))
    return b.value(scf.WhileOp([first], [first.type], Region(before), Region(after)))


def _matches(b: Builder, load: AtomicLoadOp, expected: SSAValue) -> SSAValue:
    return b.value(CmpIOp(b.value(load), expected, "eq"))


def _inverted(b: Builder, flags: SSAValue) -> SSAValue:
    return b.value(arith.XOrIOp(flags, b.constant(True, flags.type)))


def _any(b: Builder, flags: SSAValue) -> SSAValue:
    while is_tile(flags.type):
        reduction = ReduceOp([flags], 0)
        block = reduction.combine.block
        with b.at(block):
            b.insert(ReduceReturnOp([b.value(arith.OrIOp(*block.args))]))
        flags = b.value(reduction)
    return flags
