"""After which op an asynchronous dot by wgmma is over: a wait, or another dot that is not asynchronous.

    %d = "ttng.warp_group_dot"(...)                            wait_for(%d's op)
    %e = "ttng.warp_group_dot_wait"(%d) <{pendings = 0}>       is this one

A wait that leaves as many dots in flight as were issued between the two is enough. Where one leaves more, the
dot is still in flight in what the wait gives, and in what a loop then carries. A dot that another one adds to is in
flight in what that gives. A dot that is not asynchronous waits for itself, and so for all before it. A wait in a branch
or in a loop, for what was issued before, may not be executed: it is none.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue, Use

from deuteron.errors import IRError
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, WarpGroupDotWaitOp


def wait_for(dot: WarpGroupDotOp) -> Operation | None:
    """The op that waits, or None if there is none that is known to be enough."""
    return _dot_that_ends(dot) or _wait_of_users(dot)


def _dot_that_ends(dot: WarpGroupDotOp) -> WarpGroupDotOp | None:
    """A dot that waits for all before it, after this one and before, or where, its sum is used."""
    users = {use.operation for use in dot.result.uses}
    op = dot.next_op
    while op is not None and not op.regions:
        if isinstance(op, WarpGroupDotOp) and not op.is_async.value.data:
            return op
        if op in users:
            return None
        op = op.next_op
    return None


def _wait_of_users(dot: WarpGroupDotOp) -> Operation | None:
    """The op among those that use a sum, or what another gives of it, that waits."""
    value = dot.result
    while True:
        if (use := _use_by(value, WarpGroupDotWaitOp)) is not None:
            if use.operation.pendings.value.data <= _issued_between(dot, use.operation):
                return use.operation
            value = use.operation.outputs[use.index]
        elif (use := _use_by(value, scf.YieldOp)) is not None and isinstance(_parent(use), scf.ForOp | scf.IfOp):
            value = _parent(use).results[use.index]
        elif (use := _use_by(value, WarpGroupDotOp)) is not None and use.operation.c is value:
            if not use.operation.is_async.value.data:
                return use.operation
            value = use.operation.result
        else:
            return None


def check_waits(module: ModuleOp) -> None:
    """Raise IRError where the text of a module uses what an asynchronous dot gives before a wait, or has no wait."""
    for dot in nested_ops(module, WarpGroupDotOp):
        if not dot.is_async.value.data:
            continue
        for use in dot.result.uses:
            if not isinstance(use.operation, WarpGroupDotOp | WarpGroupDotWaitOp | scf.YieldOp):
                place = from_attribute(use.operation.location)
                raise IRError(
                    f"{use.operation.name} uses the sum of an asynchronous dot that is not waited for", *place
                )
        if wait_for(dot) is None:
            raise IRError(
                f"no ttng.warp_group_dot_wait waits for this {dot.name}, or each leaves it in flight (pendings)",
                *from_attribute(dot.location),
            )


def _use_by(value: SSAValue, kind: type[Operation]) -> Use | None:
    """A use in the block of the value, which is executed whenever the value is made."""
    block = value.owner.parent
    return next((use for use in value.uses if isinstance(use.operation, kind) and use.operation.parent is block), None)


def _parent(use: Use) -> Operation:
    return use.operation.parent_op()


def _issued_between(dot: WarpGroupDotOp, wait: Operation) -> int:
    """How many dots are known to be issued in between."""
    issued, op = 0, dot.next_op
    while op is not None and op is not wait:
        issued += isinstance(op, WarpGroupDotOp) and bool(op.is_async.value.data)
        op = op.next_op
    return issued if op is wait else 0
