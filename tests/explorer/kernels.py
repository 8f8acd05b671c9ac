"""The kernels of all examples with the types of their arguments and small tiles."""

from __future__ import annotations

_M = "i32:16, i32:16, i32:16"
_STRIDES = "i32:16, i32:1, i32:16, i32:1, i32:16, i32:1"
_TILE = "*fp16:16, *fp16:16, *fp32:16"
# By the example's file: the kernel, and its signature.
KERNELS = {
    "vector_add": ("add_kernel", "*fp32:16, *fp32:16, *fp32:16, i32:16, 256"),
    "softmax": ("softmax_kernel", "*fp32:16, *fp32:16, i32:16, i32:16, i32:16, 256"),
    "layer_norm": (
        "layer_norm_kernel",
        "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32, *fp32, i32:16, i32:16, fp32, 256",
    ),
    "row_norm_heuristics": ("row_norm_kernel", "*fp32:16, *fp32:16, i32:16, 256, True"),
    "matmul": ("matmul_kernel", f"{_TILE}, {_M}, {_STRIDES}, 64, 64, 32"),
    "matmul_autotuned": ("matmul_autotuned_kernel", f"*fp32:16, *fp32:16, *fp32:16, {_M}, 32, 32, 16"),
    "matmul_grouped": ("matmul_grouped_kernel", f"{_TILE}, {_M}, {_STRIDES}, 64, 64, 32, 4"),
    "attention": (
        "attention_kernel",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, fp32, i32:16, i32:16, i32:16, True, 32, 64, 32",
    ),
    "flash_attention_forward": (
        "flash_attention_forward",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, fp32, "
        + ", ".join(["i32:16"] * 12)
        + ", i32, i32:16, i32:16, i32:16, i32:16, i32, True, True, True, True, 32, 64, 32",
    ),
}
