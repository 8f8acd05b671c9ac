"""Which dots by wgmma stay in flight, and where they are waited for."""

import re

import numpy as np
from backend.cuda.launching import aligned, compile_for, emulate_compiled
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

HALF, SINGLE = np.zeros(1 << 16, np.float16), np.zeros(1 << 16, np.float32)


def sequence(kernel) -> list[str]:
    """Dots (`dot` waits for itself, `dot...` does not), waits with their `pendings`, loops, reductions, stores."""
    found = []
    for line in generic_asm(kernel, "ttgir").splitlines():
        match = re.search(r'"((?:ttng|scf|tt)\.[\w.]+)"', line)
        name = match.group(1) if match else ""
        if name == "ttng.warp_group_dot":
            found.append("dot..." if "isAsync = true" in line else "dot")
        elif name == "ttng.warp_group_dot_wait":
            found.append("wait " + re.search(r"pendings = (\d+)", line).group(1))
        elif name in ("scf.for", "scf.yield", "tt.reduce", "tt.store"):
            found.append({"scf.for": "{", "scf.yield": "}"}.get(name, name.removeprefix("tt.")))
    return found


@deuteron.jit
def matmul(a, b, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), out.dtype.element_ty)
    for step in range(n):
        x, y = tl.load(a + step * N * N + square), tl.load(b + step * N * N + square)
        acc = tl.dot(x, y, acc)
    tl.store(out + square, acc)


def test_a_pipelined_loop_waits_for_the_iteration_before():
    kernel = compile_for("cuda:90", matmul, HALF, HALF, SINGLE, 4, N=64, num_stages=3)
    assert sequence(kernel) == ["{", "dot...", "wait 1", "}", "wait 0", "store"]


def test_buffers_of_one_iteration_are_waited_for_in_it():
    kernel = compile_for("cuda:90", matmul, HALF, HALF, SINGLE, 4, N=64, num_stages=1)
    assert sequence(kernel) == ["{", "dot", "}", "store"]


def test_sums_of_16_bits_are_rounded_after_the_loop():
    kernel = compile_for("cuda:90", matmul, HALF, HALF, HALF, 4, N=64, num_stages=3)
    assert sequence(kernel) == ["{", "dot...", "wait 1", "}", "wait 0", "store"]


@deuteron.jit
def doubled(a, b, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), out.dtype.element_ty)
    for step in range(n):
        x, y = tl.load(a + step * N * N + square), tl.load(b + step * N * N + square)
        acc = tl.dot(x, y, acc) * 2
    tl.store(out + square, acc)


def test_what_is_rounded_to_16_bits_in_the_loop_waits_for_itself():
    kernel = compile_for("cuda:90", doubled, HALF, HALF, HALF, 4, N=64, num_stages=3)
    assert sequence(kernel) == ["{", "dot", "}", "store"]


