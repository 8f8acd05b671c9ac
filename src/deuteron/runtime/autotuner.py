"""`@autotune`: tries configurations on the arguments of the first launch and keeps the fastest.

    @deuteron.autotune(configs=[Config({"BLOCK": 128}), Config({"BLOCK": 1024})], key=["n"])
    @deuteron.jit
    def scale(x_ptr, n, BLOCK: tl.constexpr): ...

    scale[lambda meta: (cdiv(n, meta["BLOCK"]),)](x, n)        scale.best_config, scale.cache[(n, ...)]

A choice is made again for other values of the `key` arguments and for other dtypes. Timing runs the kernel many times
on the user's arrays: those that a kernel adds to belong into `reset_to_zero`, those that it changes into
`restore_value`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deuteron import testing
from deuteron.errors import AutotunerError, CompilationError, DeuteronError, LaunchError, OutOfResources, UsageError
from deuteron.options import settings
from deuteron.runtime.config import Config
from deuteron.runtime.contents import copy_of, fill_with_zeros, write_back
from deuteron.runtime.grid import Grid
from deuteron.runtime.interface import KernelInterface

Hook = Callable[..., Any]
QUANTILES = (0.5, 0.2, 0.8)
# What makes a configuration one that cannot be run. A defect of Deuteron (InternalError) is not passed over.
SKIPPED = (CompilationError, OutOfResources, LaunchError, UsageError)


class Autotuner(KernelInterface):
    """A kernel whose configuration is found by timing. `fn` is what it decorates, `base_fn` the @jit function in it."""

    def __init__(
        self,
        fn: Any,
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Hook | None = None,
        post_hook: Hook | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        do_bench: Callable[..., Any] | None = None,
    ):
        self.fn = fn
        self.base_fn = fn
        while isinstance(self.base_fn.fn, KernelInterface):
            self.base_fn = self.base_fn.fn
        self.arg_names = list(fn.arg_names)
        self.configs = list(configs) or [Config({})]
        self.keys = list(key)
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        self._pre_hook, self._post_hook = pre_hook, post_hook
        self._prune = dict(prune_configs_by or {})
        self.do_bench = do_bench or testing.do_bench
        self.cache: dict[tuple, Config] = {}
        self.configs_timings: dict[Config, Sequence[float]] = {}
        self.best_config: Config | None = None
        self.bench_time: float | None = None
        self.nargs: dict[str, Any] = {}
        self._check_names()

    def __getattr__(self, name: str) -> Any:
        """What the kernel is asked for (`__name__`, `src`, `params` ...) comes from it."""
        if name == "fn":
            raise AttributeError(name)
        return getattr(self.fn, name)

    def _check_names(self) -> None:
        for name in (*self.keys, *self.reset_to_zero, *self.restore_value):
            if name not in self.arg_names:
                known = ", ".join(self.arg_names)
                raise UsageError(f"autotune of '{self.base_fn.__name__}': no parameter '{name}': there are {known}")

    def run(self, *args: Any, grid: Grid, warmup: bool = False, **kwargs: Any) -> Any:
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        self.nargs = named
        self._check_not_given(kwargs)
        if warmup:
            configs = self._pruned(named, kwargs)
            return [self.fn.run(*args, grid=grid, warmup=True, **kwargs, **c.all_kwargs()) for c in configs]
        config = self._choose(args, named, grid, kwargs)
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**named, **config.all_kwargs()})
        return self.fn.run(*args, grid=grid, warmup=False, **kwargs, **config.all_kwargs())

    def _check_not_given(self, kwargs: Mapping[str, Any]) -> None:
        given = sorted({name for config in self.configs for name in config.all_kwargs() if name in kwargs})
        if given:
            raise UsageError(
                f"autotune of '{self.base_fn.__name__}' chooses {', '.join(given)}: leave it out of the launch, "
                "or out of the configurations"
            )

    def _choose(self, args: Sequence[Any], named: dict[str, Any], grid: Grid, kwargs: dict[str, Any]) -> Config:
        if len(self.configs) == 1:
            return self.configs[0]
        key = self._key(named)
        if key not in self.cache:
            configs = self._pruned(named, kwargs)
            is_timed = len(configs) > 1 and not settings.interpret
            self.cache[key] = self._tune(configs, key, args, named, grid, kwargs) if is_timed else configs[0]
        return self.cache[key]

    def _key(self, named: Mapping[str, Any]) -> tuple:
        values = [named[name] for name in self.keys if name in named]
        dtypes = [str(value.dtype) for value in named.values() if hasattr(value, "dtype")]
        return (*values, *dtypes)

    def _pruned(self, named: dict[str, Any], kwargs: dict[str, Any]) -> list[Config]:
        configs = self.configs
        early_prune = self._prune.get("early_config_prune")
        if early_prune is not None:
            configs = early_prune(configs, named, **kwargs)
        if not configs:
            raise AutotunerError(f"early_config_prune left no configuration of kernel '{self.base_fn.__name__}'")
        model, top_k = self._prune.get("perf_model"), self._prune.get("top_k", 1.0)
        if model is None:
            return list(configs)
        count = max(1, int(len(self.configs) * top_k)) if isinstance(top_k, float) else top_k
        return sorted(configs, key=lambda config: model(**{**named, **config.all_kwargs()}))[:count]

    def _tune(
        self,
        configs: Sequence[Config],
        key: tuple,
        args: Sequence[Any],
        named: dict[str, Any],
        grid: Grid,
        kwargs: dict[str, Any],
    ) -> Config:
        begin, failures = time.perf_counter(), {}
        self.configs_timings = {}
        for config in configs:
            try:
                self.configs_timings[config] = self._bench(config, args, named, grid, kwargs)
            except SKIPPED as error:
                failures[config] = error
        self._reset(named)
        if not self.configs_timings:
            raise AutotunerError(_all_failed(self.base_fn.__name__, failures))
        best = min(self.configs_timings, key=lambda config: _first(self.configs_timings[config]))
        self.bench_time = time.perf_counter() - begin
        if settings.print_autotuning:
            print(
                f"Autotuning kernel {self.base_fn.__name__} with key {key} finished after {self.bench_time:.2f}s, "
                f"best config selected: {best}"
            )
        return best

    def _bench(
        self, config: Config, args: Sequence[Any], named: dict[str, Any], grid: Grid, kwargs: dict[str, Any]
    ) -> Any:
        everything = {**named, **config.all_kwargs()}

        def launch() -> None:
            saved = self._before_trial(config, everything)
            try:
                self.fn.run(*args, grid=grid, warmup=False, **kwargs, **config.all_kwargs())
            except Exception as error:
                self._after_trial(everything, saved, error)
                raise
            self._after_trial(everything, saved, None)

        return self.do_bench(launch, quantiles=QUANTILES)

    def _before_trial(self, config: Config, named: dict[str, Any]) -> dict[str, Any]:
        if config.pre_hook is not None:
            config.pre_hook(named)
        saved = {name: copy_of(named[name]) for name in self.restore_value if named.get(name) is not None}
        self._reset(named)
        if self._pre_hook is not None:
            self._pre_hook(named)
        return saved

    def _after_trial(self, named: dict[str, Any], saved: dict[str, Any], error: Exception | None) -> None:
        for name, content in saved.items():
            write_back(named[name], content)
        if self._post_hook is not None:
            self._post_hook(named, exception=error)

    def _reset(self, named: Mapping[str, Any]) -> None:
        for name in self.reset_to_zero:
            if named.get(name) is not None:
                fill_with_zeros(named[name])


def _first(timing: Any) -> float:
    return timing if isinstance(timing, int | float) else timing[0]


def _all_failed(kernel: str, failures: Mapping[Config, DeuteronError]) -> str:
    reasons = "\n".join(
        f"  {config}:\n    {str(error).replace(chr(10), chr(10) + '    ')}" for config, error in failures.items()
    )
    return f"no configuration of kernel '{kernel}' can be run:\n{reasons}"


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
) -> Callable[[Any], Autotuner]:
    """Decorator: finds a kernel's configuration by timing.

    Args:
        configs: what is tried.
        key: parameters; when the value of one changes, the configurations are timed again.
        prune_configs_by: `early_config_prune(configs, named_args, **kwargs)` returns the configurations worth a
            trial; `perf_model(**args)` estimates a time, and the `top_k` best (a float is a share) are tried.
        reset_to_zero: array parameters that are set to zero before every trial, and once after the last.
        restore_value: array parameters that get their content back after every trial.
        pre_hook, post_hook: called before each trial with the arguments by name, and after it with `exception=` too.
        warmup, rep: milliseconds of each trial before and during the timing.
        do_bench: `do_bench(fn, quantiles=)` returns milliseconds; instead of `testing.do_bench`.
        use_cuda_graph, cache_results: accepted as Triton has them, without effect on the CPU.

    Configurations that cannot be compiled or launched are skipped; where none is left, AutotunerError says why of each.
    A defect of Deuteron is raised.
    """
    durations = {name: value for name, value in (("warmup", warmup), ("rep", rep)) if value is not None}
    bench = do_bench or (lambda fn, quantiles: testing.do_bench(fn, quantiles=quantiles, **durations))

    def decorator(fn: Any) -> Autotuner:
        return Autotuner(fn, configs, key, reset_to_zero, restore_value, pre_hook, post_hook, prune_configs_by, bench)

    return decorator
