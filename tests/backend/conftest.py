"""Runs what the builder emits: a function of scalars or vectors, over whole arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.compile import emit_assembly, emit_object, external_symbols, optimise
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.backend.llvm.types import Value, const, vector

LLVM_TYPES = {"f2": "half", "f4": "float", "f8": "double"} | {
    f"{k}{n}": f"i{8 * n}" for k in "iu" for n in (1, 2, 4, 8)
}


def llvm_type(dtype: np.dtype) -> str:
    return LLVM_TYPES[dtype.str[1:]]


def elementwise_module(emit: Callable[..., Value], dtypes: list[np.dtype], result: np.dtype, width: int) -> str:
    """A function over arrays: `f(out, in..., n)`, n a multiple of the width."""
    module = Module("elementwise", fast_math="contract")
    pointers = [("ptr", f"p{i}") for i in range(len(dtypes) + 1)]
    b = module.function("f", "void", [*pointers, ("i64", "n")], linkage="external")
    out, *inputs, n = b.parameters
    with b.loop(const("i64", 0), n, const("i64", width)) as loop:
        args = [_load(b, p, loop.index, dtype, width) for p, dtype in zip(inputs, dtypes, strict=True)]
        b.store(emit(b, *args), b.gep(llvm_type(result), out, loop.index))
    b.ret()
    return module.text()


def _load(b: Builder, ptr: Value, index: Value, dtype: np.dtype, width: int) -> Value:
    type = llvm_type(dtype)
    return b.load(vector(type, width), b.gep(type, ptr, index))


def run_elementwise(
    emit: Callable[..., Value], *inputs: np.ndarray, result: type = np.float32, width: int = 8, arch: str = "native"
) -> np.ndarray:
    """Apply what `emit(builder, *values)` computes to every element; checks that nothing outside is called."""
    target = cpu_target(*resolve_cpu(arch))
    count = len(inputs[0])
    padded = [np.ascontiguousarray(np.resize(x, -(-count // width) * width)) for x in inputs]
    text = elementwise_module(emit, [x.dtype for x in inputs], np.dtype(result), width)
    text = optimise(text, target.cpu, target.features)
    assert not external_symbols(emit_assembly(text, target.cpu, target.features))
    loaded = load_object(emit_object(text, target.cpu, target.features), ["f"])
    out = np.full(len(padded[0]), 77, result)
    arrays = [ctypes.c_void_p(x.ctypes.data) for x in [out, *padded]]
    ctypes.CFUNCTYPE(None)(loaded.address("f"))(*arrays, ctypes.c_int64(len(out)))
    return out[:count]


@pytest.fixture
def elementwise() -> Callable[..., np.ndarray]:
    return run_elementwise
