"""The time to lower and the code grow with the ops of a kernel, not with the paths through them.

A tile that is used twice at each of forty steps is reached by a trillion paths. What is forgotten here does not fail,
it does not end; where it multiplies more slowly, the code of a kernel twice as long shows it.
"""

from __future__ import annotations

import importlib.util
from collections import Counter

import numpy as np
import pytest
from processor_time import slowness, used

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.backend.cpu.plan import ops
from deuteron.backend.llvm.compile import optimise

X = np.zeros(1, np.int32)
FLAT = ["i = tl.arange(0, 256)", "v = tl.load(A + i)"]
SQUARE = ["i = tl.arange(0, 16)", "at = i[:, None] * 16 + i[None, :]", "v = tl.load(A + at)"]


def diamonds(depth: int) -> list[str]:
    return [*FLAT, *["v = (v ^ (v >> 1)) + v"] * depth, "tl.store(O + i, v)"]


def transposed_diamonds(depth: int) -> list[str]:
    return [*SQUARE, *["v = v ^ (tl.trans(v) >> 1)"] * depth, "tl.store(O + at, v)"]


def crossing(depth: int) -> list[str]:
    """Eight tiles, each made of two neighbours at every step."""
    names = range(8)
    lines = ["i = tl.arange(0, 256)", *(f"v{k} = tl.load(A + i + {k})" for k in names)]
    for _ in range(depth):
        lines += [f"u{k} = v{k} ^ (v{(k + 1) % 8} >> 1)" for k in names]
        lines += [f"v{k} = u{k}" for k in names]
    return lines + [f"tl.store(O + 256 * {k} + i, v{k})" for k in names]


def uniform_steps(depth: int) -> list[str]:
    """A pointer that a loop advances by what takes long to compute."""
    lines = ["i = tl.arange(0, 64)", "p = A + i", "s = tl.full((64,), 1, tl.int32) + n", *["s = s ^ (s + 1)"] * depth]
    return [*lines, "for _ in range(n):", "    tl.store(O + i, tl.load(p))", "    p = p + (s & 1)"]


def reductions(depth: int) -> list[str]:
    return [*FLAT, *["v = v ^ (tl.sum(v) + v)"] * depth, "tl.store(O + i, v)"]


def views(depth: int) -> list[str]:
    step = ["a, b = tl.split(tl.reshape(v, (128, 2)))", "v = tl.reshape(tl.join(a + b, a ^ b), (256,))"]
    return [*FLAT, *step * depth, "tl.store(O + i, v)"]


def loops(depth: int) -> list[str]:
    return [
        *FLAT,
        *["for _ in range(n):", "    v = v ^ (v >> 1)", "    v = v + (v << 1)"] * depth,
        "tl.store(O + i, v)",
    ]


def branches(depth: int) -> list[str]:
    return [*FLAT, *["if n > 1:", "    v = v ^ (v >> 1)", "    v = v + (v << 1)"] * depth, "tl.store(O + i, v)"]


def windows(depth: int) -> list[str]:
    """The largest of shifted tiles, as in a pooling."""
    lines = ["r, q = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]", "m = tl.full((32, 32), 0, tl.int32)"]
    for k in range(depth):
        mask = f"(r + {k} < n) & (q + {k} < n)"
        lines += [f"m = tl.maximum(m, tl.load(A + (r + {k}) * n + q + {k}, mask={mask}, other=0))"]
    return [*lines, "tl.store(O + r * 32 + q, m)"]


def quotients(depth: int) -> list[str]:
    steps = [f"tl.store(O + {k} * n + i, tl.load(A + i // {k + 3} + i % {k + 3} * n))" for k in range(depth)]
    return ["i = tl.arange(0, 256)", *steps]


SHAPES = [diamonds, transposed_diamonds, crossing, uniform_steps, reductions, views, loops, branches, windows]


@pytest.fixture
def kernel(tmp_path):
    def make(lines: list[str]):
        path = tmp_path / f"wide_{len(lines)}.py"
        body = "".join(f"    {line}\n" for line in lines)
        path.write_text(f"import deuteron.language as tl\ndef kernel(A, O, n):\n{body}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel

    return make


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_twice_the_ops_are_twice_the_visits_and_the_code(kernel, lower_python, lower_module, monkeypatch, shape):
    visits = 0
    declared = ops.declared

    def counted(*args):
        nonlocal visits
        visits += 1
        return declared(*args)

    monkeypatch.setattr(ops, "declared", counted)
    found = []
    for depth in (6, 12, 24):
        visits = 0
        code = lower_module(lower_python(kernel(shape(depth)), [X, X, 3], {})).llir
        found.append((visits, len(code)))
    for before, after in zip(found, found[1:], strict=False):
        assert all(b <= 2.3 * a for a, b in zip(before, after, strict=True)), found


def counted_on(num_loops: int) -> list[str]:
    """Each `while` counts on from where the one before it ended, which is the larger of that and its own limit."""
    loops = (
        f"while j < n + {k}:\n        v = v * 2 + tl.load(A + j * {k} + i)\n        j += 1" for k in range(num_loops)
    )
    return ["i = tl.arange(0, 256)", "v = tl.load(A + i)", "j = 0", *loops, "tl.store(O + i, v)"]


@pytest.mark.long
def test_what_loops_count_on_from_is_not_looked_into_without_end(kernel, lower_python, lower_module):
    """8 s, and 60 where the expressions for the first number of each loop may have thousands of ops."""
    llir = lower_module(lower_python(kernel(counted_on(96)), [X, X, 3], {})).llir
    begin = used()
    optimise(llir, "x86-64-v3")
    assert (used() - begin) / slowness() < 20


@pytest.mark.parametrize("shape", [diamonds, crossing, reductions], ids=lambda shape: shape.__name__)
def test_wide_kernels_compute_what_they_say(compare, rng, kernel, shape):
    arrays = [rng.integers(0, 99, 4096).astype(np.int32), np.zeros(4096, np.int32)]
    compare(kernel(shape(40 if shape is diamonds else 6)), [*arrays, 3])


def test_the_function_is_analysed_once(kernel, lower_python, lower_module, monkeypatch):
    """Not once for each nest that divides indices."""
    visits = Counter()
    visit = AxisInfoAnalysis.visit

    def counted(self, op, *taken):
        visits[op] += 1
        return visit(self, op, *taken)

    module = lower_python(kernel(quotients(12)), [X, X, 3], {})
    monkeypatch.setattr(AxisInfoAnalysis, "visit", counted)
    lower_module(module)
    assert visits and max(visits.values()) <= 2


def test_no_depth_is_too_deep(kernel, lower_python, lower_module):
    assert lower_module(lower_python(kernel(diamonds(400)), [X, X, 3], {})).llir
