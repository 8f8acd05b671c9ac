"""Inline assembly: bits, floats, conversions, packs, several results, on GPUs as it is, elsewhere translated."""

import ml_dtypes
import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.errors import AssertionFailure, CompilationError, DeuteronError

pytestmark = pytest.mark.each_gpu


@triton.jit
def integers_kernel(x_ptr, y_ptr, z_ptr, out_ptr, ASM: tl.constexpr, CONSTRAINTS: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    args = [tl.load(x_ptr + offsets), tl.load(y_ptr + offsets), tl.load(z_ptr + offsets)]
    results = tl.inline_asm_elementwise(ASM, CONSTRAINTS, args, dtype=(tl.uint32,) * 8, is_pure=True, pack=1)
    for index in tl.static_range(8):
        tl.store(out_ptr + index * N + offsets, results[index])


A = """
lop3.b32 $0, $8, $9, $10, 0x6A;   // z ^ (x & y)
prmt.b32 $1, $8, $9, 0x1F64;
shl.b32 $2, $8, $10;
shr.s32 $3, $8, $10;
shf.l.wrap.b32 $4, $8, $9, $10;
bfe.s32 $5, $8, 5, 9;
bfi.b32 $6, $8, $9, 3, 12;
brev.b32 $7, $8;
"""
B = """
{
.reg .pred p, q;
.reg .b32 t;
.reg .b16 lo, hi;
setp.lt.s32 p, $8, $9;
setp.hi.u32 q, $8, $9;
selp.b32 $0, $8, $9, p;
mov.b32 $1, 7;
@q add.s32 $1, $1, 35;
popc.b32 $2, $8;
clz.b32 $3, $10;
mul.hi.u32 $4, $8, $9;
mad.lo.s32 $5, $8, $9, $10;
mov.b32 {lo, hi}, $8;
mov.b32 $6, {hi, lo};
cvt.s32.s8 t, $8;
max.s32 $7, t, $9;
}
"""


def expected_a(x, y, z):
    signed = x.view(np.int32)
    pair = np.stack([x, y], -1).view(np.uint8).reshape(len(x), 8)
    byte_f = np.where(pair[:, 7] >> 7, 255, 0).astype(np.uint8)
    permuted = np.stack([pair[:, 4], pair[:, 6], byte_f, pair[:, 1]], -1).view(np.uint32)[:, 0]
    wide = x.astype(np.uint64) << np.minimum(z, 63).astype(np.uint64)
    turned = (y.astype(np.uint64) << 32 | x) << (z & 31).astype(np.uint64)
    reversed_ = np.array([int(f"{v:032b}"[::-1], 2) for v in x], np.uint32)
    return [
        z ^ (x & y),
        permuted,
        np.where(z < 32, wide, 0).astype(np.uint32),
        (signed >> np.minimum(z, 31).astype(np.int32)).view(np.uint32),
        (turned >> np.uint64(32)).astype(np.uint32),
        (signed << 18 >> 23).view(np.uint32),
        (x & 0xFFF) << 3 | y & ~np.uint32(0xFFF << 3),
        reversed_,
    ]


def expected_b(x, y, z):
    low = x.astype(np.int8).astype(np.int32)
    return [
        np.where(x.view(np.int32) < y.view(np.int32), x, y),
        np.where(x > y, 42, 7).astype(np.uint32),
        np.array([int(v).bit_count() for v in x], np.uint32),
        np.array([32 - int(v).bit_length() for v in z], np.uint32),
        (x.astype(np.uint64) * y >> np.uint64(32)).astype(np.uint32),
        x * y + z,
        x << 16 | x >> 16,
        np.maximum(low, y.view(np.int32)).view(np.uint32),
    ]


C = """
dp4a.s32.u32 $0, $8, $9, $10;
dp2a.hi.u32.s32 $1, $8, $9, $10;
sad.s32 $2, $8, $9, $10;
bfind.s32 $3, $8;
bfind.shiftamt.u32 $4, $10;
cvt.sat.s8.s32 $5, $8;
slct.u32.s32 $6, $9, $10, $8;
mul.hi.s32 $7, $8, $9;
"""


def expected_c(x, y, z):
    a, b = x.view(np.int32).astype(np.int64), y.view(np.int32).astype(np.int64)
    bytes, words = x.view(np.int8).reshape(-1, 4).astype(np.int64), x.view(np.uint16).reshape(-1, 2).astype(np.int64)
    other, signed = (y.view(type).reshape(-1, 4).astype(np.int64) for type in (np.uint8, np.int8))
    results = [
        (bytes * other).sum(1) + z,
        (words * signed[:, 2:]).sum(1) + z,
        np.abs(a - b) + z,
        [int(v if v >= 0 else ~v).bit_length() - 1 for v in a],
        [32 - int(v).bit_length() if v else -1 for v in z],
        np.clip(a, -128, 127),
        np.where(a >= 0, y, z),
        a * b >> 32,
    ]
    return [(np.array(result, np.int64) & 0xFFFFFFFF).astype(np.uint32) for result in results]


@pytest.mark.parametrize(("asm", "expected"), [(A, expected_a), (B, expected_b), (C, expected_c)], ids=["A", "B", "C"])
def test_integers(draw, poisoned, asm, expected):
    x, y, z = draw("uint32", 64), draw("uint32", 64), draw("uint32", 64, 0, 70)
    out = poisoned("uint32", (8, 64))
    integers_kernel[(1,)](x, y, z, out, asm, ",".join(["=&r"] * 8 + ["r, r, r"]), 64)
    for index, wanted in enumerate(expected(x, y, z)):
        np.testing.assert_array_equal(out[index], wanted, err_msg=f"${index}")


@triton.jit
def floats_kernel(x_ptr, y_ptr, out_ptr, ASM: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    args = [tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)]
    constraints: tl.constexpr = "=&f,=&f,=&f,=&f,=&f,=&f,=&f,=&r,f,f"
    dtypes: tl.constexpr = (tl.float32,) * 7 + (tl.int32,)
    results = tl.inline_asm_elementwise(ASM, constraints, args, dtype=dtypes, is_pure=True, pack=1)
    for index in tl.static_range(8):
        tl.store(out_ptr + index * N + offsets, results[index].to(tl.float32))


FLOATS = """
add.rn.f32 $0, $8, $9;
mul.rn.f32 $1, $8, $9;
fma.rn.f32 $2, $8, $9, 0f3F800000;
min.NaN.f32 $3, $8, $9;
max.f32 $4, $8, $9;
div.rn.f32 $5, $8, $9;
cvt.rni.f32.f32 $6, $8;
cvt.rzi.s32.f32 $7, $9;
"""
APPROXIMATE = """
tanh.approx.f32 $0, $8;
ex2.approx.ftz.f32 $1, $8;
rcp.approx.f32 $2, $9;
sqrt.approx.f32 $3, $9;
lg2.approx.f32 $4, $9;
add.sat.f32 $5, $8, 0.25;
cvt.rna.tf32.f32 $6, $8;
mov.b32 $7, 1;
"""


def test_floats(draw, poisoned):
    x, y, out = draw("float32", 64, -40, 40), draw("float32", 64, -3, 3), poisoned("float32", (8, 64))
    x[:6], y[:6] = [0.5, 1.5, -2.5, 2.0**24, np.nan, -0.5], [np.nan, 3e9, -3e9, 1, 2, np.inf]
    floats_kernel[(1,)](x, y, out, FLOATS, 64)
    a, b = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        truncated = np.trunc(np.clip(np.nan_to_num(b, nan=0), -(2.0**31), 2.0**31 - 1))
        expected = [a + b, a * b, a * b + 1, np.minimum(a, b), np.fmax(a, b), a / b, np.rint(a), truncated]
        for index, wanted in enumerate(expected):
            np.testing.assert_array_equal(out[index], wanted.astype(np.float32), err_msg=f"${index}")


THREE = """
max.f32 $0, $8, $9, 0f3F800000;
min.NaN.f32 $1, $8, $9, 0f3F800000;
mov.b32 $2, 0;
mov.b32 $3, 0;
mov.b32 $4, 0;
mov.b32 $5, 0;
mov.b32 $6, 0;
rem.s32 $7, -17, 5;
"""


def test_extremes_of_three(draw, poisoned, executor, monkeypatch):
    """The third operand, which GPUs have from sm_100 on, counts; so do remainders."""
    if executor.startswith("cuda"):
        monkeypatch.setenv("DEUTERON_TARGET", "cuda:100")
    x, y, out = draw("float32", 64, -3, 3), draw("float32", 64, -3, 3), poisoned("float32", (8, 64))
    x[:2], y[1:3] = np.nan, np.nan
    floats_kernel[(1,)](x, y, out, THREE, 64)
    np.testing.assert_array_equal(out[0], np.fmax(np.fmax(x, y), np.float32(1)))
    np.testing.assert_array_equal(out[1], np.minimum(np.minimum(x, y), np.float32(1)))
    np.testing.assert_array_equal(out[7], -2)


KINDS = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
PREDICATES = (
    "{ .reg .pred p;"
    + "".join(f"testp.{kind}.f32 p, $8; selp.f32 ${n}, 0f3F800000, 0f00000000, p;" for n, kind in enumerate(KINDS))
    + """
    setp.gt.f32 p, $8, $9;
    setp.lt.xor.f32 p, $9, 0f3F000000, !p;
    selp.s32 $7, 1, 0, p;
    copysign.f32 $6, $8, $9; }
"""
)


def test_predicates_of_floats(draw, poisoned):
    x, y, out = draw("float32", 64, -3, 3), draw("float32", 64, -3, 3), poisoned("float32", (8, 64))
    x[:8] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1.2e-38]
    floats_kernel[(1,)](x, y, out, PREDICATES, 64)
    is_small = (np.abs(x) < 2.0**-126) & (x != 0)
    expected = [np.isfinite(x), np.isinf(x), ~np.isnan(x), np.isnan(x), np.isfinite(x) & ~is_small, is_small]
    for index, wanted in enumerate(expected):
        np.testing.assert_array_equal(out[index], wanted, err_msg=KINDS[index])
    np.testing.assert_array_equal(out[6], np.copysign(y, x))
    np.testing.assert_array_equal(out[7], (y < 0.5) ^ ~(x > y))


