"""What passes do grows with the ops of a kernel, not with their square: counted, for n and 2 n of something."""

from __future__ import annotations

import importlib.util
from collections import Counter

import pytest

from deuteron.analysis.aliasing import global_hazards, known_effects
from deuteron.analysis.aliasing.global_hazards import GlobalHazards
from deuteron.backend import get_backend, parse_target
from deuteron.backend.stage import Unit
from deuteron.compiler import ASTSource
from deuteron.compiler.driver import begin_walk
from deuteron.ir import builder
from deuteron.passes.gpu import batch_loads
from deuteron.passes.gpu.layouts import homes
from deuteron.passes.gpu.operands import load_once
from deuteron.passes.gpu.pipelining import pipeline_loads
from deuteron.passes.tile import eliminate_dead_code

HEAD = "import deuteron as triton\nimport deuteron.language as tl\n\n\n@triton.jit\ndef k(x, y, n):\n"
TILE = "i = tl.arange(0, 128)"
MATRIX = "i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]"


def branches(count):
    """The last `elif` is in all the others."""
    others = [f"elif n == {c}:\n        v = tl.load(x + {c})" for c in range(count)]
    return ["v = tl.load(x)", "if n < 0:\n        v = tl.load(y)", *others, "tl.store(y, v)"]


KERNELS = {
    "stores": lambda count: [f"tl.store(x + {2 * c}, tl.load(x + {2 * c + 1}))" for c in range(count)],
    "loads": lambda count: [TILE, *(f"tl.store(y + {c} * n + i, tl.load(x + {c} * n + i))" for c in range(count))],
    "dots": lambda count: [
        MATRIX,
        "a = tl.zeros((16, 16), tl.float32)",
        *(f"a = tl.dot(tl.load(x + {c} * n + i), tl.load(x + {c} + i), a)" for c in range(count)),
        "tl.store(y + i, a)",
    ],
    "loops": lambda count: [
        TILE,
        *(f"for j in range(n):\n        tl.store(y + {c} * n + i, tl.load(x + j * {c} + i))" for c in range(count)),
    ],
    "nested": lambda count: [
        "a = 0.0",
        *("    " * c + f"for j{c} in range(n):" for c in range(count)),
        "    " * count + "a += tl.load(x + j0)",
        "    " * count + "tl.store(x + n, a)",
    ],
    "branches": branches,
    "chained": lambda count: [
        TILE,
        "a = tl.load(x + i)",
        *(f"a = a * {c % 7 + 2} + tl.load(y + {c * c} * n + i)" for c in range(count)),
        "tl.store(x + i, a)",
    ],
    "in_vain": lambda count: [
        line
        for c in range(count)
        for line in ("last = 0", f"if n > {c}:", f"    tl.store(x + {c}, 1.0)", f"    last = {c} + n")
    ],
}


@pytest.fixture
def compile_to_llir(tmp_path):
    def compile_(name: str, count: int) -> None:
        path = tmp_path / f"{name}{count}.py"
        path.write_text(HEAD + "".join(f"    {line}\n" for line in KERNELS[name](count)))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        source = ASTSource(fn=module.k, signature={"x": "*fp16", "y": "*fp16", "n": "i32"}, constexprs={})
        target = parse_target("cuda:90")
        backend = get_backend(target)
        walk = begin_walk(backend, source, Unit("", "", target, backend.make_options({})))
        for stage in backend.stages[:3]:
            walk.run_stage(stage)

    return compile_


@pytest.fixture
def count_calls(monkeypatch):
    """Counts the calls of what is an attribute of something."""
    counts = Counter()

    def count(owner: object, name: str) -> None:
        called = getattr(owner, name)

        def counted(*args, **kwargs):
            counts[name] += 1
            return called(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    count.of = counts
    return count


@pytest.mark.parametrize(
    ("kernel", "owner", "name", "sizes"),
    [
        ("stores", GlobalHazards, "_conflict", (40, 80)),
        ("loads", batch_loads, "load_cost", (15, 30)),
        ("in_vain", eliminate_dead_code, "own_effects", (15, 30)),
        ("branches", known_effects, "own_effects", (15, 30)),
        ("branches", builder, "is_unknown", (15, 30)),
        ("chained", homes, "is_flexible", (30, 60)),
    ],
)
def test_asked_of_each_op(compile_to_llir, count_calls, monkeypatch, kernel, owner, name, sizes):
    monkeypatch.setattr(global_hazards, "MOST_PENDING", 16)
    count_calls(owner, name)
    found = []
    for size in sizes:
        count_calls.of.clear()
        compile_to_llir(kernel, size)
        found.append(count_calls.of[name])
    assert 0 < found[1] < 2.3 * found[0]


@pytest.mark.parametrize(
    ("kernel", "owner", "most"), [("dots", load_once, 1), ("loops", pipeline_loads, 0), ("dots", pipeline_loads, 0)]
)
def test_analyses_of_the_whole_kernel(compile_to_llir, count_calls, kernel, owner, most):
    count_calls(owner, "AxisInfoAnalysis")
    compile_to_llir(kernel, 8)
    assert count_calls.of["AxisInfoAnalysis"] <= most


def test_loops_in_loops(compile_to_llir, count_calls):
    """Ten of them took 10,000 comparisons, each further one twice as many."""
    count_calls(GlobalHazards, "_conflict")
    compile_to_llir("nested", 10)
    assert 0 < count_calls.of["_conflict"] < 1500
