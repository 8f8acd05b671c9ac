"""A module of tile IR that knows in which line of its text each op is.

located = LocatedModule(kernel.asm["ttgir"])
located.lines[op]                     54: what is text.lines[54] of read_mlir of the same text
located.names[op.results[0]]          '%acc_3'
located.name_of_layout(encoding)      '#linear4'
"""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.backend.ttir import parse_tile_ir
from deuteron.ir.nested import nested_ops
from deuteron.ir.pretty.printer import PrettyPrinter


class _Printer(PrettyPrinter):
    """Notes where in the stream each op begins."""

    def __init__(self, stream: StringIO):
        super().__init__(stream, print_generic_format=True, print_debuginfo=True)
        self.begins: dict[Operation, int] = {}
        self.names: dict[SSAValue, str] = {}

    def print_op(self, op: Operation) -> None:
        self.begins[op] = self.stream.tell()
        super().print_op(op)

    def _print_results(self, op: Operation) -> None:
        super()._print_results(op)
        self.names.update((result, self._name(result)) for result in op.results)


class LocatedModule:
    """The module of a text that we have printed, with the line of each op, counted from 0."""

    def __init__(self, text: str):
        self.module: ModuleOp = parse_tile_ir(text, "<ttgir>")
        stream = StringIO()
        self._printer = _Printer(stream)
        self._printer.print_op(self.module)
        body, definitions = stream.getvalue(), self._printer.definitions()
        first = definitions.count("\n")
        self.lines = {op: first + body.count("\n", 0, begin) for op, begin in self._printer.begins.items()}
        self.names = self._printer.names
        self.ops = nested_ops(self.module)

    def name_of_layout(self, encoding: Attribute) -> str:
        """What a layout is called in the text."""
        return self._printer.text(encoding)
