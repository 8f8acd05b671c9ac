"""Inline assembly: instructions that are the same on every executor to the last bit, of one element or packs."""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Value, statement_of

WORDS = (
    "add.u32 $0, $1, $2;",
    "lop3.b32 $0, $1, $2, $1, 0x9C;",
    "prmt.b32 $0, $1, $2, 0x5302;",
    "shf.r.wrap.b32 $0, $1, $2, $1;",
    "{ .reg .pred p; setp.lt.s32 p, $1, $2; selp.b32 $0, $2, $1, p; }",
    "{ .reg .b16 a, b; mov.b32 {a, b}, $1; mov.b32 $0, {b, a}; }",
    "mul.hi.s32 $0, $1, $2;",
    "bfe.s32 $0, $1, 29, 7; bfe.s32 $0, $0, 30, 2;",
    "{ .reg .b16 a, b; mov.b32 {a, b}, $1; min.ftz.f16 a, a, b; cvt.rni.f16.f16 a, a; mov.b32 $0, {a, a}; }",
    "{ .reg .f32 a; .reg .b64 b; mov.b32 a, $1; cvt.rmi.s64.f32 b, a; shr.u64 b, b, 9; cvt.u32.u64 $0, b; }",
)
FLOATS = (
    "add.rn.f32 $0, $1, $2;",
    "mul.rn.f32 $0, $1, $2;",
    "min.NaN.f32 $0, $1, $2;",
    "cvt.rni.f32.f32 $0, $1;",
    "{ .reg .pred p; setp.lt.ftz.f32 p, $1, $2; selp.f32 $0, $2, $1, p; }",
)
PACKS = {
    "int8": (4, "and.b32 $0, $1, $2; xor.b32 $0, $0, 0x11111111;"),
    "uint16": (2, "xor.b32 $0, $1, $2;"),
}


@statement_of("assembly")
def element(b: Builder) -> None:
    dtype, letter, texts = b.rng.choice((("int32", "r", WORDS), ("uint32", "r", WORDS), ("float32", "f", FLOATS)))
    shape = b.shape(0)
    x, y, pure = b.value(dtype, shape), b.value(dtype, shape), b.chance(0.8)
    operands = f'"=&{letter},{letter},{letter}", [{x}, {y}], tl.{dtype}, {pure}, 1'
    b.define(f'tl.inline_asm_elementwise("{b.rng.choice(texts)}", {operands})', dtype, shape)


@statement_of("assembly")
def packs(b: Builder) -> None:
    dtype = b.rng.choice(list(PACKS))
    pack, text = PACKS[dtype]
    shape, count = b.shape(1), b.rng.choice((pack, pack // 2))
    x, y, result = b.value(dtype, shape), b.value(dtype, shape), b.name()
    b.emit(f'{result} = tl.inline_asm_elementwise("{text}", "=&r,r,r", [{x}, {y}], tl.{dtype}, True, {count})')
    b.add_to_scope(Value(result, dtype, shape))
