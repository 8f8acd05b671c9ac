"""Dots that are issued an iteration later: which, what of a loop goes with them; the numbers stay right."""

import re

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, compile_text, emulate, emulate_compiled
from ir_text import generic_asm, generic_text
from xdsl.context import Context
from xdsl.dialects.builtin import UnitAttr

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.target import architecture
from deuteron.ir.text import parse_module
from deuteron.ir.ttg.warp_specialize import SPECIALIZED
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.by_name import without
from deuteron.passes.gpu import gpu_passes
from deuteron.passes.gpu.pipelining import delay_dots, pipeline_loads
from deuteron.passes.gpu.pipelining.delay_dots import DelayDots
from deuteron.passes.gpu.pipelining.pipeline_loads import PipelineLoads
from deuteron.settings import settings

D = 64
pytestmark = pytest.mark.usefixtures("unsplit")


def sequence(text):
    """What matters of a kernel's ttgir, in order: dots, waits, copies, control flow, reductions."""
    names = {"scf.for": "for", "scf.if": "if", "scf.yield": "}", "tt.reduce": "reduce", "tt.load": "load"}
    names["ttg.async_copy_global_to_local"] = "copy"
    found = []
    for line in text.splitlines():
        match = re.search(r'"((?:ttng|ttg|scf|tt)\.[\w.]+)"', line)
        name = match.group(1) if match else ""
        if name == "ttng.warp_group_dot":
            found.append("dot..." if "isAsync = true" in line else "dot")
        elif name == "ttng.warp_group_dot_wait":
            found.append("wait " + re.search(r"pendings = (\d+)", line).group(1))
        elif name in names:
            found.append(names[name])
    return found


def loop_of(text):
    """The sequence in the only loop."""
    found = sequence(text)
    return found[found.index("for") + 1 : found.index("}", found.index("for"))]


