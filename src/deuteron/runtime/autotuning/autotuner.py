"""A kernel with `@autotune`: configurations are tried on the arguments of the first launch, and the fastest is kept.

    scale[lambda meta: (cdiv(n, meta["BLOCK"]),)](x, n)        scale.best_config, scale.cache[(n, ...)]

A choice is made again for other values of the `key` arguments and for other dtypes. Timing runs the kernel many times
on the user's arrays: those that a kernel adds to belong into `reset_to_zero`, those that it changes into
`restore_value`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from deuteron import knobs, testing
from deuteron.backend.arrays import element_type
from deuteron.cached_property import cached_property
from deuteron.errors import DeuteronError, StrictError, UsageError
from deuteron.runtime.autotuning.checks import check_arrays, check_autotuner, check_given, warn_of_updates
from deuteron.runtime.autotuning.config import Config
from deuteron.runtime.autotuning.contents import copy_of, fill_with_zeros, write_back
from deuteron.runtime.autotuning.fast_choice import FastChoices
from deuteron.runtime.autotuning.key import arrays_in, key_of_launch, key_of_value
from deuteron.runtime.autotuning.pruning import pruned
from deuteron.runtime.autotuning.report import all_failed, tell
from deuteron.runtime.autotuning.torch_autotuners import TORCHS_TOP_K, Kept, declare, declared_of
from deuteron.runtime.autotuning.trial import TunedLaunch, call_after_trials, trial_of
from deuteron.runtime.autotuning.trial_timing import QUANTILES, time_trial
from deuteron.runtime.autotuning.trials import SKIPPED, Trials
from deuteron.runtime.autotuning.tuned_file import Choice, Outcome
from deuteron.runtime.autotuning.tuned_store import TunedStore
from deuteron.runtime.driver import driver
from deuteron.runtime.grid import Grid
from deuteron.runtime.interface import KernelInterface
from deuteron.runtime.interface import launch as launch_kernel
from deuteron.runtime.kernel_caches import Choices
from deuteron.runtime.pickling import PickledByName
from deuteron.runtime.placement import on_device_of
from deuteron.settings import settings
from deuteron.tracebacks import api_boundary

Hook = Callable[..., Any]

# One autotuner of a process times at a time: others, on other threads, would be in its timings.
_timing = threading.RLock()


def _renew_lock() -> None:
    """In a process that was forked nobody else is timing."""
    global _timing
    _timing = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Autotuner(PickledByName, KernelInterface):
    """A kernel whose configuration is found by timing. `fn` is what it decorates, `base_fn` the @jit function in it.

    A program may tune a function of Python as well, by an object that has it as `fn`, and a `run(*args, **kwargs)`, and
    is called by `run` without a grid.

    Programs make classes of their own of it, so the parameters, `keys`, `cache`, `nargs`, `pre_hook`, `post_hook`,
    `restore_copies`, `user_defined_pre_hook` and `user_defined_post_hook` are Triton's. `pre_hook(args,
    reset_only=False)` is called before every trial, and with `reset_only` after the last; `post_hook(args, exception)`
    after every trial. `configs_timings` has what the last trials gave, infinity for what cannot be run, of which
    `configs_failures` says why. `made_by_torch`: see torch_autotuners.py.
    """

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Hook | None = None,
        post_hook: Hook | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool | str | Path = False,
        made_by_torch: bool = False,
    ):
        self.fn = fn
        self.base_fn = _innermost(fn)
        self.arg_names = list(arg_names)
        lists = {"key": key, "reset_to_zero": reset_to_zero, "restore_value": restore_value}
        check_given(f"autotune of '{self.base_fn.__name__}'", self.arg_names, configs, prune_configs_by, **lists)
        self.configs = list(configs or ()) or [Config({})]
        self.keys = list(key)
        prune = dict(prune_configs_by or {})
        kept = self._kept(Kept(tuple(reset_to_zero or ()), tuple(restore_value or ())), made_by_torch)
        self.reset_to_zero, self.restore_value = map(list, kept)
        self.restore_copies: dict[str, Any] = {}
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.pre_hook = pre_hook or self._reset_and_copy
        self.post_hook = post_hook or self._restore
        self.early_config_prune, self.perf_model = prune.get("early_config_prune"), prune.get("perf_model")
        self.configs_top_k = prune.get("top_k", prune.get(TORCHS_TOP_K, 1.0))
        self.cache_results = cache_results
        self.use_cuda_graph = use_cuda_graph
        self._given_bench = do_bench
        self._durations = {name: ms for name, ms in (("warmup", warmup), ("rep", rep)) if ms is not None}
        self._choices = FastChoices(self)
        self.cache: dict[tuple, Config] = Choices(self._choices.forget)
        self.configs_timings: dict[Config, Any] = {}
        self.configs_failures: dict[Config, str] = {}
        self.best_config: Config | None = None
        self.bench_time: float | None = None
        self.nargs: dict[str, Any] = {}
        self._chosen: tuple[Any, set[str]] = (None, set())
        self._made_by_torch, self._updated, self._is_warned = made_by_torch, (), False
        check_autotuner(self, prune)

    def __getattr__(self, name: str) -> Any:
        """What the kernel is asked for (`__name__`, `src`, `params` ...) comes from it."""
        if name == "fn":
            raise AttributeError(name)
        return getattr(self.fn, name)

    def _kept(self, given: Kept, made_by_torch: bool) -> Kept:
        """What trials leave as it was; torch.compile does not say so of the autotuners that it makes."""
        if made_by_torch and len(self.configs) == 1:  # nothing is tried
            return given
        if made_by_torch:
            return declared_of(self.base_fn, f"autotune of '{self.base_fn.__name__}'")
        declare(self.base_fn, given)
        return given

    @cached_property
    def do_bench(self) -> Callable[..., Any]:
        """`do_bench(fn, quantiles=)`: milliseconds."""
        if self._given_bench is not None:
            return self._given_bench
        if self.use_cuda_graph:
            return partial(testing.do_bench_cudagraph, **{k: ms for k, ms in self._durations.items() if k == "rep"})
        return partial(testing.do_bench, **self._durations) if self._durations else driver.active.get_benchmarker()

    @property
    def _stops_early(self) -> bool:
        """Whether a launch may be timed by anything but the user's `do_bench`."""
        is_ours = self.do_bench is testing.do_bench or isinstance(self.do_bench, partial)
        return self._given_bench is None and is_ours

    def __getitem__(self, grid: Grid) -> Callable[..., Any]:
        """The kernel with its grid, to be called with the arguments."""
        choices = vars(self).get("_choices")
        return choices.at(grid) if choices is not None and choices.tuner is self else super().__getitem__(grid)

    def run(self, *args: Any, grid: Grid | None = None, warmup: bool = False, **kwargs: Any) -> Any:
        with api_boundary:
            if warmup:
                self._check_not_given(kwargs)
                configs = self._pruned(self._launch(args, kwargs, grid))
                return [self.fn.run(*args, grid=grid, warmup=True, **{**kwargs, **c.all_kwargs()}) for c in configs]
            return self._run_best(args, kwargs, grid)[0]

    def run_noted(self, grid: Grid, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What `kernel[grid](...)` does in Python. A launch like it is to be done without Python, if it can be."""
        with api_boundary:
            if "run" in vars(self) or type(self).run is not _run or not kwargs.keys().isdisjoint(("grid", "warmup")):
                return self.run(*args, **{"grid": grid, "warmup": False, **kwargs})
            launched, config = self._run_best(args, kwargs, grid)
            self._choices.note(args, kwargs, config)
            return launched

    def _run_best(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Grid | None) -> tuple[Any, Config]:
        """Launch with the configuration that is chosen, and which that is."""
        self._check_not_given(kwargs)
        config = self.configs[0] if len(self.configs) == 1 else self._choose(args, kwargs, grid)
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook(self._launch(args, kwargs, grid).with_config(config))
        return launch_kernel(self.fn, grid, args, {**kwargs, **config.all_kwargs()}), config

    def _launch(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Grid | None) -> TunedLaunch:
        return TunedLaunch(args, kwargs, grid, dict(zip(self.arg_names, args, strict=False)))

    def _check_not_given(self, kwargs: Mapping[str, Any]) -> None:
        if not kwargs:
            return
        if self._chosen[0] is not self.configs:
            self._chosen = self.configs, {name for config in self.configs for name in config.all_kwargs()}
        if not self._chosen[1].isdisjoint(kwargs):
            raise UsageError(
                f"autotune of '{self.base_fn.__name__}' chooses {', '.join(sorted(self._chosen[1] & kwargs.keys()))}: "
                "leave it out of the launch, or out of the configurations"
            )

    def _choose(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Grid | None) -> Config:
        key = key_of_launch(self.arg_names, self.keys, args, kwargs)
        config = self.cache.get(key)
        if config is not None:
            return config
        with _timing:
            if key not in self.cache:
                launch = self._launch(args, kwargs, grid)
                configs = self._pruned(launch)
                is_timed = len(configs) > 1 and not settings.interpret
                self.cache[key] = self._fastest(configs, key, launch) if is_timed else configs[0]
            return self.cache[key]

    def _pruned(self, launch: TunedLaunch) -> list[Config]:
        with _timing:
            self.nargs = dict(launch.nargs)
            try:
                return self.prune_configs(dict(launch.kwargs))
            finally:
                self.nargs = {}

    def prune_configs(self, kwargs: dict[str, Any]) -> list[Config]:
        """The configurations worth a trial: `nargs` has the positional arguments, `kwargs` the others."""
        return pruned(self, self.nargs, kwargs)

    def _fastest(self, configs: Sequence[Config], key: tuple, launch: TunedLaunch) -> Config:
        """By what was measured, now or in an earlier process where results are kept."""
        check_arrays(self, launch.named)
        jobs = {config: job for config in configs if (job := self._job(config, launch))}
        store, choice = self._store(configs, jobs, launch)
        known = store.known(choice, configs) if store else {}
        trials = Trials(self.base_fn.__name__, partial(self._time, launch), jobs, known)
        missing = [config for config in configs if config not in known]
        begin = time.perf_counter()
        try:
            trials.run(missing)
        finally:
            found = {config: trials.outcomes[config] for config in missing if config in trials.outcomes}
            if store and found:
                store.add(choice, found)
        self.bench_time = time.perf_counter() - begin
        self._note(trials.outcomes)
        best = trials.best
        if best is None:
            raise all_failed(self.base_fn.__name__, trials.errors)
        if missing:
            call_after_trials(self, launch, best)
            self._warn_of_updates()
        tell(self, key, best, is_cached=not missing)
        return best

    def note_updates(self, kernel: Any) -> None:
        """Of a kernel that was compiled for a trial, the parameters of which it changes what it finds there."""
        self._updated = getattr(getattr(kernel, "metadata", None), "updated", ())

    def _warn_of_updates(self) -> None:
        """Once, of a program that says nothing of what its trials leave in arrays."""
        is_said = self.user_defined_pre_hook or self.user_defined_post_hook or any(c.pre_hook for c in self.configs)
        if self._updated and not (self._is_warned or is_said or self._made_by_torch):
            self._is_warned = True
            warn_of_updates(self, self._updated)

    def _job(self, config: Config, launch: TunedLaunch) -> Any:
        """What is compiled for a configuration; None where that is not known, or an error, which its trial shows."""
        plan = getattr(self.fn, "plan", None)
        try:
            return plan and plan(*launch.args, **{**launch.kwargs, **config.all_kwargs()})
        except DeuteronError:
            return None

    def _store(
        self, configs: Sequence[Config], jobs: Mapping[Config, Any], launch: TunedLaunch
    ) -> tuple[TunedStore, Choice] | tuple[None, None]:
        """Where timings are kept, and what of; None where they are not: hooks have no text."""
        is_kept = self.cache_results or knobs.autotuning.cache or settings.tuned_dir
        if not is_kept or not jobs or any(config.pre_hook is not None for config in configs):
            return None, None
        given = None if isinstance(self.cache_results, bool) else Path(self.cache_results)
        store = TunedStore(self.base_fn, given or settings.tuned_dir, next(iter(jobs.values())).target)
        named = {name: value for name, value in launch.named.items() if name in self.arg_names}
        key = {name: key_of_value(named[name]) for name in self.keys if name in named}
        return store, store.choice(key, {name: element_type(array.dtype) for name, array in arrays_in(named)})

    def _bench(self, *args: Any, config: Config, grid: Grid | None = None, **kwargs: Any) -> list[float]:
        """Milliseconds at QUANTILES, infinity where it cannot be run: what a `run` of a program's own class calls."""
        kwargs.pop("warmup", None)
        self._check_not_given(kwargs)
        try:
            return self._time(self._launch(args, kwargs, grid), config, float("inf"), takes_spills=True).ms
        except StrictError:
            raise
        except SKIPPED:
            return [float("inf")] * len(QUANTILES)

    def _time(self, launch: TunedLaunch, config: Config, best: float, takes_spills: bool) -> Outcome:
        """Time a configuration, on the device that it runs on: shortly, if it then is much slower than the best one."""
        with on_device_of(array for _, array in arrays_in(launch.named)):
            return time_trial(trial_of(self, launch, config, takes_spills), self.do_bench, best, self._stops_early)

    def _note(self, outcomes: Mapping[Config, Outcome]) -> None:
        nothing = [float("inf")] * len(QUANTILES)
        self.configs_timings = {c: nothing if o.ms is None else o.ms for c, o in outcomes.items()}
        self.configs_failures = {c: o.failure for c, o in outcomes.items() if o.failure is not None}

    def _reset_and_copy(self, named: Mapping[str, Any], reset_only: bool = False) -> None:
        for name in self.reset_to_zero:
            if named.get(name) is not None:
                fill_with_zeros(named[name])
        if not reset_only:
            wanted = (name for name in self.restore_value if named.get(name) is not None)
            self.restore_copies = {name: copy_of(named[name]) for name in wanted}

    def _restore(self, named: Mapping[str, Any], exception: BaseException | None) -> None:
        for name, content in self.restore_copies.items():
            write_back(named[name], content)
        self.restore_copies = {}


def _innermost(fn: Any) -> Any:
    """The @jit function in what decorates it; of what is no kernel the function of Python in it."""
    while isinstance(getattr(fn, "fn", None), KernelInterface) or not hasattr(fn, "__name__"):
        fn = fn.fn
    return fn


_run = Autotuner.run
