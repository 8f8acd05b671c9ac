"""One trial of a configuration: a launch between the hooks of its autotuner.

run = trial_of(tuner, launch, config, takes_spills=False)
run()                                       pre-hooks, the launch, the post-hook; Spills, where it spills
call_after_trials(tuner, launch, best)      leaves the arrays as the launch that follows is to find them
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deuteron.runtime.autotuning.config import Config
from deuteron.runtime.autotuning.trial_timing import check_spills
from deuteron.runtime.grid import Grid
from deuteron.runtime.interface import launch as launch_kernel

if TYPE_CHECKING:
    from deuteron.runtime.autotuning.autotuner import Autotuner, Hook


@dataclass(frozen=True)
class TunedLaunch:
    """What an autotuned kernel is launched with."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    grid: Grid | None
    nargs: dict[str, Any]

    @property
    def named(self) -> dict[str, Any]:
        """All arguments by name."""
        return {**self.nargs, **self.kwargs}

    def with_config(self, config: Config) -> dict[str, Any]:
        """What hooks are given."""
        return {**self.named, **config.all_kwargs()}


def trial_of(tuner: Autotuner, launch: TunedLaunch, config: Config, takes_spills: bool) -> Callable[[], None]:
    """What is timed. Spills are looked for in the first run."""
    everything = launch.with_config(config)
    keywords = {**launch.kwargs, **config.all_kwargs()}
    is_seen = False

    def run() -> None:
        nonlocal is_seen
        if config.pre_hook is not None:
            config.pre_hook(everything)
        tuner.pre_hook(everything)
        try:
            kernel = launch_kernel(tuner.fn, launch.grid, launch.args, keywords)
            if not is_seen:
                tuner.note_updates(kernel)
                if not takes_spills:
                    check_spills(kernel)
                is_seen = True
        except BaseException as error:
            tuner.post_hook(everything, exception=error)
            raise
        tuner.post_hook(everything, exception=None)

    return run


def call_after_trials(tuner: Autotuner, launch: TunedLaunch, best: Config) -> None:
    """Reset what a launch adds to."""
    if not tuner.user_defined_pre_hook or _takes_reset_only(tuner.pre_hook):
        tuner.pre_hook(launch.with_config(best), reset_only=True)


def _takes_reset_only(hook: Hook) -> bool:
    """Whether a hook is written as Triton describes it: one that is not is called before trials only."""
    try:
        inspect.signature(hook).bind({}, reset_only=True)
    except (TypeError, ValueError):
        return False
    return True
