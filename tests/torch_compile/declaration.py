"""Declares programs for torch.compile: a function or a module, what it is given, and how exact it has to be.

    @program(normal(33, 77))
    def softmax(x):
        return torch.softmax(x, -1)

    @model(normal(5, 16), gradients=True)
    def perceptron():
        return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 3))

    for name, function in REDUCTIONS.items():       # a table
        declare(name, function, normal(7, 13))

A program is run twice: in eager mode with every float as float64, which is what it should give, and compiled. `ALL` has
the programs by name, in the order in which they were declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Maker = Callable[[torch.Generator], torch.Tensor]


@dataclass(frozen=True)
class Program:
    """A program. `build` gives what is compiled; `inputs` are made afresh for every run, one list for each call of it.

    `gradients`: the sum of the squares of what comes out is differentiated. `dynamic`: sizes are not compiled in, and
    all calls share one compilation. `config`: of Inductor. `tolerance` multiplies the usual one. `draws`: what comes
    out is random; the program itself gives what does not depend on the numbers drawn. `refusal`: what torch itself says
    where it cannot compile the program for the CPU by way of Triton's language. `capability`: of a GPU, the lowest for
    which it can.
    """

    name: str
    build: Callable[[], Callable]
    inputs: Sequence[Sequence[Maker]]
    gradients: bool = False
    dynamic: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 1.0
    draws: bool = False
    refusal: str = ""
    capability: int = 80


ALL: dict[str, Program] = {}


def declare(name: str, function: Callable, *inputs: Maker, **options: Any) -> None:
    """Declare a function as a program."""
    _enter(Program(name, lambda: function, [inputs], **options))


def program(*inputs: Maker, **options: Any) -> Callable[[Callable], Callable]:
    """Declare the decorated function as a program."""

    def enter(function: Callable) -> Callable:
        declare(function.__name__, function, *inputs, **options)
        return function

    return enter


def resizing(*calls: Sequence[Maker], **options: Any) -> Callable[[Callable], Callable]:
    """Declare the decorated function as a program of dynamic shapes; each of `calls` is what one call is given."""

    def enter(function: Callable) -> Callable:
        _enter(Program(function.__name__, lambda: function, calls, dynamic=True, **options))
        return function

    return enter


def model(*inputs: Maker, **options: Any) -> Callable[[Callable], Callable]:
    """Declare what the decorated function builds, with the same parameters every time, as a program."""

    def enter(build: Callable) -> Callable:
        def seeded() -> Callable:
            torch.manual_seed(0)
            return build()

        _enter(Program(build.__name__, seeded, [inputs], **options))
        return build

    return enter


def _enter(declared: Program) -> None:
    if declared.name in ALL:
        raise ValueError(f"two programs are called {declared.name}")
    ALL[declared.name] = declared


def normal(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Maker:
    return lambda generator: (torch.randn(shape, generator=generator) * scale).to(dtype)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float32) -> Maker:
    return lambda generator: (torch.rand(shape, generator=generator) * (high - low) + low).to(dtype)


def integers(*shape: int, low: int = 0, high: int = 100, dtype: torch.dtype = torch.int64) -> Maker:
    """Whole numbers in [low, high), of any type."""
    return lambda generator: torch.randint(low, high, shape, generator=generator).to(dtype)


def permutation(size: int) -> Maker:
    return lambda generator: torch.randperm(size, generator=generator)


def strided(maker: Maker, view: Callable[[torch.Tensor], torch.Tensor]) -> Maker:
    """A view of what another maker makes."""
    return lambda generator: view(maker(generator))
