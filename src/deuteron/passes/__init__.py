"""Passes over tile IR, and what runs them.

run_passes(module, tile_passes(), dump=lambda name, text: print(f"// after {name}", text, sep="\\n"))

tile/        what every target needs
gpu/         what gives tiles a layout on a GPU
rewrite.py   replaces ops, keeping locations and names
effects.py   which ops may be removed, merged or moved
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from deuteron.ir.text import print_module
from deuteron.ir.verifier import verify_ttir

Dump = Callable[[str, str], None]
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
        changed = [op for op, state in states.items() if verified.get(op) != state]
        verify(module, module_pass.name, _with_parents(changed))
        verified = states
        if dump is not None:
            dump(module_pass.name, print_module(module))


def _with_parents(ops: Sequence[Operation]) -> list[Operation]:
    """The ops, and those that they are in: what a loop yields is verified with the loop."""
    parents = (parent for op in ops if (parent := op.parent_op()) is not None)
    return list(dict.fromkeys([*ops, *parents]))


def _states_of(module: ModuleOp) -> dict[Operation, tuple]:
    """All that a pass can change of each op and that verifying it looks at, compared by identity."""
    return {op: _state_of(op) for op in module.walk()}


def _state_of(op: Operation) -> tuple:
    operands = tuple(op.operands)
    return (
        op.parent,
        op.next_op is None,
        op.location,
        operands,
        [operand.type for operand in operands],
        [result.type for result in op.results],
        op.properties.copy(),
        op.attributes.copy(),
        [(block.last_op, block.arg_types) for region in op.regions for block in region.blocks] if op.regions else None,
    )
