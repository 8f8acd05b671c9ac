"""A PTX program with its launch and the result that NumPy computes, to be run by the emulator and by a GPU.

    elementwise("add.s32", "add.s32 d, a, b;", "s32", {"a": x, "b": y}, x + y)

Every case makes its data from a generator, so that pytest and the comparison with a GPU use fresh data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

HEADER = ".version 8.6\n.target {target}\n.address_size 64\n"
REGISTER_TYPES = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}


@dataclass
class Run:
    """The arguments of one launch; `expected` gives the wanted contents of some of them by position."""

    args: list
    expected: Mapping[int, np.ndarray]


@dataclass
class Case:
    """`make(rng)` gives fresh data. `tolerance` is relative, of small values absolute; 0: equal bits."""

    name: str
    ptx: str
    make: Callable[[np.random.Generator], Run]
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (128,)
    shared: int = 0
    cluster: tuple[int, ...] | None = None
    tolerance: float = 0.0
    gpu_tolerance: float | None = None


def kernel(body: str, params: Sequence[str], declarations: str = "", target: str = "sm_90a", module: str = "") -> str:
    """A PTX module with one entry `k`; `params` like `.u64 x`."""
    listed = ",\n".join(f"  .param {param}" for param in params)
    return (
        HEADER.format(target=target)
        + module
        + f"\n.visible .entry k(\n{listed}\n)\n{{\n{declarations}\n{body}\n  ret;\n}}\n"
    )


def global_pointers(names: Sequence[str]) -> str:
    """`.reg` and loads for pointer parameters `p_x` into registers `x`."""
    declared = "  .reg .b64 " + ", ".join(names) + ";\n"
    return declared + "".join(f"  ld.param.u64 {name}, [p_{name}];\n" for name in names)


def elementwise(
    name: str,
    lines: str,
    result: np.dtype | type,
    make: Callable[[np.random.Generator], tuple[dict[str, np.ndarray], np.ndarray]],
    tolerance: float = 0.0,
    gpu_tolerance: float | None = None,
) -> Case:
    """Every thread loads one element of each input into the register of its name, runs `lines`, stores register `d`.

    Inputs are named a, b, c, ... and bool inputs become predicates; a bool result is predicate `d`.
    """
    sample, _ = make(np.random.default_rng(0))
    count = len(next(iter(sample.values())))
    ptx = _elementwise_kernel(lines, {key: values.dtype for key, values in sample.items()}, np.dtype(result))

    def run(rng: np.random.Generator) -> Run:
        inputs, expected = make(rng)
        output = np.full(count, 0xAB, np.uint8).repeat(np.dtype(result).itemsize).view(result)
        output = np.zeros(count, bool) if np.dtype(result).kind == "b" else output
        with np.errstate(over="ignore"):
            return Run([*inputs.values(), output], {len(inputs): np.asarray(expected).astype(result, copy=False)})

    return Case(name, ptx, run, block=(count,), tolerance=tolerance, gpu_tolerance=gpu_tolerance)


def _elementwise_kernel(lines: str, inputs: Mapping[str, np.dtype], result: np.dtype) -> str:
    names = [*inputs, "out"]
    body = global_pointers([f"q{name}" for name in names])
    body += (
        "  .reg .b32 tid; .reg .b64 at; .reg .b16 byte; .reg .pred p, q; .reg .b32 t0, t1, t2, t3; .reg .b64 w0, w1;\n"
    )
    body += "  mov.u32 tid, %tid.x;\n"
    for name, dtype in inputs.items():
        body += _load(name, dtype)
    body += _declare("d", result) + f"  {lines}\n" + _store(result)
    return kernel(body, [f".u64 p_q{name}" for name in names])


def _declare(name: str, dtype: np.dtype) -> str:
    return f"  .reg .{'pred' if dtype.kind == 'b' else REGISTER_TYPES[dtype.itemsize]} {name};\n"


def _address(name: str, dtype: np.dtype) -> str:
    return f"  mul.wide.u32 at, tid, {dtype.itemsize};\n  add.s64 at, at, q{name};\n"


def _load(name: str, dtype: np.dtype) -> str:
    text = _declare(name, dtype) + _address(name, dtype)
    if dtype.kind == "b":
        return text + f"  ld.global.u8 byte, [at];\n  setp.ne.u16 {name}, byte, 0;\n"
    return text + f"  ld.global.{'u' if dtype.itemsize == 1 else 'b'}{8 * dtype.itemsize} {name}, [at];\n"


def _store(dtype: np.dtype) -> str:
    if dtype.kind == "b":
        return _address("out", dtype) + "  selp.b16 byte, 1, 0, d;\n  st.global.b8 [at], byte;\n"
    return _address("out", dtype) + f"  st.global.b{8 * dtype.itemsize} [at], d;\n"


def check(case: Case, run: Run, tolerance: float | None = None) -> None:
    """Compare the outputs of a run with what is expected."""
    tolerance = case.tolerance if tolerance is None else tolerance
    for position, expected in run.expected.items():
        found = run.args[position]
        if tolerance == 0:
            assert_same(found, expected, case.name)
        else:
            assert_close(found, expected, tolerance, case.name)


def assert_same(found: np.ndarray, expected: np.ndarray, name: str) -> None:
    same = found == expected
    if found.dtype.kind == "f":
        same &= np.signbit(found) == np.signbit(expected)
        same |= np.isnan(found) & np.isnan(expected)
    bad = np.flatnonzero(~same.reshape(-1))
    flat = found.reshape(-1), expected.reshape(-1)
    assert not len(bad), f"{name}: {len(bad)} differ, first at {bad[0]}: {flat[0][bad[0]]} for {flat[1][bad[0]]}"


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float, name: str) -> None:
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    assert (np.isnan(found) == np.isnan(expected)).all(), name
    finite = np.isfinite(expected)
    assert (found[~finite & ~np.isnan(expected)] == expected[~finite & ~np.isnan(expected)]).all(), name
    scale = np.maximum(np.abs(expected[finite]), 1.0) if finite.any() else np.ones(1)
    error = np.abs(found[finite] - expected[finite]) / scale
    assert not error.size or error.max() <= tolerance, f"{name}: relative error {error.max():.3g} > {tolerance:.3g}"
