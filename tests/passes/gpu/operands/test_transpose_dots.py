"""Dots whose second operand is computed are transposed where wgmma then reads it from registers, in steps along K."""

import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.target import architecture
from deuteron.frontend import lower_function
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.shape import TransOp
from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, WarpGroupDotWaitOp
from deuteron.ir.types import shape_of
from deuteron.machine.gpu import GPUConfig
from deuteron.passes import run_passes
from deuteron.passes.gpu import gpu_passes
from deuteron.passes.gpu.operands.place_dot_operands import PlaceDotOperands
from deuteron.passes.gpu.operands.transpose_dots import TransposeDots
from deuteron.passes.tile import tile_passes


@deuteron.jit
def product(a_ptr, w_ptr, out_ptr, N, K, CASE: tl.constexpr, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, ks = tl.arange(0, M), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((M, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + k + ks[None, :])
        if CASE == "not along k":
            w = tl.load(w_ptr + (k + ks)[:, None] * N + columns[None, :])
        else:
            w = tl.load(w_ptr + columns[None, :] * K + k + ks[:, None])
        if CASE == "both computed":
            acc = tl.dot(a * 2, w.to(tl.float16), acc)
        elif CASE == "used twice":
            x = w.to(tl.float16)
            acc = tl.dot(a, x, acc) + tl.sum(x.to(tl.float32), 0)[None, :]
        elif CASE == "scaled":
            acc += tl.dot(a, w.to(tl.float16)) * 0.5
        elif CASE == "first":
            acc = tl.dot(w.to(tl.float16).T, a.T, acc)
        else:
            acc = tl.dot(a, w.to(tl.float16), acc)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc)


SIGNATURE = {"a_ptr": "*fp16", "w_ptr": "*i8", "out_ptr": "*fp32", "N": "i32", "K": "i32"}


def of_operands(config: GPUConfig) -> list[ModulePass]:
    return [TransposeDots(config), PlaceDotOperands(config)]


def lower(case: str, num_warps: int = 4, m: int = 64, n: int = 64, k: int = 64, passes=of_operands) -> ModuleOp:
    constants = {"CASE": case, "M": m, "BN": n, "BK": k}
    module = lower_function(product, SIGNATURE | dict.fromkeys(constants, "constexpr"), constants, {})
    run_passes(module, [*tile_passes(), *passes(GPUConfig(architecture(90).machine, num_warps))])
    module.verify()
    return module


def dots_in(module: ModuleOp) -> list[WarpGroupDotOp]:
    return [op for op in module.walk() if isinstance(op, WarpGroupDotOp)]


@pytest.mark.parametrize(
    ("case", "num_warps", "n", "steps"),
    [
        ("plain", 4, 64, 4),
        ("plain", 8, 128, 4),
        ("scaled", 4, 64, 4),
        ("first", 4, 64, 4),
        ("plain", 8, 64, 0),
        ("plain", 4, 32, 0),
        ("both computed", 4, 64, 4),
        ("used twice", 4, 64, 0),
        ("not along k", 4, 64, 0),
    ],
)
def test_steps_from_registers(case, num_warps, n, steps):
    """None where warpgroups would compute the same rows, or threads would read single bytes."""
    dots = dots_in(lower(case, num_warps, n=n))
    from_registers = [dot for dot in dots if not isinstance(dot.a.type, MemDescType)]
    assert len(from_registers) == steps
    assert all(shape_of(dot.a.type)[1] == 16 for dot in from_registers)
    assert len(dots) == (steps or 1)


@pytest.mark.parametrize(("n", "num_warps", "shape"), [(64, 4, (64, 16)), (32, 4, (16, 32)), (32, 2, (32, 16))])
def test_few_rows_are_multiplied_by_mma_with_the_computed_operand_first(n, num_warps, shape):
    """Not where warps would compute the same rows of it."""
    (dot,) = (op for op in lower("plain", num_warps, m=16, n=n).walk() if isinstance(op, DotOp))
    assert shape_of(dot.result.type) == shape


def test_the_larger_the_rarer():
    assert [shape_of(dot.a.type) for dot in dots_in(lower("plain", k=128))] == [(64, 32)] * 4


def test_words_are_stored_not_what_is_computed_of_them():
    module = lower("plain")
    stored = [str(op.src.type.element_type) for op in module.walk() if isinstance(op, LocalAllocOp)]
    assert sorted(stored) == ["f16", "i8"]
    assert sum(isinstance(op, LocalLoadOp) for op in module.walk()) == 4


def test_sums_are_carried_transposed():
    (loop,) = (op for op in lower("plain", m=128, k=32).walk() if isinstance(op, scf.ForOp))
    assert [shape_of(result.type) for result in loop.results] == [(64, 128)]
    assert not any(isinstance(op, TransOp) and shape_of(op.result.type) in ((64, 128), (128, 64)) for op in loop.walk())


def test_one_wait_for_all_steps():
    """What all of them read in registers is there until then."""
    module = lower("plain", passes=gpu_passes)
    dots = dots_in(module)
    assert all(dot.is_async.value.data for dot in dots)
    (wait,) = (op for op in module.walk() if isinstance(op, WarpGroupDotWaitOp))
    assert list(wait.inputs) == [dots[-1].result, *(dot.a for dot in dots)]
    assert dots[-1].next_op is wait
    assert [dot.c for dot in dots[1:]] == [dot.result for dot in dots[:-1]]
