"""Loads and stores: masks, strides, order of lanes, and what is said of an access outside of an array."""

from __future__ import annotations

import numpy as np
import pytest

from deuteron.errors import Location, MemoryAccessError
from deuteron.interpreter import Buffer

PTR, TILE = "!tt.ptr<f32>", "tensor<8x!tt.ptr<f32>>"
STORE = "<{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}>"


def load(operands: str, count: int, types: str, result: str = "tensor<8xf32>") -> str:
    segments = ", ".join("1" if index < count else "0" for index in range(3))
    return f""""tt.load"({operands}) <{{operandSegmentSizes = array<i32: {segments}>, boundaryCheck = array<i32>,
      cache = 1 : i32, evict = 1 : i32, isVolatile = false}}> : ({types}) -> {result} loc("k.py":12:5)"""


def constant(name: str, type: str, values: list) -> str:
    text = ", ".join(str(value).lower() for value in values)
    return f'{name} = "arith.constant"() <{{value = dense<[{text}]> : {type}}}> : () -> {type}\n'


def pointers(name: str, base: str, offsets: list[int]) -> str:
    return f"""
    {constant(f"{name}_o", "tensor<8xi32>", offsets)}
    {name}_b = "tt.splat"({base}) : ({PTR}) -> {TILE}
    {name} = "tt.addptr"({name}_b, {name}_o) : ({TILE}, tensor<8xi32>) -> {TILE}"""


def gather_kernel(offsets: list[int], mask: list[bool] | None = None, other: list[float] | None = None) -> str:
    """out[i] = x[offsets[i]]"""
    masked = constant("%m", "tensor<8xi1>", mask) if mask else ""
    masked += constant("%e", "tensor<8xf32>", other) if other else ""
    operands = ["%p", *(["%m"] if mask else []), *(["%e"] if other else [])]
    types = ", ".join([TILE, "tensor<8xi1>", "tensor<8xf32>"][: len(operands)])
    return f"""
    {pointers("%p", "%x", offsets)}
    {masked}
    %v = {load(", ".join(operands), len(operands), types)}
    {pointers("%q", "%out", list(range(8)))}
    "tt.store"(%q, %v) {STORE} : ({TILE}, tensor<8xf32>) -> () loc("k.py":13:5)"""


PARAMETERS = f"%x: {PTR}, %out: {PTR}"


@pytest.fixture
def arrays():
    return np.arange(1, 9, dtype=np.float32), np.full(8, 77, np.float32)


def test_gather_through_masks(run_kernel, arrays):
    x, out = arrays
    run_kernel(PARAMETERS, gather_kernel([7, 0, 1, 1, 5, 4, 3, 2]), [x, out])
    assert out.tolist() == [8, 1, 2, 2, 6, 5, 4, 3]
    mask = [True, False] * 4
    run_kernel(PARAMETERS, gather_kernel([0, 99, 1, -99, 2, 99, 3, 99], mask, [-1.0] * 8), [x, out])
    assert out.tolist() == [1, -1, 2, -1, 3, -1, 4, -1]
    run_kernel(PARAMETERS, gather_kernel([0, 99, 1, -99, 2, 99, 3, 99], mask), [x, out])
    assert out.tolist() == [1, 0, 2, 0, 3, 0, 4, 0]


def test_a_load_without_an_active_lane_touches_nothing(run_kernel, arrays):
    x, out = arrays
    run_kernel(PARAMETERS, gather_kernel([1000] * 8, [False] * 8, [5.0] * 8), [None, out])
    assert out.tolist() == [5.0] * 8


def test_strided_and_reversed_arrays(run_kernel, arrays):
    """The address is that of the first element; bounds are those of the lowest and the highest one."""
    wide = np.arange(16, dtype=np.float32)
    out = arrays[1]
    run_kernel(PARAMETERS, gather_kernel([0, 2, 4, 6, 8, 10, 12, 14]), [wide[::2], out])
    assert out.tolist() == wide[::2].tolist()
    run_kernel(PARAMETERS, gather_kernel([0, -1, -2, -3, -4, -5, -6, -7]), [wide[7::-1], out])
    assert out.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    with pytest.raises(MemoryAccessError, match=r"byte offset 60 of x, which has 60 bytes"):
        run_kernel(PARAMETERS, gather_kernel([0, 2, 4, 6, 8, 10, 12, 15]), [wide[::2], out])


def test_the_last_lane_wins(run_kernel, arrays):
    x, out = arrays
    body = f"""
    {pointers("%p", "%x", list(range(8)))}
    %v = {load("%p", 1, TILE)}
    {pointers("%q", "%out", [0, 1, 0, 1, 0, 1, 0, 1])}
    "tt.store"(%q, %v) {STORE} : ({TILE}, tensor<8xf32>) -> ()"""
    run_kernel(PARAMETERS, body, [x, out])
    assert out.tolist() == [7, 8, *[77] * 6]


