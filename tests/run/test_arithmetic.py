"""Arithmetic operators on tiles: every type, signed and unsigned division, promotion between types.

Integers are exact and wrap; one operation on floats is within two units in the last place of the float64 result.
"""

import ml_dtypes
import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SIZE = 203


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1)
    y = tl.load(y_ptr + offsets, mask=mask, other=1)
    if OP == "add":
        out = x + y
    elif OP == "sub":
        out = x - y
    elif OP == "mul":
        out = x * y
    elif OP == "div":
        out = x / y
    elif OP == "floordiv":
        out = x // y
    elif OP == "mod":
        out = x % y
    elif OP == "minimum":
        out = tl.minimum(x, y)
    else:
        tl.static_assert(OP == "maximum")
        out = tl.maximum(x, y)
    tl.store(out_ptr + offsets, out, mask=mask)


def run(x, y, out, op):
    binary_kernel[(triton.cdiv(x.size, 64),)](x, y, out, x.size, OP=op, BLOCK=64)
    return out


NUMPY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "minimum": np.minimum,
    "maximum": np.maximum,
}


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "minimum", "maximum"])
def test_integers(draw, poisoned, check, op, dtype):
    x, y = draw(dtype, SIZE), draw(dtype, SIZE)
    check(run(x, y, poisoned(dtype, SIZE), op), NUMPY[op](x, y))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", NUMPY)
def test_floats(draw, poisoned, check, op, dtype):
    x, y = draw(dtype, SIZE), draw(dtype, SIZE)
    got = run(x, y, poisoned(dtype, SIZE), op)
    expected = NUMPY[op](x.astype(np.float64), y.astype(np.float64))
    if dtype == "float16":  # quotients of small numbers may be beyond fp16
        expected = expected.astype(np.float16).astype(np.float64)
    check(got, expected)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
@pytest.mark.parametrize("op", ["floordiv", "mod"])
def test_integer_division_truncates(draw, poisoned, check, op, dtype):
    """As in C, not as in Python: -7 // 2 is -3 and -7 % 2 is -1."""
    lowest = 0 if dtype in UNSIGNED else -np.iinfo(dtype).max
    x, y = draw(dtype, SIZE, lowest), draw(dtype, SIZE, max(lowest, -9), 9)
    y[y == 0] = 7
    quotient = np.abs(x) // np.abs(y) * (np.sign(x) * np.sign(y))
    expected = quotient if op == "floordiv" else x - quotient * y
    check(run(x, y, poisoned(dtype, SIZE), op), expected)


def edges(dtype):
    limits = np.iinfo(dtype)
    numbers = [limits.min, limits.min + 1, -7, -2, -1, 0, 1, 2, 7, limits.max - 1, limits.max]
    return np.array([n for n in numbers if n >= limits.min], dtype)


