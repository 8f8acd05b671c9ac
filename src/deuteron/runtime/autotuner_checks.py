"""What can be wrong with an `@autotune` is said where it is written, not at the first launch.

check_autotuner(tuner, prune_configs_by)        UsageError: autotune of 'add': no parameter 'outt': there are ...
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deuteron.errors import UsageError
from deuteron.runtime.torch_autotuners import TORCHS_TOP_K

if TYPE_CHECKING:
    from deuteron.runtime.autotuner import Autotuner

PRUNING = {"early_config_prune", "perf_model", "top_k", TORCHS_TOP_K}


def check_autotuner(tuner: Autotuner, prune: Mapping[str, Any]) -> None:
    """Raise UsageError for parameters, configurations and ways of pruning that there are not; warn of keys."""
    known, where = ", ".join(tuner.arg_names), f"autotune of '{tuner.base_fn.__name__}'"
    for name in (*tuner.reset_to_zero, *tuner.restore_value):
        if name not in tuner.arg_names:
            raise UsageError(f"{where}: no parameter '{name}': there are {known}")
    for config in tuner.configs:
        if not hasattr(config, "all_kwargs"):
            raise UsageError(f"{where}: a configuration is a Config({{...}}, num_warps=...), got {config!r}")
    for name in set(prune) - PRUNING:
        raise UsageError(f"{where}: prune_configs_by has early_config_prune, perf_model and top_k, got '{name}'")
    if tuner.perf_model is not None and not _is_top_k(tuner.configs_top_k):
        raise UsageError(
            f"{where}: top_k is a positive whole number, or a share up to 1.0, got {tuner.configs_top_k!r}"
        )
    for name in tuner.keys:
        if name not in tuner.arg_names:
            warnings.warn(f"{where}: the key '{name}' is ignored: the parameters are {known}", stacklevel=4)


def _is_top_k(top_k: Any) -> bool:
    is_share = isinstance(top_k, float) and 0 < top_k <= 1
    is_count = isinstance(top_k, int) and not isinstance(top_k, bool) and top_k >= 1
    return is_share or is_count