def test_out_of_bounds_names_lane_array_and_place(run_kernel, arrays):
    x, out = arrays
    mask = [True, True, False, True, True, True, True, True]
    with pytest.raises(MemoryAccessError) as caught:
        run_kernel(PARAMETERS, gather_kernel([0, 1, 99, 8, 2, 3, 4, 5], mask), [x, out])
    assert caught.value.location == Location("k.py", 12, 5)
    assert caught.value.message == (
        "Out-of-bounds load: lane (3,) of program (0, 0, 0) of kernel 'k' accesses 4 bytes at byte offset 32 of x, "
        "which has 32 bytes. Mask such lanes, or check the offsets and strides."
    )


def test_a_pointer_that_lands_in_another_array_is_out_of_bounds(run_kernel):
    both = np.zeros(16, np.float32)
    with pytest.raises(MemoryAccessError, match="byte offset 32 of x"):
        run_kernel(PARAMETERS, gather_kernel([8] * 8), [both[:8], both[8:]])
    with pytest.raises(MemoryAccessError, match="byte offset -4 of x"):
        run_kernel(PARAMETERS, gather_kernel([-1] * 8), [both[8:], both[:8]])


def test_an_empty_array_can_be_passed_but_not_accessed(run_kernel, arrays):
    with pytest.raises(MemoryAccessError, match="of x, which has 0 bytes"):
        run_kernel(PARAMETERS, gather_kernel([0] * 8), [np.empty(0, np.float32), arrays[1]])


def test_null_is_out_of_bounds(run_kernel):
    with pytest.raises(MemoryAccessError, match="address 0x0, and the kernel was given no array"):
        run_kernel(PARAMETERS, gather_kernel([0] * 8), [None, None])


def test_a_misaligned_pointer(run_kernel, arrays):
    raw = np.zeros(40, np.uint8)
    start = -raw.ctypes.data % 4 + 2
    with pytest.raises(MemoryAccessError, match="Misaligned load: lane .0,. .* byte offset 0 of x"):
        run_kernel(PARAMETERS, gather_kernel(list(range(8))), [raw[start : start + 36], arrays[1]])


def test_a_read_only_array(run_kernel, arrays):
    x, out = arrays
    out.flags.writeable = False
    with pytest.raises(MemoryAccessError, match="Read-only store: lane .0,. of program .* of out"):
        run_kernel(PARAMETERS, gather_kernel([0] * 8), [x, out])


def test_buffers_and_addresses(run_kernel, arrays):
    """An address on its own may point into the buffer of another argument."""
    x, out = arrays
    buffer = Buffer(x.ctypes.data, x.nbytes, "x")
    body = gather_kernel(list(range(8)))
    run_kernel(f"{PARAMETERS}, %all: {PTR}", body, [x.ctypes.data, out, buffer])
    assert out.tolist() == x.tolist()


def test_one_tile_of_pointers_into_two_arrays(run_kernel, arrays):
    x, out = arrays
    y = np.full(8, -1, np.float32)
    body = f"""
    {constant("%m", "tensor<8xi1>", [True, False] * 4)}
    {pointers("%p", "%x", list(range(8)))}
    {pointers("%r", "%y", list(range(8)))}
    %s = "arith.select"(%m, %p, %r) : (tensor<8xi1>, {TILE}, {TILE}) -> {TILE}
    %v = {load("%s", 1, TILE)}
    {pointers("%q", "%out", list(range(8)))}
    "tt.store"(%q, %v) {STORE} : ({TILE}, tensor<8xf32>) -> ()"""
    run_kernel(f"{PARAMETERS}, %y: {PTR}", body, [x, out, y])
    assert out.tolist() == [1, -1, 3, -1, 5, -1, 7, -1]


def test_a_pointer_carried_by_a_loop_keeps_its_array(run_kernel, arrays):
    both = np.zeros(16, np.float32)
    body = f"""
    %zero = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %one = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    %nine = "arith.constant"() <{{value = 9 : i32}}> : () -> i32
    %r = "scf.for"(%zero, %nine, %one, %x) ({{
    ^bb1(%i: i32, %p: {PTR}):
      %v = {load("%p", 1, PTR, "f32")}
      %n = "tt.addptr"(%p, %one) : ({PTR}, i32) -> {PTR}
      "scf.yield"(%n) : ({PTR}) -> ()
    }}) : (i32, i32, i32, {PTR}) -> {PTR}"""
    with pytest.raises(MemoryAccessError, match="Out-of-bounds load: program .* byte offset 32 of x"):
        run_kernel(PARAMETERS, body, [both[:8], both[8:]])
