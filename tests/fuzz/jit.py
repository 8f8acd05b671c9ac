"""The executor `jit`: a program launched several times as users launch it, `kernel[grid](...)`, on the CPU.

    difference_of_launches(case, runs)      out5 (int32): 4 of 64 wrong ... round 3, prepared: {'x1': array([...

There are rounds. Those of a pair need the same compiled kernel, as a rule, of numbers (1, 0, 16, odd and negative ones)
and arrays (`passed.py`: views anywhere in memory, aligned or not, or that overlap) that are others than in other pairs.
In each round there is other data, in the memory of the round before or in new memory, and maybe another grid. It is
launched in one of several ways, and once more in the usual one, by now by machine code; in some rounds from two
threads. Each launch is compared with the interpreter, which is given no hints, and what lies
between the arrays has to stay.

What a program makes of other numbers need not be right, nor end soon: where the interpreter finds it at fault they are
as they were.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from deuteron.errors import DeuteronError, UsageError
from deuteron.frontend import lower_function
from deuteron.interpreter.rules import RULES
from deuteron.ir.rule_table import Rule
from tests.fuzz.case import Argument, Case
from tests.fuzz.oracle import RUNS, Expected, expect
from tests.fuzz.overlapping import Overlapping, difference_between
from tests.fuzz.passed import (
    CONSTANT,
    EXTRA,
    WAYS,
    Memory,
    Number,
    declared,
    form_of,
    lot,
    shown,
    signature_of,
    subscript,
)

ROUNDS = 4
"""Of few runs of the interpreter each: what is found is run again with more."""


MOST_OPS = 50_000
"""That the interpreter runs with other numbers: a loop to the ends of 32 bits has no end."""


def difference_of_launches(case: Case, runs: int) -> str | None:
    launches = _Launches(case, max(1, runs - RUNS + 1))
    found = (launches.round(number) for number in range(ROUNDS))
    return next(filter(None, found), None)


@dataclass
class _Launch:
    """What is passed, and what has to come out. `reference`: the program of the arguments that are passed at run time,
    which the interpreter runs. `memory`: where the arrays are; None where they overlap.
    """

    reference: Case
    numbers: dict[str, Any]
    expected: Expected
    memory: Memory | None

    def arrays(self) -> list[np.ndarray]:
        """Filled anew."""
        if self.memory is not None:
            return self.memory.fill(self._arguments())
        return [value for value in self.reference.values() if isinstance(value, np.ndarray)]

    def passed(self, names: list[str], arrays: list[np.ndarray], rng: np.random.Generator) -> dict[str, Any]:
        """All arguments by name."""
        pairs = zip(self._arguments(), arrays, strict=True)
        given = {**self.numbers, **{argument.name: shown(argument, array, rng) for argument, array in pairs}}
        return {name: given.get(name) for name in names}

    def difference(self, arrays: list[np.ndarray]) -> str | None:
        if self.memory is None:
            return difference_between(self.reference, self.expected, arrays)
        with np.errstate(all="ignore"):
            return self.expected.difference(arrays) or self.memory.damage()

    def _arguments(self) -> list[Argument]:
        return [argument for argument in self.reference.arguments if argument.size is not None]


class _Launches:
    """The launches of one program."""

    def __init__(self, case: Case, runs: int):
        self._case, self._runs = declared(case).with_(arguments=(*case.arguments, EXTRA)), runs
        self._names = [argument.name for argument in self._case.arguments]
        self._forms = {argument.name: form_of(case, argument) for argument in case.arguments}
        self._options = {name: value for name, value in case.options.items() if name != "num_ctas"}
        self._kernel = self._case.function()
        self._modules: dict[str, Any] = {}
        self._memories: dict[int, Memory] = {}

    def round(self, number: int) -> str | None:
        """What is wrong with it, if anything."""
        rng, overlaps = lot(self._case, "round", number), lot(self._case, "overlaps", number // 2).random() < 0.2
        count = 1 + (rng.random() < 0.2)
        launches = [self._launch(number, which, overlaps) for which in range(count)]
        way = WAYS[rng.integers(len(WAYS))]
        threads = str(rng.choice([1, 3]))
        for how in (way, subscript):
            with mock.patch.dict(os.environ, {"DEUTERON_NUM_THREADS": threads}):
                os.environ.pop("DEUTERON_ALWAYS_COMPILE", None)
                problem = self._run([launch for launch in launches if launch], how, lot(self._case, "shown", number))
            if problem:
                way_text = f"{how.__name__.strip('_')}, {threads} threads, {count} launches at a time"
                return f"{problem}\nround {number}, {way_text}"
        return None

    def _run(self, launches: list[_Launch], way: Callable[..., None], rng: np.random.Generator) -> str | None:
        arrays = [launch.arrays() for launch in launches]
        passed = [launch.passed(self._names, its, rng) for launch, its in zip(launches, arrays, strict=True)]

        def run(launch: _Launch, arguments: dict[str, Any]) -> None:
            way(self._kernel, launch.reference.grid, arguments, self._options)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run, launches, passed) if len(launches) > 1 else map(run, launches, passed))
        for launch, its, arguments in zip(launches, arrays, passed, strict=True):
            problem = launch.difference(its)
            if problem:
                return f"{problem}\n{launch.reference.grid} {_texts(arguments)}"
        return None

    def _launch(self, number: int, which: int, overlaps: bool) -> _Launch | None:
        """With other numbers if the program can be run with them; None where it cannot be run at all."""
        varied, plain = self._varied(number, which), self._reseeded(self._case, number, which)
        for case, rules in ((varied, _limited()), (plain, _limited() if overlaps else RULES)):
            case = Overlapping(**{**vars(case), "grid": (1,)}) if overlaps else case
            try:
                return self._expected(case, number, which, overlaps, rules)
            except DeuteronError:
                continue
        return None

    def _expected(self, case: Case, number: int, which: int, overlaps: bool, rules: dict[str, Rule]) -> _Launch:
        rng = lot(self._case, "given", number // 2)
        numbers = {a.name: Number.of(self._forms[a.name], a, rng) for a in case.arguments if a.size is None}
        signature = {a.name: _type(a, numbers.get(a.name)) for a in case.arguments}
        if rng.random() < 0.5:
            signature[EXTRA.name] = "constexpr"
        constants = {name: numbers[name].plain if name in numbers else None for name in _constants(signature)}
        passed = [_plain(a, numbers.get(a.name)) for a in case.arguments if a.name not in constants]
        reference = replace(case, arguments=tuple(passed))
        expected = expect(reference, self._module(signature, constants), self._runs, rules=rules)
        memory = None if overlaps else self._placed(number, which)
        return _Launch(reference, {name: number.value for name, number in numbers.items()}, expected, memory)

    def _module(self, signature: dict[str, str], constants: dict[str, Any]) -> Any:
        key = f"{signature} {constants}"
        if key not in self._modules:
            self._modules[key] = lower_function(self._kernel, signature, constants)
        return self._modules[key]

    def _placed(self, number: int, which: int) -> Memory:
        """Where the arrays were, or somewhere else, in a pair of rounds at elements that are as much aligned."""
        is_kept = number % 2 and lot(self._case, "kept", number).random() < 0.5
        if which or not is_kept:
            arrays = [argument for argument in self._case.arguments if argument.size is not None]
            self._memories[which] = Memory(arrays, lot(self._case, "memory", number // 2))
        return self._memories[which]

    def _varied(self, number: int, which: int) -> Case:
        """With other numbers, and fewer programs."""
        rng = lot(self._case, "varied", number)
        grid = tuple(int(rng.choice([extent, extent, 1])) for extent in self._case.grid)
        arguments = [a if a.size is not None else self._other(a, number) for a in self._case.arguments]
        return self._reseeded(self._case.with_(arguments=tuple(arguments), grid=grid), number, which)

    def _other(self, argument: Argument, number: int) -> Argument:
        rng, fill = lot(self._case, "number", number // 2, argument.name), argument.fill
        if argument.dtype == "int1" or "float" in argument.dtype:
            others = [0, 1] if argument.dtype == "int1" else [0.0, 1.0, -1.5, 16.0]
        else:
            others = [1, 0, 16, 3, *([-1] if argument.dtype[0] != "u" else []), fill // 2, max(fill - 1, 0)]
        is_other = rng.random() < 0.4
        return replace(argument, fill=type(fill)(others[rng.integers(len(others))]) if is_other else fill)

    @staticmethod
    def _reseeded(case: Case, number: int, which: int) -> Case:
        arguments = [replace(argument, seed=argument.seed + 2 * number + which) for argument in case.arguments]
        return case.with_(arguments=tuple(arguments))


def _limited() -> dict[str, Rule]:
    """The rules of the interpreter for one run that has to end soon."""
    left = iter(range(MOST_OPS))

    def counted(rule: Rule) -> Rule:
        def run(*operands: Any) -> Any:
            if next(left, None) is None:
                raise UsageError(f"more than {MOST_OPS} ops are run")
            return rule(*operands)

        return run

    return {name: counted(rule) for name, rule in RULES.items()}


def _type(argument: Argument, number: Number | None) -> str:
    return f"*{signature_of(argument.dtype)}" if number is None else number.type


def _constants(signature: dict[str, str]) -> list[str]:
    return [name for name, type in signature.items() if type == CONSTANT]


def _plain(argument: Argument, number: Number | None) -> Argument:
    return argument if number is None else replace(argument, fill=number.plain)


def _texts(arguments: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}: {value!r}" if not hasattr(value, "shape") or not value.shape else f"{name}: {type(value).__name__}"
        for name, value in arguments.items()
    )
