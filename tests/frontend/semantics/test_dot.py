"""tl.dot: result types, accumulators, precision, errors."""

from __future__ import annotations

import pytest

from deuteron.frontend import Asked, lower_function
from deuteron.frontend.semantics.dot import INPUT_PRECISIONS
from deuteron.ir.remarks import remarks_in
from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.ir.types import shape_of
from deuteron.options import DOT_INPUT_PRECISIONS


def tile(dtype: str, *shape: int) -> str:
    return f"tl.zeros({shape}, tl.{dtype})"


@pytest.mark.parametrize(
    ("operand", "arguments", "result"),
    [
        ("float16", "", "fp32"),
        ("float16", ", out_dtype=tl.float16", "fp16"),
        ("float16", ", acc=tl.zeros((16, 64), tl.float16)", "fp16"),
        ("bfloat16", "", "fp32"),
        ("float32", ", tl.zeros((16, 64), tl.float32)", "fp32"),
        ("float64", "", "fp64"),
        ("float8e5", "", "fp32"),
        ("int8", "", "int32"),
        ("int8", ", out_dtype=tl.float32", "int32"),
        ("int8", ", out_dtype=tl.int8", "int32"),
        ("bfloat16", ", out_dtype=tl.float16", "fp32"),
    ],
)
def test_result_type(result_type, operand: str, arguments: str, result: str):
    product = f"tl.dot({tile(operand, 16, 32)}, {tile(operand, 32, 64)}{arguments})"
    assert result_type(product) == f"{result}[16, 64]"


def test_batch(result_type):
    product = f"tl.dot({tile('float16', 2, 16, 32)}, {tile('float16', 2, 32, 64)})"
    assert result_type(product) == "fp32[2, 16, 64]"


def test_batches_of_any_rank_are_one(result_type, ops):
    product = f"tl.dot({tile('float16', 2, 1, 4, 16, 32)}, {tile('float16', 2, 1, 4, 32, 64)})"
    assert result_type(product) == "fp32[2, 1, 4, 16, 64]"
    (dot,) = [op for op in ops(product) if op.name == "tt.dot"]
    assert shape_of(dot.result.type) == (8, 16, 64)


@pytest.mark.parametrize(
    ("product", "said"),
    [
        ("tl.dot(m, m, trans_b=True)", ["trans_b=True is tl.trans(other) now"]),
        ("tl.dot(m, m, trans_a=True, allow_tf32=False)", ["allow_tf32=False is input_precision='ieee' now",
         "trans_a=True is tl.trans(input) now"]),
        ("tl.dot(m, m.T, trans_b=False)", []),
    ],
)  # fmt: skip
def test_old_spellings_mean_what_they_meant(ops, product: str, said: list[str]):
    (dot,) = [op for op in ops(product) if op.name == "tt.dot"]
    size = 32 if "trans_a" in product else 16
    assert shape_of(dot.result.type) == (size, size)
    assert [remark.reason for _, remark in remarks_in(dot.get_toplevel_object())] == said


@pytest.mark.parametrize(
    ("arguments", "precision"),
    [
        ("", InputPrecision.TF32),
        (", input_precision='ieee'", InputPrecision.IEEE),
        (", input_precision='tf32x3'", InputPrecision.TF32x3),
        (", allow_tf32=False", InputPrecision.IEEE),
        (", allow_tf32=True", InputPrecision.TF32),
    ],
)
def test_input_precision(ops, arguments: str, precision: InputPrecision):
    *_, dot = ops(f"tl.dot(m, m.T{arguments})")
    assert dot.input_precision.value.data == precision


@pytest.mark.parametrize(
    ("arguments", "precision"),
    [
        ("", InputPrecision.BF16x6),
        (", input_precision='tf32'", InputPrecision.TF32),
        (", allow_tf32=False", InputPrecision.IEEE),
        (", allow_tf32=True", InputPrecision.BF16x6),
    ],
)
def test_the_default_is_what_is_asked_for(load_kernel, arguments: str, precision: InputPrecision):
    kernel = load_kernel((), ["m = tl.zeros((16, 16), tl.float32)", f"tl.dot(m, m{arguments})"])
    module = lower_function(kernel, {}, {}, {}, asked=Asked(dot_precision="bf16x6"))
    (dot,) = (op for op in module.walk() if isinstance(op, DotOp))
    assert dot.input_precision.value.data == precision


def test_options_know_the_precisions_that_there_are():
    assert set(DOT_INPUT_PRECISIONS) == set(INPUT_PRECISIONS)


OF_VECTORS = "Multiply vectors and numbers with *, and add up with tl.sum."


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tl.dot(m, m)", "tl.dot of fp16[16, 32] and fp16[16, 32]: expected [M, K] and [K, N], or [B, M, K] and "
         "[B, K, N]. Is one of them to be transposed with tl.trans?"),
        ("tl.dot(x, x)", f"tl.dot multiplies tiles of 2 or more dimensions, got fp32[64] and fp32[64]. {OF_VECTORS}"),
        ("tl.dot(m, 2)", f"tl.dot multiplies tiles of 2 or more dimensions, got fp16[16, 32] and 2. {OF_VECTORS}"),
        ("tl.dot(m, m.T.to(tl.float32))", "tl.dot takes operands of one type, got fp16[16, 32] and fp32[32, 16]. "
         "Convert one with .to()."),
        ("tl.dot(m.to(tl.int32), m.T.to(tl.int32))", "tl.dot takes int8, fp16, bf16, fp32, fp64 and fp8, got "
         "int32[16, 32]. Convert it with .to()."),
        ("tl.dot(m, m.T, x)", "The accumulator of tl.dot must be fp32[16, 16], got fp32[64]."),
        ("tl.dot(m, m.T, m)", "The accumulator of tl.dot must be fp16[16, 16], got fp16[16, 32]."),
        ("tl.dot(m, m.T, False)", "The accumulator of tl.dot cannot be False. Older versions had other parameters "
         "there: give them by name, as allow_tf32 or trans_a."),
        ("tl.dot(m, m.T, input_precision='fp8')", "tl.dot has no input_precision 'fp8'. Use one of tf32, tf32x3, "
         "ieee, bf16x3, bf16x6."),
        ("tl.dot(m, m.T, input_precision='ieee', allow_tf32=True)", "tl.dot got input_precision='ieee' and "
         "allow_tf32=True. Give input_precision only."),
        ("tl.dot(m, m.T, out_dtype=tl.bfloat16)", "tl.dot of fp16 gives fp32 or fp16, not tl.bfloat16. "
         "Convert the result with .to()."),
    ],
)  # fmt: skip
def test_dot_errors(error, statement: str, message: str):
    assert error(statement) == message