@deuteron.jit
def attention(q, k, v, out, n, BLOCK: tl.constexpr, D: tl.constexpr, CASE: tl.constexpr):
    """One tile of rows. In some cases the pointers are carried, or what the loop does is another variant."""
    rows, keys, dims = tl.arange(0, 64), tl.arange(0, BLOCK), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    top = tl.full((64,), float("-inf"), tl.float32)
    total, acc = tl.zeros((64,), tl.float32), tl.zeros((64, D), tl.float32)
    k_ptrs = k + keys[:, None] * D + dims[None, :]
    v_ptrs = v + keys[:, None] * D + dims[None, :]
    for start in range(0, n, BLOCK):
        here = start + keys
        if CASE == "carried":
            y = tl.load(k_ptrs, mask=here[:, None] < n, other=0.0)
        else:
            y = tl.load(k_ptrs + start * D, mask=here[:, None] < n, other=0.0)
        scores = tl.where(here[None, :] < n, tl.dot(x, tl.trans(y)), float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp(scores - new_top[:, None])
        if CASE == "carried":
            z = tl.load(v_ptrs, mask=here[:, None] < n, other=0.0)
        elif CASE == "same":
            z = y
        else:
            z = tl.load(v_ptrs + start * D, mask=here[:, None] < n, other=0.0)
        if CASE == "late scale":
            acc = tl.dot(p.to(z.dtype), z, acc * tl.exp(top - new_top)[:, None])
        else:
            alpha = tl.exp(top - new_top)
            acc = tl.dot(p.to(z.dtype), z, acc * alpha[:, None])
        total = total * tl.exp(top - new_top) + tl.sum(p, 1)
        top = new_top
        if CASE == "carried":
            k_ptrs += BLOCK * D
            v_ptrs += BLOCK * D
    tl.store(out + rows[:, None] * D + dims[None, :], acc / tl.maximum(total, 1e-30)[:, None])


def draw(rng, n, dtype=np.float16):
    return [aligned(rng.standard_normal((rows, D)).astype(dtype)) for rows in (64, max(n, 1), max(n, 1))]


def check(out, q, k, v, n, tolerance=1e-3):
    q, k, v = (values.astype(np.float64) for values in (q, k[:n], v[:n]))
    scores = q @ k.T
    p = np.exp(scores - scores.max(1, keepdims=True)) if n else scores
    expected = p @ v / p.sum(1, keepdims=True) if n else np.zeros((64, D))
    assert np.abs(out - expected).max() <= tolerance * max(np.abs(expected).max(), 1e-30)


def poisoned():
    return aligned(np.full((64, D), np.nan, np.float32))


ARRAYS = [aligned(np.zeros((64, D), np.float16))] * 3 + [poisoned()]


def compiled(case, **options):
    return compile_for("cuda:90", attention, *ARRAYS, 64, BLOCK=64, D=D, CASE=case, **options)


def test_the_second_dot_runs_under_the_next_softmax(by_pointers):
    text = generic_asm(compiled("", num_stages=3), "ttgir")
    assert loop_of(text) == ["dot...", "dot...", "copy", "copy", "wait 1", "reduce", "reduce", "wait 0"]


def test_the_first_iteration_begins_and_the_last_ends_outside_of_the_loop(way):
    found = sequence(generic_asm(compiled("", num_stages=3), "ttgir"))
    found = [name for name in found[found.index("if") :] if name not in ("copy", "load")]
    assert found[: found.index("for")] == ["if", "dot...", "wait 0", "reduce", "reduce"]
    assert found[found.index("}") :] == ["}", "dot", "}", "}"]


@pytest.mark.share(3)
@pytest.mark.parametrize("mode", ["late", "early", "random"])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_any_moment_of_copies_and_dots(rng, way, stages, mode):
    arrays, out = draw(rng, 200), poisoned()
    kernel = compile_for("cuda:90", attention, *arrays, out, 200, BLOCK=64, D=D, CASE="", num_stages=stages)
    emulate_compiled(kernel, *arrays, out, 200, asynchronous=mode)
    check(out, *arrays, 200)


@pytest.mark.share(4)
@pytest.mark.parametrize("n", [0, 1, 32, 33, 64, 65, 128, 150])
@pytest.mark.parametrize("case", ["", "carried"])
def test_lengths(rng, way, case, n):
    arrays, out = draw(rng, n), poisoned()
    kernel = emulate(attention, *arrays, out, n, BLOCK=32, D=D, CASE=case, num_stages=3)
    assert "wait 1" in loop_of(generic_asm(kernel, "ttgir"))
    check(out, *arrays, n)


@pytest.mark.parametrize(("num_warps", "dtype"), [(4, ml_dtypes.bfloat16), (8, np.float16)])
def test_types_and_warps(rng, way, num_warps, dtype):
    arrays, out = draw(rng, 96, dtype), poisoned()
    emulate(attention, *arrays, out, 96, BLOCK=32, D=D, CASE="", num_stages=3, num_warps=num_warps)
    check(out, *arrays, 96, 1e-3 if dtype == np.float16 else 1e-2)


@pytest.mark.parametrize("case", ["late scale", "same"])
def test_what_comes_with_a_dot(rng, way, case):
    """The factor of the sum is handed over; a tile that both dots read is not there an iteration later."""
    (q, k, v), out = draw(rng, 130), poisoned()
    kernel = emulate(attention, q, k, v, out, 130, BLOCK=32, D=D, CASE=case, num_stages=3)
    assert ("wait 1" in loop_of(generic_asm(kernel, "ttgir"))) == (case != "same")
    check(out, q, k, k if case == "same" else v, 130)


@deuteron.jit
def chain(a, b, c, out, n, N: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    x, acc = tl.load(a + square), tl.zeros((N, N), tl.float32)
    for step in tl.range(n, warp_specialize=CASE == "asked"):
        y, z = tl.load(b + step * N * N + square), tl.load(c + step * N * N + square)
        first = tl.dot((acc * 0).to(tl.float16) + x if CASE == "feedback" else x, y)
        if CASE == "half":
            acc = tl.dot(first.to(tl.float16), z, out_dtype=tl.float16).to(tl.float32) + acc
        elif CASE == "stored":
            acc = tl.dot(first.to(tl.float16), z, acc)
            tl.store(out + step * N * N + square, acc)
        else:
            acc = tl.dot(first.to(tl.float16), z, acc)
    if CASE != "stored":
        tl.store(out + square, acc)


@pytest.mark.parametrize("case", ["plain", "feedback", "half", "stored"])
def test_which_loops_are_left_as_they_are(rng, way, case):
    a, b, c = (aligned(rng.integers(-1, 2, (count, 64, 64)).astype(np.float16)) for count in (1, 3, 3))
    out = aligned(np.full((3, 64, 64), np.nan, np.float32))
    kernel = emulate(chain, a, b, c, out, 3, N=64, CASE=case, num_stages=3)
    assert ("wait 1" in loop_of(generic_asm(kernel, "ttgir"))) == (case == "plain")
    sums = np.cumsum(a.astype(np.float64) @ b.astype(np.float64) @ c.astype(np.float64), 0)
    np.testing.assert_array_equal(out[:3] if case == "stored" else out[0], sums if case == "stored" else sums[-1])


@deuteron.jit
def used_again(a, b, c, between, out, n, N: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    x, acc = tl.load(a + square), tl.zeros((N, N), tl.float32)
    for step in range(n):
        y, z = tl.load(b + step * N * N + square), tl.load(c + step * N * N + square)
        p = tl.dot(x, y).to(tl.float16)
        if CASE == "stored":
            tl.store(between + step * N * N + square, p)
        elif step % 2 == 0:
            tl.store(between + step * N * N + square, p * 2)
        if CASE == "operand":
            acc = tl.dot(p * p, z, acc)
        acc = tl.dot(p, z, acc)
    tl.store(out + square, acc)


@pytest.mark.share(2)
@pytest.mark.parametrize("mode", ["early", "late"])
@pytest.mark.parametrize("case", ["stored", "in a branch", "operand"])
def test_an_operand_that_something_else_needs(rng, way, case, mode):
    """It stays where it is: stored (`p = dot(x, y).to(tl.float16)`), read in a branch, or made into another operand."""
    a, b, c = (aligned(rng.integers(-1, 2, (count, 64, 64)).astype(np.float16)) for count in (1, 5, 5))
    between, out = aligned(np.full((5, 64, 64), 77, np.float16)), poisoned()
    args = [a, b, c, between, out, 5]
    kernel = compile_for("cuda:90", used_again, *args, N=64, CASE=case, num_stages=3)
    emulate_compiled(kernel, *args, asynchronous=mode)
    assert "wait 1" in loop_of(generic_asm(kernel, "ttgir")) or case != "stored"
    p = a.astype(np.float64) @ b.astype(np.float64)
    expected = p if case == "stored" else np.where(np.arange(5)[:, None, None] % 2 == 0, 2 * p, 77)
    np.testing.assert_array_equal(between, expected)
    np.testing.assert_array_equal(out, ((p + p * p if case == "operand" else p) @ c.astype(np.float64)).sum(0))


def test_one_stage_leaves_dots_in_their_iteration():
    assert loop_of(generic_asm(compiled("", num_stages=1), "ttgir")).count("wait 1") == 0


@pytest.mark.parametrize(("size", "is_delayed"), [(64, True), (128, False)])
def test_sums_and_operands_have_to_fit_into_registers(size, is_delayed):
    """With 128 rows and columns, four warps have 128 registers in each thread for either sum."""
    x = aligned(np.zeros((size, size), np.float16))
    given = {"N": size, "CASE": "plain", "num_stages": 2}
    text = generic_asm(
        compile_for("cuda:90", chain, x, x, x, aligned(np.zeros((size, size), np.float32)), 3, **given), "ttgir"
    )
    assert ("wait 1" in loop_of(text)) == is_delayed


@pytest.mark.parametrize(("num_warps", "stages"), [(4, 2), (4, 3), (8, 3)])
def test_ptxas_keeps_dots_in_flight(num_warps, stages):
    resources = compiled("", num_warps=num_warps, num_stages=stages).metadata.resources
    assert resources["warnings"] == [] and resources["spill_bytes"] == 0


def delay_with_loads(module, config):
    """As in functions whose warps are to be specialised."""
    func = next(iter(module.ops))
    func.attributes[SPECIALIZED] = UnitAttr()
    DelayDots(config, loads=True).apply(Context(), module)
    del func.attributes[SPECIALIZED]


@pytest.mark.share(3)
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("n", [0, 64, 190])
@pytest.mark.parametrize("case", ["", "carried"])
def test_loads_are_delayed_with_their_dot(rng, by_pointers, case, n, stages):
    """The loop is then like any other: its loads may be copied ahead, those outside of it are as they are."""
    arrays, out = draw(rng, n), poisoned()
    kernel = compile_for("cuda:90", attention, *arrays, out, n, BLOCK=64, D=D, CASE=case)
    module = parse_module(generic_asm(kernel, "ttir"))
    config = GPUConfig(architecture(90).machine, 4, stages)
    for each in without(gpu_passes(config), settings.disabled_passes):
        if isinstance(each, PipelineLoads):
            delay_with_loads(module, config)
        each.apply(Context(), module)
    text = generic_text(module)
    assert sequence(text).count("load") == (5 if stages == 1 else 3)
    emulate_compiled(compile_text(text, "cuda:90", "ttgir"), *arrays, out, n)
    check(out, *arrays, n)


@deuteron.jit
def block_attention(q, k, v, out, n, BLOCK: tl.constexpr, D: tl.constexpr, KEYS_STAY: tl.constexpr):
    """Keys and values through descriptors; with KEYS_STAY the first keys every time, and other rows."""
    rows, dims = tl.arange(0, 64), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    keys = tl.make_tensor_descriptor(k, [n, D], [D, 1], [BLOCK, D])
    values = tl.make_tensor_descriptor(v, [n, D], [D, 1], [BLOCK, D])
    first = keys.load([0, 0])
    acc = tl.zeros((64, D), tl.float32)
    for start in range(0, n, BLOCK):
        if KEYS_STAY:
            scores = tl.dot((x.to(tl.float32) * (start % 3)).to(tl.float16), tl.trans(first))
        else:
            scores = tl.dot(x, tl.trans(keys.load([start, 0])))
        acc = tl.dot(scores.to(tl.float16), values.load([start, 0]), acc)
    tl.store(out + rows[:, None] * D + dims[None, :], acc)


@pytest.mark.share(2)
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 64, 100, 256])
@pytest.mark.parametrize(("keys_stay", "mode"), [(False, "late"), (False, "early"), (True, "random")])
def test_blocks_copied_by_tma(rng, keys_stay, mode, n, stages):
    q, k, v = (aligned(rng.integers(-2, 3, (rows, D)).astype(np.float16)) for rows in (64, n, n))
    out = poisoned()
    args = q, k, v, out, n
    kernel = compile_for("cuda:90", block_attention, *args, BLOCK=32, D=D, KEYS_STAY=keys_stay, num_stages=stages)
    emulate_compiled(kernel, *args, asynchronous=mode)
    assert "wait 1" in loop_of(generic_asm(kernel, "ttgir"))
    keys, values = np.zeros((2, -(-n // 32), 32, D))
    keys.reshape(-1, D)[:n], values.reshape(-1, D)[:n] = k, v
    factors = np.arange(0, n, 32)[:, None, None] % 3
    scores = q * factors @ keys[0].T if keys_stay else q.astype(np.float64) @ keys.transpose(0, 2, 1)
    np.testing.assert_array_equal(out, (scores.astype(np.float16).astype(np.float64) @ values).sum(0))


@pytest.mark.share(2)
@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("mode", ["late", "early", "random"])
def test_a_slot_that_is_filled_again_keeps_a_dot_in_its_iteration(rng, way, monkeypatch, tmp_path, mode, asked):
    """Where nothing has made slots stay for an iteration longer: the loop fills them, or warps of their own."""
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "others"))
    monkeypatch.setattr(pipeline_loads, "dots_to_delay", lambda *given: [])
    monkeypatch.setattr(delay_dots, "_movable_loads", lambda loop: [])
    a, b, c = (aligned(rng.integers(-1, 2, (count, 64, 64)).astype(np.float16)) for count in (1, 7, 7))
    out = aligned(np.full((64, 64), np.nan, np.float32))
    args = a, b, c, out, 7
    kernel = compile_for("cuda:90", chain, *args, N=64, CASE="asked" if asked else "plain", num_stages=3)
    assert ("ttg.warp_specialize" in generic_asm(kernel, "ttgir")) == asked
    assert "wait 1" not in loop_of(generic_asm(kernel, "ttgir"))
    emulate_compiled(kernel, *args, asynchronous=mode)
    np.testing.assert_array_equal(out, (a[0].astype(np.float64) @ b @ c).sum(0))


@deuteron.jit
def attention_by_steps(q, k, v, out, end, step, B: tl.constexpr, D: tl.constexpr):
    rows, dims = tl.arange(0, B), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    total, acc = tl.zeros((B,), tl.float32), tl.full((B, D), 5.0, tl.float32)
    for start in range(0, end, step):
        keys = start + rows
        p = tl.exp(tl.dot(x, tl.load(k + keys[None, :] * D + dims[:, None])))
        total += tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(v + keys[:, None] * D + dims[None, :]), acc)
    tl.store(out + rows[:, None] * D + dims[None, :], acc + total[:, None])


@pytest.mark.parametrize(("step", "iterations"), [(64, 3), (128, 2), (1 << 30, 1), (0, 0), (-64, 0), (-(2**31), 0)])
def test_a_step_that_turns_out_not_to_be_positive(step, iterations, rng):
    """Gives no first iteration before the loop either."""
    q, k, v = (aligned((rng.standard_normal((192, D)) * 0.2).astype(np.float16)) for _ in range(3))
    out = aligned(np.full((64, D), np.nan, np.float32))
    kernel = emulate(attention_by_steps, q[:64], k, v, out, 192, step, B=64, D=D, num_stages=2, target="cuda:90")
    assert "scf.if" in kernel.asm["ttgir"]
    keys = np.concatenate([np.arange(64) + i * step for i in range(iterations)] or [np.zeros(0, int)])
    x, y, z = (one.astype(np.float64) for one in (q[:64], k[keys], v[keys]))
    p = np.exp(x @ y.T)
    np.testing.assert_allclose(out, 5 + p @ z + p.sum(1)[:, None], rtol=2e-3, atol=2e-2)
