"""Arguments, memory, printing, and our own kernels from source to the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.case import global_pointers, kernel

import deuteron as triton
import deuteron.language as tl
from deuteron.compiler import ASTSource, compile
from deuteron.emulator import EmulatorOptions, launch, run_kernel
from deuteron.errors import UsageError

HELLO = """
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 vprintf_param_0, .param .b64 vprintf_param_1);
.global .align 1 .b8 text[18] = {116, 37, 100, 58, 32, 37, 46, 50, 102, 32, 37, 115, 10, 0};
.global .align 1 .b8 word[4] = {104, 105, 0};
"""


def test_vprintf():
    body = """
  .local .align 8 .b8 depot[24]; .reg .b64 a, b, w; .reg .b32 t, r; .reg .f64 d;
  mov.u32 t, %tid.x; mov.b64 a, depot; cvta.local.u64 b, a;
  st.local.b32 [a], t; mov.f64 d, 0d3FF8000000000000; st.local.f64 [a+8], d;
  mov.b64 w, word; cvta.global.u64 w, w; st.local.b64 [a+16], w; mov.b64 w, text; cvta.global.u64 w, w;
  { .param .b64 param0; .param .b64 param1; .param .b32 retval0;
    st.param.b64 [param0], w; st.param.b64 [param1], b;
    call.uni (retval0), vprintf, (param0, param1); ld.param.b32 r, [retval0]; }"""
    printed: list[str] = []
    launch(
        kernel(body.replace("ld.param.b32 r, [retval0];", ""), [], module=HELLO),
        "k",
        1,
        2,
        options=EmulatorOptions(print=printed.append),
    )
    assert printed == ["t0: 1.50 hi\n", "t1: 1.50 hi\n"]


SQUARE = """
.func (.param .b32 func_retval0) square (.param .b32 square_param_0)
{ .reg .b32 %r<3>; .reg .pred %p; ld.param.b32 %r1, [square_param_0]; setp.gt.s32 %p, %r1, 5; @%p bra BIG;
  mul.lo.s32 %r2, %r1, %r1; st.param.b32 [func_retval0], %r2; ret;
 BIG: st.param.b32 [func_retval0], -1; ret; }
"""


def test_calls_of_functions():
    call = """{ .param .b32 param0; .param .b32 retval0; st.param.b32 [param0], %r1;
    call.uni (retval0), square, (param0); ld.param.b32 %r1, [retval0]; }"""
    body = (
        global_pointers(["x"])
        + f"""
  .reg .b32 %r<2>; .reg .b64 at; mov.u32 %r1, %tid.x; mul.wide.u32 at, %r1, 4; add.s64 at, at, x;
  {call} {call} st.global.b32 [at], %r1;"""
    )
    x = np.zeros(32, np.int32)
    launch(kernel(body, [".u64 p_x"], module=SQUARE), "k", 1, 32, 0, (x,))
    assert x.tolist() == [0, 1, 16] + [-1] * 3 + [1] * 26


def test_jumps_by_an_index_of_threads_that_disagree():
    body = (
        global_pointers(["x"])
        + """
  .reg .b32 t, i, r; .reg .b64 at; mov.u32 t, %tid.x; mul.wide.u32 at, t, 4; add.s64 at, at, x; rem.u32 i, t, 3;
  T: .branchtargets A, B, C;
  brx.idx i, T;
  A: mov.b32 r, 10; bra END;
  B: add.s32 r, t, 100;
  C: mov.b32 r, t;
  END: bar.warp.sync -1; st.global.b32 [at], r;"""
    )
    x = np.zeros(32, np.int32)
    launch(kernel(body, [".u64 p_x"]), "k", 1, 32, 0, (x,))
    assert x.tolist() == [10 if t % 3 == 0 else t for t in range(32)]


def test_overlapping_arrays_alias():
    body = (
        global_pointers(["x", "y"])
        + "  .reg .b32 v; ld.global.b32 v, [x+4]; st.global.b32 [y], 7; ld.global.b32 v, [x+4];"
    )
    body += " st.global.b32 [y+4], v;"
    x = np.zeros(3, np.uint32)
    launch(kernel(body, [".u64 p_x", ".u64 p_y"]), "k", 1, 1, 0, (x, x[1:]))
    assert x.tolist() == [0, 7, 7]


def test_torch_tensor():
    torch = pytest.importorskip("torch")
    body = global_pointers(["x"]) + "  st.global.b16 [x], 0x3f80;"
    x = torch.zeros(2, dtype=torch.bfloat16)
    launch(kernel(body, [".u64 p_x"]), "k", 1, 1, 0, (x,))
    assert x.tolist() == [1.0, 0.0]


@triton.jit
def sums(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + row * n + start + columns, mask=start + columns < n, other=0.0)
    tl.store(out + row, tl.sum(total, 0))


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_our_own_kernel(target: str, rng: np.random.Generator):
    source = ASTSource(sums, {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256})
    kernel = compile(source, target=target)
    x = rng.standard_normal((5, 777)).astype(np.float32)
    out = np.full(5, np.nan, np.float32)
    run_kernel(kernel.asm["ptx"], kernel.metadata, (5,), (x, out, 777))
    np.testing.assert_allclose(out, x.astype(np.float64).sum(1), rtol=1e-5, atol=1e-4)


def test_the_seed_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DEUTERON_EMULATOR_SEED", "17")
    assert (EmulatorOptions().asynchronous, EmulatorOptions().seed, EmulatorOptions(seed=3).seed) == ("random", 17, 3)
    monkeypatch.setenv("DEUTERON_EMULATOR_SEED", "-1")
    with pytest.raises(
        UsageError, match="DEUTERON_EMULATOR_SEED must be a whole number that is not negative, got '-1'"
    ):
        EmulatorOptions()


ORDER = """  .reg .b32 s, v; .shared .align 16 .b8 buffer[16]; mov.b32 s, buffer;
  cp.async.ca.shared.global [s], [x], 4; cp.async.commit_group;
  st.global.b32 [x], 7; cp.async.wait_group 0; ld.shared.b32 v, [s]; st.global.b32 [x+4], v;"""


def test_a_copy_happens_at_any_moment_before_its_wait():
    """What is stored after it may be what it reads: by the seed, the same each time."""
    ptx, seen = kernel(global_pointers(["x"]) + ORDER, [".u64 p_x"]), []
    for seed in [*range(16), *range(16)]:
        x = np.array([1, 0], np.uint32)
        launch(ptx, "k", 1, 1, 0, (x,), options=EmulatorOptions(seed=seed))
        seen.append(int(x[1]))
    assert set(seen) == {1, 7} and seen[:16] == seen[16:]
