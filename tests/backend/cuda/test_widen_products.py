"""Products of which ptxas 13.4 and 13.5 take known bits for zeros go through 64 bits, and only those."""

from __future__ import annotations

import random

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.assembler.known_bits import ANYTHING, NOTHING, Known, known_bits
from deuteron.backend.cuda.assembler.widen_products import widen_products
from deuteron.compiler import ASTSource

LOADED = "\tld.param.b32 \t%r1, [a];\n\tld.param.b32 \t%r2, [b];\n"


def text(*lines: str) -> str:
    return LOADED + "".join(f"\t{line}\n" for line in lines)


def is_widened(*lines: str) -> bool:
    found = widen_products(text(*lines))
    assert (found == text(*lines)) != ("mul.wide.u32" in found)
    return "mul.wide.u32" in found


@pytest.mark.parametrize(
    "factors",
    [
        ("or.b32 %r3, %r1, 1;", "or.b32 %r4, %r2, 255;"),
        ("shl.b32 %r5, %r1, 1;", "add.s32 %r3, %r5, 1;", "mov.b32 %r4, %r3;"),
        ("and.b32 %r5, %r1, -4;", "xor.b32 %r3, %r5, 2;", "shl.b32 %r6, %r2, 3;", "add.s32 %r4, %r6, 4;"),
        ("or.b32 %r3, %r1, 1;", "selp.b32 %r4, 3, 5, %p1;"),
        ("or.b32 %r3, %r1, 1;", "setp.lt.u32 %p1, %r1, %r1;", "selp.b32 %r4, %r1, %r3, %p1;"),
        ("or.b32 %r3, %r1, 1;", "shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;"),
        ("or.b32 %r3, %r1, 1;", "shfl.sync.idx.b32 %r4|%p1, %r3, 1, 31, -1;"),
        ("or.b32 %r3, %r1, 1;", "popc.b32 %r4, %r2;"),
        ("or.b32 %r3, %r1, 1;", "mov.b32 %r4, local;"),
        ("or.b32 %r3, %r1, 1;", "{ .reg .b32 t; mov.b32 t, 1; mov.b32 %r4, t; }"),
    ],
)  # fmt: skip
def test_widens_where_both_may_be_known(factors):
    assert is_widened(*factors, "mul.lo.s32 %r9, %r3, %r4;")
    assert is_widened(*factors, "mad.lo.s32 %r9, %r4, %r3, %r1;")


@pytest.mark.parametrize("guard", ["@%p1", "@!p"])
def test_of_a_guarded_product_the_result_is(guard):
    """A block has no guard."""
    factors = "or.b32 %r3, %r1, 1;", "or.b32 %r4, %r2, 1;"
    assert f"; {guard} cvt.u32.u64 \t%r9, product; }}" in widen_products(
        text(*factors, f"{guard} mul.lo.s32 %r9, %r3, %r4;")
    )
    found = widen_products(text(*factors, f"{guard} mad.lo.s32 %r9, %r3, %r4, %r1;"))
    assert f"; {guard} add.s32 \t%r9, low, %r1; }}" in found
    assert f"{guard} {{" not in found


@pytest.mark.parametrize(
    "factors",
    [
        ("mov.b32 %r3, %r1;", "or.b32 %r4, %r2, 1;"),
        ("or.b32 %r3, %r1, 1;", "mov.u32 %r4, %ctaid.x;"),
        ("or.b32 %r3, %r1, 1;", "div.s32 %r4, %r2, %r3;"),
        ("or.b32 %r3, %r1, 2;", "or.b32 %r4, %r2, 2;"),
        ("and.b32 %r3, %r1, -2;", "or.b32 %r4, %r2, 1;"),
        ("or.b32 %r3, %r1, 1;", "add.s32 %r4, %r2, 1;"),
    ],
)
def test_leaves_what_cannot_be_known(factors):
    assert not is_widened(*factors, "mul.lo.s32 %r9, %r3, %r4;")


def test_products_may_be_assembled_in_another_order():
    assert is_widened("or.b32 %r3, %r1, 1;", "mul.lo.s32 %r4, %r2, %r3;", "mul.lo.s32 %r5, %r3, %r4;")
    assert not is_widened("or.b32 %r3, %r1, 1;", "mad.lo.s32 %r4, %r2, %r3, %r1;", "mul.lo.s32 %r5, %r3, %r4;")


def test_keeps_what_is_added():
    found = widen_products(text("or.b32 %r3, %r1, 1;", "mad.lo.s32 \t%r9, %r3, %r3, -7;"))
    assert "mul.wide.u32 \tproduct, %r3, %r3; cvt.u32.u64 \tlow, product; add.s32 \t%r9, low, -7;" in found


def test_goes_round_loops():
    odd = ("mov.b32 %r3, 1;", "$L: or.b32 %r4, %r2, 1;", "mul.lo.s32 %r5, %r3, %r4;", "mov.b32 %r3, %r5;")
    assert is_widened(*odd)
    assert not is_widened(*(line for line in odd if ", 1;" not in line))


def test_known_bits():
    known = known_bits(text("or.b32 %r3, %r1, 1;", "shl.b32 %r4, %r3, 1;", "clz.b32 %r5, %r1;"), ["%r5", "%r4"])
    assert known == {
        "%r1": NOTHING, "%r3": Known(1, 0), "%r4": Known(2, 1), "%r5": ANYTHING,
    }  # fmt: skip


COMPUTE = {
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "add.s32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b,
    "shl.b32": lambda a, b: a << b if b < 32 else 0,
    "shr.u32": lambda a, b: a >> b if b < 32 else 0,
}


def test_known_bits_of_random_programs(rng: np.random.Generator):
    """Bits that are known are those of every run."""
    choose = random.Random(int(rng.integers(2**32)))
    for _ in range(200):
        values = {f"%r{i}": [int(v) for v in rng.integers(0, 2**32, 16)] for i in (1, 2)}
        lines = []
        for register in range(3, 20):
            opcode, a = choose.choice(list(COMPUTE)), choose.choice(list(values))
            number = choose.choice((1, 2, 3, 7, 8, 15, 254, 255, 0xFFFE))
            b = str(number) if opcode.startswith("sh") or choose.random() < 0.5 else choose.choice(list(values))
            others = values.get(b, [number] * 16)
            result = [COMPUTE[opcode](x, y) & 0xFFFFFFFF for x, y in zip(values[a], others, strict=True)]
            lines.append(f"{opcode} %r{register}, {a}, {b};")
            values[f"%r{register}"] = result
        for register, known in known_bits(text(*lines), values).items():
            for value in values[register]:
                assert known.ones & ~value == 0, (register, known, lines)
                assert known.zeros & value & 0xFFFFFFFF == 0, (register, known, lines)


@deuteron.jit
def product_of_odd(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, tl.cumprod(x | 1, 0))


def test_no_kernel_has_the_pattern():
    """A cumulative product of odd numbers was wrong on an H200."""
    source = ASTSource(product_of_odd, {"x_ptr": "*u8", "out_ptr": "*u8"}, {"BLOCK": 512})
    ptx = deuteron.compile(source, target="cuda:90", options={"num_warps": 1}).asm["ptx"]
    assert "cvt.u32.u64" in ptx
    assert widen_products(ptx) == ptx
