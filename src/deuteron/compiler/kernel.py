"""A compiled kernel: the text of every stage, the metadata, and the way to launch it.

    kernel = deuteron.compile(ASTSource(add, {"x": "*fp32", "n": "i32"}, {"BLOCK": 128}), target="cpu")
    kernel.asm["llir"]           text of a stage; of `asm` it is made when asked for
    kernel.metadata.params       what the arguments are
    print(kernel.report())       registers, vector widths, which instructions; also data
    kernel[(8, 1, 1)](x, 1000)   launches; constexpr arguments can be left out

What the compile was promised of an argument (`:16`, `:1`) is not checked again by such a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from deuteron.backend import Backend
from deuteron.backend.arrays import array_specialiser, check_writable, device_mismatch, split_token
from deuteron.backend.metadata import KernelMetadata, Param
from deuteron.backend.report import Report
from deuteron.backend.tensor_descriptor import flatten
from deuteron.errors import LaunchError


class StageTexts(Mapping[str, str | bytes]):
    """The text of every stage by its name; texts on demand are made at the first look-up."""

    def __init__(self, texts: dict[str, str | bytes], on_demand: dict[str, Callable[[], str | bytes]]):
        self._texts = texts
        self._on_demand = {name: make for name, make in on_demand.items() if name not in texts}

    def __getitem__(self, name: str) -> str | bytes:
        if name in self._on_demand:
            self._texts[name] = self._on_demand.pop(name)()
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._texts, *self._on_demand])

    def __len__(self) -> int:
        return len(self._texts) + len(self._on_demand)

    def __contains__(self, name: object) -> bool:
        return name in self._texts or name in self._on_demand


class CompiledKernel:
    """The result of a compile; equal sources, options, targets and versions give an equal `hash`."""

    def __init__(self, metadata: KernelMetadata, asm: StageTexts, hash: str, backend: Backend, is_cached: bool):
        self.metadata = metadata
        self.asm = asm
        self.hash = hash
        self.is_cached = is_cached
        self._backend = backend

    def __repr__(self) -> str:
        return f"CompiledKernel({self.name}, {self.metadata.target}, {self.hash[:8]})"

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def stage_times(self) -> dict[str, float]:
        """Seconds that each stage took when the kernel was compiled."""
        return self.metadata.stage_times

    @cached_property
    def launch(self) -> Callable[[Sequence[int], Sequence[Any]], None]:
        """`launch(grid, values)`: addresses and numbers for the runtime parameters. Loads the code when first used."""
        return self._backend.load(self.asm, self.metadata)

    def report(self) -> Report:
        """What became of the kernel: resources, vector widths, instructions, pipelining, messages of the assembler."""
        return self._backend.report(self.asm, self.metadata)

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        """`kernel[grid](*args)`: arrays, addresses, numbers, for all parameters or for those that are not constexpr."""
        full_grid = (*grid, 1, 1)[:3]
        return lambda *args: self.launch(full_grid, self._values(args))

    def _values(self, args: Sequence[Any]) -> list[Any]:
        params, args = self.metadata.params, flatten(args)
        if len(args) != len(params):
            params = self.metadata.runtime_params
        if len(args) != len(params):
            names = ", ".join(param.name for param in params)
            raise LaunchError(f"kernel '{self.name}' takes {names}, got {len(args)} arguments")
        given = zip(params, args, strict=True)
        return [_value(param, arg, self.metadata) for param, arg in given if param.kind != "constexpr"]


def _value(param: Param, arg: Any, kernel: KernelMetadata) -> Any:
    """What is passed for an argument: of an array its address, if it has the type that the kernel was compiled for."""
    specialise = array_specialiser(type(arg))
    if param.kind != "pointer" or specialise is None:
        return arg
    token, address = specialise(arg)
    found, _, device = split_token(token)
    where = f"argument '{param.name}' of kernel '{kernel.name}'"
    if found != param.type.replace("*k", "*"):
        raise LaunchError(f"{where}: expected {param.type}, got an array of {found}")
    mismatch = device_mismatch(device, kernel.target.backend)
    if mismatch:
        raise LaunchError(f"{where}: {mismatch.message}, and the kernel is for {kernel.target}")
    try:
        check_writable(token, kernel.may_write(param.name))
    except LaunchError as error:
        raise LaunchError(f"{where}: {error.message}") from None
    return address
