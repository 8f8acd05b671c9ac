"""Times the compilation of kernels for cuda:90, by Deuteron or by Triton; the same file runs in both environments.

    echo 2 | python benchmarks/compile_peer.py triton      seconds and processor seconds of compiling CASES[2], cold

It compiles a case for each line that it reads, so that two of these processes can take turns. Caches are off. Each
environment has one of the two compilers, which is imported where it is used.
"""

from __future__ import annotations

import importlib
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, eq=False)
class Case:
    """A kernel of a file, the types of its parameters that are not constexpr, in order, and its options.

    `limit`: at most this part of Triton's time. `divisible`: which parameters are divisible by 16.
    """

    name: str
    file: str
    kernel: str
    types: tuple[str, ...]
    constexprs: dict[str, Any]
    divisible: tuple[int, ...]
    options: dict[str, int]
    limit: float = 1.0


MATMUL_STRIDES = {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1}
CASES = (
    Case("add 1024", "benchmarks/gpu/kernels.py", "add", ("*fp32",) * 3 + ("i32",), {"BLOCK": 1024}, (0, 1, 2, 3), {}),
    Case(
        "softmax 4096",
        "benchmarks/gpu/kernels.py",
        "softmax",
        ("*fp32",) * 2 + ("i32",) * 3,
        {"BLOCK": 4096},
        (0, 1, 2, 3, 4),
        {"num_warps": 4},
    ),
    Case(
        "matmul 128x256x64 w8 s3",
        "benchmarks/gpu/kernels.py",
        "matmul",
        ("*fp16",) * 3 + ("i32",) * 6,
        {**MATMUL_STRIDES, "BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8, "WRAP": False},
        (0, 1, 2, 3, 4, 5, 6, 8, 10),
        {"num_warps": 8, "num_stages": 3},
        limit=0.7,
    ),
    Case(
        "attention causal 128x64 D=128 w8 s3",
        "benchmarks/gpu/kernels.py",
        "attention",
        ("*fp16",) * 4 + ("fp32",) + ("i32",) * 3,
        {"CAUSAL": True, "HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 64},
        (0, 1, 2, 3, 5, 6, 7),
        {"num_warps": 8, "num_stages": 3},
        limit=0.7,
    ),
    # Strides that nothing is known of: products by mma.sync on tiles that are loaded element by element.
    Case(
        "matmul example 128x128x32 w4 s3",
        "examples/matmul.py",
        "matmul_kernel",
        ("*fp16",) * 3 + ("i32",) * 9,
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32},
        (0, 1, 2, 3, 4, 5, 6, 8, 10),
        {"num_warps": 4, "num_stages": 3},
    ),
    Case(
        "attention example 64x64 D=64 w4 s3",
        "examples/attention.py",
        "attention_kernel",
        ("*fp16",) * 4 + ("fp32",) + ("i32",) * 3,
        {"CAUSAL": True, "HEAD_DIM": 64, "BLOCK_M": 64, "BLOCK_N": 64},
        (0, 1, 2, 3, 5, 6),
        {"num_warps": 4, "num_stages": 3},
    ),
)


def compile_with_deuteron(source: Any, options: dict[str, int]) -> None:
    import deuteron
    from deuteron.backend import parse_target

    deuteron.compile(source, target=parse_target("cuda:90"), options=options)


def compile_with_triton(source: Any, options: dict[str, int]) -> None:
    import triton
    from triton.backends.compiler import GPUTarget

    triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def load_kernel(case: Case, peer: str, folder: Path) -> Any:
    """The kernel, from a copy of its file that imports the peer."""
    name = f"{Path(case.file).stem}_{peer}"
    text = (ROOT / case.file).read_text()
    text = text.replace("import deuteron as triton\n", "import triton\n").replace("import deuteron.", "import triton.")
    text = text.replace("import triton\n", f"import {peer} as triton\n").replace("import triton.", f"import {peer}.")
    (folder / f"{name}.py").write_text(text)
    return getattr(importlib.import_module(name), case.kernel)


def source_of(case: Case, function: Any, peer: str) -> Any:
    ASTSource = importlib.import_module(f"{peer}.compiler").ASTSource
    types = iter(case.types)
    signature = {name: "constexpr" if name in case.constexprs else next(types) for name in function.arg_names}
    return ASTSource(function, signature, case.constexprs, {(i,): [["tt.divisibility", 16]] for i in case.divisible})


def processor_seconds() -> float:
    """What this process and those that it has started and waited for have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main(peer: str) -> None:
    os.environ |= {"DEUTERON_ALWAYS_COMPILE": "1", "TRITON_ALWAYS_COMPILE": "1", "TRITON_DEFAULT_FP_FUSION": "1"}
    run = compile_with_deuteron if peer == "deuteron" else compile_with_triton
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "cache")
        sys.path.insert(0, folder)
        for line in sys.stdin:
            case = CASES[int(line)]
            source = source_of(case, load_kernel(case, peer, Path(folder)), peer)
            start, used = time.perf_counter(), processor_seconds()
            run(source, case.options)
            print(time.perf_counter() - start, processor_seconds() - used, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
