"""mma.sync: the dot of tiles that lie in the registers of a warp.

    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3};

Products and sums are computed in float64 and rounded once to the accumulator's type; a GPU rounds partial sums, so
float results differ in the last bits. Integers are exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from deuteron.emulator.instructions.convergence import WARP, together
from deuteron.emulator.instructions.fragments import gather_a, gather_b, gather_c, scatter_c
from deuteron.emulator.instructions.half import narrow
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.machine.group import Group
from deuteron.emulator.numerics import decode_small, from_bf16

RULES = Rules()

INTEGERS = ("s8", "u8", "s4", "u4")
_BIT_WIDTHS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4}


def _nibbles(words: np.ndarray, is_signed: bool) -> np.ndarray:
    values = (words[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & np.uint32(15)).astype(np.int64)
    return np.where(values >= 8, values - 16, values) if is_signed else values


UNPACK: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "f16": lambda words: words[..., None].view(np.float16).astype(np.float64),
    "bf16": lambda words: from_bf16(words[..., None].view(np.uint16)).astype(np.float64),
    # tf32 has 10 bits of mantissa: the hardware ignores the others.
    "tf32": lambda words: (words & np.uint32(0xFFFFE000)).view(np.float32)[..., None].astype(np.float64),
    "e4m3": lambda words: decode_small(words[..., None].view(np.uint8), "e4m3").astype(np.float64),
    "e5m2": lambda words: decode_small(words[..., None].view(np.uint8), "e5m2").astype(np.float64),
    "f64": lambda words: words.view(np.float64)[..., None],
    "s8": lambda words: words[..., None].view(np.int8).astype(np.int64),
    "u8": lambda words: words[..., None].view(np.uint8).astype(np.int64),
    "s4": lambda words: _nibbles(words, True),
    "u4": lambda words: _nibbles(words, False),
}


@RULES.effect("mma.sync.aligned", "mma.sync")
def decode_mma(d: Decoding):
    shape = next((name for name in d.modifiers if re.fullmatch(r"m\d+n\d+k\d+", name)), "")
    if shape not in ("m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m16n8k64", "m8n8k4", "m8n8k16", "m8n8k32"):
        raise d.error("has a shape that is not known")
    d.flag(shape, "row", "col", "aligned", "kind::f8f6f4")
    m, n, k = (int(size) for size in re.findall(r"\d+", shape))
    saturates = d.flag("satfinite")
    result, a_type, b_type, c_type = d.modifiers[-4:]
    if a_type not in UNPACK or b_type not in UNPACK or (shape == "m8n8k4" and a_type != "f64"):
        raise d.error("has operand types that are not known")
    del d.modifiers[-4:]
    word = "b64" if a_type == "f64" else "b32"
    a, b = ([d.get(operand, word) for operand in d.vector(position)] for position in (1, 2))
    read_c = _accumulator_reader(d, c_type, m, n)
    write = _accumulator_writer(d, result, m, n)
    per_register = max(64 if a_type == "f64" else 32, 1) // _BIT_WIDTHS[a_type]
    unpack_a, unpack_b = UNPACK[a_type], UNPACK[b_type]
    index_a, index_b = gather_a(m, k, per_register), gather_b(k, n, per_register)

    def run(group):
        left = _tile(group, a, unpack_a, index_a)
        right = _tile(group, b, unpack_b, index_b)
        write(group, left @ right + read_c(group), saturates)

    return together(d, WARP, run)


def _tile(group: Group, registers: list, unpack: Callable, index: np.ndarray) -> np.ndarray:
    """[warps, rows, columns] of the values in the registers."""
    words = np.stack([read(group) for read in registers], 1)
    values = np.ascontiguousarray(unpack(words))
    return values.reshape(len(group.warp_numbers), -1)[:, index]


def _accumulator_reader(d: Decoding, type: str, m: int, n: int) -> Callable[[Group], np.ndarray]:
    index = gather_c(m, n)
    operands = d.vector(3)
    if type == "f16":
        reads = [d.get(operand, "b32") for operand in operands]
        return lambda group: _tile(group, reads, UNPACK["f16"], index)
    reads = [d.get(operand, type) for operand in operands]
    wide = np.int64 if type == "s32" else np.float64

    def read(group):
        values = np.stack([one(group) for one in reads], 1).astype(wide)
        return values.reshape(len(group.warp_numbers), -1)[:, index]

    return read


def _accumulator_writer(d: Decoding, type: str, m: int, n: int) -> Callable[[Group, np.ndarray, bool], None]:
    index = scatter_c(m, n)
    writes = [d.set(operand, "b32" if type == "f16" else type) for operand in d.vector(0)]

    def write(group, matrix, saturates):
        values = matrix.reshape(len(matrix), -1)[:, index].reshape(group.size, -1)
        registers = to_accumulator(values, type, saturates)
        for position, one in enumerate(writes):
            one(group, np.ascontiguousarray(registers[:, position]))

    return write


def to_accumulator(values: np.ndarray, type: str, saturates: bool) -> np.ndarray:
    """Sums [threads, elements] as registers [threads, registers] of the accumulator type."""
    if type == "f16":
        return narrow(values.reshape(len(values), -1, 2), "f16x2")
    if type == "s32":
        limits = np.iinfo(np.int32)
        return (np.clip(values, limits.min, limits.max) if saturates else values).astype(np.int32)
    return values.astype(np.float32 if type == "f32" else np.float64)
