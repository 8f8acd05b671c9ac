"""PTX text to a program: parsed, calls inlined, every instruction decoded.

program = load_program(ptx, "add")
"""

from __future__ import annotations

from functools import lru_cache

from deuteron.emulator.decoder import decode
from deuteron.emulator.inline_calls import inline_calls
from deuteron.emulator.jump_tables import expand_jump_tables
from deuteron.emulator.program import Program
from deuteron.emulator.variables import Layout
from deuteron.errors import UsageError
from deuteron.ptx import Module, parse


@lru_cache(maxsize=64)
def load_program(ptx: str, name: str | None) -> Program:
    """The program of a kernel (None: the only one in the module)."""
    module = parse(ptx)
    entries = [f.name for f in module.functions.values() if f.is_entry]
    if name is None and len(entries) == 1:
        name = entries[0]
    if name not in entries:
        raise UsageError(f"no kernel '{name}' in this PTX: it has {', '.join(entries) or 'none'}")
    return _decoded(module, name)


def _decoded(module: Module, name: str) -> Program:
    function = expand_jump_tables(inline_calls(module, module.functions[name]))
    function.registers.append("pred")
    function.register_names.append("the carry flag")
    layout = Layout(module, function)
    steps = [decode(function, layout, pc) for pc in range(len(function.instructions))]
    return Program(module, function, layout, steps)
