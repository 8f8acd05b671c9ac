"""The kernels of examples/ become tile IR that verifies, every op located, and that reads back as it was printed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import deuteron.compat  # noqa: F401  (some examples say `import triton`)
from deuteron.ir.text import parse_module, print_module
from deuteron.language.functions.function import Function

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TILE = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 16}
FLASH_ATTENTION = "*fp16 " * 4 + "*fp32 " * 2 + "fp32 " + "i32 " * 18 + "i1 i1 i1"

PROGRAMS = {
    "vector_add": ("add_kernel", "*fp32 *fp32 *fp32 i32", {"BLOCK": 128}),
    "softmax": ("softmax_kernel", "*fp32 *fp32 i32 i32 i32", {"BLOCK": 128}),
    "layer_norm": ("layer_norm_kernel", "*fp16 " * 4 + "*fp32 *fp32 i32 i32 fp32", {"BLOCK": 128}),
    "matmul": ("matmul_kernel", "*fp16 *fp16 *fp16" + " i32" * 9, TILE),
    "matmul_grouped": ("matmul_grouped_kernel", "*fp16 *fp16 *fp16" + " i32" * 9, TILE | {"GROUP_M": 4}),
    "attention": (
        "attention_kernel",
        "*fp16 " * 4 + "fp32 i32 i32 i32",
        {"CAUSAL": True, "HEAD_DIM": 64, "BLOCK_M": 32, "BLOCK_N": 64},
    ),
    "flash_attention_forward": (
        "flash_attention_forward",
        FLASH_ATTENTION,
        {"IS_CAUSAL": 1, "BLOCK_HEADDIM": 64, "BLOCK_M": 128, "BLOCK_N": 128},
    ),
}


def load_kernel(file: str, name: str) -> Function:
    spec = importlib.util.spec_from_file_location(file, EXAMPLES / f"{file}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.parametrize("file", PROGRAMS)
def test_program(lower, file):
    name, types, constexprs = PROGRAMS[file]
    text = print_module(lower(load_kernel(file, name), types, **constexprs))
    assert print_module(parse_module(text)) == text


@pytest.mark.parametrize("causal", [0, 1])
def test_flash_attention_branches_on_its_runtime_booleans(lower, causal):
    name, types, constexprs = PROGRAMS["flash_attention_forward"]
    kernel = load_kernel("flash_attention_forward", name)
    ops = [op.name for op in lower(kernel, types, **constexprs | {"IS_CAUSAL": causal}).walk()]
    assert ops.count("scf.for") == 1
    assert ops.count("scf.if") >= 3
    assert ops.count("tt.dot") == 2
