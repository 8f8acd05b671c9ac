"""wgmma: dots of a warpgroup (128 threads) with operands in shared memory, in flight until they are waited for.

    wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%r1, ...}, %rd1, %rd2, %p1, 1, 1, 0, 0;

Registers of A are read when it is issued, shared memory and the accumulators at some moment before the wait is over.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from deuteron.emulator.asynchronous.descriptors import Descriptor
from deuteron.emulator.asynchronous.warpgroup import Wgmma
from deuteron.emulator.faults import Fault, blaming
from deuteron.emulator.instructions.convergence import WARPGROUP, together
from deuteron.emulator.instructions.fragments import gather_a, gather_c, scatter_c
from deuteron.emulator.instructions.mma import INTEGERS, UNPACK, to_accumulator
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.machine.group import Group
from deuteron.emulator.machine.wave import Wave
from deuteron.ptx.syntax import Register, Vector

RULES = Rules()

_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}


@RULES.effect("wgmma.fence", allows_in_flight=True)
def decode_fence(d: Decoding):
    d.flag("sync", "aligned")
    return together(d, WARPGROUP, lambda group: None)


@RULES.effect("wgmma.commit_group", allows_in_flight=True)
def decode_commit(d: Decoding):
    d.flag("sync", "aligned")

    return together(d, WARPGROUP, lambda group: group.wave.asynchronous.wgmmas.commit(group.threads))


@RULES.effect("wgmma.wait_group", allows_in_flight=True)
def decode_wait(d: Decoding):
    d.flag("sync", "aligned")
    keep = d.immediate(0)

    return together(d, WARPGROUP, lambda group: group.wave.asynchronous.wgmmas.wait(group, keep))


class Form:
    """What the opcode and the constant operands say. `d` is left without modifiers."""

    def __init__(self, d: Decoding):
        shape = next((name for name in d.modifiers if re.fullmatch(r"m64n\d+k\d+", name)), None)
        if shape is None:
            raise d.error("has a shape that is not known")
        self.saturates = d.flag("satfinite")
        d.flag("sync", "aligned", shape)
        _, self.n, self.k = (int(size) for size in re.findall(r"\d+", shape))
        self.result, self.a_type, self.b_type = d.modifiers
        d.modifiers.clear()
        self.a_bytes = _BYTES[self.a_type]
        if self.k * self.a_bytes != 32 or self.n % 8 or not 8 <= self.n <= 256:
            raise d.error("has a shape that the operand type does not have")
        self.a_in_registers = isinstance(d.operand(1), Vector)
        self.scale_a, self.scale_b, self.transposes_a, self.transposes_b = self._constants(d)

    def _constants(self, d: Decoding) -> tuple[int, int, bool, bool]:
        constants = [d.immediate(position) for position in range(4, len(d.operands))]
        if self.a_type in INTEGERS:
            return 1, 1, False, False
        scale_a, scale_b, *transposes = constants
        if self.a_in_registers:
            transposes = [0, *transposes]
        transpose_a, transpose_b = (*transposes, 0, 0)[:2]
        return scale_a, scale_b, bool(transpose_a), bool(transpose_b)


@RULES.effect("wgmma.mma_async", allows_in_flight=True)
def decode_mma(d: Decoding):
    form = Form(d)
    register_type = {"f32": "f32", "s32": "s32", "f16": "b32"}[form.result]
    accumulators = [operand for operand in d.vector(0) if isinstance(operand, Register)]
    for operand in accumulators:
        d.get(operand, register_type)
        d.set(operand, register_type)
    if form.a_in_registers:
        a_registers = [d.get(operand, "b32") for operand in d.vector(1)]
        read_a = _register_reader(a_registers, form)
    else:
        read_a = _descriptor_reader(d, 1, 64, form, form.a_type, form.transposes_a)
    read_b = _descriptor_reader(d, 2, form.n, form, form.b_type, form.transposes_b)
    scale = d.source(3, "pred")
    label = f"the wgmma of PTX line {d.instruction.line}"
    indices = [operand.index for operand in accumulators]
    sources = [operand.index for operand in d.vector(1)] if form.a_in_registers else []
    may_read = dict.fromkeys(sources, True) | dict.fromkeys(indices, False)

    def run(group):
        operands = read_a(group, label), read_b(group, label)
        adds, threads = scale(group), group.threads
        _own_accumulators(group, indices, adds, d.function.register_names)
        scales = adds[::WARPGROUP]

        def compute(owner: Group, done: np.ndarray) -> None:
            chosen = np.searchsorted(threads, done[::WARPGROUP]) // WARPGROUP
            left, right = (operand.values(chosen) for operand in operands)
            dot = (form.scale_a * form.scale_b) * (left @ right.transpose(0, 2, 1))
            _accumulate(owner, done, indices, dot, scales[chosen], form)

        def finish(done: np.ndarray) -> None:
            for operand in operands:
                operand.finish(done)

        wgmma = Wgmma(threads, compute, finish, may_read, label)
        group.wave.asynchronous.wgmmas.issue(group, wgmma, group.wave.asynchronous.is_early())

    return together(d, WARPGROUP, run)


def _own_accumulators(group: Group, accumulators: list[int], adds: np.ndarray, names: list[str]) -> None:
    """Where a dot is added to what the accumulators hold, they must hold something; from now on they do."""
    for index in accumulators:
        missing = adds & group.unwritten_bytes(index, 4).any(1)
        if missing.any():
            message = f"adds to register {names[index]}, which these threads never wrote"
            raise Fault("unwritten register", message, group.threads[missing])
        group.unwritten.pop(index, None)
        group.registers[index] = _register(group, index)


def _register_reader(registers: list[Callable], form: Form) -> Callable:
    """A from registers, captured when the instruction is issued: [warpgroups, 64, K]."""
    index = gather_a(16, form.k, 4 // form.a_bytes)
    unpack = UNPACK[form.a_type]

    def read(group: Group, label: str):
        words = np.stack([one(group) for one in registers], 1)
        values = np.ascontiguousarray(unpack(words)).reshape(group.size // 32, -1)[:, index]
        return _Captured(values.reshape(-1, 64, form.k))

    return read


class _Captured:
    """A from registers: a tile for each warpgroup, as it was when the instruction was issued."""

    def __init__(self, tiles: np.ndarray):
        self.tiles = tiles

    def values(self, chosen: np.ndarray) -> np.ndarray:
        return self.tiles[chosen]

    def finish(self, done: np.ndarray) -> None:
        pass


def _descriptor_reader(d: Decoding, position: int, rows: int, form: Form, type: str, is_transposed: bool) -> Callable:
    """A tile in shared memory, read when the dot is computed: [warpgroups, rows, K]."""
    read_bits = d.source(position, "b64")
    width, unpack = _BYTES[type], UNPACK[type]

    def read(group: Group, label: str):
        bits = read_bits(group)[::WARPGROUP].tolist()
        wave = group.wave
        leaders = group.threads[::WARPGROUP]
        flats = []
        for descriptor, leader in zip(bits, leaders.tolist(), strict=True):
            with blaming(np.array([leader])):
                addresses = Descriptor(descriptor).addresses(rows, form.k, width, is_transposed)
                flats.append(_flat(wave, leader, addresses, width))
        pairs = zip(leaders.tolist(), flats, strict=True)
        return _InMemory([_Tile(wave, leader, flat, width, label) for leader, flat in pairs], unpack)

    return read


def _numbers(elements: np.ndarray, unpack: Callable) -> np.ndarray:
    """Elements as numbers: `unpack` takes words, so each element becomes the low part of one."""
    words = elements.astype(np.uint32)
    unpacked = unpack(words.reshape(-1))
    return unpacked.reshape(*elements.shape, -1)[..., 0]


def _flat(wave: Wave, leader: int, addresses: np.ndarray, width: int) -> np.ndarray:
    where = addresses.reshape(-1).astype(np.uint64)
    slots = np.full(where.shape, leader // wave.block_size)
    return wave.shared.flat_address(slots, where, width).reshape(addresses.shape)


class _Tile:
    """A tile of shared memory that a wgmma reads."""

    def __init__(self, wave: Wave, leader: int, flat: np.ndarray, width: int, label: str):
        self.wave, self.leader, self.flat, self.width = wave, leader, flat, width
        checks = wave.checks
        if checks is not None:
            self.granules = checks.granules_of(flat)
            with blaming(np.array([leader])):
                checks.check_async_read(np.array([leader]), self.granules, label)
            checks.begin_async_read(self.granules, label)

    def read(self) -> np.ndarray:
        return self.wave.shared.views[self.width][self.flat // self.width]

    def finish(self, waiting: np.ndarray) -> None:
        """Each warp knows that it has read itself what its part of the dot needs; not that the others have."""
        own = waiting[waiting // WARPGROUP == self.leader // WARPGROUP]
        if self.wave.checks is not None and len(own):
            self.wave.checks.end_async_read(self.granules, own)


class _InMemory:
    """An operand in shared memory: a tile for each warpgroup."""

    def __init__(self, tiles: list[_Tile], unpack: Callable):
        self.tiles, self.unpack = tiles, unpack

    def values(self, chosen: np.ndarray) -> np.ndarray:
        return np.stack([_numbers(self.tiles[index].read(), self.unpack) for index in chosen])

    def finish(self, done: np.ndarray) -> None:
        for tile in self.tiles:
            tile.finish(done)


def _accumulate(group: Group, done: np.ndarray, indices: list[int], dot: np.ndarray, scales, form: Form) -> None:
    """Add the dots [warpgroups, 64, N] to the accumulators of the threads `done`, which are in the group."""
    where = np.searchsorted(group.threads, done)
    registers = np.stack([_register(group, index)[where] for index in indices], 1)
    values = _from_registers(registers, form.result)
    old = values.reshape(len(done) // 32, -1)[:, gather_c(16, form.n)].reshape(-1, 64, form.n)
    total = dot + np.where(scales[:, None, None], old, 0)
    rows = total.reshape(len(done) // 32, -1)[:, scatter_c(16, form.n)].reshape(len(done), -1)
    made = to_accumulator(rows, form.result, form.saturates).view(np.uint32)
    for position, index in enumerate(indices):
        updated = _register(group, index).copy()
        updated[where] = made[:, position]
        group.registers[index] = updated


def _register(group: Group, index: int) -> np.ndarray:
    values = group.registers[index]
    return np.zeros(group.size, np.uint32) if values is None else values


def _from_registers(words: np.ndarray, type: str) -> np.ndarray:
    if type == "f16":
        return words[..., None].view(np.float16).astype(np.float64)
    return words.view(np.int32).astype(np.int64) if type == "s32" else words.view(np.float32).astype(np.float64)
