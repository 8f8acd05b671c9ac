"""What can be wrong with an `@autotune`, and what it is given.

    check_given("autotune of 'add'", names, Config({...}), None)      UsageError: ... Write configs=[...].
    check_autotuner(tuner, prune_configs_by)        UsageError: autotune of 'add': no parameter 'outt': there are ...
    check_arrays(tuner, {"n": 5})                   LaunchError: ... restore_value names 'n', which is 5: ...
    call_hook(hook, "do_bench", "do_bench(fn, quantiles=)", fn, quantiles=q)      what it returns

What can be said where the decorator is written is said there, not at the first launch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deuteron.errors import LaunchError, UsageError
from deuteron.options import is_option
from deuteron.runtime.autotuning.config import Config
from deuteron.runtime.autotuning.torch_autotuners import TORCHS_TOP_K
from deuteron.runtime.grid import location_of
from deuteron.tracebacks import level_of_the_program

if TYPE_CHECKING:
    from deuteron.runtime.autotuning.autotuner import Autotuner

PRUNING = {"early_config_prune", "perf_model", "top_k", TORCHS_TOP_K}


def check_given(where: str, known: Sequence[str], configs: Any, prune: Any, **lists: Any) -> None:
    """Raise UsageError for what is of another kind. A text is a list of its letters, which may be parameters."""
    if isinstance(configs, Config) or not isinstance(configs, Iterable | None):
        raise UsageError(f"{where}: configs is a list, got {configs!r}. Write configs=[...].")
    if not isinstance(prune, Mapping | None):
        got = "a function" if callable(prune) else repr(prune)
        raise UsageError(f"{where}: prune_configs_by is a dictionary, as in {{'early_config_prune': ...}}, got {got}")
    for option, names in lists.items():
        if isinstance(names, str) and not set(names) <= set(known):
            raise UsageError(f"{where}: {option} is a list of names. Write {option}=[{names!r}].")


def check_autotuner(tuner: Autotuner, prune: Mapping[str, Any]) -> None:
    """Raise UsageError for parameters, configurations and ways of pruning that there are not; warn of keys."""
    known, where = ", ".join(tuner.arg_names), f"autotune of '{tuner.base_fn.__name__}'"
    for name in (*tuner.reset_to_zero, *tuner.restore_value):
        if name not in tuner.arg_names:
            raise UsageError(f"{where}: no parameter '{name}': there are {known}")
    for config in tuner.configs:
        if not hasattr(config, "all_kwargs"):
            raise UsageError(f"{where}: a configuration is a Config({{...}}, num_warps=...), got {config!r}")
        for name in config.kwargs:
            if name not in tuner.arg_names and not is_option(name):
                warnings.warn(f"{where}: no parameter '{name}', for which no {config!r} can be launched", stacklevel=4)
    for name in set(prune) - PRUNING:
        raise UsageError(f"{where}: prune_configs_by has early_config_prune, perf_model and top_k, got '{name}'")
    if tuner.perf_model is not None and not _is_top_k(tuner.configs_top_k):
        raise UsageError(
            f"{where}: top_k is a positive whole number, or a share up to 1.0, got {tuner.configs_top_k!r}"
        )
    if "top_k" in prune and tuner.perf_model is None:
        warnings.warn(f"{where}: top_k is ignored: it takes a perf_model", stacklevel=4)
    for name in tuner.keys:
        if name not in tuner.arg_names:
            warnings.warn(f"{where}: the key '{name}' is ignored: the parameters are {known}", stacklevel=4)


def _is_top_k(top_k: Any) -> bool:
    is_share = isinstance(top_k, float) and 0 < top_k <= 1
    is_count = isinstance(top_k, int) and not isinstance(top_k, bool) and top_k >= 1
    return is_share or is_count


def check_arrays(tuner: Autotuner, named: Mapping[str, Any]) -> None:
    """Raise LaunchError where trials are to reset or restore what is no array."""
    for option in ("reset_to_zero", "restore_value"):
        for name in getattr(tuner, option):
            if isinstance(named.get(name), int | float):
                raise LaunchError(
                    f"autotune of '{tuner.base_fn.__name__}': {option} names '{name}', which is {named[name]!r}: "
                    "it is for arrays that the kernel writes to"
                )


def warn_of_updates(tuner: Autotuner, updated: Sequence[str]) -> None:
    """Warn of arrays that the kernel changes by what it finds there, and that trials neither restore nor reset."""
    kept = {*tuner.reset_to_zero, *tuner.restore_value}
    names = [name for name in updated if name in tuner.arg_names and name not in kept]
    if names:
        text = (
            f"every trial has changed what it found in {', '.join(names)}, so that this launch gives the result of "
            f"many. Say restore_value={names}, or reset_to_zero={names} of what is added to"
        )
        warnings.warn(f"autotune of '{tuner.base_fn.__name__}': {text}", stacklevel=level_of_the_program())


def call_hook(hook: Callable[..., Any], what: str, usage: str, *args: Any, **kwargs: Any) -> Any:
    """What a function of the program gives; raises UsageError for one that does not take what it is given."""
    try:
        return hook(*args, **kwargs)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        raise UsageError(f"{what}: {error}. It is called as {usage}.", location_of(hook, error)) from None
