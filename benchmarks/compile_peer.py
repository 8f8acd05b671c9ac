"""Times the compilation of four kernels for cuda:90, by Deuteron or by Triton; the same file runs in both environments.

    python benchmarks/compile_peer.py deuteron      one JSON object: seconds of each compile, by kernel
    python benchmarks/compile_peer.py triton        in Triton's environment

Kernels are those of examples/; caches are off; each is compiled several times in one process, and all times are given.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
REPEATS = 4
# example, kernel, types of the runtime parameters, constexprs, which are divisible by 16, options
CASES = (
    ("vector_add", "add_kernel", ("*fp32",) * 3 + ("i32",), {"BLOCK": 1024}, range(4), {"num_warps": 4}),
    ("softmax", "softmax_kernel", ("*fp32",) * 2 + ("i32",) * 3, {"BLOCK": 4096}, range(5), {"num_warps": 4}),
    (
        "matmul",
        "matmul_kernel",
        ("*fp16",) * 3 + ("i32",) * 9,
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32},
        (0, 1, 2, 3, 4, 5, 6, 8, 10),
        {"num_warps": 4, "num_stages": 3},
    ),
    (
        "attention",
        "attention_kernel",
        ("*fp16",) * 4 + ("fp32",) + ("i32",) * 3,
        {"CAUSAL": True, "HEAD_DIM": 64, "BLOCK_M": 64, "BLOCK_N": 64},
        (0, 1, 2, 3, 5, 6),
        {"num_warps": 4, "num_stages": 3},
    ),
)


def compile_with_deuteron(function, signature, constexprs, attrs, options):
    import deuteron
    from deuteron.compiler import ASTSource
    from deuteron.options import parse_target

    source = ASTSource(function, signature, constexprs, attrs)
    start = time.perf_counter()
    deuteron.compile(source, target=parse_target("cuda:90"), options=options)
    return time.perf_counter() - start


def compile_with_triton(function, signature, constexprs, attrs, options):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = ASTSource(function, signature, constexprs, attrs)
    start = time.perf_counter()
    triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    return time.perf_counter() - start


def examples_for(peer: str, folder: str) -> str:
    """The folder of the examples; for Triton a copy whose imports name it."""
    if peer == "deuteron":
        return str(EXAMPLES)
    for path in EXAMPLES.glob("*.py"):
        Path(folder, path.name).write_text(
            path.read_text()
            .replace("import deuteron as", "import triton as")
            .replace("import deuteron.language", "import triton.language")
        )
    return folder


def main(peer: str) -> None:
    os.environ |= {"DEUTERON_ALWAYS_COMPILE": "1", "TRITON_ALWAYS_COMPILE": "1"}
    run = compile_with_deuteron if peer == "deuteron" else compile_with_triton
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "cache")
        sys.path.insert(0, examples_for(peer, folder))
        for example, kernel, types, constexprs, divisible, options in CASES:
            function = getattr(importlib.import_module(example), kernel)
            signature = dict(zip(function.arg_names, (*types, *["constexpr"] * len(constexprs)), strict=True))
            attrs = {(index,): [["tt.divisibility", 16]] for index in divisible}
            seconds[kernel] = [run(function, signature, constexprs, attrs, options) for _ in range(REPEATS)]
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1])
