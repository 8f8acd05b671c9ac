"""Polynomials of pointers, written out with the names of their atoms; i0, i1 are coordinates."""

from __future__ import annotations

import pytest
from ir_text import parse_kernel, value_named

import deuteron as triton
import deuteron.language as tl
from deuteron.analysis.addresses.polynomial import Polynomial
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.frontend import lower_function
from deuteron.ir.tt.memory import StoreOp
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes


def first_store(kernel, **constexprs) -> StoreOp:
    signature = {
        name: "constexpr" if name in constexprs else "*fp32" if name.endswith("_ptr") else "i32"
        for name in kernel.arg_names
    }
    module = lower_function(kernel, signature, constexprs, {})
    run_passes(module, tile_passes())
    return next(op for op in module.walk() if isinstance(op, StoreOp))


def stored_to(kernel, **constexprs):
    """The polynomials, and that of the first store's pointer."""
    known = TilePolynomials()
    return known, known.of(first_store(kernel, **constexprs).ptr)


def written(polynomial: Polynomial) -> set[str]:
    """`{"x", "64*k", "i0*stride"}`"""

    def name(atom):
        return f"i{atom.axis}" if atom.value is None else atom.value.name_hint or "?"

    terms = {"*".join(sorted(map(name, monomial))): factor for monomial, factor in polynomial}
    return {f"{factor}*{names}" if factor != 1 and names else names or str(factor) for names, factor in terms.items()}


@triton.jit
def tile(x_ptr, stride, n, BLOCK: tl.constexpr, CASE: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    j = tl.arange(0, 32)
    square = x_ptr + i[:, None] * stride + j[None, :]
    if CASE == "square":
        tl.store(square, 0.0)
    if CASE == "trans":
        tl.store(tl.trans(square), 0.0)
    if CASE == "wide":
        tl.store(square + pid.to(tl.int64) * n - 3, 0.0)
    if CASE == "single":
        tl.store(x_ptr + 2 * (stride + tl.arange(0, 1)) * n, 0.0)
    if CASE == "quotient":
        tl.store(x_ptr + (i // 2)[:, None] + j[None, :], 0.0)
    if CASE == "overflow":
        tl.store(x_ptr + ((j * 3 + 7) * -1431655765 - 2147483647 - 1), 0.0)
    if CASE == "loaded":
        tl.store(x_ptr + tl.load(square).to(tl.int32), 0.0)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("square", {"x_ptr", "64*pid*stride", "i0*stride", "i1"}),
        ("trans", {"x_ptr", "64*pid*stride", "i1*stride", "i0"}),
        ("wide", {"x_ptr", "64*pid*stride", "i0*stride", "i1", "n*pid", "-3"}),
        ("single", {"x_ptr", "2*n*stride"}),
        ("overflow", {"x_ptr", "i0", "715827885"}),
        ("quotient", None),
        ("loaded", None),
    ],
)
def test_tiles(case, expected):
    _, found = stored_to(tile, BLOCK=64, CASE=case)
    assert (found and written(found)) == expected


@triton.jit
def loop(x_ptr, stride, begin, end, CASE: tl.constexpr):
    i = tl.arange(0, 64)
    ptrs = x_ptr + i
    other = x_ptr + i
    for k in range(0 if CASE == "zero" else begin, end, 4 if CASE != "odd" else 8):
        tl.store(ptrs, 0.0)
        if CASE == "tiles":
            ptrs += i
        elif CASE == "varies":
            ptrs += k
        elif CASE == "swap":
            ptrs, other = other + stride, ptrs
        elif CASE == "still":
            ptrs = ptrs + 0
        elif CASE == "odd":
            ptrs += 12 * stride
        else:
            ptrs += 8 * stride
    tl.store(other, 0.0)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("zero", {"x_ptr", "i0", "2*k*stride"}),
        ("begin", {"x_ptr", "i0", "2*k*stride", "-2*begin*stride"}),
        ("still", {"x_ptr", "i0"}),
        ("odd", None),
        ("varies", None),
        ("swap", None),
        ("tiles", None),
    ],
)
def test_loops(case, expected):
    _, found = stored_to(loop, CASE=case)
    assert (found and written(found)) == expected