PAIRS = """{
    .reg .b64 a, b;
    mov.b64 a, {$8, $9};
    mov.b64 b, {$9, $8};
    fma.rn.ftz.f32x2 a, a, b, b;
    mov.b64 {$0, $1}, a;
    mul.rn.f32x2 a, a, b;
    mov.b64 {$2, $3}, a;
    sub.rn.f32x2 a, a, b;
    mov.b64 {$4, $5}, a;
    mov.b32 $6, 0;
    mov.b32 $7, 0;
}"""


def test_pairs_of_float32(draw, poisoned, has_four_bits):
    """Which GPUs have from sm_100 on."""
    x, y, out = draw("float32", 64, -3, 3), draw("float32", 64, -3, 3), poisoned("float32", (8, 64))
    floats_kernel[(1,)](x, y, out, PAIRS, 64)
    exact = np.stack([y, x]).astype(np.float64)
    first = (x.astype(np.float64) * y + exact).astype(np.float32)
    second = (first * exact).astype(np.float32)
    third = (second - exact).astype(np.float32)
    np.testing.assert_array_equal(out[:6], np.concatenate([first, second, third]))


ROUNDED = """{
    .reg .b32 pair;
    .reg .b16 low, high;
    cvt.rn.tf32.f32 $0, $8;
    cvt.rz.tf32.f32 $1, $8;
    cvt.rna.tf32.f32 $2, $8;
    cvt.rn.relu.bf16x2.f32 pair, $8, $9;
    mov.b32 {low, high}, pair;
    cvt.f32.bf16 $3, low;
    cvt.f32.bf16 $4, high;
    cvt.rn.bf16x2.f32 pair, $8, $9;
    fma.rn.relu.bf16x2 pair, pair, pair, pair;
    mov.b32 {low, high}, pair;
    cvt.f32.bf16 $5, low;
    cvt.f32.bf16 $6, high;
    mov.b32 $7, 0;
}"""


