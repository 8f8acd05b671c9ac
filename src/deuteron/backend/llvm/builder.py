"""Builds one function of LLVM IR as text.

    module = Module("add")
    b = module.function("add_one", "void", [("ptr", "x"), ("i64", "n")])
    x, n = b.parameters
    with b.loop(const("i64", 0), n, const("i64", 1)) as loop:
        p = b.gep("float", x, loop.index)
        b.store(b.fadd(b.load("float", p), const("float", 1.0)), p)
    b.ret()
    module.text()

An instruction costs about 0.75 us here, and twice that with llvmlite's IR builder, whose text is slower to
parse too. Methods are named as LLVM's opcodes (with `_` after Python's keywords) and return a Value. Where one
takes a `hint`, blocks or the value are called after it; names are made unique. `set_debug_location` attaches
a place in the source to what follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from deuteron.backend.llvm.arithmetic import Arithmetic
from deuteron.backend.llvm.control_flow import Block, ControlFlow
from deuteron.backend.llvm.memory import Memory
from deuteron.backend.llvm.types import Value, element, width

if TYPE_CHECKING:
    from deuteron.backend.llvm.module import Module

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_$]")
_TYPE = re.compile(r"ptr addrspace\(\d+\)|\S+")


class Touches(Enum):
    """What assembly does to memory.

    NOTHING: it computes its result, and may be removed, merged and moved. READS: it stays in its place, and what writes
    does not move over it, other loads may. MEMORY: nothing that accesses memory moves over it. (With `sideeffect`
    alone, LLVM's code generator moves loads after stores in assembly.)
    """

    NOTHING = auto()
    READS = auto()
    MEMORY = auto()


@dataclass
class _Function:
    """What the builders of one function share: metadata, how many values are numbered, where in the source they are."""

    suffix: str
    debug: str = ""
    number: int = 0


class Builder(Arithmetic, Memory, ControlFlow):
    """One function being built, at first positioned in its block `entry`. Every block needs a terminator."""

    def __init__(
        self,
        module: Module,
        name: str,
        return_type: str,
        parameters: Sequence[tuple[str, str]],
        prefix: str = "",
        suffix: str = "",
        fast_math: str = "",
    ):
        self.module, self.name, self.fast_math = module, name, fast_math
        self._return_type = return_type
        self._head = f"define {prefix + ' ' if prefix else ''}{return_type} @{name}"
        self._function = _Function(suffix)
        self._counts: dict[str, int] = {}
        self._blocks: dict[Block, None] = {}
        self._phis = {}
        self.types: dict[str, str] = {}  # of what is computed
        self.definitions = {}
        self.differences = {}
        # a parameter's type may carry attributes ("ptr noalias"); as an operand it has none
        names = [self._unique(hint) for _, hint in parameters]
        self._parameters = [f"{type} %{text}" for (type, _), text in zip(parameters, names, strict=True)]
        self.parameters = [
            Value(_TYPE.match(type).group(), f"%{text}") for (type, _), text in zip(parameters, names, strict=True)
        ]
        self.position(self.block("entry"))

    @property
    def blocks(self) -> list[Block]:
        """The blocks in the order of the text, the first of which is the entry."""
        return list(self._blocks)

    @property
    def entry_block(self) -> Block:
        return next(iter(self._blocks))

    def keep(self, blocks: Sequence[Block]) -> None:
        """Have no other blocks than these."""
        self._blocks.clear()
        self._blocks.update(dict.fromkeys(blocks))

    def part(self, name: str, parameters: Sequence[Value], attributes: str, blocks: Sequence[Block]) -> Builder:
        """An internal function of blocks that were of this one, which returns the same. All names stay."""
        other = copy(self)
        other.name, other._head = name, f"define internal {self._return_type} @{name}"
        other._function = _Function(attributes, number=self._function.number)
        other.parameters, other._parameters = list(parameters), [str(value) for value in parameters]
        other._blocks = dict.fromkeys(blocks)
        return other

    def elsewhere(self, block: Block) -> Builder:
        """Another builder of the same function, positioned in this block; each keeps its own place."""
        other = copy(self)
        other.position(block)
        return other

    def set_debug_location(self, metadata: str | None) -> None:
        """Metadata that Module.debug_location gave, for the instructions that follow."""
        self._function.debug = f", !dbg {metadata}" if metadata else ""

    def set_suffix_metadata(self, metadata: str) -> None:
        """Metadata of the function itself."""
        self._function.suffix = f"{self._function.suffix} {metadata}".strip()

    def call(self, return_type: str, name: str, *args: Value, flags: str = "") -> Value:
        """Call a function of this module, an intrinsic or an external one; those are declared as needed."""
        self.module.declare(name, return_type, [arg.type for arg in args])
        return self._call(return_type, return_type, f"@{name}", args, flags)

    def call_variadic(self, return_type: str, name: str, fixed: Sequence[Value], *args: Value) -> Value:
        """Call a function such as printf, whose first arguments are `fixed`."""
        types = [arg.type for arg in fixed]
        self.module.declare(name, return_type, [*types, "..."])
        function_type = f"{return_type} ({', '.join([*types, '...'])})"
        return self._call(function_type, return_type, f"@{name}", [*fixed, *args])

    def assembly(
        self,
        touches: Touches,
        return_type: str,
        text: str,
        constraints: str,
        *args: Value,
        attributes: str = "",
        flags: str = "",
    ) -> Value:
        """Assembly, which LLVM knows only by what is said of it here.

        Attributes: "convergent nounwind" for what all threads of a warp have to do together. Flags: "range(i32 0, 9)"
        for what it gives.
        """
        if touches is Touches.MEMORY:
            constraints = ",".join(filter(None, [constraints, "~{memory}"]))
        keyword, attributes = ("asm", "memory(none)") if touches is Touches.NOTHING else ("asm sideeffect", attributes)
        return_type = self.module.struct(return_type)
        code = f'{keyword} "{text}", "{constraints}"'
        return self._call(return_type, return_type, code, args, flags, attributes)

    def call_pointer(self, return_type: str, function: Value, *args: Value, attributes: str = "") -> Value:
        """Call the function at an address, of which nothing is known but the attributes."""
        return self._call(return_type, return_type, function.text, args, attributes=attributes)

    def intrinsic(
        self,
        name: str,
        return_type: str,
        *args: Value,
        overloads: Sequence[str] | None = None,
        flags: str = "",
    ) -> Value:
        """Call e.g. `llvm.fma`; its name gets the overloaded types appended, by default the return type."""
        suffixes = (return_type,) if overloads is None else overloads
        full_name = ".".join([name, *map(mangle, suffixes)])
        return self.call(return_type, full_name, *args, flags=flags)

    def text(self) -> str:
        """The complete function."""
        suffix = f" {self._function.suffix}" if self._function.suffix else ""
        lines = [f"{self._head}({', '.join(self._parameters)}){suffix} {{"]
        for block in self._blocks:
            lines.append(f"{block.name}:")
            lines.extend(phi.line for phi in block.phis)
            lines.extend(block.lines)
        lines.append("}")
        return "\n".join(lines)

    def _call(
        self,
        callee_type: str,
        return_type: str,
        callee: str,
        args: Sequence[Value],
        flags: str = "",
        attributes: str = "",
    ) -> Value:
        flags = f"{flags} " if flags else ""
        tail = f" {attributes}" if attributes else ""
        text = f"call {flags}{callee_type} {callee}({', '.join(map(str, args))}){tail}"
        if return_type != "void":
            return self._emit(return_type, text)
        self._append(text)
        return Value("void", "void")

    def _append(self, text: str) -> None:
        self.current_block.lines.append(f"  {text}{self._function.debug}")

    def _emit(self, type: str, text: str, hint: str = "") -> Value:
        name = self._name(hint)
        self.types[name] = type
        self.current_block.lines.append(f"  {name} = {text}{self._function.debug}")
        return Value(type, name)

    def _emit_in_entry(self, type: str, text: str) -> Value:
        """At its beginning, where this builder is in another block: its end may have been reached."""
        if self.current_block is self.entry_block:
            return self._emit(type, text)
        name = self._name("")
        self.types[name] = type
        self.entry_block.lines.insert(0, f"  {name} = {text}{self._function.debug}")
        return Value(type, name)

    def _name(self, hint: str) -> str:
        if hint:
            return "%" + self._unique(hint)
        self._function.number += 1
        return f"%.{self._function.number}"

    def _unique(self, hint: str) -> str:
        name = _NOT_IN_NAMES.sub("_", hint)
        if name[0].isdigit():
            name = "_" + name
        count = self._counts.get(name, 0)
        self._counts[name] = count + 1
        return f"{name}.{count}" if count else name


def mangle(type: str) -> str:
    """A type in the name of an intrinsic: `<8 x float>` is v8f32."""
    scalar = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "ptr": "p0"}.get(
        element(type), element(type)
    )
    return f"v{width(type)}{scalar}" if type.startswith("<") else scalar
