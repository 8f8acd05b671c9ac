"""cp.async.bulk and cp.async.bulk.tensor (tile mode), their reductions, commit and wait, prefetches.

cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from deuteron.emulator.asynchronous.tensor_map import TensorMap, from_bytes
from deuteron.emulator.asynchronous.transfers import Inward, Outward, with_thread
from deuteron.emulator.faults import Fault
from deuteron.emulator.instructions.accesses import active
from deuteron.emulator.instructions.atomic import operation
from deuteron.emulator.instructions.mbarrier import barrier_at, flat_addresses
from deuteron.emulator.instructions.operands import Decoding, Getter
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.machine.group import Group
from deuteron.emulator.machine.wave import Wave
from deuteron.emulator.machine.windows import OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW
from deuteron.ptx.syntax import Memory

RULES = Rules()

_SHARED = ("shared::cluster", "shared::cta")
_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def _threads(group: Group, mask: np.ndarray | None) -> Iterator[tuple[int, int]]:
    """Position and number of every thread that takes part."""
    positions = range(group.size) if mask is None else np.flatnonzero(mask).tolist()
    return ((position, int(group.threads[position])) for position in positions)


def _take_destination(d: Decoding) -> bool:
    """Take the two state spaces; returns whether the copy goes into shared memory."""
    first = next(name for name in d.modifiers if name in (*_SHARED, "global"))
    d.modifiers.remove(first)
    d.flag("global", *_SHARED)
    return first != "global"


def _multicast(d: Decoding, position: int) -> Getter | None:
    return d.source(position, "u16") if d.flag("multicast::cluster") else None


def _targets(wave: Wave, thread: int, address: int, mask: int | None) -> list[int]:
    """Shared addresses that a copy writes: its own, or the same offset in every block of the multicast mask."""
    if mask is None:
        return [address]
    offset = address & OFFSET_MASK
    return [offset | (rank + 1) << RANK_SHIFT for rank in range(wave.shared.cluster_size) if mask >> rank & 1]


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise Fault("bulk copy", message)


def _shared_address(address: int) -> int:
    return address - SHARED_WINDOW if address >= SHARED_WINDOW else address


def _flat(wave: Wave, thread: int, address: np.ndarray) -> np.ndarray:
    """Flat indices of byte addresses in shared memory, seen from a thread."""
    flat = address.reshape(-1).astype(np.uint64)
    slots = np.full(flat.shape, thread // wave.block_size)
    return wave.shared.flat_address(slots, flat, 1).reshape(address.shape)


@RULES.effect("cp.async.bulk")
def decode_bulk(d: Decoding):
    if d.flag("prefetch"):
        d.modifiers.clear()
        return lambda group, mask: None
    from_shared = "global" not in d.modifiers
    inward = _take_destination(d)
    d.flag("mbarrier::complete_tx::bytes", "bulk_group")
    multicast = _multicast(d, 4)
    d.flag("L2::cache_hint")
    label = f"the cp.async.bulk of PTX line {d.instruction.line}"
    destination, source, size = d.address(0), d.address(1), d.source(2, "u32")
    barrier = d.address(3) if inward else None

    def run(group, mask):
        wave = group.wave
        to, at, sizes = destination(group), source(group), size(group)
        for position, thread in _threads(group, mask):
            count, where = int(sizes[position]), int(at[position])
            with_thread(thread, lambda c=count, w=where, t=int(to[position]): _check_bulk(c, w, t))
            if inward:
                targets = None if multicast is None else int(multicast(group)[position])
                read = _bulk_reader(wave, thread, where, count, from_shared)
                parts = _parts(
                    wave, thread, int(to[position]), np.arange(count), int(barrier(group)[position]), targets
                )
                Inward(wave, thread, parts, count, read, label).issue()
            else:
                flat = _flat(wave, thread, _shared_address(where) + np.arange(count))
                target = to[position : position + 1]
                with_thread(thread, lambda a=target, c=count: wave.memory.load(a, 1, c))  # bounds, at the instruction
                Outward(wave, thread, flat, _bulk_writer(wave, int(to[position])), label).issue()

    return run


def _check_bulk(count: int, source: int, destination: int) -> None:
    _check(count > 0 and count % 16 == 0, f"copies {count} bytes: it must be a multiple of 16")
    _check(source % 16 == 0 and destination % 16 == 0, "copies between addresses that are no multiples of 16")


def _parts(wave: Wave, thread: int, start: int, offsets: np.ndarray, barrier: int, targets: int | None) -> list:
    """For every block that receives: the flat bytes and the mbarrier."""
    start, barrier = _shared_address(start), _shared_address(barrier)
    threads = np.array([thread])
    parts = []
    own = _targets(wave, thread, start, targets), _targets(wave, thread, barrier, targets)
    for address, signal in zip(*own, strict=True):
        flat = with_thread(thread, lambda a=address: _flat(wave, thread, a + offsets))
        found = flat_addresses(wave, threads, np.array([signal], np.uint64))[0]
        parts.append((flat, with_thread(thread, lambda f=found: barrier_at(wave, f))))
    return parts


def _bulk_reader(wave: Wave, thread: int, source: int, count: int, from_shared: bool) -> Callable[[], np.ndarray]:
    if from_shared:
        flat = _flat(wave, thread, _shared_address(source) + np.arange(count))
        if wave.checks is not None:
            granules = wave.checks.granules_of(flat)
            with_thread(thread, lambda: wave.checks.check_async_read(np.array([thread]), granules, "a bulk copy"))
        return lambda: wave.shared.data[flat]
    return lambda: wave.memory.load(np.array([source], np.uint64), 1, count)[0]


def _bulk_writer(wave: Wave, destination: int) -> Callable[[np.ndarray], None]:
    return lambda data: wave.memory.store(np.array([destination], np.uint64), data[None, :])


def _tensor_map(wave: Wave, address: int) -> TensorMap:
    """The map whose 128 bytes are at an address."""
    allocation = wave.memory.find(address)
    _check(address % 64 == 0, "uses a tensor map that is not at a multiple of 64 bytes")
    found = None
    if allocation is not None and address + 128 <= allocation.end:
        start = address - allocation.origin
        found = from_bytes(allocation.views[1][start : start + 128].tobytes())
    _check(found is not None, f"uses address {address:#x} as a tensor map, which is none")
    return found


class _TensorOperands:
    """The operands of a tensor copy: the map with its coordinates, the shared address."""

    def __init__(self, d: Decoding, map_position: int, shared_position: int):
        self.dims = int(d.choice("1d", "2d", "3d", "4d", "5d")[0])
        d.flag("tile")
        operand = d.operand(map_position)
        if not isinstance(operand, Memory) or operand.coordinates is None:
            raise d.error("expected a tensor map with coordinates")
        if len(operand.coordinates.elements) != self.dims:
            raise d.error(f"expected {self.dims} coordinates")
        self.map = d.address_of(operand)
        self.coordinates = [d.get(element, "s32") for element in operand.coordinates.elements]
        self.shared = d.address(shared_position)

    def resolve(self, group: Group, position: int) -> tuple[TensorMap, list[int], int]:
        tensor = _tensor_map(group.wave, int(self.map(group)[position]))
        start = _shared_address(int(self.shared(group)[position]))
        _check(
            tensor.array.ndim == self.dims,
            f"has {self.dims} coordinates for a tensor of {tensor.array.ndim} dimensions",
        )
        _check(start % 128 == 0, f"uses shared address {start:#x}, which is no multiple of 128")
        coordinates = [int(read(group)[position]) for read in self.coordinates]
        offset = coordinates[0] * tensor.itemsize
        # Not in the PTX manual; an H200 answers with "illegal instruction".
        _check(offset % 16 == 0, f"starts {offset} bytes into the innermost dimension, which is no multiple of 16")
        return tensor, coordinates, start


@RULES.effect("cp.async.bulk.tensor")
def decode_tensor(d: Decoding):
    inward = _take_destination(d)
    d.flag("mbarrier::complete_tx::bytes", "bulk_group")
    multicast = _multicast(d, 3)
    d.flag("L2::cache_hint")
    operands = _TensorOperands(d, 1 if inward else 0, 0 if inward else 1)
    barrier = d.address(2) if inward else None
    label = f"the cp.async.bulk.tensor of PTX line {d.instruction.line}"

    def run(group, mask):
        wave = group.wave
        for position, thread in _threads(group, mask):
            resolve = lambda p=position: operands.resolve(group, p)  # noqa: E731
            tensor, coordinates, start = with_thread(thread, resolve)
            if inward:
                targets = None if multicast is None else int(multicast(group)[position])
                offsets = tensor.shared_addresses(start & OFFSET_MASK) - (start & OFFSET_MASK)
                parts = _parts(wave, thread, start, offsets, int(barrier(group)[position]), targets)
                read = lambda t=tensor, c=coordinates: t.read(c)  # noqa: E731
                Inward(wave, thread, parts, tensor.box_bytes, read, label).issue()
            else:
                flat = _flat(wave, thread, tensor.shared_addresses(start))
                with_thread(thread, lambda t=tensor, c=coordinates: t.check_write(c))
                write = lambda data, t=tensor, c=coordinates: t.write(c, data)  # noqa: E731
                Outward(wave, thread, flat, write, label).issue()

    return run


@RULES.effect("cp.reduce.async.bulk.tensor")
def decode_reduce_tensor(d: Decoding):
    d.flag("global", "bulk_group", "L2::cache_hint", *_SHARED)
    name = d.choice(*_OPERATIONS)
    operands = _TensorOperands(d, 0, 1)
    label = f"the cp.reduce.async.bulk.tensor of PTX line {d.instruction.line}"

    def run(group, mask):
        for position, thread in _threads(group, mask):
            tensor, coordinates, start = operands.resolve(group, position)
            # Not in the PTX manual; an H200 answers with "illegal instruction".
            _check(tensor.type != "s64" or name in ("min", "max"), f"does '{name}' to signed integers of 64 bits")
            flat = _flat(group.wave, thread, tensor.shared_addresses(start))
            combine = operation(name, tensor.type)
            with_thread(thread, lambda t=tensor, c=coordinates: t.check_write(c))
            write = lambda data, t=tensor, c=coordinates, f=combine: t.write(c, data, f)  # noqa: E731
            Outward(group.wave, thread, flat, write, label).issue()

    return run


@RULES.effect("cp.async.bulk.prefetch.tensor", "prefetch.tensormap")
def decode_prefetch(d: Decoding):
    d.modifiers.clear()
    return lambda group, mask: None


@RULES.effect("cp.async.bulk.commit_group")
def decode_commit(d: Decoding):

    def run(group, mask):
        threads, state = active(group, mask), group.wave.asynchronous
        state.stores.commit(threads)
        state.writes.commit(threads)

    return run


@RULES.effect("cp.async.bulk.wait_group")
def decode_wait(d: Decoding):
    """`.read` waits for the reads only."""
    reads_only = d.flag("read")
    keep = d.immediate(0)

    def run(group, mask):
        threads, state = active(group, mask), group.wave.asynchronous
        state.stores.wait(threads, keep)
        if not reads_only:
            state.writes.wait(threads, keep)

    return run
