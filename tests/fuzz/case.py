"""A program of the fuzzer: the source of a kernel, its arguments, its grid and its options.

    case = Case(1, source, (Argument("x", "float32", 64, "normal", 7), Argument("n", "int32", None, 5)), (2,), {})
    arrays = case.arrays()

Arrays come from seeds, so that a case is a page of text; `text` is that page as a program that shows the difference.
Arrays lie between guards, which no kernel may touch.
"""

from __future__ import annotations

import importlib.util
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from deuteron.dtypes import FLOATS

GUARD = 64
POISON = 0xA5

FP8 = tuple(declared.name for declared in FLOATS if declared.bits == 8)
STORAGE = {"int1": "uint8", "bfloat16": "uint16", **dict.fromkeys(FP8, "uint8")}
SIGNATURE = {"int1": "i1", **{declared.name: declared.signature for declared in FLOATS if declared.bits <= 16}}
MANTISSA = {declared.name: declared.mantissa_bits for declared in FLOATS}
EXPONENT = {declared.name: declared.exponent_bits for declared in FLOATS}
BITS = {
    **{f"int{n}": n for n in (1, 8, 16, 32, 64)},
    **{f"uint{n}": n for n in (8, 16, 32, 64)},
    **{name: 1 + MANTISSA[name] + EXPONENT[name] for name in MANTISSA},
}


@dataclass(frozen=True)
class Argument:
    """An array of `size` elements filled by `fill` and `seed`; without a size a number, which is `fill`.

    fill  what an array holds
    special  the edges of the type, and random bits: NaN, infinities, zeros of both signs, denormals, extremes
    normal   numbers of an order of magnitude around 1; integers of some hundreds
    small    whole numbers from -4 to 4, sums of which floats hold exactly
    index    integers from 0 to `bound` - 1
    unique   a permutation of 0 ... `bound` - 1, again and again
    zeros, ones, arange, poison
    numbers, in a tuple: these, again and again
    """

    name: str
    dtype: str
    size: int | None
    fill: Any
    seed: int = 0
    bound: int = 0

    def array(self) -> np.ndarray:
        """Between guards, at a multiple of 64 bytes."""
        dtype = np.dtype(STORAGE.get(self.dtype, self.dtype))
        nbytes = self.size * dtype.itemsize
        space = np.full(nbytes + 2 * GUARD + 64, POISON, np.uint8)
        begin = GUARD + -(space.ctypes.data + GUARD) % 64
        array = space[begin : begin + nbytes].view(dtype)
        if self.fill != "poison":
            array[:] = fill(self.dtype, self.size, self.fill, self.seed, self.bound)
        return array