def test_tf32_and_numbers_that_are_not_negative(draw, poisoned, has_four_bits):
    x, y, out = draw("float32", 64, -3, 3), draw("float32", 64, -3, 3), poisoned("float32", (8, 64))
    x[:6], y[:2] = [1 + 2.0**-11, 1 + 3 * 2.0**-11, np.inf, -np.inf, -0.0, -1 - 2.0**-11], [np.nan, -0.0]
    floats_kernel[(1,)](x, y, out, ROUNDED, 64)
    bits = x.view(np.uint32)
    for index, extra in enumerate([0xFFF + (bits >> 13 & 1), 0, 0x1000]):
        cut = np.where(np.isfinite(x), (bits + np.uint32(extra) & 0xFFFFE000).view(np.float32), x)
        np.testing.assert_array_equal(out[index], cut)
    narrow = np.stack([y, x]).astype(ml_dtypes.bfloat16)
    wide = narrow.astype(np.float64)
    with np.errstate(all="ignore"):
        sums = (wide * wide + wide).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(out[3:7], np.maximum(np.concatenate([narrow, sums]).astype(np.float32), 0))


SCALES = """{{
    .reg .b16 h, low, high;
    .reg .b32 pair;
    cvt.{mode}.ue8m0x2.f32 h, $8, $9;
    cvt.u32.u16 $7, h;
    cvt.rn.bf16x2.ue8m0x2 pair, h;
    mov.b32 {{low, high}}, pair;
    cvt.f32.bf16 $0, low;
    cvt.f32.bf16 $1, high;
    mov.b32 $2, 0; mov.b32 $3, 0; mov.b32 $4, 0; mov.b32 $5, 0; mov.b32 $6, 0;
}}"""


@pytest.mark.parametrize("mode", ["rz.satfinite", "rp.satfinite", "rp"])
def test_powers_of_two(draw, poisoned, has_four_bits, mode):
    """The exponents of two floats, the first one in the upper byte, and the powers of these."""
    x, y, out = draw("float32", 64, -9, 9), draw("float32", 64, 0, 1e-3), poisoned("float32", (8, 64))
    x[:9] = [np.nan, np.inf, -np.inf, 0, -0.0, 2.0**-127, 2.0**-127 * 1.5, 1e-40, 3.3e38]
    floats_kernel[(1,)](x, y, out, SCALES.format(mode=mode), 64)
    with np.errstate(all="ignore"):
        logarithm = np.log2(np.abs(np.stack([y, x]).astype(np.float64)))
        powers = np.clip(np.floor(logarithm) if "rz" in mode else np.ceil(logarithm), -127, 127 + (mode == "rp"))
    codes = np.where(np.isnan(powers), 255, powers + 127)
    np.testing.assert_array_equal(out[7], codes[1] * 256 + codes[0])
    np.testing.assert_array_equal(out[:2], np.where(codes == 255, np.nan, 2.0 ** (codes - 127)).astype(np.float32))


