"""Which configurations are worth a trial, by the functions of `prune_configs_by`.

pruned(tuner, {"n": 1000}, {})      [Config(BLOCK: 128), Config(BLOCK: 1024)]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from deuteron.errors import AutotunerError, UsageError
from deuteron.runtime.autotuning.checks import call_hook
from deuteron.runtime.autotuning.config import Config

if TYPE_CHECKING:
    from deuteron.runtime.autotuning.autotuner import Autotuner


def pruned(tuner: Autotuner, nargs: Mapping[str, Any], kwargs: Mapping[str, Any]) -> list[Config]:
    """By both functions; raises AutotunerError where none is left. `nargs`: the positional arguments by name."""
    return _most_promising(tuner, _after_early_pruning(tuner, nargs, kwargs), {**nargs, **kwargs})


def _after_early_pruning(tuner: Autotuner, nargs: Mapping[str, Any], kwargs: Mapping[str, Any]) -> list[Config]:
    configs = tuner.configs
    if tuner.early_config_prune is not None:
        usage = "early_config_prune(configs, named_args, **kwargs)"
        configs = call_hook(tuner.early_config_prune, _where(tuner), usage, configs, nargs, **kwargs)
        if not isinstance(configs, Iterable):
            raise UsageError(f"{_where(tuner)}: early_config_prune returns a list of configurations, got {configs!r}")
    configs = list(configs)
    if not configs:
        raise AutotunerError(
            f"no valid autotuner configs after pruning: early_config_prune left no configuration of kernel "
            f"'{tuner.base_fn.__name__}'"
        )
    return configs


def _most_promising(tuner: Autotuner, configs: list[Config], named: Mapping[str, Any]) -> list[Config]:
    """The `top_k` of the shortest estimates."""
    top_k = tuner.configs_top_k
    count = max(1, int(len(tuner.configs) * top_k)) if isinstance(top_k, float) else top_k
    if tuner.perf_model is None or len(configs) <= count:
        return configs
    usage = "perf_model(**arguments), with those of the launch and of the configuration"

    def estimate(config: Config) -> float:
        time = call_hook(tuner.perf_model, _where(tuner), usage, **{**named, **config.all_kwargs()})
        try:
            return float(time)
        except (TypeError, ValueError):
            raise UsageError(f"{_where(tuner)}: perf_model returns a time, as a number, got {time!r}") from None

    return sorted(configs, key=estimate)[:count]


def _where(tuner: Autotuner) -> str:
    return f"autotune of '{tuner.base_fn.__name__}'"
