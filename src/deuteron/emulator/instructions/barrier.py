"""bar.sync, bar.arrive, bar.red (also spelt barrier[.cta]), and barrier.cluster.

    bar.sync 1, 128;        waits until 128 threads of the block have come to barrier 1

`bar` and the `.aligned` forms need whole warps: a warp that has diverged there is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from deuteron.emulator.faults import Fault
from deuteron.emulator.instructions.convergence import WARP, wait_for_all
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.machine.barriers import Barrier
from deuteron.emulator.machine.group import Group
from deuteron.emulator.machine.wait import Wait
from deuteron.emulator.machine.wave import Wave

RULES = Rules()

CLUSTER = -1


@RULES.effect("bar", "barrier", "bar.cta", "barrier.cta")
def decode_bar(d: Decoding):
    is_aligned = d.instruction.opcode.startswith("bar.") or d.flag("aligned")
    action = d.choice("sync", "arrive", "red")
    if action == "red":
        return _decode_red(d, is_aligned)
    number, count = d.source(0, "u32"), d.source(1, "u32") if d.has(1) else None

    def run(group, mask):
        return _arrive(d, group, mask, number, count, action == "sync", None)

    return _aligned(d, run, is_aligned)


def _decode_red(d: Decoding, is_aligned: bool):
    operation = d.choice("popc", "and", "or")
    type = d.type()
    write = d.set(d.operand(0), type)
    has_count = len(d.operands) == 4
    number, count = d.source(1, "u32"), d.source(2, "u32") if has_count else None
    vote = d.source(3 if has_count else 2, "pred")
    reduce = {"popc": np.sum, "and": np.all, "or": np.any}[operation]
    if d.instruction.guard is not None:
        raise d.error("a guarded bar.red is not known")

    def finish(group):
        _write_votes(group, write, reduce, type)

    def run(group, mask):
        blocked = _arrive(d, group, mask, number, count, True, vote(group), finish)
        if blocked is None:
            finish(group)
        return blocked

    return _aligned(d, run, is_aligned)


def _write_votes(group: Group, write, reduce, type) -> None:
    places = group.wave.barrier_places[group.threads]
    values = np.zeros(group.size, np.uint32 if type != "pred" else bool)
    for (slot, number), round in _places(group):
        where = (group.slots == slot) & (places == (number, round)).all(1)
        values[where] = reduce(wave_barrier(group.wave, slot, number).results[round])
    write(group, values)


def _places(group: Group) -> set[tuple[tuple[int, int], int]]:
    """The barriers at which threads of a group are, and the rounds that they belong to."""
    numbers, rounds = group.wave.barrier_places[group.threads].T
    return {((slot, number), round) for slot, number, round in _distinct(group.slots, numbers, rounds)}


def _distinct(*columns: np.ndarray) -> set[tuple[int, ...]]:
    """The rows of these columns. Threads next to each other have mostly equal ones, of which one is looked at."""
    differs = [column[1:] != column[:-1] for column in columns]
    is_new = np.concatenate([[True], np.logical_or.reduce(differs)])
    return set(zip(*(column[is_new].tolist() for column in columns), strict=True))


def wave_barrier(wave: Wave, slot: int, number: int) -> Barrier:
    return wave.barriers.setdefault((slot, number), Barrier())


_DIVERGED = Fault("barrier divergence", "a barrier is executed by a part of a warp only")


def _aligned(d: Decoding, run: Callable, is_aligned: bool) -> Callable:
    """`run` once whole warps are at the barrier."""
    if not is_aligned:
        return run

    def whole(group, mask):
        blocked = wait_for_all(d.pc, group, mask, WARP, _DIVERGED)
        return run(group, mask) if blocked is None else blocked

    return whole


def _arrive(d: Decoding, group: Group, mask, number, count, waits: bool, votes, finish=None) -> int | None:
    """Arrive at the barriers that the threads name; returns None where none of them has to be waited for."""
    wave = group.wave
    chosen = np.arange(group.size) if mask is None else np.flatnonzero(mask)
    threads, numbers = group.threads[chosen], number(group)[chosen]
    counts = None if count is None else count(group)[chosen]
    slots = threads // wave.block_size
    for key in sorted(_distinct(slots, numbers)):
        where = np.flatnonzero((slots == key[0]) & (numbers == key[1]))
        expected = None if counts is None else int(counts[where[0]])
        _check_count(threads[where], key[1], expected)
        for part in _rounds(wave, key, threads, where, expected):
            voting = None if votes is None else votes[chosen[part]]
            round = wave_barrier(wave, *key).arrive(threads[part], expected, waits, voting)
            wave.barrier_places[threads[part]] = key[1], round
            _complete(wave, key)
    wave.num_events += 1
    if not waits or _are_over(group, chosen).all():
        return None
    return _block(d, group, finish)


def _rounds(wave: Wave, key, threads: np.ndarray, where: np.ndarray, expected: int | None) -> Iterator[np.ndarray]:
    """Threads that come together, in parts that a round of the barrier takes: warps that are too many wait for the
    next one, and which they are nobody knows."""
    room = len(where) if expected is None else expected - wave_barrier(wave, *key).num_arrived
    if len(where) > room and wave.launch.options.asynchronous == "random":
        warps = wave.random.permutation(wave.num_threads)[wave.warp_of(threads[where])]
        where = where[np.argsort(warps, kind="stable")]
    while len(where):
        yield np.sort(where[:room])
        where, room = where[room:], expected


def _are_over(group: Group, chosen: np.ndarray) -> np.ndarray:
    """Whether the rounds in which threads arrived are over."""
    wave = group.wave
    slots, (numbers, rounds) = group.slots[chosen], wave.barrier_places[group.threads[chosen]].T
    over = np.zeros(len(chosen), bool)
    for key in _distinct(slots, numbers):
        over |= (slots == key[0]) & (numbers == key[1]) & (rounds < wave_barrier(wave, *key).round)
    return over


def _check_count(threads: np.ndarray, number: int, expected: int | None) -> None:
    if not 0 <= number < 16:
        raise Fault("barrier", f"barrier {number} does not exist: there are 0 to 15", threads)
    if expected is not None and (expected % 32 or not expected):
        raise Fault("barrier", f"a barrier's thread count must be a multiple of 32, got {expected}", threads)


def _complete(wave: Wave, key: tuple[int, int]) -> bool:
    threads = wave_barrier(wave, *key).complete(wave.alive_in_block(key[0]))
    if threads is not None and wave.checks is not None:
        wave.checks.synchronise(*threads)
    return threads is not None


def _block(d: Decoding, group: Group, finish) -> int:
    """Wait until the rounds that the threads arrived in are over."""
    wave = group.wave

    def ready(waiting: Group) -> np.ndarray:
        for key, round in _places(waiting):
            if wave_barrier(wave, *key).round == round:
                _complete(wave, key)  # threads that exited since may have been the last ones missing
        return _are_over(waiting, np.arange(waiting.size))

    def describe(waiting: Group) -> str:
        slot, number = min(key for key, _ in _places(waiting))
        barrier = wave_barrier(wave, slot, number)
        expected = barrier.expected or wave.alive_in_block(slot)
        return f"{barrier.num_arrived} of {expected} threads arrived at barrier {number}"

    return group.scheduler.block(group, d.pc + 1, Wait("barrier", d.pc, ready, describe, finish))


@RULES.effect("barrier.cluster")
def decode_cluster_barrier(d: Decoding):
    """`arrive` and `wait` in two instructions, over all threads of the cluster."""
    action = d.choice("arrive", "wait")
    is_relaxed = d.flag("relaxed")
    d.flag("release", "acquire")
    d.flag("aligned")
    if action == "arrive":
        return lambda group, mask: _cluster_arrive(group, mask, not is_relaxed)
    return lambda group, mask: _cluster_wait(d, group)


def _cluster_threads(wave: Wave, cluster: int) -> slice:
    size = wave.shared.cluster_size * wave.block_size
    return slice(cluster * size, (cluster + 1) * size)


def _clusters(group: Group) -> np.ndarray:
    return group.slots // group.wave.shared.cluster_size


def _cluster_arrive(group: Group, mask, releases: bool) -> None:
    wave = group.wave
    threads = group.threads if mask is None else group.threads[mask]
    clusters = threads // (wave.shared.cluster_size * wave.block_size)
    for cluster in np.unique(clusters).tolist():
        barrier = wave_barrier(wave, cluster, CLUSTER)
        mine = threads[clusters == cluster]
        again = wave.cluster_rounds[mine] >= 0
        if again.any():
            raise Fault("barrier", "arrives at the cluster barrier again without having waited", mine[again])
        wave.cluster_rounds[mine] = barrier.arrive(mine, None, True, np.full(len(mine), releases))
    wave.num_events += 1


def _complete_cluster(wave: Wave, cluster: int) -> Barrier:
    barrier = wave_barrier(wave, cluster, CLUSTER)
    alive = int(wave.alive[_cluster_threads(wave, cluster)].sum())
    threads = barrier.complete(alive)
    if threads is not None and wave.checks is not None:
        arrived, waiting = threads
        wave.checks.synchronise_cluster(arrived, barrier.results.pop(barrier.round - 1), waiting)
    return barrier


def _cluster_wait(d: Decoding, group: Group) -> int | None:
    wave = group.wave
    if (wave.cluster_rounds[group.threads] < 0).any():
        raise Fault("barrier", "waits at the cluster barrier without having arrived", group.threads)

    def ready(waiting: Group) -> np.ndarray:
        clusters = _clusters(waiting)
        done = np.zeros(waiting.size, bool)
        for cluster in np.unique(clusters).tolist():
            round = _complete_cluster(wave, cluster).round
            done |= (clusters == cluster) & (round > wave.cluster_rounds[waiting.threads])
        return done

    def describe(waiting: Group) -> str:
        barrier = wave_barrier(wave, int(_clusters(waiting)[0]), CLUSTER)
        return f"{barrier.num_arrived} threads arrived at the barrier of the cluster"

    def finish(waiting: Group) -> None:
        wave.cluster_rounds[waiting.threads] = -1

    if not ready(group).all():
        return group.scheduler.block(group, d.pc + 1, Wait("barrier.cluster", d.pc, ready, describe, finish))
    finish(group)
    return None