@triton.jit
def wide_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """The upper halves of products of 64 bits; 1 where a clock that is read again has not gone back."""
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    asm: tl.constexpr = "mul.hi.s64 $0, $2, $3; mul.hi.u64 $1, $2, $3;"
    types: tl.constexpr = (tl.int64, tl.int64)
    signed, unsigned = tl.inline_asm_elementwise(asm, "=&l,=&l,l,l", [x, y], dtype=types, is_pure=True, pack=1)
    tl.store(out_ptr + i, signed)
    tl.store(out_ptr + N + i, unsigned)
    clock: tl.constexpr = "mov.u64 $0, %clock64;"
    before = tl.inline_asm_elementwise(clock, "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    after = tl.inline_asm_elementwise(clock, "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    tl.store(out_ptr + 2 * N + i, (after >= before).to(tl.int64) + tl.zeros([N], tl.int64))


def test_products_of_128_bits(draw, poisoned):
    x, y, out = draw("int64", 32), draw("int64", 32), poisoned("int64", (3, 32))
    x[0], y[0] = -(2**63), -(2**63)
    wide_kernel[(1,)](x, y, out, 32)
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    assert out[0].tolist() == [a * b >> 64 for a, b in pairs]
    assert out[1].view(np.uint64).tolist() == [(a % 2**64) * (b % 2**64) >> 64 for a, b in pairs]
    assert (out[2] == 1).all()


def test_approximate_functions(draw, poisoned):
    x, y, out = draw("float32", 64, -4, 4), draw("float32", 64, 0.1, 9), poisoned("float32", (8, 64))
    floats_kernel[(1,)](x, y, out, APPROXIMATE, 64)
    a, b = x.astype(np.float64), y.astype(np.float64)
    tf32 = ((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)
    expected = [np.tanh(a), np.exp2(a), 1 / b, np.sqrt(b), np.log2(b), np.clip(a + 0.25, 0, 1), tf32, np.ones(64)]
    for index, wanted in enumerate(expected):
        np.testing.assert_allclose(out[index], wanted, rtol=1e-3, atol=1e-6, err_msg=f"${index}")


@triton.jit
def halves_kernel(x_ptr, y_ptr, out_ptr, bytes_ptr, N: tl.constexpr):
    """Two 16-bit floats in a register; then four fp8 numbers of four floats, in two registers of 16 bits."""
    offsets = tl.arange(0, N)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    z = tl.inline_asm_elementwise("fma.rn.f16x2 $0, $1, $2, $1;", "=r,r,r", [x, y], tl.float16, is_pure=True, pack=2)
    tl.store(out_ptr + offsets, z)
    asm: tl.constexpr = """{
        .reg .b16 a, b;
        cvt.rn.satfinite.e4m3x2.f32 a, $2, $1;
        cvt.rn.satfinite.e4m3x2.f32 b, $4, $3;
        mov.b32 $0, {a, b};
    }"""
    small = tl.inline_asm_elementwise(
        asm, "=r,f,f,f,f", [x.to(tl.float32) * 100], dtype=tl.float8e4nv, is_pure=True, pack=4
    )
    tl.store(bytes_ptr + offsets, small.to(tl.uint8, bitcast=True))


@pytest.mark.parametrize("n", [1, 2, 64, 1024])
def test_narrow_floats(draw, poisoned, check, executor, n):
    if executor == "cuda:80":
        pytest.skip("e4m3 from sm_89 on")
    x, y = draw("float16", n, -8, 8), draw("float16", n, -8, 8)
    out, bytes = poisoned("float16", n), poisoned("uint8", n)
    halves_kernel[(1,)](x, y, out, bytes, n)
    check(out, (x.astype(np.float64) * y + x).astype(np.float16).astype(np.float64))
    wanted = np.clip(x.astype(np.float32) * 100, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    check(bytes, wanted.view(np.uint8))


@triton.jit
def four_bits_kernel(x_ptr, codes_ptr, pairs_ptr, N: tl.constexpr):
    """Two floats in a byte, the first one in its upper half, and the byte four times in a register; then two halves."""
    columns = tl.arange(0, N)[:, None] * 8 + tl.arange(0, 8)[None, :]
    pairs = tl.reshape(tl.load(x_ptr + columns), [N, 4, 2])
    low, high = tl.split(pairs)
    asm: tl.constexpr = """{
        .reg .b8 b<4>;
        cvt.rn.satfinite.e2m1x2.f32 b0, $2, $1;
        mov.b32 $0, {b0, b0, b0, b0};
    }"""
    codes = tl.inline_asm_elementwise(asm, "=r,f,f", [low, high], dtype=tl.int32, is_pure=True, pack=1)
    places = tl.arange(0, N)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(codes_ptr + places, codes)
    back: tl.constexpr = """{
        .reg .b8 b<4>;
        mov.b32 {b0, b1, b2, b3}, $1;
        cvt.rn.f16x2.e2m1x2 $0, b2;
    }"""
    tl.store(pairs_ptr + places, tl.inline_asm_elementwise(back, "=r,r", [codes], tl.int32, is_pure=True, pack=1))


@pytest.fixture
def has_four_bits(executor, monkeypatch):
    """GPUs have e2m1 from sm_100 on."""
    if executor == "cuda:80":
        pytest.skip("one target is enough")
    if executor == "cuda:90":
        monkeypatch.setenv("DEUTERON_TARGET", "cuda:100")


def test_floats_of_four_bits(poisoned, has_four_bits):
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-40, -1e30, 0.25], np.float32)
    x = np.concatenate([np.linspace(-8, 8, 257, dtype=np.float32)[1:], special])
    x = np.concatenate([x, x[:248]])
    codes, pairs = poisoned("int32", 256), poisoned("int32", 256)
    four_bits_kernel[(1,)](x, codes, pairs, 64)
    floats = np.where(np.isnan(x), 6, np.clip(x, -6, 6)).astype(ml_dtypes.float4_e2m1fn)
    np.testing.assert_array_equal(pairs.view(np.uint16), floats.astype(np.float16).view(np.uint16))
    wanted = floats.view(np.uint8) & 15
    bytes = (wanted[1::2] << 4 | wanted[::2]).astype(np.uint32)
    np.testing.assert_array_equal(codes.view(np.uint32), bytes * 0x01010101)


@triton.jit
def six_bits_kernel(x_ptr, codes_ptr, pairs_ptr, ENCODE: tl.constexpr, DECODE: tl.constexpr, N: tl.constexpr):
    """Two floats in a register of 16 bits, the second one in its lower half; then two halves."""
    at = tl.arange(0, N)
    low, high = tl.load(x_ptr + 2 * at), tl.load(x_ptr + 2 * at + 1)
    codes = tl.inline_asm_elementwise(ENCODE, "=h,f,f", [high, low], dtype=tl.int16, is_pure=True, pack=1)
    tl.store(codes_ptr + at, codes)
    padded = codes | tl.full([N], 0x40, tl.int16)  # above the six bits, which nobody reads
    tl.store(pairs_ptr + at, tl.inline_asm_elementwise(DECODE, "=r,h", [padded], tl.int32, is_pure=True, pack=1))


@pytest.mark.parametrize("format", ["e2m3", "e3m2"])
def test_floats_of_six_bits(format, poisoned, has_four_bits):
    """Every number, the middle between two, which is a tie, and its neighbours."""
    type = getattr(ml_dtypes, f"float6_{format}fn")
    numbers = np.arange(32, dtype=np.uint8).view(type).astype(np.float32)
    middles = (numbers[1:] + numbers[:-1]) / 2
    beside = [np.nextafter(middles, np.float32(to)) for to in (0, 100)]
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 1e-40, -1e30, numbers[-1] * 1.04, 0], np.float32)
    x = np.concatenate([numbers, middles, *beside, -numbers, -middles, *-np.array(beside), special])
    x = np.resize(x, 512)
    codes, pairs = poisoned("int16", 256), poisoned("int32", 256)
    encode, decode = f"cvt.rn.satfinite.{format}x2.f32 $0, $1, $2;", f"cvt.rn.f16x2.{format}x2 $0, $1;"
    six_bits_kernel[(1,)](x, codes, pairs, encode, decode, 256)
    floats = np.where(np.isnan(x), numbers[-1], np.clip(x, -numbers[-1], numbers[-1])).astype(type)
    np.testing.assert_array_equal(codes.view(np.uint8), floats.view(np.uint8))
    np.testing.assert_array_equal(pairs.view(np.uint16), floats.astype(np.float16).view(np.uint16))