def fill(dtype: str, size: int, kind: Any, seed: int, bound: int = 0) -> np.ndarray:
    """The elements of an array as they lie in memory."""
    rng = np.random.default_rng(seed)
    if isinstance(kind, tuple):
        return np.resize(kind, size).astype(STORAGE.get(dtype, dtype))
    if kind == "index":
        return rng.integers(0, bound, size)
    if kind == "unique":
        return np.concatenate([rng.permutation(bound) for _ in range(-(-size // bound))])[:size]
    if kind in ("zeros", "ones"):
        return encode(np.full(size, float(kind == "ones")), dtype)
    if kind == "arange":
        return encode(np.arange(size, dtype=np.float64), dtype)
    if dtype == "int1":
        return rng.integers(0, 2, size).astype(np.uint8)
    if kind == "small":
        return encode(rng.integers(0 if dtype[0] == "u" else -4, 5, size).astype(np.float64), dtype)
    if kind == "normal":
        wide = rng.standard_normal(size) * (100 if "int" in dtype else 1)
        with np.errstate(all="ignore"):
            return encode(np.abs(wide) if dtype[0] == "u" else wide, dtype)
    return _special(dtype, size, rng)


def _special(dtype: str, size: int, rng: np.random.Generator) -> np.ndarray:
    storage = np.dtype(STORAGE.get(dtype, dtype))
    bits = 8 * storage.itemsize
    random = rng.integers(0, 256, size * storage.itemsize, np.uint8).view(f"uint{bits}")
    edges = _integer_edges(bits) if dtype not in MANTISSA else _float_edges(dtype)
    chosen = np.array(edges, dtype=object)[rng.integers(0, len(edges), size)]
    chosen = np.array([int(bit) & (1 << bits) - 1 for bit in chosen], f"uint{bits}")
    usual = fill(dtype, size, "normal", int(rng.integers(1 << 30))).astype(storage).view(f"uint{bits}")
    return (
        np.choose(rng.choice(3, size, p=[0.2, 0.35, 0.45]), [random, chosen, usual]).astype(f"uint{bits}").view(storage)
    )


def _integer_edges(bits: int) -> list[int]:
    half = 1 << bits - 1
    return [0, 1, 2, 3, 7, -1, -2, half, half - 1, half + 1, bits - 1, bits]


def _float_edges(dtype: str) -> list[int]:
    """Bit patterns: zeros, denormals, the least and largest normal numbers, ones, infinities or the last codes, NaN."""
    mantissa, exponent = MANTISSA[dtype], EXPONENT[dtype]
    sign, infinity = 1 << mantissa + exponent, (1 << exponent) - 1 << mantissa
    one = (1 << exponent - 1) - 1 << mantissa
    found = [0, 1, (1 << mantissa) - 1, 1 << mantissa, one, one + 1, one + (1 << mantissa), infinity - 1, infinity]
    return [bits | flag for bits in [*found, infinity | 1 << mantissa - 1] for flag in (0, sign)]


def encode(wide: np.ndarray, dtype: str) -> np.ndarray:
    """float64 -> what lies in memory."""
    if dtype in MANTISSA:
        from deuteron.interpreter.values import round_float, to_storage

        type = ir_type(dtype)
        return to_storage(round_float(wide, type), type)
    if dtype == "int1":
        return (wide != 0).astype(np.uint8)
    return wide.astype(np.int64).astype(STORAGE.get(dtype, dtype))


def decode(stored: np.ndarray, dtype: str) -> np.ndarray:
    """What lies in memory, floats as float64."""
    if dtype not in MANTISSA:
        return stored
    from deuteron.interpreter.values import from_storage

    return np.asarray(from_storage(stored, ir_type(dtype)), np.float64)


def ir_type(dtype: str):
    from deuteron.ir import types

    return next(type for type, declared in types.FLOAT_TYPES.items() if declared.name == dtype)


@dataclass(frozen=True)
class Case:
    """`source` defines `kernel` and the functions that it calls; `edits` change its tile IR (`ir_edits.py`); `original`
    is what it was rewritten from (`rewrites`), with the first of its arguments."""

    seed: int
    source: str
    arguments: tuple[Argument, ...]
    grid: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    edits: tuple[int, ...] = ()
    original: Case | None = None

    def with_(self, **changes: Any) -> Case:
        return replace(self, **changes)

    def values(self) -> list[Any]:
        """Fresh arguments: arrays and numbers."""
        return [a.fill if a.size is None else a.array() for a in self.arguments]

    def function(self):
        """The kernel, of a module of its own."""
        with tempfile.NamedTemporaryFile("w", suffix=".py", prefix="fuzzed_", delete=False) as file:
            file.write(HEADER + self.source)
        spec = importlib.util.spec_from_file_location(Path(file.name).stem, file.name)
        module = importlib.util.module_from_spec(spec)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a shrunk program may compare or index what it should not
            spec.loader.exec_module(module)
        return module.kernel

    def text(self, title: str) -> str:
        """A stand-alone program that launches the kernel on an executor and in the interpreter, and compares."""
        arguments = "\n".join(f"    {argument!r}," for argument in self.arguments)
        quoted = "\n".join(f"#     {line}".rstrip() for line in title.splitlines())
        return REPRODUCER.format(
            title=quoted,
            source=HEADER + self.source,
            arguments=arguments,
            grid=self.grid,
            options=self.options,
            seed=self.seed,
            edits=self.edits,
        )


HEADER = """import deuteron as triton
import deuteron.language as tl


"""

REPRODUCER = '''"""Found by the fuzzer. From the root of the repository: PYTHONPATH=. python FILE [EXECUTOR ...]"""
# What happened:
{title}
{source}

if __name__ == "__main__":
    import sys
    from pathlib import Path

    from tests.fuzz.case import Argument, Case
    from tests.fuzz.campaign import show

    arguments = (
{arguments}
    )
    source = Path(__file__).read_text().partition("import deuteron.language as tl\\n")[2].partition("\\nif __name__")[0]
    show(Case({seed}, source, arguments, {grid}, {options}, {edits}), sys.argv[1:])
'''
