"""TMA: bulk and tensor copies on mbarriers, stores in groups, swizzles, multicast, distributed shared memory."""

from __future__ import annotations

import numpy as np
from emulator.case import Case, Run, global_pointers, kernel
from emulator.cases.wgmma import accumulators, swizzled_rows

from deuteron.emulator import TensorMap

_U = np.uint32

_INIT = """
  .reg .b32 t, bar, s, v, x0, x1, x2, x3, n; .reg .b64 at, m0, m1, state; .reg .pred p, q;
  .shared .align 8 .b8 bars[64]; .shared .align 1024 .b8 buffer[32768];
  mov.u32 t, %tid.x; mov.b32 bar, bars; mov.b32 s, buffer; setp.ne.u32 p, t, 0;
  @p bra READY;
  mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.init.shared::cta.b64 [bar+8], 1;
  fence.mbarrier_init.release.cluster; fence.proxy.async;
 READY: bar.sync 0;"""

WAIT = "{{ .reg .pred w; W: mbarrier.try_wait.parity.shared::cta.b64 w, [{bar}], {parity}; @w bra D; bra W; D: }}"


def _copy_out(num_bytes: int) -> str:
    """Every thread copies words of the buffer to `out`."""
    return f"""
  mul.wide.u32 at, t, 4; add.s64 at, at, out; mad.lo.u32 v, t, 4, s; mov.b32 n, 0;
 OUT: ld.shared.b32 x0, [v]; st.global.b32 [at], x0; add.s64 at, at, 512; add.u32 v, v, 512; add.u32 n, n, 512;
  setp.lt.u32 q, n, {num_bytes}; @q bra OUT;"""


def _bulk() -> Case:
    body = (
        global_pointers(["x", "out"])
        + _INIT
        + f"""
  @p bra WAITING;
  mbarrier.arrive.expect_tx.shared::cta.b64 state, [bar], 4096;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [x], 1024, [bar];
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+1024], [x+1024], 3072, [bar];
 WAITING: {WAIT.format(bar="bar", parity=0)}
  bar.sync 0; @p bra END;
  cp.async.bulk.global.shared::cta.bulk_group [out], [s], 4096; cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
 END:"""
    )

    def make(rng: np.random.Generator) -> Run:
        x = rng.integers(0, 2**32, 1024, _U)
        return Run([x, np.zeros_like(x)], {1: x})

    return Case("bulk", kernel(body, [".u64 p_x", ".u64 p_out"]), make)


def _tensor_load(name: str, shape: tuple, box: tuple, at: tuple, dtype: type, swizzle: int = 0) -> Case:
    """A box, partly out of bounds, as it lies in shared memory."""
    num_bytes = int(np.prod(box)) * np.dtype(dtype).itemsize
    row_bytes = box[-1] * np.dtype(dtype).itemsize
    pitch = swizzle or row_bytes
    coordinates = ", ".join(str(c) for c in reversed(at))
    dims = len(shape)
    body = (
        global_pointers(["out"])
        + _INIT
        + f"""
  mov.b64 m0, p_map; cvta.param.u64 m0, m0;
  mov.b32 x0, 0; mov.b32 n, 0; mad.lo.u32 v, t, 4, s;
 CLEAR: st.shared.b32 [v], x0; add.u32 v, v, 512; add.u32 n, n, 512; setp.lt.u32 q, n, 8192; @q bra CLEAR;
  fence.proxy.async.shared::cta; bar.sync 0;
  @p bra WAITING;
  mbarrier.arrive.expect_tx.shared::cta.b64 state, [bar], {num_bytes};
  cp.async.bulk.tensor.{dims}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [s], [m0, {{{coordinates}}}], [bar];
 WAITING: {WAIT.format(bar="bar", parity=0)}
  {_copy_out(num_bytes // row_bytes * pitch)}"""
    )

    def make(rng: np.random.Generator) -> Run:
        x = rng.integers(1, 250, shape).astype(dtype)
        padded = np.zeros([n + 2 * b for n, b in zip(shape, box, strict=True)], dtype)
        padded[tuple(slice(b, b + n) for n, b in zip(shape, box, strict=True))] = x
        wanted = padded[tuple(slice(b + c, b + c + b) for b, c in zip(box, at, strict=True))]
        rows = np.ascontiguousarray(wanted).reshape(-1, box[-1]).view(np.uint8)
        padded_rows = np.zeros((len(rows), pitch), np.uint8)
        padded_rows[:, :row_bytes] = rows
        rows = swizzled_rows(padded_rows, swizzle) if swizzle else padded_rows
        expected = np.ascontiguousarray(rows).reshape(-1).view(_U)
        return Run([TensorMap(x, box, swizzle), np.zeros_like(expected)], {1: expected})

    params = [".align 64 .b8 p_map[128]", ".u64 p_out"]
    return Case(f"tensor.{name}", kernel(body, params), make)


