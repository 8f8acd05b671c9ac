"""Text as Triton writes it compiles, runs, and is refused with a place where it is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron
from deuteron.backend.tensor_descriptor import TensorDescriptor
from deuteron.compiler import CompiledKernel, IRSource
from deuteron.emulator import run_kernel
from deuteron.errors import DeuteronError
from deuteron.interpreter import run_module
from deuteron.ir.text import parse_module

SCALE = """
module {
  tt.func public @scale(%x_ptr: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %out_ptr: !tt.ptr<f32>,
                        %n: i32, %by: f32) attributes {noinline = false} {
    %c8_i32 = arith.constant 8 : i32
    %cst = arith.constant dense<0> : tensor<8xi8>
    %pid = tt.get_program_id x : i32
    %start = arith.muli %pid, %c8_i32 : i32
    %range = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %0 = tt.splat %start : i32 -> tensor<8xi32>
    %i = arith.addi %0, %range : tensor<8xi32>
    %1 = tt.splat %n : i32 -> tensor<8xi32>
    %mask = arith.cmpi slt, %i, %1 : tensor<8xi32>
    %2 = tt.splat %x_ptr : !tt.ptr<i8> -> tensor<8x!tt.ptr<i8>>
    %3 = tt.addptr %2, %i : tensor<8x!tt.ptr<i8>>, tensor<8xi32>
    %x = tt.load %3, %mask, %cst : tensor<8x!tt.ptr<i8>>
    %4 = arith.uitofp %x : tensor<8xi8> to tensor<8xf32>
    %5 = tt.splat %by : f32 -> tensor<8xf32>
    %6 = arith.mulf %4, %5 : tensor<8xf32>
    %7 = tt.splat %out_ptr : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %8 = tt.addptr %7, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    tt.store %8, %6, %mask : tensor<8x!tt.ptr<f32>>
    tt.return
  }
}
"""
COPY = """
module {
  tt.func public @copy(%x: !tt.tensordesc<4x8xf16>, %x.shape.0: i32, %x.shape.1: i32, %x.stride.0: i64,
                       %x.stride.1: i64, %out: !tt.tensordesc<4x8xf16>, %0: i32, %1: i32, %2: i64, %3: i64, %row: i32) {
    %c0_i32 = arith.constant 0 : i32
    %tile = tt.descriptor_load %x[%row, %c0_i32] : !tt.tensordesc<4x8xf16> -> tensor<4x8xf16>
    tt.descriptor_store %out[%c0_i32, %c0_i32], %tile : !tt.tensordesc<4x8xf16>, tensor<4x8xf16>
    tt.return
  }
}
"""
# Program 0 waits for a flag of program 1, then looks whether some others are there.
POLL = """
module {
  tt.func public @wait(%flags: !tt.ptr<i32>, %out: !tt.ptr<i32>, %ns: i64) {
    %c0 = arith.constant 0 : i32
    %c7 = arith.constant 7 : i32
    %x = arith.constant dense<3> : tensor<2x4xi32>
    %pid = tt.get_program_id x : i32
    %is_first = arith.cmpi eq, %pid, %c0 : i32
    scf.if %is_first {
      %met = tt.atomic_poll acquire, gpu, %flags, %c7 : !tt.ptr<i32>, i32 -> i1
      %met_0 = arith.extui %met : i1 to i32
      tt.store %out, %met_0 : !tt.ptr<i32>
      %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
      %0 = tt.splat %flags : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
      %1 = tt.addptr %0, %i : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
      %2 = tt.reshape %1 : tensor<8x!tt.ptr<i32>> -> tensor<2x4x!tt.ptr<i32>>
      %a = tt.atomic_poll relaxed, sys, %2, %x timeout %ns : tensor<2x4x!tt.ptr<i32>>, tensor<2x4xi32> -> tensor<2x4xi1>
      %3 = arith.extui %a : tensor<2x4xi1> to tensor<2x4xi32>
      %4 = tt.reshape %3 : tensor<2x4xi32> -> tensor<8xi32>
      %c1 = arith.constant 1 : i32
      %5 = tt.addptr %out, %c1 : !tt.ptr<i32>, i32
      %6 = tt.splat %5 : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
      %7 = tt.addptr %6, %i : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
      tt.store %7, %4 : tensor<8x!tt.ptr<i32>>
    } else {
      tt.atomic_store release, gpu, %flags, %c7 : !tt.ptr<i32>
    }
    tt.return
  }
}
"""


def compiled(text: str, target: str = "cpu") -> CompiledKernel:
    return deuteron.compile(IRSource.from_text(text, "ttir"), target=target)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_integers_have_no_sign(rng, dtype):
    x, out = rng.integers(0, 256, 13).astype(np.uint8), np.full(13, np.nan, np.float32)
    kernel = compiled(SCALE)
    assert [(param.name, param.type, param.divisibility) for param in kernel.metadata.params] == [
        ("x_ptr", "*i8", 16),
        ("out_ptr", "*fp32", 1),
        ("n", "i32", 1),
        ("by", "fp32", 1),
    ]
    kernel[(2,)](x.view(dtype), out, 13, 0.5)
    np.testing.assert_array_equal(out, x * np.float32(0.5))


@pytest.mark.parametrize("capability", [80, 90])
def test_it_compiles_for_gpus(capability):
    assert compiled(SCALE, f"cuda:{capability}").asm["cubin"]
    assert compiled(COPY, f"cuda:{capability}").asm["cubin"]


def test_descriptors_are_arguments(rng):
    x = rng.standard_normal((10, 8)).astype(np.float16)
    out = np.full((3, 8), np.nan, np.float16)
    kernel = compiled(COPY)
    assert [param.name for param in kernel.metadata.params[:4]] == ["x", "x.shape.0", "x.shape.1", "x.stride.0"]
    source, target = (TensorDescriptor.from_tensor(array, [4, 8]) for array in (x, out))
    kernel[(1,)](source, target, 7)
    np.testing.assert_array_equal(out, x[7:])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tensor<8xi8> to", "tensor<8xi8> into", "'to' expected"),
        ("arith.mulf %4, %5", "arith.mulf %4, %by", "operand is used with type tensor<8xf32>, but has been"),
        ("arith.uitofp %x", "math.tgamma %x", "Operation math.tgamma is not registered"),
        ("end = 8", "end = 7", "tt.make_range of 7 integers gives tensor<8xi32>"),
        ("8x", "6x", "extents must be powers of two"),
        ('arith.mulf %4, %5 : tensor<8xf32>', 'tt.extern_elementwise %4 {libname = "", libpath = "", pure = true, '
         'symbol = "__nv_what"} : (tensor<8xf32>) -> tensor<8xf32>', "__nv_what"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_a_place(old, new, message):
    text = SCALE.replace(old, new)
    text = text.replace("end = 8", "end = 6") if new == "6x" else text
    with pytest.raises(DeuteronError, match=message) as caught:
        compiled(text)
    assert caught.value.location is not None


@pytest.mark.parametrize("executor", ["interpreter", "cpu", "cuda:80", "cuda:90"])
def test_polls_wait(executor):
    flags, out = np.array([0, 3, 3, 5, 3, 4, 3, 3], np.int32), np.full(9, -1, np.int32)
    if executor == "interpreter":
        run_module(parse_module(POLL), [flags, out, 1000], (2, 1, 1))
    elif executor == "cpu":
        compiled(POLL)[(2,)](flags, out, 1000)
    else:
        kernel = compiled(POLL, executor)
        run_kernel(kernel.asm["ptx"], kernel.metadata, (2, 1, 1), [flags, out, 1000])
    np.testing.assert_array_equal(out, [1, 0, 1, 1, 0, 1, 0, 1, 1])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("poll acquire", "poll release", "tt.atomic_poll has no order 3"),
        ("%flags, %c7 : !tt.ptr<i32>, i32 ->", "%flags, %ns : !tt.ptr<i32>, i64 ->", "does not go with values of i64"),
    ],
)
def test_polls_are_verified(old, new, message):
    with pytest.raises(DeuteronError, match=message) as caught:
        compiled(POLL.replace(old, new, 1))
    assert caught.value.location.line == 10