@triton.jit
def bytes_kernel(x_ptr, y_ptr, sum_ptr, wide_ptr, M: tl.constexpr, N: tl.constexpr):
    """Four bytes in a register and four floats in four, of tiles of two dimensions and a row; two results."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x, y = tl.load(x_ptr + rows * N + columns), tl.load(y_ptr + columns)
    asm: tl.constexpr = """{
        .reg .b8 b<4>;
        .reg .f32 f;
        mov.b32 {b0, b1, b2, b3}, $5;
        cvt.rn.f32.u8 f, b0;  add.f32 $1, f, $6;
        cvt.rn.f32.u8 f, b1;  add.f32 $2, f, $7;
        cvt.rn.f32.u8 f, b2;  add.f32 $3, f, $8;
        cvt.rn.f32.u8 f, b3;  add.f32 $4, f, $9;
        and.b32 $0, $5, 0x0F0F0F0F;
    } // masked"""
    low, total = tl.inline_asm_elementwise(
        asm, "=&r,=&f,=&f,=&f,=&f,r,f,f,f,f", [x, y], dtype=(tl.int8, tl.float32), is_pure=True, pack=4
    )
    tl.store(sum_ptr + rows * N + columns, total)
    tl.store(wide_ptr + rows * N + columns, low)


def test_packs_of_bytes(draw, poisoned, check):
    x, y = draw("uint8", (4, 64)), draw("float32", 64)
    total, low = poisoned("float32", (4, 64)), poisoned("int8", (4, 64))
    bytes_kernel[(1,)](x, y, total, low, 4, 64)
    check(low, (x & 15).astype(np.int8))
    check(total, (x + y).astype(np.float32), ulps=0)


