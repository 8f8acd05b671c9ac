"""A long function in pieces computes what it did, whatever its loops, branches and ways out are."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from processor_time import slowness, used

from deuteron.backend.llvm import pieces
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.compile import emit_object, optimise
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.pieces import MOST, cut_into_pieces
from deuteron.backend.llvm.types import Value, const

NUM_VARIABLES = 4
MASK = (1 << 64) - 1


def draw_body(rng, depth: int, length: int) -> list:
    """Statements: (i, j, k) for v[i] = v[j] * 3 + v[k]; loops, branches, and ways out, which have bodies."""
    kinds = ["set", "set", "loop", "if", "leave"] if depth else ["set", "set", "leave"]
    body = []
    for kind in rng.choice(kinds, length):
        variables = tuple(int(i) for i in rng.integers(0, NUM_VARIABLES, 3))
        inner = [draw_body(rng, depth - 1, int(rng.integers(0, length))) for _ in range(2)] if depth else []
        body.append((str(kind), variables, int(rng.integers(0, 4)), inner))
    return body


def run_body(body: list, values: list[int]) -> bool:
    """What a body does to the variables; whether it leaves."""
    for kind, (i, j, k), number, inner in body:
        if kind == "set":
            values[i] = (values[j] * 3 + values[k] + number) & MASK
        elif kind == "loop":
            if any(run_body(inner[0], values) for _ in range(values[i] & 3)):
                return True
        elif kind == "if":
            if run_body(inner[values[i] & 1], values):
                return True
        elif values[i] & 63 == number:
            return True
    return False


def emit_body(b: Builder, body: list, values: list[Value], out: Value) -> list[Value]:
    for kind, (i, j, k), number, inner in body:
        low = lambda bits, i=i: b.and_(values[i], const("i64", bits))  # noqa: B023, E731
        if kind == "set":
            total = b.add(b.mul(values[j], const("i64", 3)), b.add(values[k], const("i64", number)))
            values = [*values[:i], total, *values[i + 1 :]]
        elif kind == "loop":
            with b.loop(const("i64", 0), low(3), const("i64", 1), values) as loop:
                loop.next(*emit_body(b, inner[0], loop.carried, out))
            values = loop.results
        elif kind == "if":
            with b.if_(b.icmp("eq", low(1), const("i64", 0))) as branch:
                branch.yield_(*emit_body(b, inner[0], values, out))
                branch.otherwise()
                branch.yield_(*emit_body(b, inner[1], values, out))
            values = branch.results
        else:
            leaves, goes_on = b.block("leaves"), b.block("goes_on")
            b.cond_br(b.icmp("eq", low(63), const("i64", number)), leaves, goes_on)
            b.position(leaves)
            keep(b, values, out)
            b.ret(const("i1", 1))
            b.position(goes_on)
    return values


def keep(b: Builder, values: list[Value], out: Value) -> None:
    for n, value in enumerate(values):
        b.store(value, b.gep("i64", out, const("i64", n)))


def compiled(body: list) -> tuple[str, ctypes._CFuncPtr, object]:
    module = Module("m")
    outer = module.function("f", "i1", [("ptr", "out"), ("i64", "n")], linkage="external")
    outer.ret(outer.call("i1", "f.program", *outer.parameters))
    typed = [("ptr noalias align 8", "out"), ("i64", "n")]
    b = module.function("f.program", "i1", typed, attributes="alwaysinline")
    out, n = b.parameters
    keep(b, emit_body(b, body, [b.add(n, const("i64", i)) for i in range(NUM_VARIABLES)], out), out)
    b.ret(const("i1", 0))
    cut_into_pieces(b, "noinline nounwind")
    text = module.text()
    loaded = load_object(emit_object(optimise(text, "generic"), "generic"), ["f"])
    return text, ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int64)(loaded.address("f")), loaded


@pytest.mark.parametrize("most, enough, least", [(0, 1, 1), (0, 4, 2), (8, 8, 2), (20, 10, 3)])
def test_functions_drawn_at_random(monkeypatch, rng, most, enough, least):
    for name, number in {"MOST": most, "ENOUGH": enough, "LEAST": least}.items():
        monkeypatch.setattr(pieces, name, number)
    num_pieces = 0
    for _ in range(15):
        body = draw_body(rng, 3, 5)
        text, function, _loaded = compiled(body)
        num_pieces += text.count("define internal i1 @f.program.")
        for n in range(20):
            values, found = [n + i for i in range(NUM_VARIABLES)], (ctypes.c_uint64 * NUM_VARIABLES)()
            assert function(ctypes.addressof(found), n) == run_body(body, values)
            assert list(found) == values
    assert num_pieces


def chain_of_loops(count: int) -> tuple[Module, Builder]:
    """A function that adds up i * n in its i-th loop, and one that calls it."""
    module = Module("m")
    outer = module.function("g", "void", [("ptr", "p"), ("i64", "n")], linkage="external")
    outer.call("i1", "f", *outer.parameters)
    outer.ret()
    b = module.function("f", "i1", [("ptr", "p"), ("i64", "n")], attributes="alwaysinline")
    p, n = b.parameters
    for i in range(count):
        with b.loop(const("i64", 0), n, const("i64", 1)) as loop:
            b.store(b.add(b.load("i64", p), b.mul(loop.index, const("i64", i))), p)
            loop.next()
    b.ret(const("i1", 0))
    return module, b


def test_a_function_that_is_not_long_stays_as_it_is():
    module, b = chain_of_loops(MOST // 3 - 1)
    before = module.text()
    cut_into_pieces(b, "noinline")
    assert module.text() == before


def test_a_long_function_becomes_short_ones():
    module, b = chain_of_loops(2 * MOST)
    cut_into_pieces(b, "noinline nounwind")
    functions = module.text().split("define ")[3:]
    assert 20 < len(functions) < 30
    assert all(re.match(r"internal i1 @f\.\d+\(.*\) noinline nounwind \{", text) for text in functions)
    assert all(len(re.findall(r"^[\w.]+:", text, re.MULTILINE)) <= pieces.ENOUGH + 1 for text in functions)
    assert len(b.blocks) < MOST


def test_many_loops_take_time_by_their_number():
    """In one function 512 such loops took 8 s, and 256 of them 4; 0.7 s now."""
    module, b = chain_of_loops(2 * MOST)
    cut_into_pieces(b, "noinline nounwind")
    begin = used()
    emit_object(optimise(module.text(), "x86-64-v3"), "x86-64-v3")
    assert (used() - begin) / slowness() < 2


def test_any_type_goes_through_the_frame(monkeypatch):
    """Each is made in one piece and read in another."""
    monkeypatch.setattr(pieces, "MOST", 0)
    monkeypatch.setattr(pieces, "ENOUGH", 1)
    monkeypatch.setattr(pieces, "LEAST", 1)
    module = Module("m")
    b = module.function("f", "i1", [("ptr", "p")], linkage="external")
    (p,) = b.parameters
    types = ["i8", "<16 x float>", "i16", "<8 x i1>", "i1", "<64 x i16>", "ptr", "double", "<3 x i8>"]
    loop_around(b)
    values = [b.load("i64", p)]
    made = []
    for type in types:
        made.append(_made(b, type, values[0]))
        loop_around(b)
    for n, value in enumerate(made):
        b.store(_read(b, value), b.gep("i64", p, const("i64", n)))
    b.ret(const("i1", 0))
    cut_into_pieces(b, "noinline nounwind")
    assert module.text().count("@f.") > len(types)
    loaded = load_object(emit_object(optimise(module.text(), "generic"), "generic"), ["f"])
    memory = np.full(len(types), 1, np.int64)
    ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(loaded.address("f"))(memory.ctypes.data)
    assert memory.tolist() == [1] * len(types)


def loop_around(b: Builder) -> None:
    with b.loop(const("i64", 0), const("i64", 2), const("i64", 1)) as loop:
        loop.next()


def _made(b: Builder, type: str, one: Value) -> Value:
    """The number one in a type."""
    scalar = re.sub(r"^<\d+ x |>$", "", type)
    if scalar == "ptr":
        return b.inttoptr(one, "ptr")
    number = b.sitofp(one, scalar) if scalar in ("float", "double") else b.trunc(one, scalar)
    return b.splat(number, int(type[1:].split()[0])) if type.startswith("<") else number


def _read(b: Builder, value: Value) -> Value:
    if value.type.startswith("<"):
        value = b.extractelement(value, int(value.type[1:].split()[0]) - 1)
    if value.type == "ptr":
        return b.ptrtoint(value, "i64")
    return b.fptosi(value, "i64") if value.type in ("float", "double") else b.zext(value, "i64")


def test_lines_stay_what_they_are():
    """Each place in the source is one of the function that its code is in now."""
    module = Module("m")
    b = module.function("f", "i1", [("ptr", "p")], linkage="external")
    for line in range(1, MOST):
        b.set_debug_location(module.debug_location(b, "k.py", line, 5))
        loop_around(b)
    b.ret(const("i1", 0))
    cut_into_pieces(b, "noinline nounwind")
    text = optimise(module.text(), "generic", opt_level=0)
    functions = re.findall(r'distinct !DISubprogram\(name: "(f[.\d]*)"', text)
    assert len(functions) > 5 and functions[0] == "f"
    assert sorted({int(n) for n in re.findall(r"!DILocation\(line: (\d+)", text)}) == list(range(1, MOST))
