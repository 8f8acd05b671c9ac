"""Which instruction multiplies, why not another, and how warps share the result."""

import pytest
from ir_text import parse_kernel, value_named

from deuteron.backend.cuda.target import architecture
from deuteron.ir.remarks import Kind, remark_of
from deuteron.ir.tt.dot import DotOp
from deuteron.machine.gpu import GPUConfig
from deuteron.passes import run_passes
from deuteron.passes.gpu.dot_instructions import (
    obstacle_to_mma,
    obstacle_to_wgmma,
    uses_mma,
    uses_wgmma,
    warp_group_warps,
)
from deuteron.passes.gpu.layouts.assign_layouts import AssignLayouts

TF32, IEEE = 0, 2


def config(capability: int, num_warps: int = 4) -> GPUConfig:
    return GPUConfig(architecture(capability).machine, num_warps)


def dot(m=64, n=64, k=64, a="f16", c="f32", precision=TF32, batch="") -> DotOp:
    types = [f"tensor<{batch}{rows}x{columns}x{type}>" for rows, columns, type in ((m, k, a), (k, n, a), (m, n, c))]
    zeros = "\n".join(
        f'%{name} = "arith.constant"() <{{value = dense<{0 if type.endswith(("i8>", "i32>")) else 0.0}> : {type}}}>'
        f" : () -> {type}"
        for name, type in zip("abc", types, strict=True)
    )
    module = parse_kernel(
        "",
        f"""{zeros}
        %d = "tt.dot"(%a, %b, %c) <{{inputPrecision = {precision} : i32, maxNumImpreciseAcc = 0 : i32}}>
            : ({types[0]}, {types[1]}, {types[2]}) -> {types[2]}
        use %d : {types[2]}""",
    )
    return value_named(module, "d").owner


@pytest.mark.parametrize("types", [("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32")])
def test_tensor_cores_multiply(types):
    op = dot(a=types[0], c=types[1])
    assert uses_mma(op, config(80).machine) and uses_wgmma(op, config(90))
    assert not uses_wgmma(op, config(80)) and obstacle_to_wgmma(op, config(80)) is None, "nothing to say of what is not"


@pytest.mark.parametrize(("capability", "multiplies"), [(80, True), (86, False), (89, False), (90, True), (120, False)])
def test_f64_where_that_is_fast(capability, multiplies):
    op = dot(k=4, a="f64", c="f64")
    assert uses_mma(op, config(capability).machine) is multiplies and not uses_wgmma(op, config(90))


@pytest.mark.parametrize(
    ("shape", "num_warps", "obstacle"),
    [
        ({}, 2, "it takes 4 warps or a multiple, there are 2"),
        ({"m": 32}, 4, "it takes 64 rows, there are 32"),
        ({"n": 8}, 8, "it takes 16 columns, there are 8"),
        ({"k": 8}, 4, "it takes a K of 16, it is 8"),
        ({"a": "f32", "precision": IEEE}, 4, "it does not multiply f32 with input_precision 'ieee'"),
        ({"a": "f64", "c": "f64"}, 4, "it does not multiply f64 into f64"),
        ({"batch": "2x"}, 4, "it takes tiles of two dimensions"),
    ],
)
def test_what_keeps_a_dot_from_wgmma(shape, num_warps, obstacle):
    assert obstacle_to_wgmma(dot(**shape), config(90, num_warps)) == obstacle


@pytest.mark.parametrize(
    ("shape", "obstacle"),
    [
        ({"m": 8}, "it takes 16 rows and 2 columns, there are 8 and 64"),
        ({"n": 1}, "it takes 16 rows and 2 columns, there are 64 and 1"),
        ({"n": 4, "a": "f32"}, "it takes 16 rows and 8 columns, there are 64 and 4"),
        ({"n": 4}, None),
        ({"a": "f32", "k": 4}, "it takes a K of 8, it is 4"),
        ({"a": "f32", "precision": IEEE}, "it does not multiply f32 with input_precision 'ieee'"),
        ({"batch": "2x"}, None),
    ],
)
def test_what_keeps_a_dot_from_mma(shape, obstacle):
    assert obstacle_to_mma(dot(**shape), config(80).machine) == obstacle


@pytest.mark.parametrize(("rows", "warps", "expected"), [(128, 8, [8, 1]), (64, 8, [4, 2]), (256, 4, [4, 1])])
def test_warps_go_along_rows_first(rows, warps, expected):
    assert warp_group_warps((rows, 64), warps) == expected


def test_layouts_say_why():
    op = dot(m=32, n=1)
    run_passes(op.parent_op().parent_op(), [AssignLayouts(config(90))], verify=lambda *_: None)
    assert remark_of(op, Kind.NO_WGMMA).reason == "it takes 64 rows, there are 32"
    assert remark_of(op, Kind.NO_MMA).reason == "it takes 16 rows and 2 columns, there are 32 and 1"