@triton.jit
def mixed_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    """Scalars, bools, 64 bits, an input that shares the output's register, in a loop and a branch; impure."""
    offsets = tl.arange(0, N)
    total = tl.zeros([N], tl.int64)
    for i in range(n):
        doubled = tl.inline_asm_elementwise("add.s32 $0, $1, $1;", "=r,r", [i], dtype=tl.int32, is_pure=True, pack=1)
        x = tl.load(x_ptr + i * N + offsets)
        if doubled > 2:
            step = tl.inline_asm_elementwise(
                "add.s64 $0, $0, $2;", "=l,0,l", [x, doubled.to(tl.int64)], dtype=tl.int64, is_pure=False, pack=1
            )
            total += step
    flags = tl.inline_asm_elementwise(
        "{ .reg .pred p; setp.gt.s64 p, $1, 0; selp.u32 $0, 1, 0, p; }",
        "=r,l", [total], dtype=tl.int1, is_pure=True, pack=1,
    )  # fmt: skip
    tl.store(out_ptr + offsets, tl.where(flags, total, -total))


def test_scalars_and_control_flow(draw, poisoned, check):
    x, out = draw("int64", (5, 32), -1000, 1000), poisoned("int64", 32)
    mixed_kernel[(1,)](x, out, 5, 32)
    check(out, np.abs(x[2:].sum(0) + 4 + 6 + 8))


