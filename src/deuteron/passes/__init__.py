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
from xdsl.passes import ModulePass

from deuteron.ir.text import print_module
from deuteron.ir.verifier import verify_ttir

Dump = Callable[[str, str], None]


def run_passes(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    dump: Dump | None = None,
    verify: Callable[[ModuleOp, str], None] = verify_ttir,
) -> None:
    """Run passes in order on a module that verifies, in place; after each, verify it and hand its text to `dump`.

    Verifying takes xDSL ten times as long as a pass, so what a pass left as it was is not verified again.
    """
    context = Context()
    verified = _state_of(module)
    for module_pass in passes:
        module_pass.apply(context, module)
        state = _state_of(module)
        if state != verified:
            verify(module, module_pass.name)
            verified = state
        if dump is not None:
            dump(module_pass.name, print_module(module))


def _state_of(module: ModuleOp) -> list[tuple]:
    """All that a pass can change, op by op, compared by identity."""
    return [
        (
            op,
            op.parent,
            op.location,
            *op.operands,
            *(result.type for result in op.results),
            *op.properties.items(),
            *op.attributes.items(),
            *(block.arg_types for region in op.regions for block in region.blocks),
        )
        for op in module.walk()
    ]
