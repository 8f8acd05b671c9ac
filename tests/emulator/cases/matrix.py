"""mma.sync of every type, ldmatrix, stmatrix, cp.async: one warp, a product of small matrices."""

from __future__ import annotations

import numpy as np
from emulator.case import Case, Run, global_pointers, kernel

_U = np.uint32
_G, _T = np.arange(32) // 4, np.arange(32) % 4

try:
    import ml_dtypes
except ImportError:  # pragma: no cover
    ml_dtypes = None


def random_matrix(rng: np.random.Generator, type: str, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The elements as their bits, and their values in float64 or int64."""
    if type in ("s8", "u8"):
        x = rng.integers(-128 if type == "s8" else 0, 128, (rows, columns)).astype(
            np.int8 if type == "s8" else np.uint8
        )
        return x.view(np.uint8), x.astype(np.int64)
    if type == "f64":
        x = rng.standard_normal((rows, columns))
        return x.view(np.uint64), x
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    if type == "tf32":
        bits = x.view(_U) & _U(0xFFFFE000)
        return bits, bits.view(np.float32).astype(np.float64)
    names = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "bf16": "bfloat16"}
    dtype = np.float16 if type == "f16" else np.dtype(getattr(ml_dtypes, names[type]))
    narrow = x.astype(dtype)
    bits = narrow.view(np.uint8 if narrow.itemsize == 1 else np.uint16)
    return bits, narrow.astype(np.float64)


def words(bits: np.ndarray) -> np.ndarray:
    """Elements that are adjacent in the last axis as 32-bit words; 64 bits are one."""
    return bits if bits.itemsize == 8 else np.ascontiguousarray(bits).view(_U)


def a_fragment(bits: np.ndarray) -> np.ndarray:
    """Registers [lane, register] of A (16 or 8 x K), from the PTX manual's figures: word t of each part of a row."""
    w = words(bits)
    rows, parts = len(w) // 8, w.shape[1] // 4
    return np.stack([w[_G + 8 * (i % rows), _T + 4 * (i // rows)] for i in range(rows * parts)], 1)


def b_fragment(bits: np.ndarray) -> np.ndarray:
    """Registers of B (K x 8)."""
    w = words(bits.T)
    return np.stack([w[_G, _T + 4 * i] for i in range(w.shape[1] // 4)], 1)


def c_fragment(c: np.ndarray) -> np.ndarray:
    return np.stack([c[_G + 8 * (i // 2), 2 * _T + i % 2] for i in range(len(c) // 4)], 1)


def mma_case(a_type: str, k: int, accumulator: str = "f32", rows: int = 16) -> Case:
    """Lane data in, lane data out: registers are loaded and stored as they are."""
    bits = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64}.get(a_type, 8)
    word = 8 if a_type == "f64" else 4
    a_count, b_count = (extent * k * bits // 256 // word for extent in (rows, 8))
    c_count = 2 if accumulator == "f16" else rows // 4
    regs = {"a": a_count, "b": b_count, "c": c_count, "d": c_count}
    lists = {name: [f"{name}{i}" for i in range(count)] for name, count in regs.items()}
    declared = "".join(f"  .reg .b{8 * word} {', '.join(names)};\n" for names in lists.values())
    loads = "".join(
        f"  mul.wide.u32 at, t, {word * len(lists[name])}; add.s64 at, at, q{name};\n"
        + "".join(f"  ld.global.b{8 * word} {r}, [at+{word * i}];\n" for i, r in enumerate(lists[name]))
        for name in "abc"
    )
    group = {name: "{" + ", ".join(names) + "}" for name, names in lists.items()}
    opcode = f"mma.sync.aligned.m{rows}n8k{k}.row.col.{accumulator}.{a_type}.{a_type}.{accumulator}"
    body = global_pointers(["qa", "qb", "qc", "qd"]) + "  .reg .b32 t; .reg .b64 at;\n  mov.u32 t, %tid.x;\n" + declared
    body += loads + f"  {opcode} {group['d']}, {group['a']}, {group['b']}, {group['c']};\n"
    body += f"  mul.wide.u32 at, t, {word * c_count}; add.s64 at, at, qd;\n"
    body += "".join(f"  st.global.b{8 * word} [at+{word * i}], {r};\n" for i, r in enumerate(lists["d"]))

    def make(rng: np.random.Generator) -> Run:
        a_bits, a = random_matrix(rng, a_type, rows, k)
        b_bits, b = random_matrix(rng, a_type, k, 8)
        c, result = _accumulators(rng, accumulator, a @ b)
        output = np.zeros_like(result)
        return Run([a_fragment(a_bits), b_fragment(b_bits), c, output], {3: result})

    tolerance = {"f64": 1e-14, "f32": 1e-6, "f16": 1e-3, "s32": 0.0}[accumulator]
    # fp8 products are summed with 14 bits on Hopper
    gpu = {"f64": 1e-14, "f32": 2e-3 if bits == 8 else 1e-5, "f16": 4e-3, "s32": 0.0}[accumulator]
    params = [f".u64 p_q{name}" for name in "abcd"]
    return Case(
        f"mma.{a_type}.{f'm{rows}.' * (rows < 16)}k{k}.{accumulator}",
        kernel(body, params),
        make,
        block=(32,),
        tolerance=tolerance,
        gpu_tolerance=gpu,
    )


def _accumulators(rng: np.random.Generator, type: str, product: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fragments of a random C and of C + product."""
    if type == "s32":
        c = rng.integers(-(2**20), 2**20, (16, 8), np.int32)
        return c_fragment(c), c_fragment((c + product).astype(np.int32))
    dtype = {"f16": np.float16, "f64": np.float64}.get(type, np.float32)
    c = rng.standard_normal(product.shape).astype(dtype)
    return c_fragment(c), c_fragment((c + product).astype(dtype))


def _ldmatrix(count: int, is_transposed: bool) -> Case:
    """Tiles of 8 rows go to registers by ldmatrix and back by stmatrix, with the other transposition."""
    regs = ", ".join(f"r{i}" for i in range(count))
    load, store = (".trans", "") if is_transposed else ("", ".trans")
    body = (
        global_pointers(["x", "o"])
        + f"""
  .reg .b32 t, s, u, r0, r1, r2, r3; .reg .b64 at; .shared .align 16 .b8 input[512]; .shared .align 16 .b8 output[512];
  mov.u32 t, %tid.x; mul.wide.u32 at, t, 16; add.s64 at, x, at; mov.b32 s, input; mad.lo.u32 s, t, 16, s;
  ld.global.v4.b32 {{r0, r1, r2, r3}}, [at]; st.shared.v4.b32 [s], {{r0, r1, r2, r3}};
  mov.b32 u, output; mad.lo.u32 u, t, 16, u; st.shared.v4.b32 [u], {{r0, r1, r2, r3}};
  bar.warp.sync -1;
  ldmatrix.sync.aligned.m8n8.x{count}{load}.shared.b16 {{{regs}}}, [s];
  stmatrix.sync.aligned.m8n8.x{count}{store}.shared.b16 [u], {{{regs}}};
  bar.warp.sync -1;
  ld.shared.v4.b32 {{r0, r1, r2, r3}}, [u];
  mul.wide.u32 at, t, 16; add.s64 at, o, at; st.global.v4.b32 [at], {{r0, r1, r2, r3}};"""
    )

    def make(rng: np.random.Generator) -> Run:
        x = rng.integers(0, 2**16, (4, 8, 8), np.uint16)
        expected = x.copy()
        expected[:count] = x[:count].transpose(0, 2, 1)
        return Run([x, np.zeros_like(x)], {1: expected})

    name = f"ldmatrix.x{count}{load}"
    return Case(name, kernel(body, [".u64 p_x", ".u64 p_o"]), make, block=(32,))


def _cp_async() -> Case:
    """Two groups; of the second only 4 bytes of 16 are read, the rest is zero."""
    body = (
        global_pointers(["x", "o"])
        + """
  .reg .b32 t, s, u, r0, r1, r2, r3; .reg .b64 at, to; .shared .align 16 .b8 buffer[4096];
  mov.u32 t, %tid.x; mul.wide.u32 at, t, 16; add.s64 to, o, at; add.s64 at, x, at;
  mov.b32 s, buffer; mad.lo.u32 s, t, 16, s;
  cp.async.cg.shared.global [s], [at], 16; cp.async.commit_group;
  mov.b32 u, 4; cp.async.ca.shared.global.L2::128B [s+2048], [at], 16, u; cp.async.commit_group;
  cp.async.wait_group 1; bar.sync 0;
  xor.b32 t, t, 1; mov.b32 u, buffer; mad.lo.u32 u, t, 16, u;
  ld.shared.v4.b32 {r0, r1, r2, r3}, [u]; st.global.v4.b32 [to], {r0, r1, r2, r3};
  cp.async.wait_group 0; bar.sync 0;
  ld.shared.v4.b32 {r0, r1, r2, r3}, [u+2048]; st.global.v4.b32 [to+2048], {r0, r1, r2, r3};"""
    )

    def make(rng: np.random.Generator) -> Run:
        x = rng.integers(0, 2**32, (128, 4), _U)
        other = x[np.arange(128) ^ 1]
        return Run([x, np.zeros((256, 4), _U)], {1: np.concatenate([other, other * np.array([1, 0, 0, 0], _U)])})

    return Case("cp.async", kernel(body, [".u64 p_x", ".u64 p_o"]), make)


CASES = [
    mma_case("f16", 16),
    mma_case("f16", 8),
    mma_case("f16", 16, "f16"),
    mma_case("bf16", 16),
    mma_case("tf32", 8),
    mma_case("tf32", 4),
    mma_case("e4m3", 32),
    mma_case("e5m2", 32),
    mma_case("s8", 32, "s32"),
    mma_case("u8", 16, "s32"),
    *[mma_case("f64", k, "f64") for k in (4, 8, 16)],
    mma_case("f64", 4, "f64", rows=8),
    *[_ldmatrix(count, transposed) for count in (1, 2, 4) for transposed in (False, True)],
    _cp_async(),
]
