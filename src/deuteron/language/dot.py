"""Matrix products.

acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
for k in range(0, K, BLOCK_K):
    acc = tl.dot(a, b, acc)
"""

from __future__ import annotations

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor
from deuteron.language.types import dtype, float32


@builtin
def dot(
    input: tensor,
    other: tensor,
    acc: tensor | None = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: dtype | None = None,
    trans_a: bool = False,
    trans_b: bool = False,
) -> tensor:
    """The matrix product `input @ other`, plus `acc` where it is given.

    :param input: [M, K], or [..., M, K] for a batch, of int8, fp16, bf16, fp32, fp64 or fp8. Every size is allowed;
        instructions multiply from 16 rows, 8 columns and 256 bits along K on.
    :param other: [K, N], or [..., K, N] for the same batch, of the same type (fp8 types may differ).
    :param acc: [M, N] or [..., M, N], of the type of the result.
    :param input_precision: how fp32 operands enter the product: "tf32" (the default, unless the variable
        TRITON_F32_DEFAULT or the option `default_dot_input_precision` says another), "tf32x3", "ieee", "bf16x3" or
        "bf16x6". On the CPU all are exact. On GPUs "tf32" is one product on tensor cores, of numbers with 11 of their
        24 bits (rounded; sm_90 cuts the rest off); "tf32x3" and "bf16x3" are three, of parts, with 22 and 16 bits,
        "bf16x6" six with all of them; "ieee" multiplies in each thread, many times slower.
    :param allow_tf32: the older form: True is the default, False is "ieee".
    :param max_num_imprecise_acc: how many products of fp8 may be accumulated at lower precision; a hint.
    :param out_dtype: type of the result for fp16 and fp8 operands: fp32 (the default, or that of `acc`) or fp16. Others
        give int32 for int8, fp64 for fp64, else fp32, whatever is said here, as in Triton; bf16 is an error.
    :param trans_a: as in Triton 1 and before 2.0: whether `input` is given as [..., K, M]. Now `tl.trans(input)`.
    :param trans_b: whether `other` is given as [..., N, K]. Now `tl.trans(other)`.

    Errors: scalars, ranks below 2, shapes that do not go together, types that differ or are not in the list, an `acc`
    of another shape or type, a precision or `out_dtype` that there is not.
    """


@builtin
def dot_scaled(
    lhs: tensor,
    lhs_scale: tensor | None,
    lhs_format: str,
    rhs: tensor,
    rhs_scale: tensor | None,
    rhs_format: str,
    acc: tensor | None = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: dtype = float32,
) -> tensor:
    """The matrix product of operands in microscaling formats: groups of numbers along K share a scale.

    Each number is multiplied by its scale in bf16, or in fp32 (tf32 on GPUs, which has all its bits) where a format is
    fp16. That is exact, but what is too large becomes infinite, and what is below 2**-126 may lose bits. The products
    are then those of `dot`. Where nothing is scaled, fp8 is multiplied as it is.

    :param lhs: [M, K], or [..., M, K] for a batch, in a type that goes with its format.
    :param lhs_scale: [..., M, K // 32] or [..., M, K // 16] of uint8, x standing for 2**(x - 127) and 255 for NaN, or
        of float8e4nv; or None.
    :param lhs_format: "e2m1" (two numbers in a uint8, the first in the lower half), "e4m3" (float8e4nv or uint8),
        "e5m2" (float8e5 or uint8), "bf16" or "fp16" (that, or uint16).
    :param rhs: [K, N], or [..., K, N].
    :param rhs_scale: [..., N, K // 32] or [..., N, K // 16], not transposed; or None.
    :param rhs_format: as `lhs_format`.
    :param acc: [..., M, N] of `out_dtype`.
    :param fast_math: that no scale is 255.
    :param lhs_k_pack: whether the two numbers of a byte are neighbours along K; else along M.
    :param rhs_k_pack: along K; else along N.
    :param out_dtype: fp32 or fp16.

    Errors: scalars, shapes that do not go together, a type that does not go with its format, scales of another type or
    shape, scales of float8e4nv for bf16 or fp16, a packing for another format than e2m1.
    """
