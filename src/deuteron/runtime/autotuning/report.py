"""What an autotuner says of its choice: to a listener, with DEUTERON_PRINT_AUTOTUNING, and where nothing can be run.

Autotuning kernel scale with key (1000, 'float32') finished after 0.21s, best config selected: BLOCK: 1024, ...
  skipped BLOCK: 8192, ...: out of shared memory ...
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from deuteron import knobs
from deuteron.errors import AutotunerError, DeuteronError
from deuteron.runtime.autotuning.config import Config
from deuteron.settings import settings

if TYPE_CHECKING:
    from deuteron.runtime.autotuning.autotuner import Autotuner


def tell(tuner: Autotuner, key: tuple, best: Config, is_cached: bool) -> None:
    """Of a choice that was just made."""
    if settings.print_autotuning and not is_cached:
        _print(tuner, key, best)
    if knobs.autotuning.listener is not None:
        knobs.autotuning.listener(
            fn=tuner.base_fn,
            key=key,
            best_config=best,
            configs_timings=tuner.configs_timings,
            duration=None if is_cached else tuner.bench_time,
            cache_hit=is_cached,
        )


def _print(tuner: Autotuner, key: tuple, best: Config) -> None:
    print(
        f"Autotuning kernel {tuner.base_fn.__name__} with key {key} finished after {tuner.bench_time:.2f}s, "
        f"best config selected: {best}"
    )
    for config, reason in tuner.configs_failures.items():
        print(f"  skipped {config}: {reason}")


def all_failed(kernel: str, errors: Mapping[Config, DeuteronError]) -> DeuteronError:
    """Why there is no choice: the error that all configurations have, else the reasons with those that have them."""
    configs_of = defaultdict(list)
    for config, error in errors.items():
        configs_of[str(error)].append(config)
    if len(configs_of) == 1:
        return next(iter(errors.values()))
    reasons = (
        "".join(f"  {config}:\n" for config in configs) + textwrap.indent(reason, "    ")
        for reason, configs in configs_of.items()
    )
    return AutotunerError(f"no configuration of kernel '{kernel}' can be run:\n" + "\n".join(reasons))
