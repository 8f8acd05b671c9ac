"""Special registers: where a thread is, and what the launch looks like.

special(wave, "%tid.x")      one value for every thread of the wave, uint32 (clocks: uint64)
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.faults import Fault
from deuteron.emulator.machine.launch_state import LaunchState
from deuteron.emulator.machine.wave import Wave

_AXES = {"x": 0, "y": 1, "z": 2, "w": 3}


def special(wave: Wave, name: str) -> np.ndarray:
    """The value of a special register for every thread of a wave."""
    if "clock" in name or "timer" in name:
        return _value(wave, name)
    if name not in wave.specials:
        wave.specials[name] = _value(wave, name)
    return wave.specials[name]


def _value(wave: Wave, name: str) -> np.ndarray:
    base, _, axis = name.partition(".")
    if base in _OF_LAUNCH:
        return np.full(wave.num_threads, _OF_LAUNCH[base](wave.launch, _AXES.get(axis, 0)), np.uint32)
    if base not in _OF_THREAD:
        raise Fault("unknown register", f"the special register {name} is not known")
    values = _OF_THREAD[base](wave, _AXES.get(axis, 0))
    return values.astype(np.uint64 if base in ("%clock64", "%globaltimer") else np.uint32)


def _num_clusters(launch: LaunchState, axis: int) -> int:
    return (*(-(-g // c) for g, c in zip(launch.grid, launch.cluster, strict=True)), 1)[axis]


_OF_LAUNCH = {
    "%ntid": lambda launch, axis: (*launch.block, 1)[axis],
    "%nctaid": lambda launch, axis: (*launch.grid, 1)[axis],
    "%cluster_nctaid": lambda launch, axis: (*launch.cluster, 1)[axis],
    "%nclusterid": _num_clusters,
    "%cluster_nctarank": lambda launch, axis: launch.cluster_size,
    "%nwarpid": lambda launch, axis: -(-launch.block_size // 32),
    "%nsmid": lambda launch, axis: 132,
    "%gridid": lambda launch, axis: 0,
    "%dynamic_smem_size": lambda launch, axis: launch.dynamic_shared,
    "%total_smem_size": lambda launch, axis: launch.shared_bytes,
    "%aggr_smem_size": lambda launch, axis: launch.shared_bytes,
}


def _threads(wave: Wave) -> np.ndarray:
    return np.arange(wave.num_threads) % wave.block_size


def _tid(wave: Wave, axis: int) -> np.ndarray:
    x, y, _ = wave.launch.block
    index = _threads(wave)
    return (index % x, index // x % y, index // (x * y), index * 0)[axis]


def _ctaid(wave: Wave, axis: int) -> np.ndarray:
    coordinates = np.array([(*wave.launch.block_index(int(block)), 0) for block in wave.blocks])
    return np.repeat(coordinates[:, axis], wave.block_size)


def _cluster_ctaid(wave: Wave, axis: int) -> np.ndarray:
    return _ctaid(wave, axis) % (*wave.launch.cluster, 1)[axis]


def _clusterid(wave: Wave, axis: int) -> np.ndarray:
    return _ctaid(wave, axis) // (*wave.launch.cluster, 1)[axis]


def _cluster_rank(wave: Wave, axis: int) -> np.ndarray:
    x, y, _ = wave.launch.cluster
    return _cluster_ctaid(wave, 0) + x * (_cluster_ctaid(wave, 1) + y * _cluster_ctaid(wave, 2))


def _lane(wave: Wave, axis: int) -> np.ndarray:
    return _threads(wave) % 32


def _lane_mask(compare):
    def value(wave: Wave, axis: int) -> np.ndarray:
        lanes = np.arange(32)
        masks = [sum(1 << other for other in range(32) if compare(other, lane)) for lane in range(32)]
        assert len(lanes) == len(masks)
        return np.array(masks, np.uint32)[_lane(wave, axis)]

    return value


_OF_THREAD = {
    "%tid": _tid,
    "%ctaid": _ctaid,
    "%cluster_ctaid": _cluster_ctaid,
    "%clusterid": _clusterid,
    "%cluster_ctarank": _cluster_rank,
    "%laneid": _lane,
    "%warpid": lambda wave, axis: _threads(wave) // 32,
    "%smid": lambda wave, axis: np.repeat(wave.blocks, wave.block_size) % 132,
    "%lanemask_eq": _lane_mask(lambda other, lane: other == lane),
    "%lanemask_lt": _lane_mask(lambda other, lane: other < lane),
    "%lanemask_le": _lane_mask(lambda other, lane: other <= lane),
    "%lanemask_gt": _lane_mask(lambda other, lane: other > lane),
    "%lanemask_ge": _lane_mask(lambda other, lane: other >= lane),
    "%clock": lambda wave, axis: np.full(wave.num_threads, wave.num_events),
    "%clock_hi": lambda wave, axis: np.zeros(wave.num_threads, np.int64),
    "%clock64": lambda wave, axis: np.full(wave.num_threads, wave.num_events),
    "%globaltimer": lambda wave, axis: np.full(wave.num_threads, wave.num_events),
    "%is_explicit_cluster": lambda wave, axis: np.full(wave.num_threads, wave.launch.has_cluster),
}
