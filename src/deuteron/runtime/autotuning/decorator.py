"""`@autotune`, which makes an `Autotuner` of a kernel.

@deuteron.autotune(configs=[Config({"BLOCK": 128}), Config({"BLOCK": 1024})], key=["n"])
@deuteron.jit
def scale(x_ptr, n, BLOCK: tl.constexpr): ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from deuteron.errors import UsageError
from deuteron.runtime.autotuning.autotuner import Autotuner, Hook
from deuteron.runtime.autotuning.config import Config
from deuteron.runtime.autotuning.torch_autotuners import is_torchs
from deuteron.runtime.interface import check_kernel
from deuteron.tracebacks import api_boundary


@api_boundary
def autotune(
    configs: Sequence[Config],
    key: Sequence[str] | None = None,
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool | str | Path = False,
) -> Callable[[Any], Autotuner]:
    """Decorator: finds a kernel's configuration by timing.

    Args:
        configs: what is tried.
        key: parameters; when the value of one changes, the configurations are timed again.
        prune_configs_by: `early_config_prune(configs, named_args, **kwargs)` returns the configurations worth a
            trial; `perf_model(**args)` estimates a time, and the `top_k` best (a float is a share) are tried.
        reset_to_zero: array parameters that are set to zero before every trial, and once after the last.
        restore_value: array parameters that get their content back after every trial.
        pre_hook, post_hook: called before each trial with the arguments by name, after the last one with
            `reset_only=True` if it takes that; and after each with `exception=` too. With one of these of one's own,
            nothing is reset, or restored.
        warmup, rep: milliseconds of each trial before and during the timing.
        do_bench: `do_bench(fn, quantiles=)` returns milliseconds; instead of `testing.do_bench`.
        cache_results: keep the timings on disk, for other processes: in the cache folder, or in a folder or a `.json`
            that is named. DEUTERON_TUNED_DIR names a folder for all kernels.
        use_cuda_graph: time by `testing.do_bench_cudagraph`.

    Configurations that cannot be compiled or launched are skipped, and so are those that spill registers where others
    do not; where none is left, the error that all have is raised, else an AutotunerError with the reasons. A defect of
    Deuteron is raised.
    """
    if key is None:
        raise UsageError("@autotune needs configurations and a key: @autotune(configs=[...], key=[...])")

    def decorator(fn: Any) -> Autotuner:
        with api_boundary:
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
                made_by_torch=is_torchs(sys._getframe(1)),
            )

    return decorator
