"""The matrix product and the transposing copy, run on whole numbers, which leave no rounding to hide behind."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from deuteron.backend.cpu.memory.transpose import emit_transpose
from deuteron.backend.cpu.products.blocking import MatmulShape, Operands, choose_blocking
from deuteron.backend.cpu.products.microkernel import emit_matmul
from deuteron.backend.cpu.products.packing import emit_packed
from deuteron.backend.cpu.products.products import (
    BF16_PAIRS,
    LANES,
    NATIVE_PRODUCTS,
    NativeProduct,
    VectorProduct,
    has_product,
    plain_product,
)
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.compile import emit_assembly, emit_object, optimise
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.backend.llvm.types import bit_width

VECTOR_PRODUCTS = {name: product for name, product in NATIVE_PRODUCTS.items() if isinstance(product, VectorProduct)}
TYPES = {np.float32: "float", np.float64: "double", np.int32: "i32"}


def run(emit, arch: str, *arrays: np.ndarray) -> str:
    """Run `emit(builder, target)` on pointers to the arrays; gives the optimised text."""
    text, target = emitted(emit, arch, len(arrays)), cpu_target(*resolve_cpu(arch))
    loaded = load_object(emit_object(text, target.cpu, target.features), ["f"])
    ctypes.CFUNCTYPE(None)(loaded.address("f"))(*(ctypes.c_void_p(x.ctypes.data) for x in arrays))
    return text


def emitted(emit, arch: str, count: int) -> str:
    """The optimised text of a function of pointers."""
    target = cpu_target(*resolve_cpu(arch))
    module = Module("m", "contract")
    b = module.function("f", "void", [("ptr noalias", f"p{i}") for i in range(count)], linkage="external")
    emit(b, target)
    b.ret()
    return optimise(module.text(), target.cpu, target.features)


def assembly_of(emit, arch: str, count: int) -> str:
    return emit_assembly(emitted(emit, arch, count), *resolve_cpu(arch))


def whole_numbers(rng, rows: int, columns: int, dtype: type) -> np.ndarray:
    return rng.integers(-9, 10, (rows, columns)).astype(dtype)


def multiply(rng, shape: MatmulShape, dtype: type, arch: str) -> str:
    """Check one product, with NaN (or a large number) between the rows, where nothing may be read or written."""
    a, b, c = (
        whole_numbers(rng, rows, stride, dtype)
        for rows, stride in ((shape.m, shape.lda), (shape.k, shape.ldb), (shape.m, shape.ldc))
    )
    poison = np.nan if np.issubdtype(dtype, np.floating) else 1 << 20
    a[:, shape.k :], b[:, shape.n :], c[:, shape.n :] = poison, poison, poison
    expected = c.copy()
    expected[:, : shape.n] += a[:, : shape.k] @ b[:, : shape.n]

    def emit(builder, target):
        type = TYPES[dtype]
        blocking = choose_blocking(shape, target.vector_width(bit_width(type)), target.vector_registers)
        emit_matmul(builder, shape, Operands(*builder.parameters), plain_product(type), blocking)

    text = run(emit, arch, a, b, c)
    np.testing.assert_array_equal(c, expected)
    return text


@pytest.mark.share(2)
@pytest.mark.parametrize("arch", ["native", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m", [1, 2, 8, 64])
@pytest.mark.parametrize("n", [1, 4, 16, 64])
def test_tiles(rng, m, n, dtype, arch):
    for k in (1, 2, 16):
        multiply(rng, MatmulShape(m, n, k, lda=k, ldb=n, ldc=n), dtype, arch)


def test_rows_apart(rng):
    multiply(rng, MatmulShape(16, 32, 8, lda=24, ldb=33, ldc=40), np.float32, "native")


@pytest.mark.parametrize("m", [3, 7, 13, 131])
@pytest.mark.parametrize("n", [3, 24, 37, 100])
def test_sizes_that_are_no_powers_of_two(rng, m, n):
    multiply(rng, MatmulShape(m, n, 5, lda=5, ldb=n, ldc=n), np.float32, "x86-64-v3")


@pytest.mark.parametrize("product", VECTOR_PRODUCTS.values(), ids=VECTOR_PRODUCTS)
@pytest.mark.parametrize("k, n, stride", [(4, 16, 16), (8, 64, 64), (64, 32, 37)])
def test_packing(rng, k, n, stride, product):
    """Neighbours along k are next to each other, in the order of the columns."""
    dtype = {"i8": np.int8, "i16": np.int16}[product.element]
    source = rng.integers(-100, 100, (k, stride)).astype(dtype)
    lanes = np.full((k // product.group, n, product.group), 77, dtype)
    run(lambda b, cpu: emit_packed(b, *b.parameters, k, n, stride, product), "native", source, lanes)
    expected = source[:, :n].reshape(k // product.group, product.group, n).swapaxes(1, 2)
    np.testing.assert_array_equal(lanes, expected)


@pytest.mark.parametrize("product", VECTOR_PRODUCTS.values(), ids=VECTOR_PRODUCTS)
@pytest.mark.parametrize("m, n, k", [(1, 16, 4), (8, 32, 8), (13, 48, 20), (64, 64, 64), (130, 112, 16)])
def test_native_products(rng, m, n, k, product):
    """Run where this machine has the instruction, else compiled for one that has."""
    a, b = rng.integers(-128, 128, (m, k)), rng.integers(-128, 128, (k, n))
    c = rng.integers(-9, 9, (m, n)).astype(np.float32 if product is BF16_PAIRS else np.int32)
    expected = c + a @ b
    lanes = _lanes(b.T, product).reshape(n, -1).T.copy()
    shape = MatmulShape(m, n, k // product.group, k // product.group, n, n)

    def emit(builder, target):
        blocking = choose_blocking(shape, LANES, target.vector_registers)
        emit_matmul(builder, shape, Operands(*builder.parameters), product, blocking)

    if not has_product(product, cpu_target(*resolve_cpu("native"))):
        assert INSTRUCTIONS[product.name] in assembly_of(emit, "sapphirerapids", 3)
        return
    run(emit, "native", _lanes(a + product.excess, product), lanes, c)
    np.testing.assert_array_equal(c, expected)


INSTRUCTIONS = {"bf16 tiles": "tdpbf16ps", "byte tiles": "tdpbssd", "bf16 pairs": "vdpbf16ps", "byte quads": "vpdpbusd"}


def _lanes(elements: np.ndarray, product: NativeProduct) -> np.ndarray:
    """Rows of elements in the format of a product, as lanes of 32 bits."""
    if product is BF16_PAIRS:
        return (elements.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).copy().view(np.int32)
    return elements.astype(np.uint8).copy().view(np.int32)


@pytest.mark.parametrize(
    ("arch", "names"),
    [
        ("sapphirerapids", INSTRUCTIONS),
        ("znver5", VECTOR_PRODUCTS),
        ("icelake-server", ["byte quads"]),
        ("skx", []),
        ("cortex-a72", []),
    ],
)
def test_products_of_a_processor(arch, names):
    target = cpu_target(*resolve_cpu(arch))
    assert [name for name, product in NATIVE_PRODUCTS.items() if has_product(product, target)] == list(names)


def test_the_code_does_not_grow_with_the_tile(rng):
    small, large = (multiply(rng, MatmulShape(n, n, n, n, n, n), np.float32, "x86-64-v3") for n in (32, 256))
    assert len(large) < 1.1 * len(small)


@pytest.mark.parametrize("registers", [16, 32])
@pytest.mark.parametrize("width", [4, 8, 16])
def test_a_block_fits_in_the_registers(registers, width):
    for m in (1, 2, 4, 16, 128):
        for n in (1, 2, 16, 128):
            blocking = choose_blocking(MatmulShape(m, n, 64, 64, n, n), width, registers)
            assert blocking.rows <= m
            assert blocking.columns <= n
            sums = blocking.rows * blocking.vectors
            assert sums + min(blocking.rows, blocking.vectors) + 1 <= registers  # a step of B, or of A, and one more


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 2, 16, 64])
@pytest.mark.parametrize("columns", [1, 4, 8, 32])
def test_transpose(rng, rows, columns, dtype):
    source = whole_numbers(rng, rows, columns + 3, dtype)
    target = np.full((columns, rows + 5), 77, dtype)
    type = {1: "i8", 2: "i16", 4: "float", 8: "double"}[source.itemsize]
    run(
        lambda b, cpu: emit_transpose(b, *b.parameters, rows, columns, columns + 3, rows + 5, type),
        "native",
        source,
        target,
    )
    np.testing.assert_array_equal(target[:, :rows], source[:, :columns].T)
    assert np.all(target[:, rows:] == 77)
