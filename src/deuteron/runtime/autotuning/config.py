"""One configuration that an autotuner tries.

    Config({"BLOCK_M": 64, "BLOCK_N": 32}, num_warps=4, num_stages=3)

It holds values of constexpr parameters, and options of the compile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deuteron.errors import UsageError
from deuteron.options import IGNORED_OPTIONS, is_ignored
from deuteron.tracebacks import api_boundary

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")


@api_boundary
class Config:
    """A configuration; equal ones are interchangeable and have equal hashes."""

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
        **older: Any,
    ):
        """`pre_hook` is called with the arguments by name before every launch with this configuration. `ir_override` is
        a file with the text of a stage, such as `kernel.ttir`, from which is compiled instead of the source. `older`:
        options that versions of Triton had here, such as `num_consumer_groups`: ignored; others are a UsageError."""
        for name, value in older.items():
            if name not in IGNORED_OPTIONS:
                raise UsageError(f"a Config has no '{name}'; constexpr parameters go into its first argument")
            is_ignored(name, value)
        if not isinstance(kwargs, Mapping):
            raise UsageError(f"a Config begins with a dictionary, as in Config({{'BLOCK': 128}}), got {kwargs!r}")
        if not (pre_hook is None or callable(pre_hook)):
            raise UsageError(f"the pre_hook of a Config is a function of the arguments by name, got {pre_hook!r}")
        options = {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas, "maxnreg": maxnreg}
        for name, value in options.items():
            if not (value is None or hasattr(value, "__index__")):
                raise UsageError(f"the {name} of a Config is a whole number, got {value!r}")
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def all_kwargs(self) -> dict[str, Any]:
        """Everything that is passed to the launch."""
        found = dict(self.kwargs)
        for name in _OPTIONS:
            value = getattr(self, name)
            if value is not None:
                found[name] = value
        return found

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())

    def __repr__(self) -> str:
        return f"Config({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and _key(self) == _key(other)

    def __hash__(self) -> int:
        return hash(_key(self))


def _key(config: Config) -> tuple:
    """No method: programs take every attribute of a Config that has no underscores on both sides for an option."""
    return (*config.all_kwargs().items(), config.pre_hook)
