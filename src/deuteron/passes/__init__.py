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
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from deuteron.ir.nested import nested_ops
from deuteron.ir.text import print_module
from deuteron.ir.verifier import verify_ttir

Dump = Callable[[str, str], None]
States = dict[int, tuple]  # by id: each keeps its op, and to hash an op takes xDSL a call
Verify = Callable[[ModuleOp, str, Sequence[Operation] | None], None]
ALL_PASSES = "the passes of a stage, of which DEUTERON_VERIFY_EACH=1 tells the one"


def run_passes(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    dump: Dump | None = None,
    verify: Verify = verify_ttir,
    verifies_each: bool = True,
) -> None:
    """Run passes in order, in place, and hand the module's text after each to `dump`. After the last the module is
    verified; or after each, where it verifies before: ops that a pass left as they were are then not verified again,
    for it takes xDSL ten times as long as a pass, and nothing where all are as they were, in the same order.
    """
    context = Context()
    verified = _states_of(module) if verifies_each else {}
    for module_pass in passes:
        module_pass.apply(context, module)
        if verifies_each:
            verified = _verify_changed(module, module_pass.name, verified, verify)
        if dump is not None:
            dump(module_pass.name, print_module(module))
    if not verifies_each:
        verify(module, ALL_PASSES, None)


def _verify_changed(module: ModuleOp, after: str, before: States, verify: Verify) -> States:
    now = _states_of(module)
    affected = _affected(before, now)
    if affected or list(before) != list(now):
        verify(module, after, affected)
    return now


def _affected(before: States, now: States) -> list[Operation]:
    """The ops to verify again: those that changed; those that they are in, since what a loop yields is verified with
    the loop; those that use a value whose type changed; and all that is in an op that is elsewhere or has other
    properties: partitions have warps of their own.
    """
    found: dict[Operation, None] = {}
    for key, state in now.items():
        known = before.get(key)
        if known == state:
            continue
        op = state[0]
        parent = op.parent_op()
        if parent is not None and op.next_op is None:
            found[parent] = None
        is_same_around = known is not None and known[1] == state[1]
        found.update(dict.fromkeys([op] if is_same_around else nested_ops(op)))
        if known is not None and known[2] != state[2]:
            found.update((use.operation, None) for value in _defined_by(op) for use in value.uses)
    return list(found)


def _defined_by(op: Operation) -> list[SSAValue]:
    arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
    return [*op.results, *arguments]


def _states_of(module: ModuleOp) -> States:
    return {id(op): _state_of(op) for op in nested_ops(module)}


def _state_of(op: Operation) -> tuple:
    """An op, and all that a pass can change of it and that verifying it looks at, compared by identity: what counts for
    the ops in it as well, what counts for those that use its values, and the rest.

    As cheap as it gets, for it is asked of every op after every pass: `op.operands` would make a view.
    """
    blocks = [block for region in op.regions for block in region.blocks] if op.regions else ()
    return (
        op,
        (op.parent, op.properties.copy() if op.properties else None),
        ([result.type for result in op.results], [block.arg_types for block in blocks]),
        op.next_op is None,
        op.location,
        op._operands,
        op.attributes.copy() if op.attributes else None,
        [block.last_op for block in blocks],
    )
