"""Random programs of Python's control flow on integers, which CPython itself can run: what it does is what is right.

    source = ControlFlowProgram(7).source       # a function that returns from loops, and a kernel that calls it
    run_by_python(source, out, sign, n, m)      # `tl.store` writes to the arrays

Loops of every kind with `break`, `continue`, `return` and `else`; at most five rounds each. Variables are assigned
before they are used in a branch or loop, so that every program is one that the language accepts. A float, `z`, is 0.0,
-0.0 or 1.5, of either sign: known when the program is compiled, as long as all ways to a place give it one value.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

MAX_DEPTH = 5
MAX_FLOATS = 100
ZEROS = ("0.0", "-0.0")
FLOATS = (*ZEROS, "1.5", "-z", "abs(z)", "z * -1.0", "z + 0.0", "z - 0.0", "0.0 - z")


@dataclass(frozen=True)
class _Pointer:
    array: np.ndarray
    offset: int = 0

    def __add__(self, offset: int) -> _Pointer:
        return _Pointer(self.array, self.offset + offset)


def _store(pointer: _Pointer, value: int) -> None:
    pointer.array[pointer.offset] = value


def run_by_python(source: str, out: np.ndarray, sign: np.ndarray, n: int, m: int) -> None:
    namespace = {
        "tl": SimpleNamespace(store=_store, static_range=range),
        "triton": SimpleNamespace(jit=lambda function: function),
    }
    exec(source, namespace)
    namespace["kernel"](_Pointer(out), _Pointer(sign), n, m)


def _stored(value: str, zero: str) -> str:
    return f"tl.store(out, {value}); tl.store(out + 1, acc); tl.store(sign, {zero})"


class ControlFlowProgram:
    """The program of a seed; its kernel writes two integers, and at most MAX_FLOATS floats."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._lines: list[str] = []
        self._count = 0
        self.source = "\n\n".join(
            (
                self._function("f(sign, n, m, acc, z)", "v0 = n * 3", ["return v0, acc, z"], "return {}, acc, {}"),
                self._function(
                    "kernel(out, sign, n, m)",
                    f"acc, v0, z = n * 0, m + 1, {self._random.choice(ZEROS)}",
                    ["v0, acc, z = f(sign, n, m, acc, z)", _stored("v0", "z")],
                    f"{_stored('{}', '{}')}; return",
                ),
            )
        )

    def _function(self, header: str, first: str, last: list[str], leave: str) -> str:
        self._lines, self._leave = [f"    {first}"], leave
        self._budget = self._random.choice((6, 12, 25))
        self._block(1, ["v0", "n", "m"], in_loop=False)
        return "\n".join(["@triton.jit", f"def {header}:", *self._lines, *(f"    {line}" for line in last), ""])

    def _emit(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _expression(self, names: list[str]) -> str:
        a, b = (self._random.choice([*names, str(self._random.randint(-3, 7))]) for _ in range(2))
        return self._random.choice((a, f"{a} + n * 0", f"(({a} + {b} + n) & 63)", f"(({a} * 3 - {b} + m) & 31)"))

    def _condition(self, names: list[str]) -> str:
        """One in five assigns a variable in an operand that Python may not come to."""
        first = self._comparison(names)
        if self._random.random() < 0.8:
            return first
        target = self._random.choice([name for name in names if name[0] == "v"])
        return f"{first} {self._random.choice(('and', 'or'))} ({target} := {self._expression(names)}) & 3 > 0"

    def _comparison(self, names: list[str]) -> str:
        a, b = self._random.choice(names), self._random.choice(names)
        return self._random.choice(
            (f"({a} & 63) % 3 == 1", f"{a} > {self._random.randint(0, 9)}", f"{a} < {b}", f"{a} & 1")
        )

    def _block(self, depth: int, names: list[str], in_loop: bool) -> None:
        names = list(names)
        if self._random.random() < 0.5:
            self._assign_float(depth, names, in_loop)
        for _ in range(self._random.choice((1, 2, 2, 3, 4))):
            self._budget -= 1
            if self._budget < 0:
                break
            self._statement(depth, names, in_loop)
        self._emit(depth, "acc = (acc * 5 + 1) & 65535")

    def _statement(self, depth: int, names: list[str], in_loop: bool) -> None:
        kinds = [self._assign, self._assign_float, self._branch, self._branch, self._leave_function]
        if depth < MAX_DEPTH:
            kinds += [self._loop, self._loop]
        if in_loop:
            kinds += [self._leave_loop] * 4
        self._random.choice(kinds)(depth, names, in_loop)

    def _assign(self, depth: int, names: list[str], in_loop: bool) -> None:
        if self._random.random() < 0.3:
            names.append(self._new("v"))
            self._emit(depth, f"{names[-1]} = {self._expression(names[:-1])}")
            return
        target = self._random.choice([name for name in names if name[0] == "v"])
        self._emit(depth, f"{target} = {self._expression(names)}")

    def _assign_float(self, depth: int, names: list[str], in_loop: bool) -> None:
        self._count += 1
        self._emit(depth, f"z = {self._float(names)}; tl.store(sign + {self._count}, z)")

    def _float(self, names: list[str]) -> str:
        among = self._random.choice((ZEROS, FLOATS))
        one, other = self._random.choice(among), self._random.choice(among)
        return self._random.choice((one, f"{one} if {self._condition(names)} else {other}", "z"))

    def _new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _branch(self, depth: int, names: list[str], in_loop: bool) -> None:
        if depth > MAX_DEPTH:
            return
        self._emit(depth, f"if {self._condition(names)}:")
        self._block(depth + 1, names, in_loop)
        if self._random.random() < 0.4:
            self._emit(depth, "else:")
            self._block(depth + 1, names, in_loop)

    def _leave_function(self, depth: int, names: list[str], in_loop: bool) -> None:
        self._emit(depth, f"if {self._condition(names)}:")
        self._emit(depth + 1, self._leave.format(self._expression(names), self._float(names)))

    def _leave_loop(self, depth: int, names: list[str], in_loop: bool) -> None:
        self._emit(depth, f"if {self._condition(names)}:")
        if self._random.random() < 0.3:
            self._emit(depth + 1, "acc += 1")
        self._emit(depth + 1, self._random.choice(("break", "continue")))

    def _loop(self, depth: int, names: list[str], in_loop: bool) -> None:
        variable, choose = self._new("i"), self._random.choice
        if self._random.random() < 0.3:
            self._while(depth, variable, names)
        else:
            step, first = choose((1, 1, 2, 3, -1, -2)), self._random.randint(-2, 3)
            end = first + step * self._random.randint(0, 4)
            items = ", ".join(self._expression(names) for _ in range(3))
            ranges = (f"range({first}, {end}, {step})", f"range({first}, m - m + {end}, {step})")
            over = choose((*ranges, *ranges, f"tl.static_range({abs(end) % 5})", f"({items})"))
            self._emit(depth, f"for {variable} in {over}:")
            self._block(depth + 1, [*names, variable], in_loop=True)
        if self._random.random() < 0.25:
            self._emit(depth, "else:")
            self._block(depth + 1, names, in_loop)

    def _while(self, depth: int, counter: str, names: list[str]) -> None:
        self._emit(depth, f"{counter} = n * 0")
        walrus = f"({self._new('w')} := ({counter} * 3 + {self._random.choice(names)}) & 7) != 5"
        condition = self._random.choice(("True", walrus, f"{counter} < {self._random.randint(0, 4)}"))
        self._emit(depth, f"while {condition}:")
        self._emit(depth + 1, f"{counter} += 1")
        self._emit(depth + 1, f"if {counter} > 4:")
        self._emit(depth + 2, "break")
        self._block(depth + 1, [*names, counter], in_loop=True)
