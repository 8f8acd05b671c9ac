"""The instructions mma.sync: a 16 x k times a k x 8 tile, spread over the lanes of a warp.

    type    k    words of a thread      name
    f16     16   4 of a, 2 of b         llvm.nvvm.mma.m16n8k16.row.col.f32.f32
    bf16    16   4 of a, 2 of b         llvm.nvvm.mma.m16n8k16.row.col.bf16
    tf32    8    4 of a, 2 of b         llvm.nvvm.mma.m16n8k8.row.col.tf32              rounded before, or cut off by it
    int8    32   4 of a, 2 of b         llvm.nvvm.mma.m16n8k32.row.col.s8
    fp8     32   4 of a, 2 of b         llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32    sm_89 and later
    f64     4    2 of a, 1 of b         llvm.nvvm.mma.m16n8k4.row.col.f64               sm_90 and later, 64 registers
    f64     4    2 of a, 1 of b         llvm.nvvm.mma.m8n8k4.row.col.f64                else: twice, for 8 rows each

Those for f64 with a k of 8 and 16 are no faster (47 to 53 TFLOP/s of each on an H100), and hold more registers at once.

A word is 32 bits of neighbours along K, or one f64. Word 0 of a is at (row, k), then (row + 8, k), the same four words
further along K, and so on; the words of b are at (k, column), and four words further along K. Sums are f32, i32 or f64.
PTX ISA, "Matrix Fragments for mma".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from deuteron.backend.gpu.words import join, pack, struct_members
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.ir.types import bf16, element_type_of, f8e4m3, f8e5m2, f16, f32, f64, i8
from deuteron.machine.matrix import RegisterMatrixUnit

Read = Callable[[int, int], Value]  # the element of a thread's operand at a row and a column


@dataclass(frozen=True)
class Instruction:
    """One kind of mma.sync: how deep it is, how many elements are a word, what the sums are; 16 rows may take two."""

    name: str
    k: int
    per_word: int
    sum_type: str
    make_word: Callable[[Builder, Sequence[Value]], Value]
    rows: int = 16

    def operand_a(self, b: Builder, read: Read, row: int, k: int) -> list[Value]:
        places = [(row + r, d) for d in self._steps(k) for r in (0, 8)]
        return [self.make_word(b, [read(r, d + i) for i in range(self.per_word)]) for r, d in places]

    def operand_b(self, b: Builder, read: Read, column: int, k: int) -> list[Value]:
        return [self.make_word(b, [read(d + i, column) for i in range(self.per_word)]) for d in self._steps(k)]

    def _steps(self, k: int) -> range:
        """Where a thread has a word along K: one of four lanes' words."""
        return range(k, k + self.k, 4 * self.per_word)

    def multiply(self, b: Builder, x: list[Value], y: list[Value], sums: list[Value]) -> list[Value]:
        """The four sums of a thread, at (row, column), (row, column + 1), and 8 rows below."""
        parts, count = 16 // self.rows, 4 * self.rows // 16
        type = "{ " + ", ".join([self.sum_type] * count) + " }"
        results: list[Value] = []
        for part in range(parts):
            mine = sums[part * count : (part + 1) * count]
            result = b.call(type, f"llvm.nvvm.mma.{self.name}", *x[part::parts], *y, *mine)
            results += struct_members(b, result, self.sum_type, count)
        return results


def _bits(b: Builder, elements: Sequence[Value]) -> Value:
    return b.bitcast(join(b, elements), "i32")


def _bytes(b: Builder, elements: Sequence[Value]) -> Value:
    return pack(b, elements)[0]


def tf32_word(b: Builder, element: Value, precision: InputPrecision) -> Value:
    """An operand of tf32; the instruction cuts off what the type does not hold."""
    if precision == InputPrecision.TF32_RTZ:
        return b.bitcast(element, "i32")
    return b.call("i32", "llvm.nvvm.f2tf32.rna", element)


def _itself(b: Builder, elements: Sequence[Value]) -> Value:
    return elements[0]


def instruction_for(dot: DotOp, unit: RegisterMatrixUnit, registers: int) -> Instruction:
    """By the types of elements, which differ in fp8 only, and the registers that a thread may have."""
    a, b = element_type_of(dot.a.type), element_type_of(dot.b.type)
    if a == f64:
        rows = unit.f64_rows if registers >= unit.f64_registers else 8
        return Instruction(f"m{rows}n8k4.row.col.f64", 4, 1, "double", _itself, rows)
    if a in _FP8_NAMES:
        return Instruction(f"m16n8k32.row.col.f32.{_FP8_NAMES[a]}.{_FP8_NAMES[b]}.f32", 32, 4, "float", _bytes)
    if a == f32:
        precision = InputPrecision(dot.input_precision.value.data)
        return Instruction("m16n8k8.row.col.tf32", 8, 1, "float", lambda b, word: tf32_word(b, word[0], precision))
    return _INSTRUCTIONS[a]


_FP8_NAMES: dict[Attribute, str] = {f8e4m3: "e4m3", f8e5m2: "e5m2"}
_INSTRUCTIONS: dict[Attribute, Instruction] = {
    f16: Instruction("m16n8k16.row.col.f32.f32", 16, 2, "float", join),
    bf16: Instruction("m16n8k16.row.col.bf16", 16, 2, "float", _bits),
    i8: Instruction("m16n8k32.row.col.s8", 32, 4, "i32", _bytes),
}
