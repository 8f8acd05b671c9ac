"""Loads and stores of any state space for the threads of a group: addresses to memory, with the checks.

    values = load(group, "shared", address, mask, 4, 2)      [threads of the mask, 2] of uint32
    store(group, "generic", address, mask, values)

A fault names the threads within the wave.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deuteron.emulator.faults import Fault, blaming
from deuteron.emulator.machine.global_memory import BITS
from deuteron.emulator.machine.group import Group
from deuteron.emulator.machine.windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE

SPACES = (
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "param",
    "param::entry",
    "param::func",
    "const",
)


def active(group: Group, mask: np.ndarray | None) -> np.ndarray:
    """The threads that take part."""
    return group.threads if mask is None else group.threads[mask]


def load(
    group: Group, space: str, address: np.ndarray, mask: np.ndarray | None, width: int, count: int, atomic: bool = False
) -> np.ndarray:
    """`count` adjacent unsigned integers of `width` bytes for every thread of the mask."""
    threads = active(group, mask)
    address = address if mask is None else address[mask]
    with blaming(threads):
        check_alignment(address, width * count)
        if space == "generic":
            return _load_generic(group, threads, address, width, count, atomic)
        return _load(group, space, threads, address, width, count, atomic)


def store(
    group: Group, space: str, address: np.ndarray, mask: np.ndarray | None, values: np.ndarray, atomic: bool = False
) -> None:
    """Store values [threads, count]; of threads with the same address the last one's stays."""
    threads = active(group, mask)
    if mask is not None:
        address, values = address[mask], values[mask]
    group.wave.num_events += 1
    with blaming(threads):
        check_alignment(address, values.itemsize * values.shape[1])
        if space == "generic":
            for part, where, base in _spaces_of(address):
                with blaming(where):
                    _store(group, part, threads[where], address[where] - np.uint64(base), values[where], atomic)
        else:
            _store(group, space, threads, address, values, atomic)


def check_alignment(address: np.ndarray, size: int) -> None:
    bad = (address & np.uint64(size - 1)) != 0
    if size > 1 and bad.any():
        message = f"accesses {size} bytes at address {int(address[bad][0]):#x}, which is no multiple of {size}"
        raise Fault("misaligned", message, np.flatnonzero(bad))


def _load_generic(
    group: Group, threads: np.ndarray, address: np.ndarray, width: int, count: int, atomic: bool
) -> np.ndarray:
    result = np.empty((len(address), count), BITS[width])
    for space, where, base in _spaces_of(address):
        with blaming(where):
            result[where] = _load(group, space, threads[where], address[where] - np.uint64(base), width, count, atomic)
    return result


def _spaces_of(address: np.ndarray) -> Iterator[tuple[str, np.ndarray, int]]:
    """The state spaces that generic addresses are in."""
    in_shared = (address >= np.uint64(SHARED_WINDOW)) & (address < np.uint64(SHARED_WINDOW + WINDOW_SIZE))
    in_local = (address >= np.uint64(LOCAL_WINDOW)) & (address < np.uint64(LOCAL_WINDOW + WINDOW_SIZE))
    spaces = [("shared", in_shared, SHARED_WINDOW), ("local", in_local, LOCAL_WINDOW)]
    spaces.append(("global", ~in_shared & ~in_local, 0))
    return ((space, np.flatnonzero(where), base) for space, where, base in spaces if where.any())


def _load(
    group: Group, space: str, threads: np.ndarray, address: np.ndarray, width: int, count: int, atomic: bool
) -> np.ndarray:
    wave = group.wave
    size = width * count
    if space.startswith("shared"):
        flat = wave.shared.flat_address(threads // wave.block_size, address, size)
        if wave.checks is not None:
            wave.checks.read(threads, flat, size, atomic)
        count_shared(group, threads, flat, size)
        return wave.shared.load_flat(flat, width, count)
    if space == "local":
        return wave.local.load_flat(wave.local.flat_address(threads, address, size), width, count)
    if wave.recorder is not None:
        wave.recorder.global_access(group.pc, wave.warp_of(threads), address, size)
    values = wave.memory.load(address, width, count)
    if wave.global_checks is not None and space == "global":
        wave.global_checks.read(threads, address, size, atomic)
    return values


def _store(
    group: Group, space: str, threads: np.ndarray, address: np.ndarray, values: np.ndarray, atomic: bool
) -> None:
    wave = group.wave
    size = values.itemsize * values.shape[1]
    if space.startswith("shared"):
        flat = wave.shared.flat_address(threads // wave.block_size, address, size)
        if wave.checks is None:
            wave.shared.store_flat(flat, values)
        else:
            wave.checks.store(threads, flat, values, atomic)
        count_shared(group, threads, flat, size)
    elif space == "local":
        wave.local.store_flat(wave.local.flat_address(threads, address, size), values)
    else:
        if wave.recorder is not None:
            wave.recorder.global_access(group.pc, wave.warp_of(threads), address, size)
        if wave.global_checks is not None:
            wave.memory.check_store(address, size)
            wave.global_checks.write(threads, address, values, atomic)
        wave.memory.store(address, values)


def count_shared(group: Group, threads: np.ndarray, flat: np.ndarray, size: int) -> None:
    wave = group.wave
    if wave.recorder is not None:
        lanes = threads % wave.block_size % 32
        wave.recorder.shared_access(group.pc, wave.warp_of(threads), lanes, flat % wave.shared.stride, size)
