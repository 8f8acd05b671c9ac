"""Calls of functions: several results, tuples that are passed and taken apart, constants, branches inside."""

from __future__ import annotations

from tests.fuzz.generator.builder import FLOATS, INTEGERS, Builder, Value, statement_of

NUMBERS = (*INTEGERS, *FLOATS)


@statement_of("call")
def two_results(b: Builder) -> None:
    dtype, shape, name = b.dtype(NUMBERS), b.shape(), b.name("both")
    first, second = b.rng.sample(("a + b", "a - b", "a * b", "tl.maximum(a, b)", "b", "tl.where(a < b, a, b)"), 2)
    b.function(f"def {name}(a, b):\n    c = {first}\n    return c, {second}", is_inlined=b.chance(0.8))
    x, y = b.value(dtype, shape), b.value(dtype, shape)
    results = b.name(), b.name()
    b.emit(f"{results[0]}, {results[1]} = {name}({x}, {y})")
    for result in results:
        b.add_to_scope(Value(result, dtype, shape))


@statement_of("call")
def tuple_argument(b: Builder) -> None:
    dtype, shape, name = b.dtype(NUMBERS), b.shape(), b.name("of_pair")
    b.function(f"def {name}(pair, k: tl.constexpr):\n    a, b = pair\n    return (b, a) if k else (a, a + b)")
    x, y = b.value(dtype, shape), b.value(dtype, shape)
    pair = b.name("t")
    b.emit(f"{pair} = {name}(({x}, {y}), {b.rng.choice((0, 1))})")
    b.define(f"{pair}[{b.rng.choice((0, 1))}]", dtype, shape)


@statement_of("call")
def branch_inside(b: Builder) -> None:
    dtype, shape, name = b.dtype(NUMBERS), b.shape(), b.name("branch")
    early = b.chance(0.5)
    body = (
        "    if c:\n        return a + b\n    return a - b"
        if early
        else "    if c:\n        a = a * b\n    else:\n        a = tl.minimum(a, b)\n    return a"
    )
    b.function(f"def {name}(a, b, c):\n{body}")
    x, y, condition = b.value(dtype, shape), b.value(dtype, shape), b.value("int1", ())
    b.define(f"{name}({x}, {y}, {condition})", dtype, shape)


@statement_of("call")
def loop_inside(b: Builder) -> None:
    dtype, shape, name = b.dtype(NUMBERS), b.shape(), b.name("repeat")
    unroll = b.rng.choice(("range", "tl.static_range"))
    b.function(f"def {name}(a, b, n: tl.constexpr):\n    for k in {unroll}(n):\n        a = a * b + a\n    return a")
    b.define(f"{name}({b.value(dtype, shape)}, {b.value(dtype, shape)}, {b.rng.choice((0, 1, 3))})", dtype, shape)


@statement_of("call")
def return_from_a_loop(b: Builder) -> None:
    dtype, shape, name = b.dtype(NUMBERS), b.shape(), b.name("until")
    header = b.rng.choice(("for k in range(n):", "for k in tl.static_range(3):", "while True:", "while k + 1 < n:"))
    count = "        k += 1\n" if "while" in header else ""
    bodies = (
        "        if k >= m:\n            return a + b, k\n        a = a + b\n",
        "        a = a + b\n        if k == m:\n            continue\n        if k > 1:\n            return b, m\n",
        "        if k > 0:\n            if k > m:\n                return a, n\n            a = b\n        b = a + a\n",
    )
    body = b.rng.choice(bodies)
    end = "        if k > 3:\n            break\n" if header == "while True:" else ""
    b.function(f"def {name}(a, b, m, n):\n    k = -1\n    {header}\n{count}{end}{body}    return a, -1")
    x, y = b.value(dtype, shape), b.value(dtype, shape)
    m, n = b.number("int32", b.rng.randint(-1, 4)), b.number("int32", b.rng.randint(0, 3))
    results = b.name(), b.name()
    b.emit(f"{results[0]}, {results[1]} = {name}({x}, {y}, {m}, {n})")
    b.add_to_scope(Value(results[0], dtype, shape))
    b.add_to_scope(Value(results[1], "int32", ()))
