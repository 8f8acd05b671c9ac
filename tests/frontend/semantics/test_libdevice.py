"""libdevice: which overload a call takes, what it gives, what is said of one that has none."""

from __future__ import annotations

import pytest

ONES = "tl.full((4,), 1, tl.{})"


def tile(dtype: str) -> str:
    return ONES.format(dtype)


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (f"tl.libdevice.tanh({tile('float32')})", "fp32[4]"),
        (f"tl.math.tanh({tile('float64')})", "fp64[4]"),
        (f"tl.extra.cuda.libdevice.tanh({tile('float32')})", "fp32[4]"),
        (f"tl.libdevice.pow({tile('float32')}, 2)", "fp32[4]"),
        (f"tl.libdevice.pow({tile('float32')}, 2.5)", "fp32[4]"),
        (f"tl.libdevice.pow(2.0, {tile('float32')}[:, None])", "fp32[4, 1]"),
        (f"tl.libdevice.atan2({tile('float32')}, {tile('float64')})", "fp64[4]"),
        (f"tl.libdevice.atan2({tile('float32')}, {tile('float16')})", "fp32[4]"),
        (f"tl.libdevice.atan2({tile('float32')}, 1)", "fp32[4]"),
        (f"tl.libdevice.isnan({tile('float32')})", "int1[4]"),
        (f"tl.libdevice.signbit({tile('float64')})", "int32[4]"),
        (f"tl.libdevice.popc({tile('int64')})", "int32[4]"),
        (f"tl.libdevice.mulhi({tile('uint32')}, 3)", "uint32[4]"),
        (f"tl.libdevice.sad({tile('int32')}, 2, 0)", "int32[4]"),
        (f"tl.libdevice.float2int_rd({tile('float32')})", "int32[4]"),
        ("tl.libdevice.tanh(0.5)", "fp32"),
        ("tl.libdevice.exp(1e300)", "fp64"),
        ("tl.libdevice.fma_rn(arg0=1.0, arg1=2.0, arg2=3.0)", "fp32"),
    ],
)
def test_result_type(result_type, call: str, result: str):
    assert result_type(call) == result


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            f"tl.libdevice.tanh({tile('float16')})",
            "libdevice.tanh takes (fp32) or (fp64), got (fp16). Convert it with .to(tl.float32).",
        ),
        (
            f"tl.math.tanh({tile('int32')})",
            "libdevice.tanh takes (fp32) or (fp64), got (int32). Convert it with .to(tl.float32).",
        ),
        (
            f"tl.libdevice.popc({tile('uint32')})",
            "libdevice.popc takes (int32) or (int64), got (uint32). "
            "Take the same bits as the other type with .to(tl.int32, bitcast=True).",
        ),
        (
            f"tl.libdevice.atan2({tile('bfloat16')}, {tile('bfloat16')})",
            "libdevice.atan2 takes (fp32, fp32) or (fp64, fp64), got (bf16, bf16). Convert it with .to(tl.float32).",
        ),
        ("tl.libdevice.tanh(None)", "libdevice.tanh takes tensors and numbers, got None."),
        (
            "tl.libdevice.tanh(1.0, 2.0)",
            "libdevice.tanh: too many positional arguments. Its parameters are (arg0).",
        ),
        (
            "tl.libdevice.pow(1.0)",
            "libdevice.pow: missing a required argument: 'arg1'. Its parameters are (arg0, arg1).",
        ),
    ],
)
def test_refusal(error, call: str, message: str):
    assert error(call) == message
