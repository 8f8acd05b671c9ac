"""A module of LLVM IR: what its functions share, and its text.

    module = Module("softmax", fast_math="contract")
    b = module.function("softmax_kernel", "void", [("ptr", "args")], linkage="external")
    table = module.constant(vector_const("float", [0.0, 1.0]))        Value("ptr", "@const.0")
    text = module.string("x = %d")                                    the address of a C string
    b.set_debug_location(module.debug_location(b, "softmax.py", 12, 5))

Everything comes out in the order in which it was made, so that equal kernels give equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.types import Value
from deuteron.errors import InternalError

_PLACE = re.compile(r"!dbg (!\d+)")

LAST_COLUMN = (1 << 16) - 1  # that LLVM takes: 0 is one that is not known, as of generated code in one long line
LONG_TYPE = 64  # characters of a struct's text, from which on it gets a name; not measured


class Module:
    """Functions, constants, declarations and metadata. The compiler adds target triple and data layout.

    `path_of` is what a source file is called in the debug information.
    """

    def __init__(
        self,
        name: str,
        fast_math: str = "",
        debug_kind: str = "LineTablesOnly",
        path_of: Callable[[str], str] = str,
    ):
        self.name, self.fast_math, self._debug_kind, self._path_of = name, fast_math, debug_kind, path_of
        self._functions: dict[str, Builder] = {}
        self._types: dict[str, str] = {}
        self._declarations: dict[str, str] = {}
        self._globals: list[str] = []
        self._constants: dict[str, Value] = {}
        self._metadata: list[str] = []
        self._metadata_numbers: dict[str, str] = {}
        self._named_metadata: dict[str, list[str]] = {}
        self._files: dict[str, str] = {}
        self._subprograms: dict[str, tuple[str, str]] = {}
        self._places: dict[str, tuple[str, int, int]] = {}

    def function(
        self,
        name: str,
        return_type: str,
        parameters: Sequence[tuple[str, str]],
        linkage: str = "internal",
        attributes: str = "nounwind",
        kind: type[Builder] = Builder,
    ) -> Any:
        """Begin a function; parameters are (type with attributes, name). Linkage: "internal", "external", or a calling
        convention, which a kernel has on a GPU. It is built with a `kind` of builder.

        External ones have hidden visibility: found by whatever is linked into the same program or library,
        and nowhere else, so that position-independent code may call them directly. The name is one that has not been
        given yet.
        """
        if name in self._functions:
            raise InternalError(f"two functions of module '{self.name}' are called '{name}'")
        prefix = {"external": "hidden"}.get(linkage, linkage)
        builder = kind(self, name, return_type, parameters, prefix, attributes, self.fast_math)
        self._functions[name] = builder
        return builder

    def add(self, function: Builder) -> Builder:
        """Have a function that is made of another one's blocks."""
        self._functions[function.name] = function
        return function

    def has_function(self, name: str) -> bool:
        """Whether a function of this name has been begun."""
        return name in self._functions

    def declare(self, name: str, return_type: str, parameter_types: Sequence[str]) -> None:
        """Declare a function, unless it is declared or defined already. Parameter attributes are left out.

        LLVM knows its intrinsics: of one that is not declared it checks name and types.
        """
        if name.startswith("llvm."):
            return
        if name not in self._declarations and name not in self._functions:
            types = ", ".join(type.split(" align ")[0] for type in parameter_types)
            self._declarations[name] = f"declare {return_type} @{name}({types})"

    def struct(self, type: str) -> str:
        """A name for a struct type of many members, which would be most of its users' text; others as they are."""
        if not type.startswith("{") or len(type) < LONG_TYPE:
            return type
        if type not in self._types:
            self._types[type] = f"%struct.{len(self._types)}"
        return self._types[type]

    def constant(self, value: Value, align: int = 64) -> Value:
        """The address of a read-only constant; equal ones share it."""
        key = f"{value}, align {align}"
        if key not in self._constants:
            name = f"@const.{len(self._constants)}"
            self._globals.append(f"{name} = private unnamed_addr constant {key}")
            self._constants[key] = Value("ptr", name)
        return self._constants[key]

    def external_global(self, name: str, type: str, address_space: int, align: int) -> Value:
        """The address of memory that is defined elsewhere, such as the dynamic shared memory of a launch."""
        line = f"@{name} = external addrspace({address_space}) global {type}, align {align}"
        if line not in self._globals:
            self._globals.append(line)
        return Value(f"ptr addrspace({address_space})", f"@{name}")

    def string(self, text: str) -> Value:
        """The address of a C string."""
        data = text.encode() + b"\0"
        escaped = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in data)
        return self.constant(Value(f"[{len(data)} x i8]", f'c"{escaped}"'), align=1)

    def metadata(self, node: str, distinct: bool = False) -> str:
        """The number of a metadata node (`!{!1, !2}`, `!DILocation(...)`); equal nodes share one."""
        if distinct or node not in self._metadata_numbers:
            self._metadata.append(f"!{len(self._metadata)} = {'distinct ' if distinct else ''}{node}")
            self._metadata_numbers[node] = f"!{len(self._metadata) - 1}"
        return self._metadata_numbers[node]

    def rolled_loop(self) -> str:
        """Metadata of a loop that is not to be unrolled, neither by LLVM nor by ptxas."""
        disable = self.metadata('!{!"llvm.loop.unroll.disable"}')
        return f"!llvm.loop {self.metadata(f'!{{!{len(self._metadata)}, {disable}}}', distinct=True)}"

    def debug_location(self, function: Builder, file: str, line: int, column: int) -> str:
        """Metadata for Builder.set_debug_location; the first place given becomes the function's own."""
        scope = self._scope(function, file, line)
        known = column if column <= LAST_COLUMN else 0
        location = self.metadata(f"!DILocation(line: {line}, column: {known}, scope: {scope})")
        self._places[location] = file, line, column
        return location

    def location_in(self, blocks: Sequence[Block]) -> str | None:
        """Metadata of the first place in the source that blocks are from."""
        lines = (line for block in blocks for line in block.lines) if self._places else ()
        return next((place[1] for line in lines if (place := _PLACE.search(line))), None)

    def relocated(self, function: Builder, line: str) -> str:
        """A line of another function as one of this function, at the same place in the source."""
        return _PLACE.sub(lambda place: f"!dbg {self.debug_location(function, *self._places[place[1]])}", line)

    def text(self) -> str:
        types = [f"{name} = type {type}" for type, name in self._types.items()]
        named = [f"!{name} = !{{{', '.join(nodes)}}}" for name, nodes in self._named_metadata.items()]
        declarations = [text for name, text in self._declarations.items() if name not in self._functions]
        functions = [function.text() for function in self._functions.values()]
        parts = [[f"; {self.name}"], types, self._globals, declarations, functions, named, self._metadata]
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"

    def _scope(self, function: Builder, file: str, line: int) -> str:
        """The scope of a function for the file that it is from, else one for what it has of another file."""
        subprogram, own_file = self._subprogram(function, file, line)
        di_file = self._file(file)
        if di_file == own_file:
            return subprogram
        return self.metadata(f"!DILexicalBlockFile(scope: {subprogram}, file: {di_file}, discriminator: 0)")

    def _file(self, file: str) -> str:
        if file not in self._files:
            path = PurePath(self._path_of(file))
            # ptxas knows no escapes: in PTX a quote would end the name
            name, folder = (escaped(part.replace('"', "'")) for part in (path.name, str(path.parent)))
            self._files[file] = self.metadata(f'!DIFile(filename: "{name}", directory: "{folder}")')
        return self._files[file]

    def _subprogram(self, function: Builder, file: str, line: int) -> tuple[str, str]:
        """The metadata of a function and of the file that it is from."""
        if function.name not in self._subprograms:
            di_file = self._file(file)
            unit = self._compile_unit(di_file)
            kind = self.metadata("!DISubroutineType(types: !{})")
            places = f"file: {di_file}, line: {line}, type: {kind}, unit: {unit}, spFlags: DISPFlagDefinition"
            node = f'!DISubprogram(name: "{function.name}", {places})'
            self._subprograms[function.name] = self.metadata(node, distinct=True), di_file
            function.set_suffix_metadata(f"!dbg {self._subprograms[function.name][0]}")
        return self._subprograms[function.name]

    def _compile_unit(self, di_file: str) -> str:
        if "llvm.dbg.cu" not in self._named_metadata:
            fields = f'file: {di_file}, producer: "deuteron", emissionKind: {self._debug_kind}'
            unit = self.metadata(f"!DICompileUnit(language: DW_LANG_C99, {fields})", distinct=True)
            self._named_metadata["llvm.dbg.cu"] = [unit]
            self._named_metadata["llvm.module.flags"] = [self.metadata('!{i32 2, !"Debug Info Version", i32 3}')]
        return self._named_metadata["llvm.dbg.cu"][0]


def escaped(text: str) -> str:
    """A text as it stands between the quotes of a string of LLVM IR."""
    plain = frozenset(range(32, 127)) - frozenset(b'"\\')
    return "".join(chr(byte) if byte in plain else f"\\{byte:02X}" for byte in text.encode())
