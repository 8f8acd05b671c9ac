"""`triton.ops.matmul_perf_model`, by which programs of Triton 2 prune the configurations of a matrix product.

    @triton.autotune(configs, key=["M", "N", "K"], prune_configs_by={
        "early_config_prune": early_config_prune,     those whose tiles fit into shared memory
        "perf_model": estimate_matmul_time,           the `top_k` of these that take the least time by this model
        "top_k": 10})

Triton took it out in 3.0 with the other modules of `triton.ops`, which are not here. The model knows a wave of programs
on as many multiprocessors, and that each is as slow as the slower of its arithmetic and its loads: it ranks
configurations, and the milliseconds that it gives are no forecast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deuteron.runtime import driver
from deuteron.runtime.autotuning.config import Config

# What one multiprocessor does in a millisecond, of the order of an H100's.
_OPERATIONS = 4e9  # of fp16; half of these of fp32
_BYTES = 2e7


def early_config_prune(configs: Sequence[Config], named_args: Mapping[str, Any], **kwargs: Any) -> list[Config]:
    """The configurations whose tiles of A and B fit into shared memory in all stages; all, where none does."""
    element_bytes = _element_bytes({**named_args, **kwargs}["A"])
    limit = _properties()["max_shared_mem"]
    return [config for config in configs if _tile_bytes(config, element_bytes) <= limit] or list(configs)


def _tile_bytes(config: Config, element_bytes: int) -> int:
    sizes = config.kwargs
    return (sizes["BLOCK_M"] + sizes["BLOCK_N"]) * sizes["BLOCK_K"] * config.num_stages * element_bytes


def estimate_matmul_time(
    *, A: Any, M: int, N: int, K: int, BLOCK_M: int, BLOCK_N: int, BLOCK_K: int, SPLIT_K: int = 1, **others: Any
) -> float:
    """Milliseconds that a matrix product takes by the model; what else a launch is given has no part in it."""
    element_bytes = _element_bytes(A)
    steps = -(-K // (BLOCK_K * SPLIT_K))
    arithmetic = 2 * BLOCK_M * BLOCK_N * BLOCK_K * steps * (element_bytes / 2) / _OPERATIONS
    loads = (BLOCK_M + BLOCK_N) * BLOCK_K * steps * element_bytes / _BYTES
    stores = BLOCK_M * BLOCK_N * element_bytes * (1 if SPLIT_K == 1 else 2) / _BYTES  # atomics load as well
    programs = -(-M // BLOCK_M) * -(-N // BLOCK_N) * SPLIT_K
    waves = -(-programs // _properties()["multiprocessor_count"])
    return waves * (max(arithmetic, loads) + stores)


def _properties() -> Mapping[str, int]:
    active = driver.active
    return active.utils.get_device_properties(active.get_current_device())


def _element_bytes(array: Any) -> int:
    return array.element_size() if hasattr(array, "element_size") else array.dtype.itemsize


PERF_MODEL_NAMES = {"early_config_prune": early_config_prune, "estimate_matmul_time": estimate_matmul_time}
