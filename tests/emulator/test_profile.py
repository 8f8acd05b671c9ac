"""The profile: transactions of coalesced and strided loads, bank conflicts, barriers, by line."""

from __future__ import annotations

import numpy as np
from emulator.case import global_pointers, kernel

from deuteron.emulator import profile


def _copy(stride: int, shared_stride: int) -> str:
    body = (
        global_pointers(["x"])
        + f"""
  .reg .b32 t, v, s; .reg .b64 at; .shared .align 16 .b8 buffer[16384];
  mov.u32 t, %tid.x; mul.wide.u32 at, t, {4 * stride}; add.s64 at, at, x;
  mov.b32 s, buffer; mad.lo.u32 s, t, {4 * shared_stride}, s;
  .loc 1 10 1
  ld.global.b32 v, [at];
  .loc 1 11 1
  st.shared.b32 [s], v;
  .loc 1 12 1
  bar.sync 0;"""
    )
    return kernel(body, [".u64 p_x"], module='.file 1 "k.py"\n')


def _aligned(count: int) -> np.ndarray:
    """Zeros that start a 256-byte line, as allocations on a GPU do."""
    memory = np.zeros(count + 64, np.uint32)
    return memory[(-memory.ctypes.data // 4) % 64 :][:count]


def _lines(stride: int, shared_stride: int) -> dict:
    report = profile(_copy(stride, shared_stride), "k", 2, 64, 0, (_aligned(64 * stride),))
    return report, report.lines()


def test_coalesced():
    report, lines = _lines(1, 1)
    load, store, barrier = (lines["k.py", line] for line in (10, 11, 12))
    assert (load.instructions, load.sectors, load.ideal_sectors) == (4, 16, 16)
    assert (store.shared_wavefronts, store.bank_conflicts) == (4, 0)
    assert barrier.barriers == 4
    assert "k.py:10" in report.table()


def test_strided_loads_and_bank_conflicts():
    _, lines = _lines(8, 16)
    assert (lines["k.py", 10].sectors, lines["k.py", 10].ideal_sectors) == (128, 16)
    assert lines["k.py", 11].bank_conflicts == 4 * 15


def test_annotated_source(tmp_path):
    source = tmp_path / "k.py"
    source.write_text("\n" * 9 + "load\nstore\nsync\n")
    ptx = _copy(1, 1).replace('"k.py"', f'"{source}"')
    text = profile(ptx, None, 1, 32, 0, (np.zeros(32, np.uint32),)).annotated()
    assert [line.split()[-1] for line in text.splitlines()[-3:]] == ["load", "store", "sync"]
