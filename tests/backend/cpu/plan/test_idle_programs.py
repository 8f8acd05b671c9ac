"""The loop over programs leaves out those that do nothing, in every part of a grid."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.programs.idle_programs import EVERY_PROGRAM, Stride, busy_programs
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu


@deuteron.jit
def kernel(out, KIND: tl.constexpr, AXIS: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = out + (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    if KIND == "last bits":
        if tl.program_id(AXIS) & 7 == 0:
            tl.store(at, 1 + tl.load(at))
    elif KIND == "other bits":
        if tl.program_id(AXIS) & 6 == 0:
            tl.store(at, 1 + tl.load(at))
    elif KIND == "both":
        if tl.program_id(AXIS) & 7 == 0:
            tl.store(at, 1 + tl.load(at))
        else:
            tl.store(at, 2 + tl.load(at))
    elif KIND == "few":
        if tl.num_programs(AXIS) < 9:
            tl.store(at, 3 + tl.load(at))
        else:
            if tl.program_id(AXIS) & 7 == 0:
                tl.store(at, 1 + tl.load(at))
    elif KIND == "few elsewhere":
        if tl.num_programs((AXIS + 1) % 3) < 9:
            tl.store(at, 3 + tl.load(at))
        else:
            if tl.program_id(AXIS) & 7 == 0:
                tl.store(at, 1 + tl.load(at))
    elif KIND == "atomic":
        if tl.program_id(AXIS) & 7 == 0:
            tl.atomic_add(at, 1)
    else:
        tl.store(at, tl.load(at))
        if tl.program_id(AXIS) & 7 == 0:
            tl.store(at, 1 + tl.load(at))


KINDS = ["last bits", "few", "few elsewhere", "other bits", "both", "atomic", "two"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_only_last_bits_say_so(lower_python, kind, axis):
    module = lower_python(kernel.fn, [np.zeros(8, np.int32)], {"KIND": kind, "AXIS": axis})
    found = busy_programs(kernel_of(module, cpu_target(*resolve_cpu("native"))))
    expected = {"last bits": Stride(axis, 8), "few": Stride(axis, 8, 9)}
    assert found == expected.get(kind, EVERY_PROGRAM)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grid", [(1, 1, 1), (8, 3, 2), (9, 17, 5), (3, 1, 33), (1000, 2, 1)])
def test_the_others_run_once(kind, grid):
    ids = dict(enumerate(reversed(np.indices(grid[::-1]))))
    for axis in range(3):
        out = np.zeros(grid[::-1], np.int32)
        kernel[grid](out, KIND=kind, AXIS=axis)
        runs = ids[axis] & (6 if kind == "other bits" else 7) == 0
        counted = {"few": axis, "few elsewhere": (axis + 1) % 3}.get(kind)
        are_few = counted is not None and grid[counted] < 9
        np.testing.assert_array_equal(out, 3 if are_few else np.where(runs, 1, 2 if kind == "both" else 0))
