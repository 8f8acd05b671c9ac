"""What a kernel reads and writes, as a module that programs walk which analyse Triton's: a load or store each time.

    tt.func @add(%x_ptr, %out_ptr, %n)        what torch asks of a user's kernel: which arguments it mutates
      tt.load %x_ptr                          one for each op that reads, and each argument that it may point into
      tt.store %out_ptr                       an op that may write anywhere writes all of them

It has the methods of MLIR's Python objects that such programs call: operations, blocks and regions, with numbers for
values. The answer is that of Deuteron's own analysis; `str()` is the kernel's tile IR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Operation as TileOp

from deuteron.analysis.aliasing.written_arguments import touched_arguments
from deuteron.backend.ttir import kernel_of, print_tile_ir
from deuteron.ir.effects import GLOBAL, READ, WRITE, Kind, effects_inside
from deuteron.ir.tt.function import FuncOp

_NAMES = {READ: "tt.load", WRITE: "tt.store"}


@dataclass(frozen=True)
class Value:
    """The argument of the function with that number."""

    number: int

    def id(self) -> int:
        return self.number


@dataclass(eq=False)
class Region:
    """That of the function or of the module."""

    def id(self) -> int:
        return id(self)


@dataclass(eq=False)
class Block:
    """The only one of its region."""

    region: Region
    arguments: Sequence[Value] = ()

    def id(self) -> int:
        return id(self)

    def get_parent(self) -> Region:
        return self.region

    def get_num_arguments(self) -> int:
        return len(self.arguments)

    def get_argument(self, index: int) -> Value:
        return self.arguments[index]


@dataclass(eq=False)
class Operation:
    """A load or a store of arguments, the function, or the module. None has results."""

    name: str
    block: Block | None = None
    operands: Sequence[Value] = ()
    regions: Sequence[Region] = ()
    attributes: dict[str, Any] = field(default_factory=dict)

    def get_name(self) -> str:
        return self.name

    def get_block(self) -> Block | None:
        return self.block

    def get_num_operands(self) -> int:
        return len(self.operands)

    def get_operand(self, index: int) -> Value:
        return self.operands[index]

    def get_num_results(self) -> int:
        return 0

    def get_num_regions(self) -> int:
        return len(self.regions)

    def get_region(self, index: int) -> Region:
        return self.regions[index]

    def get_str_attr(self, name: str) -> str | None:
        return self.attributes.get(name)


class AccessModule:
    """Made of a module of tile IR, before or after any pass."""

    def __init__(self, module: TileOp):
        kernel = kernel_of(module)
        outer, inner = Region(), Region()
        values = [Value(number) for number in range(len(kernel.args))]
        block = Block(inner, values)
        accesses = [Operation(_NAMES[kind], block, [values[number]]) for kind, number in _accesses(kernel)]
        end = Operation("tt.return", block)
        function = Operation("tt.func", Block(outer), (), [inner], {"sym_name": kernel.sym_name.data})
        self._operations = [*accesses, end, function, Operation("builtin.module", None, (), [outer])]
        self._module = module

    def walk(self, visit: Callable[[Operation], None]) -> None:
        """Call `visit` with every operation, what is in one before itself."""
        for operation in self._operations:
            visit(operation)

    def verify(self) -> bool:
        """The frontend's module is verified when a kernel is compiled."""
        return True

    def __str__(self) -> str:
        return print_tile_ir(self._module)


def _accesses(kernel: FuncOp) -> Iterator[tuple[Kind, int]]:
    """The accesses of each op in turn, with the numbers of the arguments that they may be of."""
    effects: dict[TileOp, list] = {}
    for op, effect in effects_inside(kernel):
        if effect.resource is GLOBAL:
            effects.setdefault(op, []).append(effect)
    for found in effects.values():
        for kind in _NAMES:
            targets = touched_arguments(found, kind)
            for number, argument in enumerate(kernel.args):
                if argument in targets.arguments or not targets.is_known:
                    yield kind, number
