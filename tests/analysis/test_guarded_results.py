"""Where what lies beyond a bound may be wrong, because nothing of it is stored."""

import pytest
from ir_text import parse_kernel, value_named

from deuteron.analysis.addresses.polynomial import Polynomial
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.guarded_results import is_guarded

PARAMETERS = "%m: i32, %n: i32, %p: tensor<32x32x!tt.ptr<f32>>, %q: tensor<32x!tt.ptr<f32>>, %x: tensor<32x32xf32>"
TILE, ROW, MASK = "tensor<32x32xf32>", "tensor<32xf32>", "tensor<32x32xi1>"


def bounds(axis: int, of: str = "%m") -> str:
    """%below: the coordinate along an axis is less than a scalar."""
    return f"""
        %i = "tt.make_range"() <{{start = 0 : i32, end = 32 : i32}}> : () -> tensor<32xi32>
        %size = "tt.splat"({of}) : (i32) -> tensor<32xi32>
        %row = "arith.cmpi"(%i, %size) <{{predicate = 2 : i64}}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
        %wide = "tt.expand_dims"(%row) <{{axis = {1 - axis} : i32}}> : (tensor<32xi1>)
            -> tensor<{"32x1" if axis == 0 else "1x32"}xi1>
        %below = "tt.broadcast"(%wide) : (tensor<{"32x1" if axis == 0 else "1x32"}xi1>) -> {MASK}"""


def store(value: str, mask: str = "%below") -> str:
    masks, type = ("", "") if not mask else (f", {mask}", f", {MASK}")
    return f"""
        "tt.store"(%p, {value}{masks}) <{{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}}>
            : (tensor<32x32x!tt.ptr<f32>>, {TILE}{type}) -> ()"""


def dot(name: str, a: str, b: str, c: str) -> str:
    return f"""
        %{name} = "tt.dot"({a}, {b}, {c}) <{{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}}>
            : ({TILE}, {TILE}, {TILE}) -> {TILE}"""


def add(name: str, a: str, b: str) -> str:
    return f'\n        %{name} = "arith.addf"({a}, {b}) : ({TILE}, {TILE}) -> {TILE}'


def loop(body: str) -> str:
    """It carries %acc, and gives %sum; `body` makes %next."""
    return f"""
        %one = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
        %sum = "scf.for"(%one, %n, %one, %x) ({{
        ^bb1(%k: i32, %acc: {TILE}):
          {body}
          "scf.yield"(%next) : ({TILE}) -> ()
        }}) : (i32, i32, i32, {TILE}) -> {TILE}"""


LOAD = f"""
        %v = "tt.load"(%p) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>, cache = 1 : i32,
            evict = 1 : i32, isVolatile = false}}> : (tensor<32x32x!tt.ptr<f32>>) -> {TILE}"""
TRANS = f'\n        %t = "tt.trans"(%v) <{{order = array<i32: 1, 0>}}> : ({TILE}) -> {TILE}'
SUM = f"""
        %s = "tt.reduce"(%v) <{{axis = 1 : i32}}> ({{
        ^bb2(%a: f32, %b: f32):
          %c = "arith.addf"(%a, %b) : (f32, f32) -> f32
          "tt.reduce.return"(%c) : (f32) -> ()
        }}) : ({TILE}) -> {ROW}"""


def guarded(body: str, axis: int = 0) -> bool:
    module = parse_kernel(PARAMETERS, body)
    known = TilePolynomials()
    bound = Polynomial.of(known.atom(value_named(module, "m")))
    return is_guarded(known, value_named(module, "v"), axis, bound)


@pytest.mark.parametrize(
    ("body", "axis"),
    [
        (store("%v"), 0),
        (add("w", "%v", "%x") + store("%w"), 0),
        (dot("d", "%v", "%x", "%x") + store("%d"), 0),
        (TRANS + dot("d", "%x", "%t", "%x") + store("%d"), 1),
        (loop(dot("next", "%v", "%x", "%acc")) + store("%sum"), 0),
        (loop(add("next", "%acc", "%v")) + add("w", "%sum", "%sum") + store("%w"), 0),
        ("", 0),
    ],
)
def test_only_rows_within_the_bound_are_stored(body, axis):
    source = bounds(axis if "tt.trans" not in body else 1) + LOAD + body
    assert guarded(source, 0 if "tt.trans" in body else axis)


@pytest.mark.parametrize(
    "body",
    [
        store("%v", ""),  # no mask
        store("%v") + store("%v", ""),  # one of two
        add("w", "%v", "%x") + store("%w", ""),
        dot("d", "%x", "%v", "%x") + store("%d"),  # rows of b are summed over
        TRANS + store("%t"),  # rows are columns there
        SUM + f"\n use %s : {ROW}",  # printed
        loop(dot("next", "%v", "%x", "%acc")) + store("%sum", ""),
        loop(add("next", "%acc", "%v") + store("%acc", "")) + store("%sum"),
    ],
)
def test_rows_beyond_are_seen(body):
    assert not guarded(bounds(0) + LOAD + body)


def test_another_bound():
    assert not guarded(bounds(0, "%n") + LOAD + store("%v"))


def test_another_axis():
    assert not guarded(bounds(1) + LOAD + store("%v"))


def test_a_mask_that_wraps_around():
    """`i % n < m` leaves in what it should leave out."""
    source = bounds(0).replace(
        '%row = "arith.cmpi"(%i,',
        '%divisor = "tt.splat"(%n) : (i32) -> tensor<32xi32>\n'
        '%round = "arith.remsi"(%i, %divisor) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>\n'
        '%row = "arith.cmpi"(%round,',
    )
    assert not guarded(source + LOAD + store("%v"))


def test_what_is_stored_at_an_address_made_of_it():
    body = (
        f'\n%k = "arith.fptosi"(%v) : ({TILE}) -> tensor<32x32xi32>'
        '\n%at = "tt.addptr"(%p, %k) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>'
        f'\n"tt.store"(%at, %x, %below) <{{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}}>'
        f" : (tensor<32x32x!tt.ptr<f32>>, {TILE}, {MASK}) -> ()"
    )
    assert not guarded(bounds(0) + LOAD + body)
