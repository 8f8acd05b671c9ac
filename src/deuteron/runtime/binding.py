"""The arguments of one launch, bound to the parameters of a kernel.

bound.tokens               ("*fp32:16", "i32", 128)         what they mean to a compile
bound.runtime_values()     [x, 1000]                        what the compiled kernel takes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from deuteron.backend.arrays import split_token
from deuteron.backend.devices import Device
from deuteron.language.function import Parameter
from deuteron.runtime.specialise import Token, is_passed, named_tokens, passed_values


class Binding(NamedTuple):
    """The arguments of one launch, in the order of the parameters, and what they mean to a compile."""

    values: list[Any]
    options: dict[str, Any]
    tokens: tuple[Token, ...]
    passed: list[Any]

    def runtime_indices(self) -> tuple[int, ...]:
        """The arguments that the compiled kernel takes."""
        return tuple(index for index, token in enumerate(self.tokens) if is_passed(token))

    def runtime_values(self) -> list[Any]:
        """What the user passed for them, the parts of tuples and descriptors one by one."""
        pairs = zip(self.values, self.tokens, strict=True)
        return [part for value, token in pairs for part in passed_values(value, token)]

    def named_tokens(self, params: Sequence[Parameter]) -> Iterator[tuple[str, str]]:
        """The tokens of all arguments but constexprs, with their names; those of tuples one by one."""
        for param, value, token in zip(params, self.values, self.tokens, strict=True):
            for name, its in named_tokens(param.name, value, token):
                if isinstance(its, str):
                    yield name, its

    def devices(self, params: Sequence[Parameter]) -> Iterator[tuple[str, Device]]:
        """The arrays among the arguments, by name, with the device that each is on."""
        for name, token in self.named_tokens(params):
            device = split_token(token)[2]
            if device is not None:
                yield name, device