def _tensor_store(operation: str = "") -> Case:
    """A box that hangs over two edges is stored, or added."""
    opcode = (
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.tile.bulk_group"
        if operation
        else ("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group")
    )
    body = (
        global_pointers(["x"])
        + _INIT
        + f"""
  mov.b64 m0, p_map; cvta.param.u64 m0, m0;
  mul.wide.u32 at, t, 16; add.s64 at, at, x; ld.global.v4.b32 {{x0, x1, x2, x3}}, [at];
  mad.lo.u32 v, t, 16, s; st.shared.v4.b32 [v], {{x0, x1, x2, x3}};
  fence.proxy.async.shared::cta; bar.sync 0; @p bra END;
  {opcode} [m0, {{24, 28}}], [s];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;
 END:"""
    )

    def make(rng: np.random.Generator) -> Run:
        x = rng.integers(0, 1000, (32, 16)).astype(np.int32)
        out = rng.integers(0, 1000, (40, 36)).astype(np.int32)
        expected = out.copy()
        part = x[: 40 - 28, : 36 - 24]
        expected[28:, 24:] = expected[28:, 24:] + part if operation else part
        return Run([TensorMap(out, (32, 16)), x, out], {2: expected})

    params = [".align 64 .b8 p_map[128]", ".u64 p_x", ".u64 p_keep"]
    return Case(f"tensor store {operation}", kernel(body, params), make)


def _gemm() -> Case:
    """D = A B^T, 64 x 64 x 192: two stages of TMA with 128-byte swizzle, a producer thread in the first warp, wgmma."""
    d = ", ".join(f"d{i}" for i in range(32))
    steps = "\n".join(
        f"  wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{d}}}, da, db, p, 1, 1, 0, 0;"
        " add.s64 da, da, 2; add.s64 db, db, 2; setp.eq.u32 p, t, t;"
        for _ in range(4)
    )
    body = (
        global_pointers(["out"])
        + _INIT
        + f"""
  .reg .b32 {d}, k, stage, parity, c, to; .reg .b64 da, db, base, offset;
  mov.b64 m0, p_a; cvta.param.u64 m0, m0; mov.b64 m1, p_b; cvta.param.u64 m1, m1;
  {" ".join(f"mov.b32 d{i}, 0;" for i in range(32))}
  mov.b32 k, 0;
 LOOP:
  and.b32 stage, k, 1; shr.u32 parity, k, 1; and.b32 parity, parity, 1;
  mad.lo.u32 to, stage, 16384, s; mad.lo.u32 v, stage, 8, bar; shl.b32 c, k, 6;
  setp.ne.u32 p, t, 0; @p bra LOADED;
  mbarrier.arrive.expect_tx.shared::cta.b64 state, [v], 16384;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [to], [m0, {{c, 0}}], [v];
  add.u32 n, to, 8192;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [n], [m1, {{c, 0}}], [v];
 LOADED:
  {WAIT.format(bar="v", parity="parity")}
  mov.b64 base, 0x4000004000000000; and.b32 n, to, 0x3ffff; shr.u32 n, n, 4; cvt.u64.u32 offset, n;
  or.b64 da, base, offset;
  add.s64 db, da, 512; setp.ne.u32 p, k, 0;
  wgmma.fence.sync.aligned;
{steps}
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  bar.sync 0;
  add.u32 k, k, 1; setp.lt.u32 p, k, 3; @p bra LOOP;
  mul.wide.u32 at, t, 128; add.s64 at, at, out;
  {" ".join(f"st.global.b32 [at+{4 * i}], d{i};" for i in range(32))}"""
    )

    def make(rng: np.random.Generator) -> Run:
        a, b = (rng.standard_normal((64, 192)).astype(np.float16) for _ in range(2))
        expected = accumulators((a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float32))
        maps = [TensorMap(x, (64, 64), 128) for x in (a, b)]
        return Run([*maps, np.zeros_like(expected)], {2: expected})

    params = [".align 64 .b8 p_a[128]", ".align 64 .b8 p_b[128]", ".u64 p_out"]
    return Case("TMA and wgmma", kernel(body, params), make, tolerance=1e-5, gpu_tolerance=1e-4)