def divided(x, y):
    """Quotients and remainders as the language defines them: by 0 the quotient is 0, and they wrap."""
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    quotients = [b and abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
    remainders = [a - q * b for (a, b), q in zip(pairs, quotients, strict=True)]
    mask = (1 << (8 * x.dtype.itemsize)) - 1
    wrapped = (np.array([n & mask for n in column], f"u{x.dtype.itemsize}") for column in (quotients, remainders))
    return [column.view(x.dtype) for column in wrapped]


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_a_quotient_by_zero_is_zero_and_the_lowest_number_wraps(poisoned, check, dtype):
    numbers = edges(dtype)
    x, y = (column.ravel() for column in np.meshgrid(numbers, numbers))
    x, y = np.resize(x, SIZE), np.resize(y, SIZE)
    quotients, remainders = divided(x, y)
    check(run(x, y, poisoned(dtype, SIZE), "floordiv"), quotients)
    check(run(x, y, poisoned(dtype, SIZE), "mod"), remainders)


@triton.jit
def division_by_one_number_kernel(x_ptr, y_ptr, out_ptr, y, Y: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, loaded = tl.load(x_ptr + i), tl.load(y_ptr)
    tl.store(out_ptr + i, x // loaded)
    tl.store(out_ptr + BLOCK + i, x % loaded)
    tl.store(out_ptr + 2 * BLOCK + i, x // y)
    tl.store(out_ptr + 3 * BLOCK + i, x % y)
    tl.store(out_ptr + 4 * BLOCK + i, x // Y)
    tl.store(out_ptr + 5 * BLOCK + i, x % Y)
    for k in range(BLOCK):
        tl.store(out_ptr + 6 * BLOCK + k, tl.load(x_ptr + k) // loaded)
        tl.store(out_ptr + 7 * BLOCK + k, tl.load(x_ptr + k) % loaded)


@pytest.mark.share(2)
@pytest.mark.parametrize("y", [0, -1, 1, 3, -(2**31)])
def test_divisions_by_one_number_that_is_loaded_given_or_known(poisoned, check, y):
    x, out = np.resize(edges(np.int32), 16), poisoned("int32", (4, 2, 16))
    division_by_one_number_kernel[(1,)](x, np.array([y], np.int32), out, y, Y=y, BLOCK=16)
    check(out, np.broadcast_to(divided(x, np.full(16, y)), out.shape))


@triton.jit
def by_a_multiple_of_16_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i % n))
    tl.store(out_ptr + BLOCK + i, tl.load(x_ptr + i // n))
    k = tl.arange(0, 16)
    square = tl.load(x_ptr + (i % n)[:, None] * 16 + k[None, :])
    tl.store(out_ptr + 2 * BLOCK + i[:, None] * 16 + k[None, :], square)


@pytest.mark.parametrize("n", [0, 16, 48])
def test_places_that_go_on_in_a_period_do_so_where_that_is_0(draw, poisoned, check, n):
    """0 is a multiple of 16, too: neighbours are loaded together, as i % 0 is i."""
    x, out = draw("float32", 64 * 16), poisoned("float32", 18 * 64)
    by_a_multiple_of_16_kernel[(1,)](x, out, n, BLOCK=64)
    i = np.arange(64, dtype=np.int32)
    quotients, remainders = divided(i, np.full(64, n, np.int32))
    check(out, np.concatenate([x[remainders], x[quotients], x.reshape(64, 16)[remainders].ravel()]))


@triton.jit
def neighbours_kernel(out_ptr, n, start, ROWS: tl.constexpr, COLUMNS: tl.constexpr, OVER: tl.constexpr):
    """Of the numbers of a tile, beginning at a multiple of 16, by a number that is one: quotients and remainders."""
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    at = rows + columns * ROWS if OVER == "rows" else rows * COLUMNS + columns
    x = tl.program_id(0) * (ROWS * COLUMNS) + at if start is None else start + at
    x, y = x.to(out_ptr.dtype.element_ty), n.to(out_ptr.dtype.element_ty)
    places = out_ptr + tl.program_id(0) * (2 * ROWS * COLUMNS) + at
    tl.store(places, x // y)
    tl.store(places + ROWS * COLUMNS, x % y)


@pytest.mark.each_gpu
@pytest.mark.share(4)
@pytest.mark.parametrize("over", ["rows", "columns"])
@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_neighbours_by_a_number_that_is_a_multiple_of_16(rng, poisoned, check, dtype, over):
    """It may be 0 or negative, and so may they."""
    shape = ((1, 512), (16, 32), (64, 8), (512, 1))[rng.integers(4)]
    for n in (0, *(16 * rng.choice([-129, -3, -1, 1, 2, 3, 5, 8, 64], 3))):
        for start in (None, 16 * int(rng.integers(-40, 8))):
            out = poisoned(dtype, (2, 2, 512)) if start is None else poisoned(dtype, (1, 2, 512))
            neighbours_kernel[(len(out),)](out, int(n), start, *shape, over)
            x = (np.arange(512 * len(out)) + (start or 0)).astype(dtype)
            expected = divided(x, np.full(x.size, n).astype(dtype))
            check(out, np.stack([column.reshape(len(out), 512) for column in expected], 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_remainder_has_the_sign_of_the_dividend(draw, poisoned, check_norm, dtype):
    x, y = draw(dtype, SIZE, -100, 100), draw(dtype, SIZE, 1, 9)
    expected = np.fmod(x.astype(np.float64), y.astype(np.float64))
    # fmod is exact; 1e-6 is for a remainder computed from the quotient, whose error is that of the dividend.
    check_norm(run(x, y, poisoned(dtype, SIZE), "mod"), expected, 1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32"])
def test_true_division_of_integers_is_in_fp32(draw, poisoned, check, dtype):
    x, y = draw(dtype, SIZE, 0, 100), draw(dtype, SIZE, 1, 100)
    check(run(x, y, poisoned("float32", SIZE), "div"), x / y)


@triton.jit
def add_in_float64_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total.to(tl.float64), mask=mask)


PROMOTIONS = [
    ("int8", "int16", "int16"),
    ("int8", "int32", "int32"),
    ("uint8", "int16", "int16"),
    ("int32", "uint32", "uint32"),
    ("uint8", "int8", "uint8"),
    ("int32", "int64", "int64"),
    ("int32", "float32", "float32"),
    ("int64", "float32", "float32"),
    ("int32", "float16", "float16"),
    ("float16", "float32", "float32"),
    ("bfloat16", "float32", "float32"),
    ("float32", "float64", "float64"),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("left", "right", "result"), PROMOTIONS)
def test_promotion(draw, poisoned, left, right, result):
    """The sum is rounded, or wraps, as one of the type that both are brought to."""
    ranges = {"i": (-128, 127), "u": (0, 255)}
    x, y = (draw(name, 50, *ranges.get(np.dtype(poisoned(name, 1).dtype).kind, ())) for name in (left, right))
    out = poisoned("float64", 50)
    add_in_float64_kernel[(1,)](x, y, out, 50, BLOCK=64)
    dtype = poisoned(result, 1).dtype
    np.testing.assert_array_equal(out, (x.astype(dtype) + y.astype(dtype)).astype(np.float64))


@triton.jit
def with_numbers_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), 2 * x - 7)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64"])
def test_a_number_takes_the_type_of_the_tile(draw, poisoned, check_norm, dtype):
    x, out = draw(dtype, 64, 10, 20), poisoned(dtype, 64)
    with_numbers_kernel[(1,)](x, out, BLOCK=64)
    # Three roundings to fp16 of numbers below 80.
    check_norm(out, 2 * x.astype(np.float64) - 7, 0 if x.dtype.kind in "iu" else 4e-3)


@triton.jit
def abs_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.abs(tl.load(x_ptr + tl.arange(0, BLOCK))))


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED + FLOATS)
def test_abs(draw, poisoned, check, dtype):
    x, out = draw(dtype, 128), poisoned(dtype, 128)
    abs_kernel[(1,)](x, out, BLOCK=128)
    check(out, np.abs(x).astype(x.dtype if x.dtype.kind in "iu" else np.float64), ulps=0)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz])
def test_abs_of_fp8_is_exact_for_every_code(poisoned, dtype):
    x, out = np.arange(256, dtype=np.uint8).view(dtype), poisoned("float32", 256)
    abs_kernel[(1,)](x, out, BLOCK=256)
    np.testing.assert_array_equal(out, np.abs(x.astype(np.float32)))


@triton.jit
def abs_of_codes_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    codes = tl.load(x_ptr + tl.arange(0, BLOCK))
    magnitudes = tl.abs(codes.to(tl.float8e4b15, bitcast=True))
    tl.store(out_ptr + tl.arange(0, BLOCK), magnitudes.to(tl.uint8, bitcast=True))


def test_abs_of_fp8e4b15_is_the_code_without_its_sign(poisoned):
    x, out = np.arange(256, dtype=np.uint8), poisoned("uint8", 256)
    abs_of_codes_kernel[(1,)](x, out, BLOCK=256)
    np.testing.assert_array_equal(out, x & 0x7F)
