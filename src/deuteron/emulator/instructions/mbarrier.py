"""mbarrier.init, inval, arrive, arrive_drop, expect_tx, complete_tx, test_wait, try_wait, and cp.async.mbarrier.arrive.

    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;

try_wait blocks until the phase is complete, so a phase that never completes is a deadlock that is reported with the
state of the mbarrier; test_wait does not block.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.emulator.asynchronous.mbarriers import MBarrier
from deuteron.emulator.faults import blaming
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.machine.group import Group
from deuteron.emulator.machine.wait import Wait
from deuteron.emulator.machine.wave import Wave
from deuteron.emulator.machine.windows import SHARED_WINDOW, WINDOW_SIZE

RULES = Rules()


def _take_space(d: Decoding) -> bool:
    """Take order, scope, space and `.b64`; returns whether the address is generic."""
    d.flag("relaxed", "acquire", "release", "cta", "cluster", "sem")
    is_shared = d.flag("shared", "shared::cta", "shared::cluster")
    d.flag("b64")
    return not is_shared


def flat_addresses(wave: Wave, threads: np.ndarray, address: np.ndarray) -> np.ndarray:
    """Where the mbarriers of shared or generic addresses lie in flat shared memory."""
    window = np.uint64(SHARED_WINDOW)
    in_window = (address >= window) & (address < np.uint64(SHARED_WINDOW + WINDOW_SIZE))
    address = np.where(in_window, address - window, address)
    with blaming(threads):
        return wave.shared.flat_address(threads // wave.block_size, address, 8)


def barrier_at(wave: Wave, flat: int) -> MBarrier:
    return wave.mbarriers.at(int(flat), wave.shared_offset(int(flat)))


def _chosen(group: Group, mask: np.ndarray | None) -> np.ndarray:
    return np.arange(group.size) if mask is None else np.flatnonzero(mask)


def _each_barrier(group: Group, chosen: np.ndarray, address: np.ndarray, visit: Callable) -> None:
    """Call visit(barrier, positions) for every mbarrier that the threads name."""
    wave = group.wave
    flat = flat_addresses(wave, group.threads[chosen], address[chosen])
    for one in np.unique(flat):
        positions = chosen[flat == one]
        threads = group.threads[positions]
        with blaming(threads):
            if wave.checks is not None:
                wave.checks.use_mbarrier(threads, int(one))
            visit(barrier_at(wave, one), positions)
    wave.num_events += 1


@RULES.effect("mbarrier.init")
def decode_init(d: Decoding):
    _take_space(d)
    address, count = d.address(0), d.source(1, "u32")

    def run(group, mask):
        wave, chosen = group.wave, _chosen(group, mask)
        threads = group.threads[chosen]
        flat = flat_addresses(wave, threads, address(group)[chosen])
        for thread, one, number in zip(threads, flat.tolist(), count(group)[chosen].tolist(), strict=True):
            with blaming(np.array([thread])):
                wave.mbarriers.initialise(one, number, wave.shared_offset(one), int(thread))
                if wave.checks is not None:
                    wave.checks.change_mbarrier(int(thread), one, is_live=True)

    return run


@RULES.effect("mbarrier.inval")
def decode_inval(d: Decoding):
    _take_space(d)
    address = d.address(0)

    def run(group, mask):
        wave, threads = group.wave, group.threads[_chosen(group, mask)]
        flat = flat_addresses(wave, threads, address(group)[_chosen(group, mask)])
        for thread, one in zip(threads.tolist(), flat.tolist(), strict=True):
            with blaming(np.array([thread])):
                wave.mbarriers.invalidate(one, wave.shared_offset(one))
                if wave.checks is not None:
                    wave.checks.change_mbarrier(thread, one, is_live=False)

    return run


@RULES.effect("fence.mbarrier_init")
def decode_fence(d: Decoding):
    """What the thread initialised is visible to the blocks of its cluster, and to copies that complete on it."""
    d.choice("release")
    d.choice("cluster")

    def run(group, mask):
        wave, threads = group.wave, group.threads[_chosen(group, mask)]
        if wave.checks is None:
            return
        wave.checks.clocks.announce(threads)
        for thread, now in zip(threads.tolist(), wave.checks.clocks.now(threads).tolist(), strict=True):
            wave.mbarriers.fence(thread, now)

    return run


@RULES.effect("mbarrier.arrive", "mbarrier.arrive_drop")
def decode_arrive(d: Decoding):
    """Release what the thread did before; the state is the number of the phase."""
    drops = d.instruction.opcode.startswith("mbarrier.arrive_drop")
    expects = d.flag("expect_tx")
    d.flag("noComplete")
    _take_space(d)
    write = d.masked_set(d.operand(0), "b64")
    address = d.address(1)
    number = d.source(2, "u32") if d.has(2) else None

    def run(group, mask):
        numbers = None if number is None else number(group)
        states = np.zeros(group.size, np.uint64)

        def visit(barrier: MBarrier, positions: np.ndarray) -> None:
            count = len(positions) if expects or numbers is None else int(numbers[positions].sum())
            if expects:
                barrier.expect(int(numbers[positions].sum()))
            if group.wave.checks is not None:
                barrier.release(group.wave.checks.clocks.release(group.threads[positions]))
            if drops:
                barrier.count -= count
            states[positions] = barrier.arrive(count)

        chosen = _chosen(group, mask)
        _each_barrier(group, chosen, address(group), visit)
        write(group, states[chosen], mask)

    return run


@RULES.effect("mbarrier.expect_tx", "mbarrier.complete_tx")
def decode_transaction(d: Decoding):
    expects = d.instruction.opcode.startswith("mbarrier.expect_tx")
    _take_space(d)
    address, number = d.address(0), d.source(1, "u32")

    def run(group, mask):
        numbers = number(group)

        def visit(barrier: MBarrier, positions: np.ndarray) -> None:
            change = barrier.expect if expects else barrier.receive
            change(int(numbers[positions].sum()))

        _each_barrier(group, _chosen(group, mask), address(group), visit)

    return run


@RULES.effect("mbarrier.pending_count")
def decode_pending_count(d: Decoding):
    raise d.error("the state of an mbarrier is opaque here")


@RULES.effect("mbarrier.test_wait", "mbarrier.try_wait")
def decode_wait(d: Decoding):
    blocks = d.instruction.opcode.startswith("mbarrier.try_wait")
    by_parity = d.flag("parity")
    _take_space(d)
    write = d.masked_set(d.operand(0), "pred")
    address, state = d.address(1), d.source(2, "u32" if by_parity else "u64")

    def complete(group: Group, chosen: np.ndarray) -> np.ndarray:
        """Which of the threads wait for a phase that is over."""
        done = np.zeros(group.size, bool)
        wanted = state(group)

        def visit(barrier: MBarrier, positions: np.ndarray) -> None:
            if by_parity:
                done[positions] = wanted[positions] != (barrier.phase & 1)
            else:
                done[positions] = wanted[positions] < barrier.phase
            if group.wave.checks is not None and barrier.completed is not None and done[positions].any():
                group.wave.checks.clocks.acquire(group.threads[positions[done[positions]]], barrier.completed)

        _each_barrier(group, chosen, address(group), visit)
        return done

    def ready(waiting: Group) -> np.ndarray:
        events = waiting.wave.num_events
        done = complete(waiting, np.arange(waiting.size))
        waiting.wave.num_events = events
        return done

    def describe(waiting: Group) -> str:
        flat = flat_addresses(waiting.wave, waiting.threads[:1], address(waiting)[:1])[0]
        barrier = barrier_at(waiting.wave, flat)
        return f"waits for {f'parity {int(state(waiting)[0])} of ' if by_parity else ''}{barrier.describe()}"

    def run(group, mask):
        chosen = _chosen(group, mask)
        events = group.wave.num_events
        done = complete(group, chosen)
        group.wave.num_events = events
        if blocks and mask is None and not done.all():
            return group.scheduler.block(group, d.pc, Wait("mbarrier.try_wait", d.pc, ready, describe))
        write(group, done[chosen], mask)
        return None

    return run


@RULES.effect("cp.async.mbarrier.arrive")
def decode_copy_arrive(d: Decoding):
    """Arrives when the cp.async that the thread issued before are complete."""
    no_increment = d.flag("noinc")
    _take_space(d)
    address = d.address(0)

    def run(group, mask):
        wave, chosen = group.wave, _chosen(group, mask)
        flat = flat_addresses(wave, group.threads[chosen], address(group)[chosen])
        threads = group.threads[chosen]
        number = wave.asynchronous.copies.follow(threads)
        for one in np.unique(flat):
            barrier, mine = barrier_at(wave, one), threads[flat == one]
            if not no_increment:
                barrier.pending += len(mine)

            def arrive(barrier: MBarrier = barrier, mine: np.ndarray = mine) -> None:
                wave.asynchronous.copies.complete_before(mine, number)
                if wave.checks is not None:
                    barrier.release(wave.checks.clocks.release(mine))
                barrier.arrive(len(mine))

            wave.asynchronous.enqueue(arrive)

    return run
