"""The parameters that a function which checks its accesses has besides those of the kernel.

    checked_params(record.c_params)     CheckedParams(("x_bytes", "y_bytes"), "message", "message_size")

After the arguments there is a size in bytes for each pointer, and at the end a text that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deuteron.aot.metadata import ParamRecord
from deuteron.aot.naming import parameter_names

MESSAGE = "message"


@dataclass(frozen=True)
class CheckedParams:
    """The parameters that a function which checks has besides: a size for each pointer, in bytes, and a text."""

    sizes: tuple[str, ...]
    message: str
    message_size: str

    @property
    def declared_sizes(self) -> list[str]:
        return [f"uint64_t {name}" for name in self.sizes]

    @property
    def declared_message(self) -> list[str]:
        return [f"char *{self.message}", f"uint64_t {self.message_size}"]


def checked_params(params: Sequence[ParamRecord]) -> CheckedParams:
    """Those of a function with these parameters, called as none of them is."""
    wanted = [f"{param.c_name}_bytes" for param in pointers(params)]
    taken = ("stream", "algo_id", *(param.c_name for param in params))
    *sizes, message, message_size = parameter_names([*wanted, MESSAGE, f"{MESSAGE}_size"], taken)
    return CheckedParams(tuple(sizes), message, message_size)


def pointers(params: Sequence[ParamRecord]) -> list[ParamRecord]:
    return [param for param in params if param.type and param.type.startswith("*")]
