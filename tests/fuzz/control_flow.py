"""A seed -> a kernel of Python's control flow on integers, tuples and zeros, which CPython runs too.

    case = control_flow(7)
    run_by_python(case, case.values())       the executor `python`: what CPython stores

Loops of every kind with `break`, `continue`, `else` and `return`, comprehensions, functions that are called, walrus,
unpacking. Numbers stay small, loops short. A float, `z`, is 0.0, -0.0 or 1.5, of either sign: known when the program is
compiled, as long as all ways to a place give it one value. `acc` tells which blocks ran, in which order. What CPython
does not get through is drawn anew; what it does is a program that the language accepts.
"""

from __future__ import annotations

import builtins
import random
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.fuzz.case import Argument, Case

NUMBERS, TUPLES = "abcij", "tuv"
PLACES, MAX_FLOATS = 16, 100
ZEROS = ("0.0", "-0.0")
FLOATS = (*ZEROS, "1.5", "-z", "abs(z)", "z * -1.0", "z + 0.0", "z - 0.0", "0.0 - z")
MAX_NESTED, MAX_DEPTH, MAX_ROUNDS = 9, 3, 300


def control_flow(seed: int) -> Case:
    """The first program of this seed that CPython runs to its end."""
    rng = random.Random(seed)
    while True:
        n, m = rng.choice(((2, 5), (0, 4), (6, 2), (3, 3), (1, 16)))
        numbers = Argument("n", "int32", None, n), Argument("m", "int32", None, m)
        arrays = Argument("out", "int32", PLACES, "poison"), Argument("sign", "float32", MAX_FLOATS, "poison")
        arguments = *arrays, *numbers
        case = Case(seed, _Program(rng).source(), arguments, (1,), {"num_warps": rng.choice((1, 4))})
        try:
            run_by_python(case, case.values())
        except (NameError, IndexError, ValueError, TypeError, SyntaxError, TimeoutError):
            continue
        return case


# -- by CPython


@dataclass(frozen=True)
class _Pointer:
    array: np.ndarray
    offset: int = 0

    def __add__(self, offset: int) -> _Pointer:
        return _Pointer(self.array, self.offset + offset)


def run_by_python(case: Case, values: list[Any]) -> None:
    """Stores to the arrays among the values; raises TimeoutError after too many rounds of loops."""
    left = [MAX_ROUNDS]

    def range_(*bounds: int) -> Iterator[int]:
        for index in builtins.range(*bounds):
            left[0] -= 1
            if left[0] < 0:
                raise TimeoutError
            yield index

    def store(pointer: _Pointer, value: float) -> None:
        pointer.array[pointer.offset] = value

    tl = SimpleNamespace(store=store, static_range=range_, range=range_)
    namespace = {"tl": tl, "range": range_, "triton": SimpleNamespace(jit=lambda function: function)}
    exec(case.source, namespace)
    namespace["kernel"](*(_Pointer(v) if isinstance(v, np.ndarray) else v for v in values))


# -- the text


