"""Axis info: contiguity, divisibility and constancy of what kernels compute addresses and masks from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deuteron as triton
import deuteron.language as tl
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.axis.axis_info import AxisInfo
from deuteron.analysis.axis.ranges import MOST_PROGRAMS, mark_many_programs, noted_programs
from deuteron.frontend import lower_function
from deuteron.ir.tt.function import FuncOp, function_of
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes

HINT = (("tt.divisibility", 16),)


def infos_of(kernel, hinted, **constexprs):
    """The analysis of a kernel of fp32 pointers (names ending in _ptr) and i32, and its stores."""
    signature = {
        name: "constexpr" if name in constexprs else "*fp32" if name.endswith("_ptr") else "i32"
        for name in kernel.arg_names
    }
    module = lower_function(kernel, signature, constexprs, {name: HINT for name in hinted})
    run_passes(module, tile_passes())
    func = next(op for op in module.walk() if isinstance(op, FuncOp))
    accesses = [op for op in func.walk() if isinstance(op, (LoadOp, StoreOp))]
    return AxisInfoAnalysis(func), accesses


@triton.jit
def rows(x_ptr, stride, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.arange(0, 32)
    tl.store(x_ptr + i[:, None] * stride + j[None, :], 0.0, mask=j[None, :] < n)


def test_rows_are_contiguous_and_as_aligned_as_stride_and_pointer():
    infos, (store,) = infos_of(rows, ["x_ptr", "stride", "n"], BLOCK=64)
    pointer = infos.of(store.ptr)
    assert pointer.contiguity == (1, 32)
    assert pointer.divisibility[1] == 16
    assert infos.of(store.mask).constancy == (64, 16)


def test_one_that_is_deferred_looks_at_the_function_when_it_is_asked():
    infos, (store,) = infos_of(rows, ["x_ptr", "stride", "n"], BLOCK=64)
    func = function_of(store)
    deferred = AxisInfoAnalysis(func, deferred=True)
    assert "_infos" not in vars(deferred) and "_infos" in vars(infos)
    assert [deferred.of(operand) for operand in store.operands] == [infos.of(operand) for operand in store.operands]


def test_without_hints_nothing_is_aligned():
    infos, (store,) = infos_of(rows, [], BLOCK=64)
    assert infos.of(store.ptr).contiguity == (1, 32)
    assert infos.of(store.ptr).divisibility == (1, 1)
    assert infos.of(store.mask).constancy == (64, 1)


@triton.jit
def advancing(x_ptr, n, STEP: tl.constexpr):
    pointers = x_ptr + tl.arange(0, 64)
    for _ in range(0, n, STEP):
        tl.store(pointers, 0.0)
        pointers += STEP


@pytest.mark.parametrize(("step", "divisibility"), [(64, 16), (2, 8), (3, 4)])
def test_pointers_that_a_loop_advances(step, divisibility):
    infos, (store,) = infos_of(advancing, ["x_ptr"], STEP=step)
    assert infos.of(store.ptr).contiguity == (64,)
    assert infos.of(store.ptr).divisibility == (divisibility,)


@triton.jit
def advancing_until(x_ptr, n, STEP: tl.constexpr):
    pointers = x_ptr + tl.arange(0, 64)
    for i in range(n):
        if tl.load(x_ptr + i) < 0:
            break
        tl.store(pointers, 0.0)
        pointers += STEP
    tl.store(pointers, 1.0)


@triton.jit
def advancing_while(x_ptr, n, STEP: tl.constexpr):
    pointers = x_ptr + tl.arange(0, 64)
    while n > 0:
        tl.store(pointers, 0.0)
        pointers += STEP
        n -= 1
    tl.store(pointers, 1.0)


@pytest.mark.parametrize("kernel", [advancing_until, advancing_while])
@pytest.mark.parametrize(("step", "divisibility"), [(64, 16), (2, 8), (3, 4)])
def test_pointers_that_a_loop_advances_while_a_condition_holds(kernel, step, divisibility):
    infos, accesses = infos_of(kernel, ["x_ptr"], STEP=step)
    inside, behind = (infos.of(access.ptr) for access in accesses if isinstance(access, StoreOp))
    assert inside.contiguity == behind.contiguity == (64,)
    assert inside.divisibility == behind.divisibility == (divisibility,)


@triton.jit
def swapping(x_ptr, n):
    here, there = tl.arange(0, 64), tl.arange(0, 64) * 2
    while n > 0:
        here, there = there, here
        n -= 1
    tl.store(x_ptr + here, 1.0)


def test_what_a_while_loop_exchanges_is_weakened():
    infos, (store,) = infos_of(swapping, ["x_ptr"])
    assert infos.of(store.ptr).contiguity == (1,)


@triton.jit
def wrapped(x_ptr, m):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(x_ptr + i % m, 0.0)


def test_a_remainder_by_a_multiple_of_16_is_contiguous_in_groups_of_16():
    infos, (store,) = infos_of(wrapped, ["x_ptr", "m"])
    assert infos.of(store.ptr).contiguity == (16,)


@triton.jit
def quotients(x_ptr, m, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i // m, 0.0)


@pytest.mark.parametrize(("hinted", "block", "constancy"), [(["m"], 64, 16), (["m"], 8, 8), ([], 64, 1)])
def test_quotients_by_a_multiple_of_16_are_the_same_in_groups_of_16(hinted, block, constancy):
    infos, (store,) = infos_of(quotients, ["x_ptr", *hinted], BLOCK=block)
    assert infos.of(store.ptr).constancy == (constancy,)


@triton.jit
def hinted(x_ptr, start):
    i = tl.max_contiguous(tl.multiple_of(start + tl.arange(0, 64) * 1, 8), 8)
    tl.store(x_ptr + i, 0.0)


def test_hints_are_taken():
    infos, (store,) = infos_of(hinted, ["x_ptr"])
    assert infos.of(store.ptr).divisibility[0] >= 16


@triton.jit
def loaded(x_ptr, pages_ptr, DIVISOR: tl.constexpr, GROUP: tl.constexpr):
    page = tl.multiple_of(tl.load(pages_ptr).to(tl.int32, bitcast=True), 2 * DIVISOR)
    rows = tl.load(pages_ptr + tl.arange(0, 64)).to(tl.int32, bitcast=True)
    rows = tl.max_contiguous(tl.multiple_of(rows, DIVISOR), GROUP)
    tl.store(x_ptr + page + rows, 0.0)


@pytest.mark.parametrize(
    ("divisor", "group", "divisibility", "contiguity"), [(8, 8, 16, 8), (24, 24, 16, 8), (2, 128, 8, 64), (3, 0, 4, 1)]
)
def test_hints_on_what_is_loaded_are_taken_as_powers_of_two(divisor, group, divisibility, contiguity):
    infos, accesses = infos_of(loaded, ["x_ptr"], DIVISOR=divisor, GROUP=group)
    pointer = infos.of(accesses[-1].ptr)
    assert (pointer.divisibility, pointer.contiguity) == ((divisibility,), (contiguity,))


@triton.jit
def hinted_in_a_branch(x_ptr, n, FROM_MEMORY: tl.constexpr):
    i = (n if not FROM_MEMORY else tl.load(x_ptr).to(tl.int32)) + 0 * n + tl.arange(0, 64)
    if n > 0:
        tl.store(x_ptr + tl.multiple_of(i, 16), 0.0)
    tl.store(x_ptr + i, 1.0)


@pytest.mark.parametrize("from_memory", [False, True])
def test_a_hint_in_a_branch_says_nothing_elsewhere(from_memory):
    infos, accesses = infos_of(hinted_in_a_branch, ["x_ptr"], FROM_MEMORY=from_memory)
    stores = [infos.of(access.ptr).divisibility for access in accesses if isinstance(access, StoreOp)]
    assert stores == [(16,), (4,)]


@triton.jit
def hinted_load_in_a_branch(x_ptr, n):
    i = tl.load(x_ptr + 0 * n).to(tl.int32, bitcast=True)
    if n > 0:
        tl.store(x_ptr + tl.multiple_of(i, 16) + tl.arange(0, 64), 0.0)
    else:
        tl.store(x_ptr + i + tl.arange(0, 64), 1.0)


def test_branches_with_and_without_a_hint_stay_apart():
    infos, accesses = infos_of(hinted_load_in_a_branch, ["x_ptr"])
    stores = [infos.of(access.ptr).divisibility for access in accesses if isinstance(access, StoreOp)]
    assert stores == [(16,), (4,)]


@triton.jit
def arithmetic(x_ptr, a, b, OP: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    i = tl.arange(0, 64)
    if OP == "div":
        v = (i * D + a) // C
    elif OP == "rem":
        v = (i * D + a) % C
    elif OP == "quotient":
        v = (i * D + tl.program_id(0) * C) // b
    elif OP == "remainder":
        v = (i * D + tl.program_id(0) * C) % b
    elif OP == "shift":
        v = (((i * D + a) >> C % 8) + b) << C % 4
    elif OP == "rows":
        v = i + a // C * b + (b >> C % 8) * D
    elif OP == "add":
        v = i * D + a + b * C
    elif OP == "sub":
        v = i * D - a * C
    elif OP == "min":
        v = tl.minimum(i * D, C) + a
    else:
        v = tl.where(i < C, i * D, i + a)
    tl.store(x_ptr + v, 0.0)


def quotient(x, y):
    """Rounded towards zero; by zero it is zero."""
    return np.sign(x) * np.sign(y) * (np.abs(x) // max(abs(y), 1))


def holds(info: AxisInfo, values: np.ndarray) -> bool:
    """Whether what is said of offsets (step: 4 bytes an element) is true of the values."""
    groups = values.reshape(-1, info.contiguity[0])
    constant = values.reshape(-1, info.constancy[0])
    return (
        (np.diff(groups, axis=1) == 1).all()
        and (groups[:, 0] * 4 % info.divisibility[0] == 0).all()
        and (constant == constant[:, :1]).all()
    )


@triton.jit
def packed_rows(x_ptr, k, HALVES: tl.constexpr):
    width = k // 2 if HALVES else k >> 1
    rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, 32)[None, :]
    tl.store(x_ptr + rows * width + columns, 0.0)


@pytest.mark.parametrize("halves", [True, False])
def test_half_of_a_multiple_of_16_is_one_of_8(halves):
    infos, (store,) = infos_of(packed_rows, ["x_ptr", "k"], HALVES=halves)
    assert infos.of(store.ptr).divisibility[1] == 16


@given(
    op=st.sampled_from(["div", "rem", "quotient", "remainder", "shift", "rows", "add", "sub", "min", "where"]),
    c=st.sampled_from([1, 2, 3, 4, 8, 16, 24, 64, 100]),
    d=st.sampled_from([1, 2, 4, 5, 16]),
    hints=st.sampled_from([(), ("a",), ("a", "b")]),
    a=st.integers(-40, 40),
    b=st.integers(-40, 40),
    program=st.integers(0, 3),
)
def test_what_is_said_is_true(op, c, d, hints, a, b, program):
    """Against the numbers themselves; a base pointer that is aligned to everything."""
    a, b = (value * 16 if name in hints else value for name, value in (("a", a), ("b", b)))
    infos, (store,) = infos_of(arithmetic, ["x_ptr", *hints], OP=op, C=c, D=d)
    i = np.arange(64)
    values = {
        "div": quotient(i * d + a, c),
        "rem": i * d + a - quotient(i * d + a, c) * c,
        "quotient": quotient(i * d + program * c, b),
        "remainder": i * d + program * c - quotient(i * d + program * c, b) * b,
        "shift": (((i * d + a) >> c % 8) + b) << c % 4,
        "rows": i + quotient(a, c) * b + (b >> c % 8) * d,
        "add": i * d + a + b * c,
        "sub": i * d - a * c,
        "min": np.minimum(i * d, c) + a,
        "where": np.where(i < c, i * d, i + a),
    }[op]
    info = infos.of(store.ptr)
    assert holds(info, values), (info, values)


@triton.jit
def without_a_sign(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i.to(tl.uint32).to(tl.uint64), 0.0)
    tl.store(x_ptr + (i - 8).to(tl.uint32).to(tl.uint64), 0.0, mask=i >= 8)
    tl.store(x_ptr + (i - n).to(tl.uint32).to(tl.uint64), 0.0, mask=i >= n)


def test_numbers_without_a_sign_count_up_in_aligned_groups_where_they_may_have_been_negative():
    infos, stores = infos_of(without_a_sign, ["x_ptr"], BLOCK=64)
    assert [infos.of(store.ptr).contiguity for store in stores] == [(64,), (8,), (1,)]


@triton.jit
def divided(x_ptr, FACTOR: tl.constexpr):
    i = tl.arange(0, 64)
    tl.store(x_ptr + i, 0.0, mask=(tl.program_id(0) * FACTOR + i) // 8 % 2 == 0)


@pytest.mark.parametrize(
    ("factor", "constancy", "programs"), [(64, 8, 2**25), (32768, 8, 2**16), (1000000, 1, MOST_PROGRAMS)]
)
def test_quotients_are_in_groups_where_the_grid_is_not_so_large_that_something_overflows(factor, constancy, programs):
    infos, (store,) = infos_of(divided, ["x_ptr"], FACTOR=factor)
    assert infos.of(store.mask).constancy == (constancy,)
    assert noted_programs(function_of(store)) == programs


def test_quotients_are_in_no_groups_where_a_grid_may_be_as_large_as_it_likes():
    _, (store,) = infos_of(divided, ["x_ptr"], FACTOR=64)
    func = function_of(store)
    func.attributes.clear()
    mark_many_programs(func)
    assert AxisInfoAnalysis(func).of(store.mask).constancy == (1,)
    assert noted_programs(func) == MOST_PROGRAMS


@triton.jit
def cut(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(x_ptr + (tl.program_id(0).to(tl.int64) * BLOCK + i).to(tl.int32), 0.0)
    tl.store(x_ptr + (n.to(tl.int64) * 4 + i).to(tl.int32), 0.0)


def test_what_is_cut_counts_up_to_the_largest_number():
    infos, (in_blocks, in_groups) = infos_of(cut, ["x_ptr"], BLOCK=64)
    assert infos.of(in_blocks.ptr).contiguity == (64,)
    assert infos.of(in_groups.ptr).contiguity == (4,)


@triton.jit
def through_other_pointers(x_ptr, n, TYPE: tl.constexpr):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    other = (x_ptr + i).to(tl.pointer_type(TYPE), bitcast=True)
    tl.store(other, tl.load(other))


@pytest.mark.parametrize("type, contiguity", [(tl.int32, 64), (tl.int8, 1), (tl.float64, 1)])
def test_a_pointer_to_another_type_is_as_aligned(type, contiguity):
    infos, accesses = infos_of(through_other_pointers, ["x_ptr"], TYPE=type)
    for access in accesses:
        assert infos.of(access.ptr).contiguity == (contiguity,)
        assert infos.of(access.ptr).divisibility == (16 if contiguity == 64 else 4,)


@triton.jit
def gathered(x_ptr, out_ptr, n, VOLATILE: tl.constexpr):
    i = tl.arange(0, 64)
    number = tl.load(x_ptr + i // 8, mask=i < n, other=0.0, volatile=VOLATILE).to(tl.int32)
    tl.store(out_ptr + number * 4 + i % 4, 0.0)


@pytest.mark.parametrize(("hinted", "is_volatile", "equal"), [("n", False, 8), ("", False, 1), ("n", True, 1)])
def test_what_is_loaded_is_the_same_where_address_and_mask_are(hinted, is_volatile, equal):
    """The mask changes in groups that n divides."""
    infos, (load, store) = infos_of(gathered, ["x_ptr", "out_ptr", hinted], VOLATILE=is_volatile)
    assert infos.of(load.result).constancy == (equal,)
    assert infos.of(store.ptr).contiguity == (min(4, equal),)
