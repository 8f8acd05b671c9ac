"""wgmma of each type, swizzle and major-ness: tiles are laid out in shared memory by this file, not by the emulator."""

from __future__ import annotations

import numpy as np
from emulator.case import Case, Run, global_pointers, kernel
from emulator.cases.matrix import random_matrix, words

_U = np.uint32
_DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
_MODES = {0: 0, 128: 1, 64: 2, 32: 3}


def swizzled_rows(rows: np.ndarray, span: int) -> np.ndarray:
    """Rows of `span` bytes with 16-byte chunk c of row r at chunk c ^ (r / per_phase % max_phase)."""
    per_phase, max_phase = {128: (1, 8), 64: (2, 4), 32: (4, 2)}[span]
    chunks = rows.reshape(len(rows), -1, 16)
    row = np.arange(len(rows))[:, None]
    source = np.arange(chunks.shape[1])[None, :] ^ (row // per_phase % max_phase)
    return np.take_along_axis(chunks, source[:, :, None], 1).reshape(len(rows), -1)


def image(bits: np.ndarray, span: int, is_transposed: bool) -> tuple[np.ndarray, int, int]:
    """Bytes of a tile [rows, K of one instruction] as it lies in shared memory, LBO and SBO."""
    contiguous = bits.T if is_transposed else bits
    data = np.ascontiguousarray(contiguous).view(np.uint8)
    if span == 0:
        return _cores(data, is_transposed)
    if is_transposed:
        panels = [swizzled_rows(data[:, i : i + span], span) for i in range(0, data.shape[1], span)]
        return np.concatenate(panels).reshape(-1), panels[0].size, 8 * span
    padded = np.zeros((len(data), span), np.uint8)
    padded[:, : data.shape[1]] = data
    return swizzled_rows(padded, span).reshape(-1), 16, 8 * span


def _cores(data: np.ndarray, is_transposed: bool) -> tuple[np.ndarray, int, int]:
    """Core matrices of 8 rows of 16 bytes, one after the other; those along the contiguous axis are neighbours."""
    outer, inner = len(data) // 8, data.shape[1] // 16
    cores = data.reshape(outer, 8, inner, 16).transpose(0, 2, 1, 3)
    along_contiguous, along_rows = 128, 128 * inner
    # K-major: LBO between cores along K (contiguous), SBO along M/N. MN-major: SBO along M/N (contiguous), LBO along K.
    leading, stride = (along_rows, along_contiguous) if is_transposed else (along_contiguous, along_rows)
    return np.ascontiguousarray(cores).reshape(-1), leading, stride


def descriptor(start: int, leading: int, stride: int, span: int) -> int:
    return start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | _MODES[span] << 62


_PROLOGUE = """
  .reg .b32 t, s, v; .reg .b64 at, da, db; .reg .pred p;
  .shared .align 1024 .b8 buffer[32768];
  mov.u32 t, %tid.x; mov.b32 s, buffer; mad.lo.u32 s, t, 4, s; mul.wide.u32 at, t, 4; add.s64 at, at, image;
  mov.b32 v, 0;
 COPY: .reg .b32 x; ld.global.b32 x, [at]; st.shared.b32 [s], x; add.s64 at, at, 512; add.u32 s, s, 512;
  add.u32 v, v, 512; setp.lt.u32 p, v, 32768; @p bra COPY;
  fence.proxy.async.shared::cta; bar.sync 0;
  ld.param.u64 da, [p_da]; ld.param.u64 db, [p_db];
  mov.b32 s, buffer; and.b32 s, s, 0x3ffff; shr.u32 s, s, 4; cvt.u64.u32 at, s;
  add.s64 da, da, at; add.s64 db, db, at;"""


def wgmma_case(
    type: str, n: int, span: int, result: str = "f32", transposed: tuple[bool, bool] = (False, False), rs: bool = False
) -> Case:
    """Two instructions: the first overwrites the accumulators (scale-d 0), the second adds minus A times B (16-bit)."""
    k = _DEPTH[type]
    count = n // 4 if result == "f16" else n // 2
    d = ", ".join(f"d{i}" for i in range(count))
    a_operand = "{a0, a1, a2, a3}" if rs else "da"
    is_integer = result == "s32"
    flags = "" if is_integer else ", 1, 1"
    if k == 16:
        flags += f", {int(transposed[1])}" if rs else f", {int(transposed[0])}, {int(transposed[1])}"
    opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{result}.{type}.{type}"
    body = (
        global_pointers(["image", "ra", "out"])
        + _PROLOGUE
        + f"""
  .reg .b32 {d}, a0, a1, a2, a3;
  mul.wide.u32 at, t, 16; add.s64 at, at, ra; ld.global.v4.b32 {{a0, a1, a2, a3}}, [at];
  {" ".join(f"mov.b32 d{i}, 0x3f800000;" for i in range(count))}
  wgmma.fence.sync.aligned;
  setp.ne.u32 p, t, t; {opcode} {{{d}}}, {a_operand}, db, p{flags};
  setp.eq.u32 p, t, t; {opcode} {{{d}}}, {a_operand}, db, p{flags};
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  mul.wide.u32 at, t, {4 * count}; add.s64 at, at, out;
  {" ".join(f"st.global.b32 [at+{4 * i}], d{i};" for i in range(count))}"""
    )

    def make(rng: np.random.Generator) -> Run:
        a_bits, a = random_matrix(rng, type, 64, k)
        b_bits, b = random_matrix(rng, type, n, k)
        a_image, *a_strides = image(a_bits, span, transposed[0])
        b_image, *b_strides = image(b_bits, span, transposed[1])
        data = np.zeros(32768, np.uint8)
        data[: len(a_image)], data[16384 : 16384 + len(b_image)] = a_image, b_image
        total = 2 * (a @ b.T)
        dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[result]
        expected = accumulators(total.astype(dtype))
        args = [data, a_registers(a_bits), np.zeros_like(expected)]
        return Run([*args, descriptor(0, *a_strides, span), descriptor(16384, *b_strides, span)], {2: expected})

    form = "RS" if rs else "SS" + "".join("KM"[t] for t in transposed)
    tolerance = {"f32": 1e-6, "f16": 2e-3, "s32": 0.0}[result]
    gpu = {"f32": 5e-3 if k == 32 else 2e-5, "f16": 1e-2, "s32": 0.0}[result]
    params = [".u64 p_image", ".u64 p_ra", ".u64 p_out", ".u64 p_da", ".u64 p_db"]
    return Case(
        f"wgmma.{type}.n{n}.{result}.{span}.{form}", kernel(body, params), make, tolerance=tolerance, gpu_tolerance=gpu
    )


def a_registers(bits: np.ndarray) -> np.ndarray:
    """[128 threads, 4 registers]."""
    w = words(bits)
    t = np.arange(128)
    row, column = t // 32 * 16 + t % 32 // 4, t % 4
    return np.stack([w[row + 8 * (i % 2), column + 4 * (i // 2)] for i in range(4)], 1)


def accumulators(d: np.ndarray) -> np.ndarray:
    """[128 threads, elements] of D (64 x N)."""
    t, i = np.arange(128)[:, None], np.arange(d.shape[1] // 2)[None, :]
    row = 16 * (t // 32) + t % 32 // 4 + 8 * (i // 2 % 2)
    return np.ascontiguousarray(d[row, 8 * (i // 4) + 2 * (t % 4) + i % 2])


CASES = [
    *[wgmma_case("f16", 64, span) for span in (0, 32, 64, 128)],
    *[wgmma_case("bf16", 32, span, transposed=(True, True)) for span in (0, 32, 64)],
    wgmma_case("f16", 64, 128, transposed=(True, True)),
    wgmma_case("bf16", 64, 128, transposed=(False, True)),
    wgmma_case("f16", 8, 128, "f16"),
    wgmma_case("bf16", 16, 64, rs=True),
    wgmma_case("tf32", 24, 128),
    wgmma_case("e4m3", 32, 128),
    wgmma_case("e5m2", 32, 0),
    wgmma_case("e4m3", 16, 32, rs=True),
    wgmma_case("s8", 32, 128, "s32"),
    wgmma_case("u8", 16, 64, "s32"),
]
