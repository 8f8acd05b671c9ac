"""Warp instructions, atomics, vectors in memory, barriers with ids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from emulator.case import Case, Run, elementwise, global_pointers, kernel

_U = np.uint32


def warp_case(name: str, lines: str, function: Callable[[np.ndarray], np.ndarray], result: type = _U) -> Case:
    """`function` of the values [warps, 32] of register a."""

    def make(rng: np.random.Generator):
        a = rng.integers(0, 2**32, 128, _U)
        a[:64] %= 4
        return {"a": a}, np.ascontiguousarray(function(a.reshape(-1, 32))).reshape(-1)

    return elementwise(name, lines, result, make)


def _take(source: np.ndarray, valid: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    lanes = np.arange(32)
    return lambda a: a[:, np.where(valid, source, lanes) % 32]


_L = np.arange(32)
_MASKS = np.array([1 << i for i in range(32)], np.uint64)


def _ballot(bits: np.ndarray) -> np.ndarray:
    return np.repeat((bits * _MASKS).sum(1, dtype=np.uint64).astype(_U), 32)


def _match(a: np.ndarray) -> np.ndarray:
    same = a[:, :, None] == a[:, None, :]
    return (same * _MASKS).sum(2, dtype=np.uint64).astype(_U)


def _each(function: Callable[[np.ndarray], int]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda a: np.repeat(np.array([function(row) for row in a], np.uint64).astype(_U), 32)


def _with_predicate(a: np.ndarray) -> np.ndarray:
    return np.where(_L + 5 < 32, a[:, (_L + 5) % 32], _U(7))


WARP = [
    warp_case("shfl.bfly", "shfl.sync.bfly.b32 d, a, 5, 31, -1;", _take(_L ^ 5, _L >= 0)),
    warp_case("shfl.up", "shfl.sync.up.b32 d, a, 3, 0, -1;", _take(_L - 3, _L >= 3)),
    warp_case("shfl.down.8", "shfl.sync.down.b32 d, a, 3, 0x181f, -1;", _take(_L + 3, _L % 8 + 3 < 8)),
    warp_case("shfl.idx", "shfl.sync.idx.b32 d, a, 9, 31, -1;", _take(_L * 0 + 9, _L >= 0)),
    warp_case("shfl.predicate", "shfl.sync.down.b32 d|p, a, 5, 31, -1; @!p mov.b32 d, 7;", _with_predicate),
    warp_case("vote.ballot", "setp.gt.u32 p, a, 1; vote.sync.ballot.b32 d, p, -1;", lambda a: _ballot(a > 1)),
    warp_case(
        "vote.any",
        "setp.eq.u32 p, a, 3; vote.sync.any.pred q, p, -1; selp.b32 d, 1, 0, q;",
        _each(lambda row: int((row == 3).any())),
    ),
    warp_case("match.any", "match.any.sync.b32 d, a, -1;", _match),
    warp_case("redux.add", "redux.sync.add.u32 d, a, -1;", _each(lambda row: int(row.sum(dtype=np.uint64)) % 2**32)),
    warp_case(
        "redux.min.s32", "redux.sync.min.s32 d, a, -1;", _each(lambda row: int(row.view(np.int32).min()) % 2**32)
    ),
    warp_case("redux.xor", "redux.sync.xor.b32 d, a, -1;", _each(lambda row: int(np.bitwise_xor.reduce(row)))),
    warp_case("elect", "elect.sync t0|p, -1; selp.b32 d, a, t0, p;", lambda a: np.where(_L == 0, a, _U(0))),
    warp_case(
        "divergent.shfl",
        """
      mov.b32 d, 0; setp.lt.u32 p, a, 2; @p bra LOW;
      add.u32 d, a, 10; bra MEET;
     LOW: add.u32 d, a, 20;
     MEET: shfl.sync.bfly.b32 d, d, 1, 31, -1;""",
        lambda a: (a + np.where(a < 2, _U(20), _U(10)))[:, _L ^ 1],
    ),
    warp_case(
        "loop.trips",
        """
      and.b32 t0, a, 7; mov.b32 d, 0;
     AGAIN: add.u32 d, d, a; setp.ne.u32 p, t0, 0; sub.u32 t0, t0, 1; @p bra AGAIN;""",
        lambda a: a * (a % 8 + 1),
    ),
]


def _atomic(name: str, instruction: str, function: Callable, dtype: type = np.int32, returns_old: bool = False) -> Case:
    """128 threads on 4 words (thread % 4), each adding its own value; order-free operations."""
    body = (
        global_pointers(["x", "o"])
        + f"""
  .reg .b32 t, i, v, old; .reg .b64 at, to;
  mov.u32 t, %tid.x; and.b32 i, t, 3; mul.wide.u32 to, t, 4; add.s64 to, to, x; ld.global.b32 v, [to];
  mul.wide.u32 at, i, 4; add.s64 at, at, o;
  {instruction}"""
    )

    def make(rng: np.random.Generator) -> Run:
        x = rng.integers(0, 100, 128).astype(dtype)
        o = rng.integers(0, 100, 4).astype(dtype)
        expected = o.copy()
        for i, value in enumerate(x):
            expected[i % 4] = function(expected[i % 4], value)
        return Run([x, o], {1: expected})

    return Case(name, kernel(body, [".u64 p_x", ".u64 p_o"]), make)


ATOMIC = [
    _atomic("atom.add", "atom.global.gpu.acq_rel.add.u32 old, [at], v;", lambda a, b: a + b),
    _atomic("red.max", "red.relaxed.gpu.global.max.s32 [at], v;", max),
    _atomic("red.add.f32", "red.global.add.f32 [at], v;", lambda a, b: a + b, np.float32),
    _atomic("atom.xor", "atom.global.xor.b32 old, [at], v;", lambda a, b: a ^ b),
    _atomic("atom.inc", "atom.global.inc.u32 old, [at], 6;", lambda a, b: 0 if a >= 6 else a + 1),
    _atomic(
        "atom.cas loop",
        """
  .reg .b32 seen, new; .reg .pred p;
  ld.relaxed.gpu.global.b32 seen, [at];
 L: add.s32 new, seen, v; atom.global.cas.b32 old, [at], seen, new; setp.ne.b32 p, old, seen;
  mov.b32 seen, old; @p bra L;
  """,
        lambda a, b: a + b,
    ),
]


def _vectors() -> Case:
    body = (
        global_pointers(["x", "o"])
        + """
  .reg .b32 t, r0, r1, r2, r3, s; .reg .b64 at, to; .shared .align 16 .b8 buffer[2048];
  mov.u32 t, %tid.x; mul.wide.u32 at, t, 16; add.s64 to, o, at; add.s64 at, x, at;
  ld.global.nc.L1::no_allocate.v4.b32 {r0, r1, r2, r3}, [at];
  mov.b32 s, buffer; mad.lo.u32 s, t, 16, s;
  st.shared.v2.b32 [s], {r3, r2}; st.shared.v2.b32 [s+8], {r1, r0};
  bar.sync 0;
  xor.b32 t, t, 127; mov.b32 s, buffer; mad.lo.u32 s, t, 16, s;
  ld.shared.v4.b32 {r0, r1, r2, r3}, [s];
  st.global.wt.v4.b32 [to], {r0, r1, r2, r3};"""
    )

    def make(rng: np.random.Generator) -> Run:
        x = rng.integers(0, 2**32, (128, 4), _U)
        return Run([x, np.zeros_like(x)], {1: x[::-1, ::-1].copy()})

    return Case("vectors", kernel(body, [".u64 p_x", ".u64 p_o"]), make)


def _named_barriers() -> Case:
    """The first two warps hand a value to the last two by barrier 1 and get one back by barrier 2."""
    body = (
        global_pointers(["x", "o"])
        + """
  .reg .b32 t, i, v, s; .reg .b64 at, to; .reg .pred p; 
  .shared .align 4 .b8 first[256]; .shared .align 4 .b8 second[256];
  mov.u32 t, %tid.x; mul.wide.u32 at, t, 4; add.s64 to, o, at; add.s64 at, x, at;
  ld.global.b32 v, [at]; and.b32 i, t, 63; shl.b32 i, i, 2;
  setp.ge.u32 p, t, 64; @p bra CONSUMER;
  mov.b32 s, first; add.u32 s, s, i; st.shared.b32 [s], v;
  bar.arrive 1, 128;
  bar.sync 2, 128;
  mov.b32 s, second; add.u32 s, s, i; ld.shared.b32 v, [s]; st.global.b32 [to], v;
  bra END;
 CONSUMER:
  mov.b32 s, second; add.u32 s, s, i; st.shared.b32 [s], v;
  bar.arrive 2, 128;
  bar.sync 1, 128;
  mov.b32 s, first; add.u32 s, s, i; ld.shared.b32 v, [s]; st.global.b32 [to], v;
 END:"""
    )

    def make(rng: np.random.Generator) -> Run:
        x = rng.integers(0, 2**32, 128, _U)
        return Run([x, np.zeros_like(x)], {1: np.roll(x, 64)})

    return Case("named barriers", kernel(body, [".u64 p_x", ".u64 p_o"]), make)


def _spin_lock() -> Case:
    """Every block adds to a counter under a lock that it spins for."""
    body = (
        global_pointers(["lock", "o"])
        + """
  .reg .b32 t, old, v; .reg .pred p;
  mov.u32 t, %tid.x; setp.ne.u32 p, t, 0; @p bra END;
 SPIN: atom.acquire.gpu.global.cas.b32 old, [lock], 0, 1; setp.ne.b32 p, old, 0; @p bra SPIN;
  ld.volatile.global.b32 v, [o]; add.u32 v, v, 3; st.volatile.global.b32 [o], v;
  fence.acq_rel.gpu; atom.release.gpu.global.exch.b32 old, [lock], 0;
 END:"""
    )

    def make(rng: np.random.Generator) -> Run:
        return Run([np.zeros(1, _U), np.zeros(1, _U)], {1: np.array([21], _U)})

    return Case("spin lock", kernel(body, [".u64 p_lock", ".u64 p_o"]), make, grid=(7,), block=(32,))


def _voting_barriers() -> Case:
    """The number of threads of the block with an odd value, and whether one has 3."""
    lines = """setp.eq.u32 p, a, 3; bar.red.or.pred q, 0, p; and.b32 t0, a, 1; setp.eq.u32 p, t0, 1;
  setp.lt.u32 p, a, 2; @p bra FEW; add.u32 t1, a, 1;
 FEW: setp.eq.u32 p, t0, 1; bar.red.popc.u32 d, 1, p; selp.b32 t0, 1000, 0, q; add.u32 d, d, t0;"""

    def make(rng: np.random.Generator):
        a = rng.integers(0, 6, 96).astype(_U)
        count = int((a % 2).sum()) + 1000 * bool((a == 3).any())
        return {"a": a}, np.full(96, count, _U)

    return elementwise("bar.red", lines, _U, make)


MEMORY = [_voting_barriers(), _vectors(), _named_barriers(), _spin_lock()]
CASES = [*WARP, *ATOMIC, *MEMORY]