@triton.jit
def immediates_kernel(x_ptr, high_ptr, low_ptr, MASK: tl.constexpr, TABLE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    text: tl.constexpr = """{
        .reg .b32 both;
        lop3.b32 both, $2, $3, $4, $5;
        xor.b32 both, both, $6;
        mov.b32 {$1, $0}, both;
    }"""
    args = (tl.load(x_ptr + i), MASK, 0x64006400, TABLE, tl.full((N,), -1, tl.int32))
    high, low = tl.inline_asm_elementwise(
        text, "=h,=h, r,n,n, i,r", args, dtype=(tl.int16, tl.int16), is_pure=True, pack=1
    )
    tl.store(high_ptr + i, high)
    tl.store(low_ptr + i, low)


def test_immediates(draw, poisoned, check):
    """Inputs that are numbers of the text: the others keep their places."""
    x, high, low = draw("int32", 64), poisoned("int16", 64), poisoned("int16", 64)
    immediates_kernel[(1,)](x, high, low, 0x000F000F, (0xF0 & 0xCC) | 0xAA, 64)
    expected = ~((x & 0x000F000F) | 0x64006400)
    check(high, (expected >> 16).astype(np.int16))
    check(low, expected.astype(np.int16))


@triton.jit
def asm_kernel(x_ptr, out_ptr, ASM: tl.constexpr, CONSTRAINTS: tl.constexpr, PACK: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    y = tl.inline_asm_elementwise(ASM, CONSTRAINTS, [x], dtype=tl.int32, is_pure=True, pack=PACK)
    tl.store(out_ptr + tl.arange(0, N), y)


@pytest.mark.parametrize(
    ("asm", "constraints", "pack", "message"),
    [
        ("mov.b32 $0, $1;", "=r", 1, "there are 0 inputs, and the arguments need 1 with pack=1"),
        ("mov.b32 $0, $1;", "=r,r", 2, "there are 1 outputs, and the results need 2 with pack=2"),
        ("mov.b32 $0, $1;", "=x,r", 1, "'=x' is no constraint of a register of PTX"),
        ("mov.b32 $0, $1;", "r,=r", 1, "the output '=r' comes after inputs"),
        ("mov.b32 $0, $1;", "=h,r", 1, "output 0 has 32 bits, and 'h' is a register of 16. Use 'r'"),
        ("mov.b32 $0, $2;", "=r,r", 1, r"it names operand \$2, and the constraints have 2"),
        ("mov.b32 $0, $x;", "=r,r", 1, "a '\\$' is followed by no number"),
        ("mov.b32 $0, $1;", "=r,n", 1, "argument 0 is no integer known at compile time, as 'n' wants"),
        ("mov.b32 $0, $1;", "=r,n,r", 1, "one constraint an argument: there are 2, and 1 argument"),
        ("mov.b32 $0, $1;", "=r,3", 1, "the input '3' is tied to an output that is not there"),
    ],
)
def test_malformed(executor, poisoned, asm, constraints, pack, message):
    if executor != "cpu":
        pytest.skip("found by the frontend, alike for all")
    with pytest.raises(CompilationError, match=message) as caught:
        asm_kernel[(1,)](poisoned("int32", 8), poisoned("int32", 8), asm, constraints, pack, 8)
    assert caught.value.location.file == __file__


@pytest.mark.parametrize(
    ("asm", "message"),
    [
        ("mov.u32 $0, %laneid;", "'mov.u32 %o0, %laneid;' is not known .*, for the special register '%laneid'"),
        ("dp4a.s16.s32 $0, $1, $1, $1;", "for '.s16' here"),
        ("{ .reg .pred p; setp.lt.s32 p, $1, $1, p; }", "for 4 operands"),
        ("ld.global.b32 $0, [$1];", "'ld.global.b32 %o0, \\[%o1\\];' is not known"),
        ("add.rz.f32 $0, $1, $1;", "for '.rz' here"),
        ("{ L: bra L; }", "is not known where there is no PTX, for 'bra'"),
        ("add.s32 $0, $1", "it cannot be read"),
        ("mov.b32 $0, $0;", "a register that nothing has been written to"),
        ("add.f32 $0, $1;", "for 2 operands"),
        ("add.s32 $0, $1, $1, $1;", "for 4 operands"),
        ("mul.lo.s32 $0, $1, $1, $1;", "for 4 operands"),
        ("max.f32 $0, $1;", "for 2 operands"),
        ("cvt.rn.f16x2.f32 $0, $1;", "for 2 operands"),
    ],
)
def test_what_the_cpu_does_not_know(executor, poisoned, asm, message):
    if executor.startswith("cuda"):
        pytest.skip("PTX as it is")
    with pytest.raises(CompilationError, match=message) as caught:
        asm_kernel[(1,)](poisoned("int32", 8), poisoned("int32", 8), asm, "=r,r", 1, 8)
    assert caught.value.location.file == __file__


EDGES = np.array([0, -(2**31), 1, -(2**31) + 1, 0x007F3C01, 0x3F000200, 0x3FC03E01, -0x3FDFC1FF, 0x04008200], np.int32)
NAN = np.array([0x7FC00000, 0x3F800000], np.int32)


def on_floats(function, x, dtype="float32"):
    """Of the bits of floats."""
    return function(x.view(dtype)).view(np.int32)


def flushed(x, least):
    return np.where(np.abs(x) < x.dtype.type(least), np.copysign(x.dtype.type(0), x), x)


@pytest.mark.parametrize(
    ("asm", "constraints", "x", "expected"),
    [
        ("bfe.s32 $0, $1, 35, 4;", "=r,r", EDGES, lambda x: x >> 31),
        ("bfe.s32 $0, $1, 35, 0;", "=r,r", EDGES, np.zeros_like),
        ("add.s32 $0, $0, $0; add.s32 $0, $0, $1;", "=r,0", EDGES, lambda x: 4 * x),
        (
            "{ .reg .pred p; .reg .b32 t; setp.gt.s32 p, $1, 5; or.b32 $0, $1, 1; @p mul.lo.s32 $0, $0, $0; }",
            *("=&r,r", EDGES, lambda x: np.where(x > 5, (x | 1) * (x | 1), x | 1)),
        ),
        (
            "{ .reg .f32 t; mov.b32 t, $1; cvt.rni.f32.f32 t, t; mov.b32 $0, t; }",
            *("=r,r", EDGES, lambda x: on_floats(np.rint, x)),
        ),
        (
            "{ .reg .b16 a, b; mov.b32 {a, b}, $1; cvt.rni.f16.f16 a, a; cvt.rmi.f16.f16 b, b; mov.b32 $0, {a, b}; }",
            *("=r,r", EDGES),
            lambda x: np.stack(
                [np.rint(x.view(np.float16)[::2]), np.floor(x.view(np.float16)[1::2])], -1, dtype=np.float16
            ).view(np.int32)[:, 0],
        ),
        (
            "{ .reg .f32 t; .reg .pred p; mov.b32 t, $1; setp.eq.ftz.f32 p, t, 0f00000000; selp.b32 $0, 1, 0, p; }",
            *("=r,r", EDGES, lambda x: flushed(x.view(np.float32), 2.0**-126) == 0),
        ),
        (
            "add.ftz.f16x2 $0, $1, $1;",
            *("=r,r", EDGES),
            lambda x: on_floats(lambda h: flushed(flushed(h, 2.0**-14) * 2, 2.0**-14), x, np.float16),
        ),
        (
            "neg.ftz.f16x2 $0, $1;",
            *("=r,r", EDGES, lambda x: on_floats(lambda h: -flushed(h, 2.0**-14), x, np.float16)),
        ),
        (
            "{ .reg .f32 t; .reg .b64 w; mov.b32 t, $1; cvt.rzi.s64.f32 w, t; shr.u64 w, w, 32; cvt.u32.u64 $0, w; }",
            *("=r,r", NAN, lambda x: np.array([-(2**31), 0])),
        ),
        (
            "{ .reg .f32 t; mov.b32 t, $1; cvt.rzi.s32.f32 $0, t; }",
            *("=r,r", NAN, lambda x: np.array([0, 1])),
        ),
    ],
)
def test_edges(poisoned, asm, constraints, x, expected):
    """As the PTX ISA has them: beyond the highest bit, zeros with a sign, subnormal numbers, NaN, tied registers."""
    x_array, out = poisoned("int32", 16), poisoned("int32", 16)
    x_array[:] = np.resize(x, 16)
    asm_kernel[(1,)](x_array, out, asm, constraints, 1, 16)
    np.testing.assert_array_equal(out, np.resize(expected(x), 16))


@triton.jit
def clock_kernel(ready_ptr, waited_ptr, places_ptr, timeout, N: tl.constexpr):
    start = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], tl.int64, is_pure=False, pack=1)
    now, is_ready = start, tl.load(ready_ptr, volatile=True) != 0
    while (not is_ready) and now - start < timeout:
        now = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], tl.int64, is_pure=False, pack=1)
        is_ready = tl.load(ready_ptr, volatile=True) != 0
    tl.store(waited_ptr, now - start)
    x = tl.arange(0, N)
    asm: tl.constexpr = (
        "{ .reg .u64 t; mov.u64 t, %globaltimer; xor.b64 t, t, t; cvt.u32.u64 $0, t; or.b32 $0, $0, $1; }"
    )
    tl.store(places_ptr + x, tl.inline_asm_elementwise(asm, "=r,r", [x], tl.int32, is_pure=False, pack=1))