@deuteron.jit
def two_sums(a, b, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    first, second = tl.zeros((N, N), tl.float32), tl.zeros((N, N), tl.float32)
    for step in range(n):
        x, y = tl.load(a + step * N * N + square), tl.load(b + step * N * N + square)
        first = tl.dot(x, y, first)
        second = tl.dot(y, x, second)
    tl.store(out + square, first + second)


def test_two_dots_share_a_wait():
    kernel = compile_for("cuda:90", two_sums, HALF, HALF, SINGLE, 4, N=64, num_stages=3)
    assert sequence(kernel) == ["{", "dot...", "dot...", "wait 2", "}", "wait 0", "store"]


@deuteron.jit
def used_later(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    x, y = tl.load(a + square), tl.load(b + square)
    first = tl.dot(x, y)
    second = tl.dot(y, x)
    tl.store(out + i, tl.sum(first, 1))
    tl.store(out + N + i, tl.sum(second, 1))


def test_dots_in_line_are_waited_for_one_by_one():
    kernel = compile_for("cuda:90", used_later, HALF, HALF, SINGLE, N=64)
    assert sequence(kernel) == ["dot...", "dot...", "wait 1", "reduce", "store", "wait 0", "reduce", "store"]


@deuteron.jit
def scaled(a, b, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for step in range(n):
        x, y = tl.load(a + step * N * N + square), tl.load(b + step * N * N + square)
        acc = tl.dot(x, y, acc * 0.5)
    tl.store(out + square, acc)


def test_an_accumulator_that_the_loop_computes_with_is_waited_for_at_its_end():
    found = sequence(compile_for("cuda:90", scaled, HALF, HALF, SINGLE, 4, N=64, num_stages=3))
    assert found in (["{", "dot...", "wait 0", "}", "store"], ["{", "dot", "}", "store"])


@deuteron.jit
def two_into_one_sum(a, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    before = tl.load(a + square)
    for step in range(n):
        x = tl.load(a + step * N * N + square)
        product = tl.dot(x, x).to(tl.float16)
        acc = tl.dot(before, x, acc)
        acc = tl.dot(x, product, acc)
        before = product
    tl.store(out + square, acc)


def test_what_a_loop_carries_on_comes_after_the_dots_that_read_its_registers(rng):
    """It is computed before them, and LLVM moved it to where it is used: into registers that a dot in flight read."""
    tiles = aligned(rng.integers(-1, 2, (4, 64, 64)).astype(np.float16))
    out = aligned(np.full((64, 64), np.nan, np.float32))
    kernel = compile_for("cuda:90", two_into_one_sum, tiles, out, 4, N=64)
    assert sequence(kernel).count("dot...") > 1
    emulate_compiled(kernel, tiles, out, 4, asynchronous="late")
    before, expected = tiles[0].astype(np.float64), 0
    for x in tiles.astype(np.float64):
        expected += before @ x + x @ (x @ x)
        before = x @ x
    np.testing.assert_array_equal(out, expected)


@deuteron.jit
def beside_others(a, b, x, out, N: tl.constexpr, COUNT: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    others = ()
    for n in tl.static_range(COUNT):
        others += (tl.load(x + n * N * N + square),)
    left, right = tl.load(a + square), tl.load(b + square)
    first = tl.dot(left, right)
    second = tl.dot(right, left)
    total = tl.exp(first) * tl.sin(second)
    for other in tl.static_range(COUNT):
        total = total * others[other] + tl.sum(total, 1, keep_dims=True)
    tl.store(out + square, total)


def test_where_tiles_fill_more_registers_than_there_are_dots_wait_for_themselves():
    """Each other tile has 32 registers of a thread, and the sum of a dot as many."""
    few, many = (compile_for("cuda:90", beside_others, HALF, HALF, SINGLE, SINGLE, N=64, COUNT=n) for n in (2, 8))
    assert sequence(few)[:2] == ["dot...", "dot..."]
    assert sequence(many)[:2] == ["dot", "dot"]


@deuteron.jit
def begun_anew(a, out, copied, last, n, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for step in range(n):
        x = tl.load(a + step * N * N + square)
        acc = tl.dot(x, x, acc)
        if step == last:
            tl.store(copied + square, x)
            acc = tl.zeros((N, N), tl.float32)
    tl.store(out + square, acc)


def test_a_sum_that_a_branch_gives_the_next_iteration_is_waited_for_before_it(rng):
    """The branch gives what it is given at the number that the sum has in the loop."""
    tiles = aligned(rng.integers(-2, 3, (6, 64, 64)).astype(np.float16))
    out, copied = aligned(np.zeros((64, 64), np.float32)), aligned(np.zeros((64, 64), np.float16))
    kernel = compile_for("cuda:90", begun_anew, tiles, out, copied, 3, 6, N=64, num_stages=3)
    emulate_compiled(kernel, tiles, out, copied, 3, 6, asynchronous="late")
    np.testing.assert_array_equal(copied, tiles[3])
    np.testing.assert_array_equal(out, sum(x @ x for x in tiles[4:].astype(np.float64)))


@deuteron.jit
def sum_of_taps(a, b, out, ROWS: tl.constexpr, K: tl.constexpr):
    i, k = tl.arange(0, ROWS), tl.arange(0, K)
    acc = tl.zeros((ROWS, 64), tl.float32)
    for tap in tl.static_range(3):
        x = tl.load(a + tap * ROWS * K + i[:, None] * K + k[None, :])
        y = tl.load(b + tap * K * 64 + k[:, None] * 64 + tl.arange(0, 64)[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * 64 + tl.arange(0, 64)[None, :], acc)


def test_dots_whose_buffers_would_leave_room_for_few_ctas_are_waited_for_before_the_next_are_stored(rng):
    a, b = (aligned(rng.integers(-2, 3, shape).astype(np.float16)) for shape in ((3, 64, 128), (3, 128, 64)))
    out = aligned(np.full((64, 64), np.nan, np.float32))
    kernel = compile_for("cuda:90", sum_of_taps, a, b, out, ROWS=64, K=128)
    assert sequence(kernel) == ["dot...", "wait 0", "dot...", "wait 0", "dot", "store"]
    assert kernel.metadata.shared < 2 * 32 * 1024
    emulate_compiled(kernel, a, b, out, asynchronous="late")
    np.testing.assert_array_equal(out, (a.astype(np.float64) @ b.astype(np.float64)).sum(0))


def test_dots_whose_buffers_are_small_are_all_in_flight():
    kernel = compile_for("cuda:90", sum_of_taps, HALF, HALF, SINGLE, ROWS=64, K=32)
    assert sequence(kernel) == ["dot...", "dot...", "dot", "store"]