@triton.jit
def after(x_ptr, stride, n, CASE: tl.constexpr):
    ptrs, at = x_ptr + tl.arange(0, 64), 0
    begin = tl.program_id(1) * 32 if CASE == "begins" else 0
    end = (n if CASE == "rounded" else n // 8 * 8) if CASE != "program" else tl.program_id(0) * 32
    for k in range(begin, end, 8):
        tl.store(x_ptr + k, 0.0)
        ptrs += k if CASE == "varies" else 8 * stride
        at += 1
    for k in range(n):
        tl.store(ptrs + at, 1.0)
        at += k * 0 + 1
        ptrs += 1


@pytest.mark.parametrize(
    ("case", "are_natural", "expected"),
    [
        ("program", False, {"x_ptr", "i0", "32*pid*stride", "4*pid", "2*k"}),
        ("whole", True, {"x_ptr", "i0", "8*end*stride", "end", "2*k"}),
        ("whole", False, None),  # with a negative n, the first loop has no iteration
        ("begins", True, None),  # it may begin after its end
        ("rounded", True, None),
        ("varies", True, None),
    ],
)
def test_what_a_loop_leaves(case, are_natural, expected):
    op = [op for op in first_store(after, CASE=case).parent_op().parent_op().walk() if isinstance(op, StoreOp)][1]
    arguments = op.parent_op().parent_op().body.block.args
    names = {"divsi": "end", "": "pid"}
    found = TilePolynomials(frozenset(arguments) if are_natural else frozenset()).of(op.ptr)
    for atom in found.atoms if found is not None else ():
        if atom.value is not None and atom.value.name_hint is None:
            atom.value.name_hint = names.get(atom.value.owner.name.split(".")[-1], "pid")
    assert (found and written(found)) == expected


@triton.jit
def nested(x_ptr, n):
    i = tl.arange(0, 64)
    for t in range(n):
        ptrs = x_ptr + t * 100 + i
        for k in range(n):  # noqa: B007 - its name is looked at
            tl.store(ptrs, 0.0)
            ptrs += 64


def test_loops_in_loops():
    _, found = stored_to(nested)
    assert written(found) == {"x_ptr", "100*t", "i0", "64*k"}


@pytest.mark.parametrize(
    ("kernel", "constexprs"), [(after, {"CASE": "program"}), (nested, {}), (loop, {"CASE": "tile"})]
)
def test_it_makes_no_difference_what_was_asked_before(rng, kernel, constexprs):
    function = first_store(kernel, **constexprs).get_toplevel_object()
    values = [result for op in function.walk() for result in op.results]
    values += [argument for op in function.walk() for region in op.regions for argument in region.block.args]
    asked = TilePolynomials()
    for place in rng.permutation(len(values)):
        asked.of(values[place])
    for value in values:
        alone = TilePolynomials().of(value)
        found = asked.of(value)
        assert (found and written(found)) == (alone and written(alone)), value


@triton.jit
def bounded(x_ptr, begin, n, CASE: tl.constexpr):
    end = n
    if CASE == "sum":
        end = tl.minimum(begin + 10, n)
    elif CASE == "sums":
        end = tl.minimum(tl.minimum(n, begin + 17), begin + 9)
    elif CASE == "product":
        begin *= 8
        end = tl.minimum(begin * 1 + 4, n)
    elif CASE == "before":
        end = tl.minimum(begin - 1, n)  # if that overflows, n may be anything above
    elif CASE == "greater":
        end = tl.maximum(begin + 10, n)
    elif CASE == "nowhere near":
        end = tl.minimum(n + 10, begin * 2)
    for k in range(begin, end, 4):
        tl.store(x_ptr + k, 0.0)


@pytest.mark.parametrize(
    ("case", "most"),
    [("sum", 3), ("sums", 3), ("product", 1), ("before", None), ("greater", None), ("nowhere near", None), ("n", None)],
)
def test_how_many_iterations_there_are_at_most(case, most):
    assert TilePolynomials().most_iterations(first_store(bounded, CASE=case).parent_op()) == most


@triton.jit
def around(x_ptr, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(x_ptr + i % n, 0.0)


def test_tiles_that_go_round_count_as_the_dividend():
    pointer, known = first_store(around).ptr, TilePolynomials()
    found, (wrap,) = known.of(pointer), known.wraps_in(pointer)
    assert written(wrap.divisor) == {"n"}
    assert written(found) == {"x_ptr", *written(wrap.dividend)}


@pytest.mark.parametrize(("type", "terms"), [("i32", 2), ("i16", 1), ("i1", 1)])
def test_narrow_integers_may_wrap_around(type, terms):
    """The sum of two i16, widened, is not the sum of the widened two."""
    module = parse_kernel(
        f"%a: {type}, %b: {type}",
        f"""
        %sum = "arith.addi"(%a, %b) : ({type}, {type}) -> {type}
        %wide = "arith.extsi"(%sum) : ({type}) -> i64
        use %wide : i64""",
    )
    found = TilePolynomials().of(value_named(module, "wide"))
    assert len(list(found)) == terms
