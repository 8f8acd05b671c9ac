"""bf16 in the upper halves of words become floats with the same bits, by one instruction."""

import ml_dtypes
import numpy as np
from backend.cuda.launching import aligned, emulate

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.assembler.widen_halves import widen_halves

HALVES = "\tmov.b32 \t{_, %rs1}, %r1;\n"
WIDENED = "\tcvt.f32.bf16 \t%r2, %rs1;\n"


@deuteron.jit
def widened(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(tl.float32))


def test_every_bf16_keeps_its_bits():
    x = np.arange(1 << 16, dtype=np.uint16)
    out = aligned(np.zeros(1 << 16, np.float32))
    kernel = emulate(widened, aligned(x.view(ml_dtypes.bfloat16)), out, N=1 << 16, num_warps=32)
    expected = x.astype(np.uint32) << 16
    is_number = ~np.isnan(expected.view(np.float32))
    np.testing.assert_array_equal(np.isnan(out), ~is_number)
    np.testing.assert_array_equal(out.view(np.uint32)[is_number], expected[is_number])
    ptx = kernel.asm["ptx"]
    assert ptx.count(", -65536;") == ptx.count("cvt.f32.bf16") == 1 << 5


def test_a_loop_may_load_the_next_word_in_between():
    next_word = "\tld.global.b32 \t%r1, [%rd1];\n"
    copied = HALVES + "\tmov.b32 \t%upper1, %r1;\n"
    assert widen_halves(HALVES + next_word + WIDENED) == copied + next_word + "\tand.b32 \t%r2, %upper1, -65536;\n"


def test_halves_that_come_from_elsewhere_too_stay():
    for other in (
        "\tmov.b16 \t%rs1, %rs2;\n",
        "\tmov.b32 \t{%rs1, %rs2}, %r1;\n",
        "\tld.global.v2.b16 \t{%rs3, %rs1}, [%rd1];\n",
        "\t@%p1 mov.b16 %rs1, 0;\n",
        "\t{ .reg .b16 one; mov.b16 one, 1; fma.rn.f16 \t%rs1, %rs2, one, %rs3; }\n",
    ):
        text = HALVES + WIDENED + other
        assert widen_halves(text) == text


def test_halves_may_be_read_elsewhere():
    for other in ("\tst.global.b16 \t[%rd1], %rs11;\n", "\tadd.bf16 \t%rs3, %rs1, %rs1;\n", "\tbar.sync \t0;\n"):
        assert ", -65536;" in widen_halves(HALVES + other + WIDENED)
