"""map_elementwise: functions with branches and loops of their own for each element, of one or two tiles, in packs."""

from __future__ import annotations

from tests.fuzz.generator.builder import INTEGERS, Builder, Value, statement_of

BODIES = {
    "branch": "if a > b:\n        a = a - b\n    return a",
    "nested": "if a > b:\n        return a + b\n    if a == b:\n        return a * 0\n    return b - a",
    "loop": "n = 0\n    while (a > 3) & (n < 20):\n        a, n = (a // 2).to(a.dtype), n + 1\n    return a + b",
}


@statement_of("map")
def map_elementwise(b: Builder) -> None:
    dtype = b.dtype((*INTEGERS, "float32", "float64"))
    kind = b.rng.choice(("branch", "nested", "loop") if dtype in INTEGERS else ("branch", "nested"))
    name, shape = b.name("mapped"), b.shape(1)
    b.function(f"def {name}(a, b):\n    {BODIES[kind]}")
    x, y = b.value(dtype, shape), b.value(dtype, shape)
    b.define(f"tl.map_elementwise({name}, {x}, {y}).to(tl.{dtype})", dtype, shape)


@statement_of("map")
def map_packs(b: Builder) -> None:
    """Several results; each element by itself, so that it does not matter which come together."""
    dtype, pack = b.dtype((*INTEGERS, "float32")), b.rng.choice((2, 3, 4))
    name, shape = b.name("packed"), b.shape(1)
    first, second = [f"a{n}" for n in range(pack)], [f"b{n}" for n in range(pack)]
    results = [*(f"a{n} + b{n}" for n in range(pack)), *(f"tl.where(a{n} > b{n}, a{n}, b{n})" for n in range(pack))]
    b.function(f"def {name}({', '.join([*first, *second])}):\n    return {', '.join(results)}")
    x, y = b.value(dtype, shape), b.value(dtype, shape)
    left, right = b.name(), b.name()
    b.emit(f"{left}, {right} = tl.map_elementwise({name}, {x}, {y}, pack={pack})")
    for result in (left, right):
        b.add_to_scope(Value(result, dtype, shape))


@statement_of("map")
def map_mixed(b: Builder) -> None:
    """Three tiles of three types, results of two, loops and branches within."""
    shape, name = b.shape(1), b.name("mixed")
    dtypes = (b.dtype(INTEGERS), b.dtype(("float32", "float64")), b.dtype(("int32", "uint8", "int64")))
    x, y, z = (b.value(dtype, shape) for dtype in dtypes)
    b.function(
        f"def {name}(a, f, n):\n    k = n & 7\n    while k > 0:\n        if f > 1.0:\n            f = f * 0.5\n"
        "        else:\n            a = a ^ (a >> 1)\n        k = k - 1\n    return a, f"
    )
    results = b.name(), b.name()
    b.emit(f"{results[0]}, {results[1]} = tl.map_elementwise({name}, {x}, {y}, {z})")
    for result, dtype in zip(results, dtypes[:2], strict=True):
        b.add_to_scope(Value(result, dtype, shape))
