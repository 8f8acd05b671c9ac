"""Logic and bit fields: and, or, xor, not, cnot, shl, shr, shf, bfe, bfi, bfind, brev, clz, popc, prmt, lop3, szext.

shr.s32 %r2, %r1, 40;        shifts by more than the width give 0, or the sign
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.instructions.elementwise import elementwise
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.types import BITS
from deuteron.ptx.syntax import Immediate

RULES = Rules()

_BINARY = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@RULES.pure(*_BINARY)
def decode_logic(d: Decoding):
    type, name = d.type(), d.instruction.opcode.split(".")[0]
    if type != "pred":
        d.computes_parts(type, 2, _cleared(d, type) if name == "and" else None)
    return elementwise(d, _BINARY[name], type, type, type)


def _cleared(d: Decoding, type: str) -> np.ndarray | None:
    """The bytes that a constant mask clears."""
    if not isinstance(d.operand(2), Immediate):
        return None
    mask = np.array([d.immediate(2) & (1 << 64) - 1], np.uint64)
    return mask.view(np.uint8)[: BITS[type]().itemsize] == 0


@RULES.pure("not")
def decode_not(d: Decoding):
    type = d.type()
    return elementwise(d, np.invert, type, type)


@RULES.pure("cnot")
def decode_cnot(d: Decoding):
    type = d.type()
    return elementwise(d, lambda a: (a == 0).astype(a.dtype), type, type)


def shift_left(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    width = 8 * a.dtype.itemsize
    small = np.minimum(count, np.uint32(width - 1)).astype(a.dtype)
    return np.where(count < width, a << small, a.dtype.type(0))


def shift_right(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Arithmetic for signed types, logical for unsigned ones."""
    width = 8 * a.dtype.itemsize
    shifted = a >> np.minimum(count, np.uint32(width - 1)).astype(a.dtype)
    return shifted if np.issubdtype(a.dtype, np.signedinteger) else np.where(count < width, shifted, a.dtype.type(0))


