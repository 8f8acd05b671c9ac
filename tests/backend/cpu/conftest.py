"""What the lowering tests share: a kernel in the language runs in the interpreter and as machine code, on equal data.

    compare(kernel, [x, out, n], {"BLOCK": 64}, grid=(4,))

The compiled kernel's arrays each end, and for every second CPU begin, at a page that cannot be accessed: a lane that a
mask switches off and that touches memory all the same ends the test with a crash.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from lots import drawn

from deuteron.backend.cpu import lowering
from deuteron.backend.llvm.compile import emit_object, optimise
from deuteron.backend.llvm.loader import LoadedObject, load_object
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.frontend import lower_function
from deuteron.interpreter import run_module
from deuteron.ir.text import parse_module
from deuteron.language.functions.function import Function
from deuteron.machine.tile import TILES_OF_CPU
from deuteron.options import CPUOptions
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes

CPUS = ("native", "x86-64-v3")
# Of the CPU whose code is read: one, so that what the tests find in it does not depend on where they run.
READ_CPU = "x86-64-v4"
TYPES = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "bool": "i1",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}
TOLERANCES = {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}
ALIGNMENT = 64
_libc = ctypes.CDLL(None)


def guarded_copy(array: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy whose memory ends, or begins, at a page without access."""
    page = mmap.PAGESIZE
    num_bytes = max(-(-array.nbytes // page), 1) * page
    memory = mmap.mmap(-1, num_bytes + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for guard in (start, start + page + num_bytes):
        assert _libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) == 0
    offset = page + (num_bytes - array.nbytes if at_end else 0)
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy


def tile_ir(kernel: Callable, args: Sequence, constexprs: dict):
    """The kernel's tile IR after the tile passes."""
    function = kernel if isinstance(kernel, Function) else Function(kernel)
    names = [name for name in function.signature.parameters if name not in constexprs]
    module = lower_function(function, dict(zip(names, map(_type_of, args), strict=True)), constexprs, {})
    run_passes(module, tile_passes(TILES_OF_CPU))
    return module


def _type_of(arg) -> str:
    if isinstance(arg, np.ndarray):
        return "*" + TYPES[arg.dtype.name]
    return "i1" if isinstance(arg, bool) else "i32" if isinstance(arg, int) else "fp32"


def lower(module, cpu: str = READ_CPU, **options) -> lowering.LoweredKernel:
    name, features = resolve_cpu(cpu)
    return lowering.lower_module(module, "kernel", name, features, CPUOptions(**options))


@dataclass(frozen=True)
class Code:
    """A compiled kernel in memory."""

    loaded: LoadedObject
    scratch_bytes: int

    def run(self, args: Sequence, grid: tuple[int, ...]) -> None:
        """Run all programs on this thread, in scratch memory full of NaN."""
        signature = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p
        )
        scratch = np.full(self.scratch_bytes + ALIGNMENT, 0xFF, np.uint8)
        held = [_held(arg) for arg in args]
        addresses = (ctypes.c_void_p * (len(held) + 1))(*map(ctypes.addressof, held), None)
        sizes = (ctypes.c_uint32 * 3)(*grid, *(1,) * (3 - len(grid)))
        aligned = -(-scratch.ctypes.data // ALIGNMENT) * ALIGNMENT
        signature(self.loaded.address("kernel"))(
            ctypes.addressof(addresses), ctypes.addressof(sizes), 0, int(np.prod(grid)), aligned
        )


def compiled(module, cpu: str, **options) -> Code:
    name, features = resolve_cpu(cpu)
    lowered = lower(module, cpu, **options)
    obj = emit_object(optimise(lowered.llir, name, features), name, features)
    return Code(load_object(obj, ["kernel"]), lowered.scratch_bytes)


def run_compiled(module, args: Sequence, grid: tuple[int, ...], cpu: str, **options) -> None:
    compiled(module, cpu, **options).run(args, grid)


def _held(arg):
    """An argument in memory, as the kernel takes it."""
    if isinstance(arg, np.ndarray):
        return ctypes.c_void_p(arg.ctypes.data)
    if isinstance(arg, bool):
        return ctypes.c_uint8(arg)
    return ctypes.c_int64(arg) if isinstance(arg, int) else ctypes.c_float(arg)


def check_equal(actual: np.ndarray, expected: np.ndarray, tolerance: float | None = None) -> None:
    """Integers equal, floats as near as their format allows (0: equal), relative to the largest."""
    name = expected.dtype.name
    tolerance = TOLERANCES.get(name, 0) if tolerance is None else tolerance
    if not tolerance or name not in TOLERANCES:
        np.testing.assert_array_equal(actual, expected)
        return
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=1e-30)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.fixture
def compare(request: pytest.FixtureRequest):
    """Run a kernel in the interpreter and compiled for CPUs, in `make test` for one of them, by lot; arrays are equal
    after it. Returns the arrays. What a test compares on several data is compiled once.
    """
    modules, codes = {}, {}

    def run(kernel: Callable, args: Sequence, constexprs=None, grid=(1,), cpus=CPUS, tolerance=None) -> list:
        key = kernel, tuple(map(_type_of, args)), repr(constexprs)
        if key not in modules:
            modules[key] = tile_ir(kernel, args, constexprs or {})
        expected = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        run_module(modules[key], expected, (*grid, *(1,) * (3 - len(grid))))
        for number, cpu in drawn(request.node, [*enumerate(cpus)]):
            actual = [guarded_copy(a, number % 2 == 0) if isinstance(a, np.ndarray) else a for a in args]
            if (key, resolve_cpu(cpu)) not in codes:
                codes[key, resolve_cpu(cpu)] = compiled(modules[key], cpu)
            codes[key, resolve_cpu(cpu)].run(actual, grid)
            for one, other in zip(actual, expected, strict=True):
                if isinstance(one, np.ndarray):
                    check_equal(one, other, tolerance)
        return expected

    return run


@pytest.fixture
def run_in_place():
    """Run a kernel compiled for a CPU with the arrays as they are, wherever they lie."""

    def run(kernel: Callable, args: Sequence, constexprs: dict, cpu: str) -> None:
        run_compiled(tile_ir(kernel, args, constexprs), args, (1,), cpu)

    return run


@pytest.fixture
def bfloat16():
    return ml_dtypes.bfloat16


@pytest.fixture
def lower_text():
    """Lower the text of a module."""
    return lambda text: lower(parse_module(text))


@pytest.fixture
def lower_python():
    """`tile_ir`."""
    return tile_ir


@pytest.fixture
def lower_module():
    """`lower`."""
    return lower
