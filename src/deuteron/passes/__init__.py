"""Passes over tile IR, and what runs them.

run_passes(module, tile_passes(), dump=lambda name, text: print(f"// after {name}", text, sep="\\n"))

tile/               what every target needs
gpu/                tile IR to ttgir
rewrite.py          replaces ops, keeping locations and names
carried_values.py   values that a loop carries besides
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from deuteron.ir.text import print_module
from deuteron.ir.verifier import verify_ttir
from deuteron.passes.rewrite import nested_ops

Dump = Callable[[str, str], None]
States = dict[Operation, tuple]
Verify = Callable[[ModuleOp, str, Sequence[Operation]], None]


def run_passes(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    dump: Dump | None = None,
    verify: Verify = verify_ttir,
) -> None:
    """Run passes in order on a module that verifies, in place; after each, verify it and hand its text to `dump`.

    Verifying takes xDSL ten times as long as a pass, so ops that a pass left as they were are not verified again.
    """
    context = Context()
    verified = _states_of(module)
    for module_pass in passes:
        module_pass.apply(context, module)
        states = _states_of(module)
        verify(module, module_pass.name, _affected(verified, states))
        verified = states
        if dump is not None:
            dump(module_pass.name, print_module(module))


def _affected(before: States, now: States) -> list[Operation]:
    """The ops to verify again: those that changed; those that they are in, since what a loop yields is verified with
    the loop; and all that is in an op that is elsewhere or has other properties: partitions have warps of their own.
    """
    found: dict[Operation, None] = {}
    for op, state in now.items():
        known = before.get(op)
        if known == state:
            continue
        parent = op.parent_op()
        if parent is not None and op.next_op is None:
            found[parent] = None
        is_same_around = known is not None and known[0] == state[0]
        found.update(dict.fromkeys([op] if is_same_around else nested_ops(op)))
    return list(found)


def _states_of(module: ModuleOp) -> States:
    """All that a pass can change of each op and that verifying it looks at, compared by identity. First what counts for
    the ops in it as well.
    """
    return {op: _state_of(op) for op in nested_ops(module)}


def _state_of(op: Operation) -> tuple:
    operands = tuple(op.operands)
    return (
        (op.parent, op.properties.copy()),
        op.next_op is None,
        op.location,
        operands,
        [operand.type for operand in operands],
        [result.type for result in op.results],
        op.attributes.copy(),
        [(block.last_op, block.arg_types) for region in op.regions for block in region.blocks] if op.regions else None,
    )
