"""The first stage: tile IR in and out as text, the kernel's name and parameters, calls inlined."""

import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend import ttir
from deuteron.backend.metadata import Param
from deuteron.backend.stage import Unit
from deuteron.errors import IRError, UsageError
from deuteron.frontend import lower_function
from deuteron.options import CPUOptions, Target
from deuteron.passes.tile import tile_passes


@deuteron.jit
def kernel(x_ptr, y_ptr, n, flag, scale, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if flag:
        tl.store(x_ptr + i, tl.load(y_ptr + i).to(tl.float32) * scale, mask=i < n)


SIGNATURE = {"x_ptr": "*fp32", "y_ptr": "*bf16", "n": "i64", "flag": "i1", "scale": "fp64", "BLOCK": "constexpr"}


@pytest.fixture
def module():
    return lower_function(kernel, SIGNATURE, {"BLOCK": 16}, {"y_ptr": (("tt.divisibility", 16),)})


def make_unit(**options):
    return Unit("kernel", "kernel", Target("cpu", "native", 1), CPUOptions(), **options)


def test_parameters_from_the_ir(module):
    name, params = ttir.describe_tile_ir(module)
    assert name == "kernel"
    assert params == (
        Param("x_ptr", "*fp32", "pointer"),
        Param("y_ptr", "*bf16", "pointer", 16),
        Param("n", "i64", "scalar", is_signless=True),
        Param("flag", "i1", "scalar", is_signless=True),
        Param("scale", "fp64", "scalar"),
    )


def test_text_round_trip(module):
    text = ttir.print_tile_ir(ttir.run_pipeline(module, make_unit(), tile_passes()).product)
    again = ttir.parse_tile_ir(text, "kernel.ttir")
    assert ttir.print_tile_ir(again) == text
    assert [param.type for param in ttir.describe_tile_ir(again)[1]] == ["*fp32", "*bf16", "i64", "i1", "fp64"]


def test_passes_are_dumped_where_asked_for(module):
    seen = []
    ttir.run_pipeline(module, make_unit(dump=lambda name, text: seen.append((name, "tt.func" in text))), tile_passes())
    assert len(seen) > 3 and all(is_module for _, is_module in seen)


CALLS = """
"builtin.module"() ({
  "tt.func"() <{sym_name = "kernel", function_type = (!tt.ptr<f32>) -> (), sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>):
    "tt.call"(%x) <{callee = @store_one}> : (!tt.ptr<f32>) -> () loc("k.py":2:3)
    "tt.return"() : () -> () loc("k.py":3:3)
  }) : () -> () loc("k.py":1:1)
  "tt.func"() <{sym_name = "store_one", function_type = (!tt.ptr<f32>) -> (), sym_visibility = "private"}> ({
  ^bb0(%x: !tt.ptr<f32>):
    %one = "arith.constant"() <{value = 1.0 : f32}> : () -> f32 loc("k.py":6:3)
    "tt.store"(%x, %one) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<f32>, f32) -> ()
        loc("k.py":7:3)
    "tt.return"() : () -> () loc("k.py":8:3)
  }) : () -> () loc("k.py":5:1)
}) : () -> ()
"""


def test_calls_in_a_text_are_inlined():
    module = ttir.parse_tile_ir(CALLS, "calls.ttir")
    assert ttir.describe_tile_ir(module)[0] == "kernel"
    text = ttir.print_tile_ir(ttir.run_pipeline(module, make_unit(), tile_passes()).product)
    assert "tt.call" not in text and "tt.store" in text


def test_two_kernels_in_a_text():
    module = ttir.parse_tile_ir(CALLS.replace('"private"', '"public"'), "calls.ttir")
    with pytest.raises(UsageError, match="exactly one public function, the kernel, got kernel, store_one"):
        ttir.describe_tile_ir(module)


def test_a_text_that_does_not_parse_has_a_place():
    with pytest.raises(IRError) as caught:
        ttir.parse_tile_ir('"builtin.module"() ({\n  "tt.nonsense"() : () -> ()\n}) : () -> ()\n', "bad.ttir")
    assert (caught.value.location.file, caught.value.location.line) == ("bad.ttir", 2)
