"""Every example compiles for every architecture, ptxas accepts it, and nothing is spilled."""

import importlib.util
from pathlib import Path

import pytest
from backend.cuda.launching import ARCHITECTURES

import deuteron.compat  # noqa: F401  (some examples say `import triton`)
from deuteron.compiler import ASTSource
from deuteron.compiler import compile as compile_kernel
from deuteron.runtime.jit import JITFunction

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
MATRICES = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
STRIDES = dict.fromkeys(f"stride_{name}" for name in ("am", "ak", "bk", "bn", "cm", "cn"))
FLASH = {
    **dict.fromkeys(("Q", "K", "V", "Out"), "*fp16"),
    **dict.fromkeys(("Lse", "TMP"), "*fp32"),
    "softmax_scale": "fp32",
    **dict.fromkeys((f"stride_{x}{y}" for x, last in zip("qkvo", "mnnm", strict=True) for y in f"bh{last}"), "i32"),
    **dict.fromkeys(("nheads", "seqlen_q", "seqlen_k", "seqlen_q_rounded", "headdim", "batch"), "i32"),
    **dict.fromkeys(("EVEN_M", "EVEN_N", "EVEN_HEADDIM"), "i1"),
}
CASES = {
    "vector_add": (
        "add_kernel",
        {**dict.fromkeys(("x_ptr", "y_ptr", "out_ptr"), "*fp32"), "n": "i32"},
        {"BLOCK": 1024},
    ),
    "softmax": (
        "softmax_kernel",
        {"x_ptr": "*fp32", "out_ptr": "*fp32", **dict.fromkeys(("x_stride", "out_stride", "num_columns"), "i32")},
        {"BLOCK": 1024},
    ),
    "layer_norm": (
        "layer_norm_kernel",
        {
            **dict.fromkeys(("x_ptr", "out_ptr", "weight_ptr", "bias_ptr"), "*fp16"),
            "mean_ptr": "*fp32",
            "rstd_ptr": "*fp32",
            "row_stride": "i32",
            "num_columns": "i32",
            "eps": "fp32",
        },
        {"BLOCK": 1024},
    ),
    "row_norm_heuristics": (
        "row_norm_kernel",
        {"x_ptr": "*fp32", "out_ptr": "*fp32", "num_columns": "i32"},
        {"BLOCK": 512, "EVEN": True},
    ),
    "matmul": (
        "matmul_kernel",
        MATRICES | dict.fromkeys(STRIDES, "i32"),
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "stride_ak": 1, "stride_bn": 1, "stride_cn": 1},
    ),
    "matmul_grouped": (
        "matmul_grouped_kernel",
        MATRICES | dict.fromkeys(STRIDES, "i32"),
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 4, "stride_ak": 1, "stride_bn": 1, "stride_cn": 1},
    ),
    "matmul_autotuned": ("matmul_autotuned_kernel", MATRICES, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}),
    "attention": (
        "attention_kernel",
        dict.fromkeys(("Q", "K", "V", "Out"), "*fp16")
        | {"scale": "fp32", "stride_h": "i32", "stride_n": "i32", "seqlen": "i32"},
        {"CAUSAL": True, "HEAD_DIM": 64, "BLOCK_M": 64, "BLOCK_N": 64},
    ),
    "flash_attention_forward": (
        "flash_attention_forward",
        FLASH,
        {"IS_CAUSAL": True, "BLOCK_HEADDIM": 64, "BLOCK_M": 64, "BLOCK_N": 64},
    ),
}


WITH_PRODUCTS = {name for name in CASES if name.startswith("matmul") or "attention" in name}


def load_example(name):
    spec = importlib.util.spec_from_file_location(f"cuda_example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_example_is_left_out():
    measured = {"softmax_benchmark"}  # softmax's kernel and timing
    assert {path.stem for path in EXAMPLES.glob("*.py")} - measured == set(CASES)


@pytest.mark.share(2)
@pytest.mark.parametrize("capability", ARCHITECTURES)
@pytest.mark.parametrize("name", CASES)
def test_examples(name, capability):
    kernel_name, signature, constexprs = CASES[name]
    kernel = getattr(load_example(name), kernel_name)
    while not isinstance(kernel, JITFunction):  # an autotuner or heuristics
        kernel = kernel.fn
    hinted = [n for n, type in signature.items() if type[0] in "*i" and type != "i1" and n not in constexprs]
    attrs = {(kernel.arg_names.index(n),): [["tt.divisibility", 16]] for n in hinted}
    source = ASTSource(kernel, {n: t for n, t in signature.items() if n not in constexprs}, constexprs, attrs)
    compiled = compile_kernel(source, f"cuda:{capability}")
    assert compiled.asm["cubin"].startswith(b"\x7fELF")
    resources = compiled.metadata.resources
    assert resources["spill_bytes"] == 0 and not resources["warnings"] and resources["registers"] > 0
    assert ("cp.async" in compiled.asm["ptx"]) == (name in WITH_PRODUCTS)
