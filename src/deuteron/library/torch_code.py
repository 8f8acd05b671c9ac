"""The functions of a library as operators of torch, in C++ over torch's stable ABI: `torch.ops.norms.rms_norm_fp32`.

    library_torch("norms", functions)       the text of norms_torch.cpp

    rms_norm_fp32(Tensor X, Tensor(a!) Y, int n, int n_rows, int? algo_id=None) -> ()

An operator without an algorithm is the function `..._default`, which may choose by what was measured. It runs on the
device of its tensors, which have the types that the kernel was compiled for. The ABI is that of torch 2.10.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence

from deuteron.aot.c_types import c_type, is_read
from deuteron.aot.dispatch import Algos, Functions, records_of
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.aot.symbols import symbol
from deuteron.aot.templates import render
from deuteron.library.c_code import library_digest, pointee

_ELEMENTS = {
    "i1": "Bool",
    "i8": "Char",
    "u8": "Byte",
    "i16": "Short",
    "i32": "Int",
    "i64": "Long",
    "u16": "UInt16",
    "u32": "UInt32",
    "u64": "UInt64",
    "fp16": "Half",
    "bf16": "BFloat16",
    "fp32": "Float",
    "fp64": "Double",
    "fp8e4nv": "Float8_e4m3fn",
    "fp8e5": "Float8_e5m2",
    "fp8e4b8": "Float8_e4m3fnuz",
    "fp8e5b16": "Float8_e5m2fnuz",
}
_ANY_BYTE = "Byte"  # for a type that torch does not have


def library_torch(name: str, functions: Functions) -> str:
    """The text; functions that take no pointer, whose device nothing says, are no operators."""
    digest = library_digest(name, functions)
    operators = [_Operator(name, algos, digest) for name, algos in functions.items()]
    kept = [operator for operator in operators if operator.tensors]
    return render(
        "library_torch.cpp",
        name=name,
        functions="\n".join(operator.definition() for operator in kept),
        schemas="\n".join(f'  m.def("{operator.schema()}");' for operator in kept),
        registered="\n".join(line for key in ("CPU", "CUDA", "Meta") for line in _registered(name, key, kept)),
    )


def _registered(library: str, key: str, operators: Sequence[_Operator]) -> Iterator[str]:
    yield f"STABLE_TORCH_LIBRARY_IMPL({library}, {key}, m) {{"
    for operator in operators:
        yield f'  m.impl("{operator.name}", TORCH_BOX(&{operator.name}_on<deuteron_device::{key}>));'
    yield "}"


class _Operator:
    """A function, and the one that says why it refuses arguments, as an operator."""

    def __init__(self, name: str, algos: Algos, digest: str):
        self.name, self.symbol = name, symbol(digest, name)  # libc has names, too: `select`
        self.default, self.supports = symbol(digest, f"{name}_default"), symbol(digest, f"{name}_supports")
        self.records: list[KernelRecord] = records_of(algos)
        self.params: Sequence[ParamRecord] = self.records[0].c_params
        self.tensors = [param for param in self.params if param.type.startswith("*")]

    def schema(self) -> str:
        """As torch writes it; what is written to is marked."""
        marks = iter(string.ascii_letters)
        taken = [self._in_schema(param, marks) for param in self.params]
        return f"{self.name}({', '.join([*taken, 'int? algo_id=None'])}) -> ()"

    def _in_schema(self, param: ParamRecord, marks: Iterator[str]) -> str:
        if param.type.startswith("*"):
            return f"Tensor{'' if is_read(param, self.records) else f'({next(marks)}!)'} {param.c_name}"
        in_c = c_type(param.type)
        return f"{'bool' if in_c == 'bool' else 'float' if in_c in ('float', 'double') else 'int'} {param.c_name}"

    def definition(self) -> str:
        taken = ", ".join([*map(_taken, self.params), "std::optional<int64_t> algo_id"])
        given = ", ".join(["deuteron_here.stream", *map(self._given, self.params)])
        return (
            f"template <deuteron_device where> void {self.name}_on({taken}) {{\n"
            f"  if constexpr (where != deuteron_device::Meta) {{\n"
            f"    const deuteron_place<where> deuteron_here({self.tensors[0].c_name});\n"
            f'    const int deuteron_algo = deuteron_whole<int>(algo_id.value_or(0), "algo_id");\n'
            f"    deuteron_check(algo_id ? ::{self.symbol}({given}, deuteron_algo)\n"
            f"                           : ::{self.default}({given}), [&](const char **deuteron_why) {{\n"
            f"      return ::{self.supports}({given}, deuteron_algo, deuteron_why);\n    }});\n"
            f"  }}\n}}\n"
        )

    def _given(self, param: ParamRecord) -> str:
        if param.type.startswith("*"):
            element = _ELEMENTS.get(param.type[1:], _ANY_BYTE)
            to = f"{'const ' if is_read(param, self.records) else ''}{pointee(param)}"
            return f'deuteron_address<where, {to}>({param.c_name}, ScalarType::{element}, "{param.c_name}")'
        in_c = c_type(param.type)
        if in_c in ("bool", "float", "double"):
            return f"static_cast<{in_c}>({param.c_name})"
        return f'deuteron_whole<{in_c}>({param.c_name}, "{param.c_name}")'


def _taken(param: ParamRecord) -> str:
    if param.type.startswith("*"):
        return f"Tensor {param.c_name}"
    in_c = c_type(param.type)
    return f"{'bool' if in_c == 'bool' else 'double' if in_c in ('float', 'double') else 'int64_t'} {param.c_name}"
