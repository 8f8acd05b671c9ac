"""Instructions that threads execute together, all of a warp or of a warpgroup: who comes early waits for the others.

    run = together(d, 128, run)        `run` once all threads of the warpgroup are at the instruction

Groups come here in parts where a join has given up (see `deuteron.emulator.machine.join`): on a GPU the others would
have come as well. They are at fault only if they never do.
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.faults import Fault
from deuteron.emulator.instructions.accesses import active
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.machine.group import Group
from deuteron.emulator.machine.wait import Wait
from deuteron.emulator.machine.wave import Wave
from deuteron.emulator.step import Run

WARP, WARPGROUP = 32, 128
_NAMES = {WARP: "warp", WARPGROUP: "warpgroup"}


def together(d: Decoding, size: int, run: Run, fault: Fault | None = None) -> Run:
    """`run(group)` once all threads of each warp or warpgroup (`size`) are here; none of them may have exited."""
    name, pc = _NAMES[size], d.pc
    fault = fault or Fault(f"{name} divergence", f"is executed by a part of a {name} only")

    def whole(group: Group, mask: np.ndarray | None) -> int | None:
        if mask is not None or len(_absent(group.wave, group.threads, size, alive=False)) != 0:
            raise Fault(fault.kind, fault.message, active(group, mask))
        blocked = wait_for_all(pc, group, mask, size, fault)
        return run(group) if blocked is None else blocked

    return whole


def wait_for_all(pc: int, group: Group, mask: np.ndarray | None, size: int, fault: Fault) -> int | None:
    """Block the group until all threads of its warps or warpgroups that have not exited are at this instruction; None
    where they are."""
    threads = active(group, mask)
    missing = _absent(group.wave, threads, size, alive=True)
    if not len(missing):
        leave(group, pc)
        return None
    if np.isin(missing, group.threads).any():
        raise Fault(fault.kind, fault.message, threads)
    return block_for(group, pc, missing, size, fault)


def _absent(wave: Wave, threads: np.ndarray, size: int, alive: bool) -> np.ndarray:
    """Threads of the same warps or warpgroups that are alive, or have exited or never were, but these."""
    if len(threads) % size == 0 and _are_whole(wave, threads, size):
        return threads[:0]
    slots, numbers = np.divmod(np.unique(_units(wave, threads, size)), -(-wave.block_size // size))
    local = numbers[:, None] * size + np.arange(size)
    others = np.where(local < wave.block_size, slots[:, None] * wave.block_size + local, -1).reshape(-1)
    is_alive = (others >= 0) & wave.alive[others]
    return others[(is_alive == alive) & ~np.isin(others, threads)]


def leave(group: Group, pc: int) -> None:
    """The threads of the group do not wait at this instruction any more."""
    if pc in group.wave.converging:
        group.wave.converging[pc][group.threads] = False


def block_for(group: Group, pc: int, missing: np.ndarray, size: int, fault: Fault) -> int:
    """Block the group until the threads that are missing in its warps (or warpgroups) are at the instruction."""
    wave = group.wave
    arrived = wave.converging.setdefault(pc, np.zeros(wave.num_threads, bool))
    arrived[group.threads] = True

    def ready(waiting: Group) -> np.ndarray:
        still = missing[wave.alive[missing] & ~arrived[missing]]
        return ~np.isin(_units(wave, waiting.threads, size), _units(wave, still, size))

    def describe(waiting: Group) -> str:
        return fault.message

    return group.scheduler.block(group, pc, Wait(fault.kind, pc, ready, describe, None, fault, missing))


def _are_whole(wave: Wave, threads: np.ndarray, size: int) -> bool:
    """Whether ascending threads are all of some warps or warpgroups."""
    first = threads[::size]
    return bool((first % wave.block_size % size == 0).all() and (threads[size - 1 :: size] - first == size - 1).all())


def _units(wave: Wave, threads: np.ndarray, size: int) -> np.ndarray:
    """The number within the wave of each thread's warp or warpgroup."""
    slots, local = np.divmod(threads, wave.block_size)
    return slots * -(-wave.block_size // size) + local // size
