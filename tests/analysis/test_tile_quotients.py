"""Which quotients and remainders are one polynomial, of a kernel that stores each of them."""

import pytest

import deuteron
import deuteron.language as tl
from deuteron.analysis.addresses.tile_quotients import TileQuotients
from deuteron.frontend import lower_function
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import function_of
from deuteron.ir.tt.memory import StoreOp
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes


@deuteron.jit
def both(p, n, C: tl.constexpr, CASE: tl.constexpr):
    pid = tl.program_id(0)
    x = pid * 64 + tl.arange(0, 64)
    one, other = x, x
    if CASE == "parts":
        one = x // C * C + x % C
    elif CASE == "nested":
        one, other = x // 3 // C, x // (3 * C)
    elif CASE == "sums of quotients":
        one, other = (pid * 5 + x // 3 + 7) // C + x, (pid * 15 + x + 21) // (3 * C) + x
    elif CASE == "four digits":
        one = x % 4 + 4 * (x // 4 % C) + 4 * C * (x // (4 * C) % 3) + 12 * C * (x // (12 * C))
    elif CASE == "digits":
        one, other = x // 3 % C + C * (x // 3 // C), x // 3
    elif CASE == "number":
        one, other = (x + 5 * C) // C, x // C + 5
    elif CASE == "whole tile":
        one, other = (pid * 64 * C + tl.arange(0, 64)) // (64 * C) + tl.arange(0, 64), pid + tl.arange(0, 64)
    elif CASE == "beyond the tile":
        one, other = (pid * 64 + tl.arange(0, 64) + 1) // 64 + tl.arange(0, 64), pid + tl.arange(0, 64)
    elif CASE == "within the tile":
        i = tl.arange(0, 32)
        one, other = (pid * 64 * C + i + 32) // (64 * C) + i, pid + i
    elif CASE == "numbers":
        one, other = tl.arange(0, 1)[:, None] + (pid * C * 7 + 5) // (C * 7) + x[None, :], pid + x[None, :]
    elif CASE == "axes":
        one, other = (x // C)[None, :] + tl.arange(0, 64)[:, None], x[None, :] // C + tl.arange(0, 64)[:, None]
    elif CASE == "other axis":
        one, other = (x // C)[None, :] + tl.arange(0, 64)[:, None], x[:, None] // C + tl.arange(0, 64)[None, :]
    elif CASE == "transposed":
        one, other = (x // C)[None, :].T + tl.arange(0, 64)[None, :], x[:, None] // C + tl.arange(0, 64)[None, :]
    elif CASE == "wide":
        one = x.to(tl.int64) // C * C + x.to(tl.int64) % C
    elif CASE == "negative":
        one = (x - 1) // C * C + (x - 1) % C + 1
    elif CASE == "overflows":
        one, other = x * 2097152 // C * C + x * 2097152 % C, x * 2097152
    elif CASE == "given":
        one = (x + n) // C * C + (x + n) % C - n
    elif CASE == "modulo what is given":
        one, other = x % n // C * C + x % n % C, x % n
    elif CASE == "over what is given":
        one, other = (pid // n + x) // C * C + (pid // n + x) % C, pid // n + x
    tl.store(p + one, 1)
    tl.store(p + other, 2)


def _are_one(case, c=6):
    types = {"p": "*i32", "n": "i32", "C": "constexpr", "CASE": "constexpr"}
    module = lower_function(both, types, {"C": c, "CASE": case}, {})
    run_passes(module, tile_passes())
    one, other = nested_ops(module, StoreOp)
    known = TileQuotients(function_of(one))
    polynomials = [known.of(op.ptr) for op in (one, other)]
    wraps = known.wraps_in(one.ptr) or known.wraps_in(other.ptr)
    return None not in polynomials and not wraps and polynomials[0] == polynomials[1]


CASES = [
    "parts",
    "nested",
    "digits",
    "number",
    "whole tile",
    "within the tile",
    "numbers",
    "axes",
    "transposed",
    "wide",
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("c", [1, 2, 6, 64, 96])
def test_one_polynomial(case, c):
    assert _are_one(case, c)


@pytest.mark.parametrize(
    "case",
    ["beyond the tile", "other axis", "negative", "overflows", "given", "modulo what is given", "over what is given"],
)
def test_what_is_not_known(case):
    """What may be negative, overflow, wrap around, or be divided by what is negative is no polynomial."""
    assert not _are_one(case)


@pytest.mark.parametrize("case", ["parts", "digits"])
@pytest.mark.parametrize("c", [0, -1, -6])
def test_divisors_below_one(case, c):
    assert not _are_one(case, c)


@deuteron.jit
def fed_back(p, n):
    v = n
    for k in range(4):
        v = v + k
        v = v % 5 + v // 3
        tl.store(p + v, v)


def test_what_a_loop_makes_of_its_own_quotient():
    """It was looked for without end: of what a quotient is made, that is made of the quotient."""
    module = lower_function(fed_back, {"p": "*i32", "n": "i32"}, {}, {})
    (store,) = nested_ops(module, StoreOp)
    known = TileQuotients(function_of(store))
    assert known.of(store.ptr) is not None