@pytest.mark.parametrize("is_ready", [False, True])
def test_the_clock(poisoned, is_ready):
    """A wait with a limit of time, as in programs that wait for others; and in a tile, once for all elements."""
    waited, places = poisoned("int64", 1), poisoned("int32", 16)
    clock_kernel[(1,)](np.full(1, is_ready, np.int32), waited, places, 50, 16)
    assert (waited[0] == 0) if is_ready else (waited[0] >= 50)
    np.testing.assert_array_equal(places, np.arange(16))


@triton.jit
def trapping_kernel(x_ptr, out_ptr, GUARD: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    tl.inline_asm_elementwise("bar.sync 0; griddepcontrol.wait; // $0", "=r", [], tl.int32, is_pure=False, pack=1)
    text: tl.constexpr = "{ .reg .pred p; setp.gt.s32 p, $1, 7; " + GUARD + " trap; } // $0"
    if tl.max(x) > 3:
        tl.inline_asm_elementwise(text, "=r,r", [x], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(out_ptr + offsets, x)


@pytest.mark.parametrize(
    ("guard", "largest", "traps"),
    [("", 3, False), ("", 4, True), ("@p", 7, False), ("@p", 8, True), ("@!p", 8, True), ("@!p", 3, False)],
)
def test_a_trap_ends_the_launch(executor, poisoned, guard, largest, traps):
    """Also where kernels are not compiled for debugging; an output that nobody reads is never written."""
    x, out = np.zeros(32, np.int32), poisoned("int32", 32)
    x[21] = largest
    before = out.copy()
    if not traps:
        trapping_kernel[(1,)](x, out, guard, 32)
        np.testing.assert_array_equal(out, x)
        return
    error = DeuteronError if executor.startswith("cuda") else AssertionFailure
    with pytest.raises(error, match="the kernel executes a trap") as caught:
        trapping_kernel[(1,)](x, out, guard, 32)
    assert caught.value.location.file == __file__
    np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize("asm", ["mov.b33 $0, $1;", "add.s32 $0, $1, undefined;", "add.4.s32 $0, $1, 1;"])
def test_what_ptxas_does_not_accept(executor, poisoned, asm):
    """Its message, at the line of the kernel."""
    if executor != "cuda:90":
        pytest.skip("ptxas")
    signature = {"x_ptr": "*i32", "out_ptr": "*i32"}
    constants = {"ASM": asm, "CONSTRAINTS": "=r,r", "PACK": 1, "N": 8}
    with pytest.raises(CompilationError, match="ptxas does not accept this assembly for sm_90a?: ") as caught:
        triton.compile(triton.compiler.ASTSource(asm_kernel, signature, constants), target="cuda:90")
    assert caught.value.location.file == __file__


def test_an_instruction_that_is_newer_than_its_architecture(executor):
    """PTX 8.0 has 9.0, and 8.6 this copy of it. What 9.0 has not in any version is said so."""
    if executor != "cuda:90":
        pytest.skip("ptxas")
    constants = {"CONSTRAINTS": "=r,r", "PACK": 1, "N": 8}

    def compile(asm):
        source = triton.compiler.ASTSource(asm_kernel, {"x_ptr": "*i32", "out_ptr": "*i32"}, {"ASM": asm, **constants})
        return triton.compile(source, target="cuda:90")

    copy = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
    assert compile(f"{{ .reg .b64 g; cvt.u64.u32 g, $1; {copy} [$1], [g], 16, [$1]; mov.b32 $0, $1; }}").asm["cubin"]
    with pytest.raises(CompilationError, match="not supported on .target 'sm_90a'"):
        compile("{ .reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, $1, $1; cvt.u32.u8 $0, b; }")


@triton.jit
def narrow_pointers_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    addresses = out_ptr + offsets
    x = tl.load(x_ptr + offsets)
    asm: tl.constexpr = "{ .reg .b64 %old<1>; mov.b64 %old0, $1; cvt.u32.u64 $0, %old0; }"
    lower = tl.inline_asm_elementwise(asm, "=r, l", [x], dtype=addresses.dtype, is_pure=False, pack=1)
    tl.store(addresses, lower.to(tl.int64))


def test_pointers_that_are_wider_than_their_registers(draw, poisoned, check):
    """Their upper bits are 0. Programs that wait for other GPUs say `dtype=addresses.dtype` of what they drop."""
    x, out = draw("int64", 64), poisoned("int64", 64)
    narrow_pointers_kernel[(1,)](x, out, N=64)
    check(out, x & 0xFFFFFFFF)
