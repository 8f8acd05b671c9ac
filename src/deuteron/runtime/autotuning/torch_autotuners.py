"""Autotuners that torch.compile makes of a program's: their trials have to leave arrays as the program's would.

    autotune(configs=..., key=[], prune_configs_by={...})(kernel)    over `@heuristics`, launched with `num_warps=...`
    autotune(configs=..., key=[])(kernel)                            of the configurations that are left by pruning

is what torch.compile calls, without `reset_to_zero` and `restore_value`, so that what a kernel adds to would have the
sums of all trials. Both are here those of the program's autotuner of the same kernel.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from deuteron.errors import UsageError

TORCHS_TOP_K = "configs_top_k"  # what torch calls `top_k`
TORCHS_MODULE = "torch._higher_order_ops.triton_kernel_wrap"


class Kept(NamedTuple):
    """The names of arrays that trials set to zero, and of those that they restore."""

    reset_to_zero: tuple[str, ...]
    restore_value: tuple[str, ...]


_declared: WeakKeyDictionary[Any, set[Kept]] = WeakKeyDictionary()


def is_torchs(caller: FrameType) -> bool:
    """Whether torch.compile calls, and not a program."""
    return caller.f_globals.get("__name__") == TORCHS_MODULE


def declare(kernel: Any, kept: Kept) -> None:
    """A program has an autotuner of this kernel."""
    _declared.setdefault(kernel, set()).add(kept)


def declared_of(kernel: Any, where: str) -> Kept:
    """What the program said of a kernel that torch makes an autotuner of."""
    declared = _declared.get(kernel) or {Kept((), ())}
    if len(declared) > 1:
        raise UsageError(
            f"{where}: its autotuners differ in reset_to_zero or restore_value, and torch.compile does not say which "
            f"it means. Give the kernel one autotuner"
        )
    return next(iter(declared))
