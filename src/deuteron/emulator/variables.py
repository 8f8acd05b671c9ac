"""Where the variables of a kernel lie: offsets in shared, local and parameter memory, known before any launch.

    layout = Layout(module, function)
    layout.shared["smem"]      1024: the first byte of shared memory that a kernel can have

Dynamic shared memory (`.extern .shared`) starts after the static variables. Global and constant variables get their
addresses at launch, when their memory is made.
"""

from __future__ import annotations

from collections.abc import Iterable

from deuteron.emulator.machine.windows import SHARED_BASE
from deuteron.ptx.syntax import Function, Module, Variable


class Layout:
    """Offsets by name. `params` are offsets in the parameter buffer."""

    def __init__(self, module: Module, function: Function):
        variables = [*module.variables.values(), *function.variables.values()]
        shared = [v for v in variables if v.space == "shared"]
        static = [v for v in shared if not v.is_extern]
        self.shared, end = _place(static, SHARED_BASE)
        dynamic = [v for v in shared if v.is_extern]
        alignment = max((v.alignment for v in dynamic), default=16)
        self.dynamic_start = -(-end // alignment) * alignment - SHARED_BASE
        self.shared.update({v.name: self.dynamic_start + SHARED_BASE for v in dynamic})
        self.local, self.local_bytes = _place([v for v in variables if v.space in ("local", "param")], 0)
        self.params, self.param_bytes = _place(function.params, 0)
        self.param_variables = function.params
        self.module_variables = [v for v in variables if v.space in ("global", "const")]
        self.functions = set(module.functions)


def _place(variables: Iterable[Variable], start: int) -> tuple[dict[str, int], int]:
    """Consecutive aligned offsets, and the end."""
    offsets, end = {}, start
    for variable in variables:
        end = -(-end // variable.alignment) * variable.alignment
        offsets[variable.name] = end
        end += variable.size
    return offsets, end