def _cluster() -> Case:
    """Block 0 of a cluster of two sends the same bytes to both; then each reads the other's shared memory."""
    body = (
        global_pointers(["x", "out"])
        + _INIT
        + f"""
  .reg .b32 rank, other, block; .reg .b16 mask; .reg .b64 w;
  mov.u32 rank, %cluster_ctarank; mov.u32 block, %ctaid.x;
  @!p mbarrier.arrive.expect_tx.shared::cta.b64 state, [bar], 2048;
  barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
  setp.ne.u32 q, rank, 0; or.pred q, q, p; @q bra WAITING;
  mov.b16 mask, 3; shr.u32 n, block, 1; mul.wide.u32 w, n, 2048; add.s64 w, w, x;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [w], 2048, [bar], mask;
 WAITING: {WAIT.format(bar="bar", parity=0)}
  mad.lo.u32 v, t, 4, s; ld.shared.b32 x0, [v]; add.u32 x0, x0, rank; st.shared.b32 [v+4096], x0;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  xor.b32 other, rank, 1; mapa.shared::cluster.u32 v, v, other; ld.shared::cluster.b32 x0, [v+4096];
  mul.wide.u32 at, t, 4; mul.wide.u32 w, block, 512; add.s64 at, at, w; add.s64 at, at, out; st.global.b32 [at], x0;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"""
    )

    def make(rng: np.random.Generator) -> Run:
        x = rng.integers(0, 2**31, (2, 512), _U)
        expected = np.stack([x[block // 2, :128] + (1 - block % 2) for block in range(4)]).astype(_U)
        return Run([x, np.zeros_like(expected)], {1: expected})

    params = [".u64 p_x", ".u64 p_out"]
    return Case("cluster", kernel(body, params), make, grid=(4,), cluster=(2,))


def _cluster_addresses() -> Case:
    """The address of a variable says which block of the cluster it is of, and is the one that `mapa` gives for that."""
    body = (
        global_pointers(["out"])
        + _INIT
        + """
  .reg .b32 rank, block; .reg .b64 w;
  mov.u32 rank, %cluster_ctarank; mov.u32 block, %ctaid.x;
  mapa.shared::cluster.u32 v, s, rank; setp.eq.u32 q, v, s; selp.u32 x1, 10, 0, q;
  getctarank.shared::cluster.u32 x2, s; add.u32 x0, x1, x2;
  mul.wide.u32 at, t, 4; mul.wide.u32 w, block, 512; add.s64 at, at, w; add.s64 at, at, out; st.global.b32 [at], x0;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"""
    )

    def make(rng: np.random.Generator) -> Run:
        expected = np.repeat(np.array([10, 11, 10, 11], _U), 128).reshape(4, 128)
        return Run([np.zeros_like(expected)], {0: expected})

    return Case("cluster addresses", kernel(body, [".u64 p_out"]), make, grid=(4,), cluster=(2,))


CASES = [
    _bulk(),
    _tensor_load("1d", (500,), (256,), (-64,), np.uint16),
    _tensor_load("2d", (40, 48), (16, 32), (30, 24), np.float32),
    _tensor_load("2d.128", (70, 64), (32, 64), (50, 8), np.float16, 128),
    _tensor_load("2d.64", (70, 64), (32, 32), (-5, 40), np.float16, 64),
    _tensor_load("2d.32", (70, 64), (32, 32), (0, 48), np.uint8, 32),
    _tensor_load("2d.128.narrow", (70, 64), (32, 32), (3, 8), np.float16, 128),
    _tensor_load("3d", (5, 9, 16), (2, 4, 16), (3, 7, -4), np.float32),
    _tensor_load("4d", (3, 4, 5, 16), (2, 2, 4, 8), (1, 3, 3, 12), np.float32),
    _tensor_load("5d", (2, 3, 4, 5, 16), (2, 2, 2, 2, 8), (1, 1, 3, -1, 8), np.int32),
    _tensor_store(),
    _tensor_store("add"),
    _gemm(),
    _cluster(),
    _cluster_addresses(),
]
