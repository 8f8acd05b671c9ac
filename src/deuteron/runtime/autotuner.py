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
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deuteron import knobs, testing
from deuteron.errors import AutotunerError, CompilationError, DeuteronError, LaunchError, OutOfResources, UsageError
from deuteron.language.signature import leaves
from deuteron.options import settings
from deuteron.runtime.config import Config
from deuteron.runtime.contents import copy_of, fill_with_zeros, write_back
from deuteron.runtime.grid import Grid
from deuteron.runtime.interface import KernelInterface, check_kernel
from deuteron.runtime.interface import launch as launch_kernel
from deuteron.runtime.stored_timings import StoredTimings

Hook = Callable[..., Any]
QUANTILES = (0.5, 0.2, 0.8)
# What makes a configuration one that cannot be run. A defect of Deuteron (InternalError) is not passed over.
SKIPPED = (CompilationError, OutOfResources, LaunchError, UsageError)


class Autotuner(KernelInterface):
    """A kernel whose configuration is found by timing. `fn` is what it decorates, `base_fn` the @jit function in it.

    Programs make classes of their own of it, so the parameters, `keys`, `cache`, `nargs`, `pre_hook`, `post_hook`,
    `restore_copies`, `user_defined_pre_hook` and `user_defined_post_hook` are Triton's. `pre_hook(args,
    reset_only=False)` is called before every trial, and with `reset_only` after the last; `post_hook(args, exception)`
    after every trial.
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
        cache_results: bool = False,
    ):
        self.fn = fn
        self.base_fn = fn
        while isinstance(getattr(self.base_fn, "fn", None), KernelInterface):
            self.base_fn = self.base_fn.fn
        self.arg_names = list(arg_names)
        self.configs = list(configs or ()) or [Config({})]
        self.keys = list(key)
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        self.restore_copies: dict[str, Any] = {}
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.pre_hook = pre_hook or self._reset_and_copy
        self.post_hook = post_hook or self._restore
        prune = dict(prune_configs_by or {})
        self.early_config_prune = prune.get("early_config_prune")
        self.perf_model, self.configs_top_k = prune.get("perf_model"), prune.get("top_k", 1.0)
        self.cache_results = cache_results
        self.use_cuda_graph = use_cuda_graph
        durations = {name: value for name, value in (("warmup", warmup), ("rep", rep)) if value is not None}
        self.do_bench = do_bench or (lambda fn, quantiles: testing.do_bench(fn, quantiles=quantiles, **durations))
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
        known = ", ".join(self.arg_names)
        for name in (*self.reset_to_zero, *self.restore_value):
            if name not in self.arg_names:
                raise UsageError(f"autotune of '{self.base_fn.__name__}': no parameter '{name}': there are {known}")
        for config in self.configs:
            if not hasattr(config, "all_kwargs"):
                where = f"autotune of '{self.base_fn.__name__}'"
                raise UsageError(f"{where}: a configuration is a Config({{...}}, num_warps=...), got {config!r}")
        for name in self.keys:
            if name not in self.arg_names:
                where = f"autotune of '{self.base_fn.__name__}'"
                warnings.warn(f"{where}: the key '{name}' is ignored: the parameters are {known}", stacklevel=4)

    def run(self, *args: Any, grid: Grid, warmup: bool = False, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        named = {**self.nargs, **kwargs}
        self._check_not_given(kwargs)
        if warmup:
            configs = self.prune_configs(kwargs)
            return [self.fn.run(*args, grid=grid, warmup=True, **{**kwargs, **c.all_kwargs()}) for c in configs]
        config = self._choose(args, named, grid, kwargs)
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**named, **config.all_kwargs()})
        found = launch_kernel(self.fn, grid, args, {**kwargs, **config.all_kwargs()})
        self.nargs = {}
        return found

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
            configs = self.prune_configs(kwargs)
            is_timed = len(configs) > 1 and not settings.interpret
            self.cache[key] = self._look_up(configs, key, args, named, grid, kwargs) if is_timed else configs[0]
        return self.cache[key]

    def _key(self, named: Mapping[str, Any]) -> tuple:
        given = {name: value for name, value in named.items() if name in self.arg_names}
        values = [_key_of(given[name]) for name in self.keys if name in given]
        parts = [part for name, value in given.items() for _, part in leaves(name, value)]
        dtypes = [str(part.dtype) for part in parts if hasattr(part, "dtype")]
        return (*values, *dtypes)

    def prune_configs(self, kwargs: dict[str, Any]) -> list[Config]:
        """The configurations worth a trial: `nargs` has the positional arguments, `kwargs` the others."""
        configs = self.configs
        if self.early_config_prune is not None:
            configs = self.early_config_prune(configs, self.nargs, **kwargs)
        if not configs:
            raise AutotunerError(
                f"no valid autotuner configs after pruning: early_config_prune left no configuration of kernel "
                f"'{self.base_fn.__name__}'"
            )
        if self.perf_model is None:
            return list(configs)
        top_k = self.configs_top_k
        count = max(1, int(len(self.configs) * top_k)) if isinstance(top_k, float) else top_k
        named = {**self.nargs, **kwargs}
        return sorted(configs, key=lambda config: self.perf_model(**{**named, **config.all_kwargs()}))[:count]

    def _look_up(
        self,
        configs: Sequence[Config],
        key: tuple,
        args: Sequence[Any],
        named: dict[str, Any],
        grid: Grid,
        kwargs: dict[str, Any],
    ) -> Config:
        """The choice of an earlier process, where results are kept, else one that is made now."""
        is_kept = (self.cache_results or knobs.autotuning.cache) and all(c.pre_hook is None for c in configs)
        kept = StoredTimings(self.base_fn, configs, key) if is_kept else None
        found = kept.load() if kept else None
        if found is None:
            best = self._tune(configs, key, args, named, grid, kwargs)
            if kept:
                kept.store(self.configs_timings)
        else:
            self.configs_timings = found
            best = _fastest(found)
        if knobs.autotuning.listener is not None:
            knobs.autotuning.listener(
                fn=self.base_fn,
                key=key,
                best_config=best,
                configs_timings=self.configs_timings,
                duration=None if found else self.bench_time,
                cache_hit=found is not None,
            )
        return best

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
        if not self.user_defined_pre_hook:
            self.pre_hook(named, reset_only=True)
        if not self.configs_timings:
            raise AutotunerError(_all_failed(self.base_fn.__name__, failures))
        best = _fastest(self.configs_timings)
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
            if config.pre_hook is not None:
                config.pre_hook(everything)
            self.pre_hook(everything)
            try:
                launch_kernel(self.fn, grid, args, {**kwargs, **config.all_kwargs()})
            except Exception as error:
                self.post_hook(everything, exception=error)
                raise
            self.post_hook(everything, exception=None)

        return self.do_bench(launch, quantiles=QUANTILES)

    def _reset_and_copy(self, named: Mapping[str, Any], reset_only: bool = False) -> None:
        for name in self.reset_to_zero:
            if named.get(name) is not None:
                fill_with_zeros(named[name])
        if not reset_only:
            wanted = (name for name in self.restore_value if named.get(name) is not None)
            self.restore_copies = {name: copy_of(named[name]) for name in wanted}

    def _restore(self, named: Mapping[str, Any], exception: Exception | None) -> None:
        for name, content in self.restore_copies.items():
            write_back(named[name], content)
        self.restore_copies = {}


def _fastest(timings: Mapping[Config, Any]) -> Config:
    """By the first of the quantiles, the median."""
    return min(timings, key=lambda config: _first(timings[config]))


def _key_of(value: Any) -> Any:
    """What of an argument decides: a number itself, of an array in a tuple its type."""
    if isinstance(value, tuple):
        return tuple(str(item.dtype) if hasattr(item, "dtype") else _key_of(item) for item in value)
    return value


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
        pre_hook, post_hook: called before each trial with the arguments by name, and after it with `exception=` too;
            with one of these of one's own, nothing is reset, or restored.
        warmup, rep: milliseconds of each trial before and during the timing.
        do_bench: `do_bench(fn, quantiles=)` returns milliseconds; instead of `testing.do_bench`.
        cache_results: keep the choice on disk, for other processes.
        use_cuda_graph: accepted as Triton has it, without effect.

    Configurations that cannot be compiled or launched are skipped; where none is left, AutotunerError says why of each.
    A defect of Deuteron is raised.
    """

    def decorator(fn: Any) -> Autotuner:
        return Autotuner(
            fn,
            check_kernel(fn, "autotune").arg_names,
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook=pre_hook,
            post_hook=post_hook,
            prune_configs_by=prune_configs_by,
            warmup=warmup,
            rep=rep,
            use_cuda_graph=use_cuda_graph,
            do_bench=do_bench,
            cache_results=cache_results,
        )

    return decorator
