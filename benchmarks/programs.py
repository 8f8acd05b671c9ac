"""The kernel of every example with types and constexprs to compile it for: what benchmarks and scripts go over.

for program in PROGRAMS:
    kernel = deuteron.compile(program.source(), target=parse_target("cpu"))
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import deuteron.compat  # noqa: F401  (two of the examples say `import triton`)
from deuteron.compiler import ASTSource

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def load_example(name: str) -> ModuleType:
    """examples/NAME.py as a module."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    return importlib.import_module(name)


@dataclass(frozen=True)
class Program:
    """A kernel of an example. `types` are those of the runtime parameters in order; constexprs come after them."""

    example: str
    kernel: str
    types: tuple[str, ...]
    constexprs: dict[str, Any]

    def function(self) -> Any:
        """The @jit function, without the autotuner or the heuristics around it."""
        function = getattr(load_example(self.example), self.kernel)
        while hasattr(function, "configs") or hasattr(function, "values"):
            function = function.fn
        return function

    def source(self) -> ASTSource:
        function = self.function()
        types = self.types + ("constexpr",) * len(self.constexprs)
        return ASTSource(function, dict(zip(function.arg_names, types, strict=True)), self.constexprs)


MATMUL_TYPES = ("i32",) * 9
PROGRAMS = (
    Program("vector_add", "add_kernel", ("*fp32",) * 3 + ("i32",), {"BLOCK": 1024}),
    Program("softmax", "softmax_kernel", ("*fp32",) * 2 + ("i32",) * 3, {"BLOCK": 1024}),
    Program("layer_norm", "layer_norm_kernel", ("*fp32",) * 6 + ("i32", "i32", "fp32"), {"BLOCK": 1024}),
    Program(
        "matmul",
        "matmul_kernel",
        ("*fp32",) * 3 + MATMUL_TYPES,
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64},
    ),
    Program(
        "matmul_grouped",
        "matmul_grouped_kernel",
        ("*fp16",) * 3 + MATMUL_TYPES,
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 4},
    ),
    Program(
        "matmul_autotuned",
        "matmul_autotuned_kernel",
        ("*fp32",) * 3 + ("i32",) * 3,
        {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
    ),
    Program(
        "attention",
        "attention_kernel",
        ("*fp16",) * 4 + ("fp32",) + ("i32",) * 3,
        {"CAUSAL": True, "HEAD_DIM": 64, "BLOCK_M": 64, "BLOCK_N": 64},
    ),
    Program(
        "flash_attention_forward",
        "flash_attention_forward",
        ("*fp16",) * 4 + ("*fp32",) * 2 + ("fp32",) + ("i32",) * 18 + ("i1",) * 3,
        {"IS_CAUSAL": True, "BLOCK_HEADDIM": 64, "BLOCK_M": 128, "BLOCK_N": 128},
    ),
    Program("row_norm_heuristics", "row_norm_kernel", ("*fp32",) * 2 + ("i32",), {"BLOCK": 512, "EVEN": False}),
)