@RULES.pure("shl")
def decode_shl(d: Decoding):
    type = d.type()
    count = d.immediate(2) if isinstance(d.operand(2), Immediate) else 0
    d.computes_parts(type, 1, raised=count // 8)
    return elementwise(d, lambda a, b: shift_left(np.asarray(a), b), type, type, "u32")


@RULES.pure("shr")
def decode_shr(d: Decoding):
    type = d.type()
    return elementwise(d, lambda a, b: shift_right(np.asarray(a), b), type, type, "u32")


@RULES.pure("shf")
def decode_shf(d: Decoding):
    """Funnel shift of the 64 bits b:a; `l` gives the upper word, `r` the lower."""
    is_left = d.choice("l", "r") == "l"
    clamps = d.choice("clamp", "wrap") == "clamp"
    type = d.type()

    def funnel(a, b, c):
        count = np.minimum(c, np.uint32(32)) if clamps else c & np.uint32(31)
        both = np.asarray(b, np.uint64) << np.uint64(32) | np.asarray(a, np.uint64)
        count = np.asarray(count, np.uint64)
        moved = (both << count) >> np.uint64(32) if is_left else both >> count
        return (moved & np.uint64(0xFFFFFFFF)).astype(np.uint32)

    return elementwise(d, funnel, type, type, type, "u32")


def extract_field(a: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    """`bfe`: bits from `position` on; above the top bit the sign of the field, or zero."""
    a = np.asarray(a)
    width = 8 * a.dtype.itemsize
    position = np.asarray(position & np.uint32(255), np.int64)
    length = np.asarray(length & np.uint32(255), np.int64)
    bits = a.view(BITS_OF[a.dtype.itemsize])
    field = shift_right(bits, position.astype(np.uint32))
    ones = ~shift_left(np.full_like(field, ~field.dtype.type(0)), np.minimum(length, width).astype(np.uint32))
    field = field & ones
    if np.issubdtype(a.dtype, np.signedinteger):
        sign_position = np.minimum(position + length - 1, width - 1)
        sign = shift_right(bits, np.maximum(sign_position, 0).astype(np.uint32)) & field.dtype.type(1)
        reach = np.where(length > 0, np.maximum(sign_position - position + 1, 0), 0)
        filler = ~shift_left(np.full_like(field, ~field.dtype.type(0)), reach.astype(np.uint32))
        field = np.where((length > 0) & (sign != 0), field | ~filler, field)
    return field.view(a.dtype)


BITS_OF = {4: np.uint32, 8: np.uint64}


@RULES.pure("bfe")
def decode_bfe(d: Decoding):
    type = d.type()
    return elementwise(d, extract_field, type, type, "u32", "u32")


@RULES.pure("bfi")
def decode_bfi(d: Decoding):
    type = d.type()

    def insert(a, b, position, length):
        b = np.asarray(b)
        position, length = (np.asarray(x & np.uint32(255), np.uint32) for x in (position, length))
        all_ones = np.full(b.shape, ~b.dtype.type(0))
        field = shift_left(~shift_left(all_ones, length), position)
        return b & ~field | shift_left(np.asarray(a), position) & field

    return elementwise(d, insert, type, type, type, "u32", "u32")


def reverse_bits(a: np.ndarray) -> np.ndarray:
    a = np.atleast_1d(a)
    as_bits = np.unpackbits(a[:, None].view(np.uint8), axis=1, bitorder="little")[:, ::-1]
    return np.packbits(as_bits, axis=1, bitorder="little").view(a.dtype)[:, 0]


def bit_length(a: np.ndarray) -> np.ndarray:
    """The position of the highest set bit plus one."""
    a = np.atleast_1d(a)
    as_bits = np.unpackbits(a[:, None].view(np.uint8), axis=1, bitorder="little")
    width = as_bits.shape[1]
    return np.where(a == 0, 0, width - np.argmax(as_bits[:, ::-1], axis=1)).astype(np.uint32)


@RULES.pure("brev")
def decode_brev(d: Decoding):
    type = d.type()
    return elementwise(d, reverse_bits, type, type)


@RULES.pure("clz")
def decode_clz(d: Decoding):
    type = d.type()
    width = np.uint32(8 * BITS[type]().itemsize)
    return elementwise(d, lambda a: width - bit_length(a), "u32", type)


@RULES.pure("popc")
def decode_popc(d: Decoding):
    type = d.type()
    return elementwise(d, count_bits, "u32", type)


def count_bits(a: np.ndarray) -> np.ndarray:
    return np.unpackbits(np.atleast_1d(a)[:, None].view(np.uint8), axis=1).sum(1, dtype=np.uint32)


@RULES.pure("bfind")
def decode_bfind(d: Decoding):
    type = d.type()
    gives_shift = d.flag("shiftamt")
    width = 8 * BITS[type]().itemsize

    def find(a):
        a = np.asarray(a)
        is_signed = np.issubdtype(a.dtype, np.signedinteger)
        magnitude = np.where(a < 0, ~a, a) if is_signed else a
        position = bit_length(magnitude.view(BITS[type])).astype(np.int64) - 1
        found = np.where(position < 0, -1, width - 1 - position if gives_shift else position)
        return found.astype(np.int32).view(np.uint32)

    return elementwise(d, find, "u32", type)


def permute_bytes(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """`prmt`: byte i of the result is the byte of b:a that nibble i names; its top bit asks for the sign instead."""
    a, b, selector = np.broadcast_arrays(np.asarray(a, np.uint32), b, selector)
    pool = np.stack([a, b], -1).astype(np.uint32).view(np.uint8)
    nibbles = selector[..., None] >> np.array([0, 4, 8, 12], np.uint32) & np.uint32(15)
    chosen = np.take_along_axis(pool, (nibbles & np.uint32(7)).astype(np.int64), -1)
    sign = np.where(chosen >= 128, np.uint8(255), np.uint8(0))
    return np.ascontiguousarray(np.where(nibbles >= 8, sign, chosen)).view(np.uint32)[..., 0]


_PRMT_MODES = {
    "f4e": [0x3210, 0x4321, 0x5432, 0x6543],
    "b4e": [0x5670, 0x6701, 0x7012, 0x0123],
    "rc8": [0x0000, 0x1111, 0x2222, 0x3333],
    "ecl": [0x3210, 0x3211, 0x3222, 0x3333],
    "ecr": [0x0000, 0x1110, 0x2210, 0x3210],
    "rc16": [0x1010, 0x3232, 0x1010, 0x3232],
}


@RULES.pure("prmt")
def decode_prmt(d: Decoding):
    d.type()
    mode = d.choice(*_PRMT_MODES, default="index")
    if mode == "index":
        return elementwise(d, permute_bytes, "b32", "b32", "b32", "u32")
    selectors = np.array(_PRMT_MODES[mode], np.uint32)
    return elementwise(d, lambda a, b, c: permute_bytes(a, b, selectors[c & np.uint32(3)]), "b32", "b32", "b32", "u32")


@RULES.pure("lop3")
def decode_lop3(d: Decoding):
    d.type()
    table = d.immediate(4)

    def lookup(a, b, c):
        result = np.zeros(np.broadcast(a, b, c).shape, np.uint32)
        for row in range(8):
            if table >> row & 1:
                result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        return result

    return elementwise(d, lookup, "b32", "b32", "b32", "b32")


@RULES.pure("szext")
def decode_szext(d: Decoding):
    d.choice("wrap", "clamp")
    type = d.type()
    return elementwise(d, lambda a, n: extract_field(a, n * np.uint32(0), n & np.uint32(31)), type, type, "u32")