class _Program:
    def __init__(self, rng: random.Random):
        self._rng = rng
        self._lines: list[str] = []
        self._functions = 0
        self._left = MAX_NESTED
        self._counters = 0
        self._floats = 0
        self._loop_names: list[str] = []
        self._may_assign = True
        """Not within a comprehension, whose elements come in an order of their own."""

    def source(self) -> str:
        for index in range(self._rng.randint(0, 2)):
            self._emit(0, f"@triton.jit\ndef f{index}(n, m, z):")
            self._begin()
            self._block(1, in_loop=False, in_function=True)
            self._emit(1, f"return ({self._number()} + acc) & 63, z\n\n")
            self._functions += 1
        self._emit(0, "@triton.jit\ndef kernel(out, sign, n, m):")
        self._begin()
        self._emit(1, f"z = {self._rng.choice(ZEROS)}")
        for _ in range(self._rng.randint(2, 4)):
            self._statement(1, in_loop=False, in_function=False)
        for index, name in enumerate(NUMBERS):
            self._emit(1, f"tl.store(out + {6 + index}, {name})")
        for index, name in enumerate(TUPLES):
            self._emit(1, f"tl.store(out + {12 + index}, {name}[0] + {name}[-1] * 3)")
        self._emit(1, "tl.store(out + 11, acc)\n    tl.store(sign, z)")
        return "\n".join(self._lines) + "\n"

    def _emit(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _begin(self) -> None:
        self._left = MAX_NESTED
        self._emit(1, f"K: tl.constexpr = {self._rng.randint(0, 3)}\n    acc = n * 0")
        for name in NUMBERS:
            self._emit(1, f"{name} = {self._rng.choice(('n', 'm', '1', '2', 'K', 'n + m'))}")
        for name in TUPLES:
            self._emit(1, f"{name} = {self._rng.choice(('(n, m)', '(1, m)', '(n, K)', '(2, 3)'))}")

    # -- expressions

    def _name(self) -> str:
        return self._rng.choice(NUMBERS)

    def _known_name(self) -> str:
        return self._rng.choice((*NUMBERS, *self._loop_names))

    def _tuple_name(self) -> str:
        return self._rng.choice(TUPLES)

    def _new_name(self) -> str:
        self._counters += 1
        return f"w{self._counters}"

    def _number(self, depth: int = 0) -> str:
        deeper = depth + 1
        if depth > 1 or self._chance(0.35):
            return self._rng.choice(
                (self._known_name(), self._known_name(), str(self._rng.randint(-3, 7)), "n", "m", "K")
            )
        one, other = self._number(deeper), self._number(deeper)
        texts = [
            *[f"(({one} {symbol} {other}) & 63)" for symbol in "+-*^|&"],
            f"({one} if {self._condition(deeper)} else {other})",
            f"{self._tuple_name()}[{self._rng.choice((0, 1, -1))}]",
            f"len({self._tuple_name()})",
            f"{self._rng.choice(('max', 'min'))}({one}, {other})",
            self._rng.choice((f"abs({one})", f"(-{one})")),
            self._sum(deeper),
        ]
        if self._may_assign:
            texts.append(f"({self._name()} := {one})")
        if self._functions:
            texts.append(f"{self._call(one, other)}[0]")
        return self._rng.choice(texts)

    def _call(self, one: str, other: str) -> str:
        return f"f{self._rng.randrange(self._functions)}({one}, {other}, z)"

    def _float(self) -> str:
        among = self._rng.choice((ZEROS, FLOATS))
        one, other = self._rng.choice(among), self._rng.choice(among)
        return self._rng.choice((one, f"{one} if {self._condition(1)} else {other}", "z"))

    def _sum(self, depth: int) -> str:
        """Of a comprehension over numbers that are known or not, one of which it may assign."""
        before, self._may_assign = self._may_assign, False
        element = self._number(depth)
        self._may_assign = before
        target = f"{self._name()} := " if before and self._chance(0.3) else ""
        return f"(sum([({target}{element}) for {self._rng.choice('xy')} in (1, {self._rng.choice('nm')})]) & 63)"

    def _condition(self, depth: int = 0) -> str:
        deeper = depth + 1
        one, other = self._number(deeper), self._number(deeper)
        compared = f"{one} {self._rng.choice(('<', '<=', '==', '!=', '>', '>='))} {other}"
        if depth > 2 or self._chance(0.5):
            return compared
        texts = (
            f"{compared} {self._rng.choice(('<', '<=', '=='))} {self._number(deeper)}",
            f"({self._condition(deeper)} {self._rng.choice(('and', 'or'))} {compared})",
            f"not ({compared})",
            self._rng.choice(("K > 2", "K == 1", "not K", "K", one)),
        )
        return self._rng.choice(texts)

    def _pair(self) -> str:
        name, other = self._tuple_name(), self._tuple_name()
        one, two = self._number(1), self._number(1)
        texts = (
            *(f"({one}, {two})", f"({one}, {two})", name, f"({name}[1], {name}[0])", f"{name}[::-1]"),
            *(f"({name} + ({one},))[1:]", f"({name} if {self._condition(1)} else {other})"),
        )
        return self._rng.choice(texts)

    # -- statements

    def _block(self, depth: int, in_loop: bool, in_function: bool) -> None:
        for _ in range(self._rng.randint(1, 4)):
            self._statement(depth, in_loop, in_function)
        self._emit(depth, "acc = (acc * 5 + 1) & 65535")

    def _statement(self, depth: int, in_loop: bool, in_function: bool) -> None:
        kinds = [self._assign] * 9 + [self._assign_float] * 2 + [self._return]
        if depth <= MAX_DEPTH and self._left > 0:
            self._left -= 1
            kinds += [self._branch, self._branch, self._branch, self._for, self._for, self._for, self._while]
        if in_loop:
            kinds += [self._leave] * 2
        self._rng.choice(kinds)(depth, in_loop, in_function)

    def _assign(self, depth: int, in_loop: bool, in_function: bool) -> None:
        name, other, pair = self._name(), self._name(), self._tuple_name()
        texts = (
            *(f"{name} = {self._number()}", f"{name} = {self._number()}", f"{name} = {other} = {self._number()}"),
            f"{name} {self._rng.choice(('+=', '-=', '^='))} {self._number(1)} & 63",
            *(f"{pair} = {self._pair()}", f"{pair} = {self._pair()}", f"{name}, {other} = {self._pair()}"),
            f"{name}, *{pair} = ({self._number(1)}, *{self._tuple_name()})",
            *([] if in_function else [f"tl.store(out + {self._rng.randint(0, 5)}, {self._number()})"]),
        )
        self._emit(depth, self._rng.choice(texts))

    def _assign_float(self, depth: int, in_loop: bool, in_function: bool) -> None:
        if self._functions and self._chance(0.3):
            self._emit(depth, f"{self._name()}, z = {self._call(self._number(1), self._number(1))}")
        else:
            self._emit(depth, f"z = {self._float()}")
        if not in_function:
            self._floats += 1
            self._emit(depth, f"tl.store(sign + {self._floats}, z)")

    def _branch(self, depth: int, in_loop: bool, in_function: bool) -> None:
        self._emit(depth, f"if {self._condition()}:")
        self._block(depth + 1, in_loop, in_function)
        if self._chance(0.3):
            self._emit(depth, f"elif {self._condition()}:")
            self._block(depth + 1, in_loop, in_function)
        if self._chance(0.5):
            self._emit(depth, "else:")
            self._block(depth + 1, in_loop, in_function)

    def _leave(self, depth: int, *unused: bool) -> None:
        self._emit(depth, f"if {self._condition()}:")
        self._emit(depth + 1, self._rng.choice(("break", "continue")))

    def _return(self, depth: int, in_loop: bool, in_function: bool) -> None:
        self._emit(depth, f"if {self._condition()}:")
        if in_function:
            self._emit(depth + 1, f"return ({self._number()} ^ acc) & 63, {self._float()}")
        else:
            self._emit(depth + 1, f"tl.store(out + 11, acc); tl.store(sign, {self._float()})")
            self._emit(depth + 1, "return")

    def _for(self, depth: int, in_loop: bool, in_function: bool) -> None:
        end, step = self._rng.choice(("n", "m", "3", "K", self._number(2))), self._rng.choice((1, 2, -1, -2))
        new, other = self._new_name(), self._new_name()  # the language may know no value of them after the loop
        one, two = self._rng.choice("ab"), self._rng.choice("ij")
        headers = (
            *[f"for {new} in range({end}):"] * 2,
            f"for {new} in range({self._number(2)}, {self._number(2)}, {step}):",
            f"for {new} in tl.static_range({self._rng.choice(('3', '2', 'K'))}):",
            f"for {one} in {self._pair()}:",
            f"for {one}, {two} in enumerate({self._pair()}):",
            f"for {one}, {two} in zip({self._pair()}, {self._pair()}):",
        )
        header = self._rng.choice(headers)
        self._emit(depth, header)
        self._loop_body(depth, in_loop, in_function, [name for name in (new, other) if name in header])

    def _while(self, depth: int, in_loop: bool, in_function: bool) -> None:
        counter = self._new_name()
        self._emit(depth, f"{counter} = {self._rng.randint(1, 4)}")
        also = f" and {self._condition()}" if self._chance(0.6) else ""
        ends = self._chance(0.8)
        self._emit(depth, f"while {counter} > 0{also}:" if ends else "while True:")
        self._emit(depth + 1, f"{counter} -= 1")
        if not ends:
            self._emit(depth + 1, f"if {counter} < 0:\n{'    ' * (depth + 2)}break")
        self._loop_body(depth, in_loop, in_function, [counter])

    def _loop_body(self, depth: int, in_loop: bool, in_function: bool, names: list[str]) -> None:
        self._loop_names += names
        self._block(depth + 1, True, in_function)
        del self._loop_names[len(self._loop_names) - len(names) :]
        if self._chance(0.25):
            self._emit(depth, "else:")
            self._block(depth + 1, in_loop, in_function)
