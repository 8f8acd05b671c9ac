"""Instructions of a warp: shfl, vote, match, redux, elect, activemask, bar.warp.sync.

    shfl.sync.bfly.b32 %r2|%p1, %r1, 16, 31, -1;

They work on [warps, 32]. Where lanes that the member mask names are elsewhere, the group waits for them to come to
the same instruction, as a GPU does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.emulator.faults import Fault
from deuteron.emulator.instructions.bits import count_bits
from deuteron.emulator.instructions.convergence import WARP, block_for, leave
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.machine.group import Group
from deuteron.emulator.types import TYPES

RULES = Rules()

_LANES = np.arange(32)
_NEVER = Fault("deadlock", "lanes that the member mask names never come to this instruction")


def members(group: Group, mask: np.ndarray, executes: np.ndarray | None) -> np.ndarray:
    """Which lanes a member mask [threads] names: [warps, 32]. Every lane that executes must name itself."""
    lanes = group.to_warps(mask.astype(np.uint32)).max(1)
    named = (lanes[:, None] >> _LANES.astype(np.uint32) & np.uint32(1)).astype(bool)
    present = group.present if executes is None else group.to_warps(executes)
    if (present & ~named).any():
        bad = group.from_warps(present & ~named)
        raise Fault("member mask", "executes a warp instruction whose member mask does not name it", group.threads[bad])
    return named


def wait_for_lanes(d: Decoding, group: Group, mask: np.ndarray, executes: np.ndarray | None) -> int | None:
    """Block the group until all lanes that its masks name are at this instruction; None where they are."""
    named = members(group, mask, executes)
    present = group.present if executes is None else group.to_warps(executes)
    missing = named & ~present & _alive(group)
    if not missing.any():
        leave(group, d.pc)
        return None
    if executes is not None and (missing & group.present).any():
        bad = group.from_warps(missing & group.present)
        raise Fault("member mask", "does not execute a warp instruction whose member mask names it", group.threads[bad])
    return block_for(group, d.pc, _threads_of(group, missing), WARP, _NEVER)


def _alive(group: Group) -> np.ndarray:
    threads = _grid(group)
    inside = _LANES[None, :] + group.warp_numbers[:, None] % group.wave.warps_per_block * 32 < group.wave.block_size
    return inside & group.wave.alive[np.where(inside, threads, 0)]


def _grid(group: Group) -> np.ndarray:
    """The number within the wave of every lane of the group's warps."""
    slots, warps = np.divmod(group.warp_numbers, group.wave.warps_per_block)
    return (slots * group.wave.block_size + warps * 32)[:, None] + _LANES


def _threads_of(group: Group, lanes: np.ndarray) -> np.ndarray:
    return _grid(group)[lanes]


def _collective(d: Decoding, member_mask, body: Callable[[Group, np.ndarray | None], None]):
    """`body` once all lanes of the member mask are there."""

    def run(group, mask):
        blocked = wait_for_lanes(d, group, member_mask(group), mask)
        return blocked if blocked is not None else body(group, mask)

    return run


@RULES.effect("shfl")
def decode_shfl(d: Decoding):
    d.choice("sync")
    mode = d.choice("up", "down", "bfly", "idx")
    d.type()
    value, valid = d.destination_pair()
    write, write_valid = d.masked_set(value, "b32"), d.masked_set(valid, "pred")
    read, b, c, member_mask = d.source(1, "b32"), d.source(2, "u32"), d.source(3, "u32"), d.source(4, "u32")

    def body(group, mask):
        values, shift, control = (group.to_warps(x(group)).astype(np.int64) for x in (read, b, c))
        source, in_range = shuffle_source(mode, shift & 31, control)
        result = np.take_along_axis(values, np.where(in_range, source, _LANES), 1)
        present = group.present if mask is None else group.to_warps(mask)
        _check_source(group, in_range & present, np.take_along_axis(present, source & 31, 1))
        keep = slice(None) if mask is None else mask
        write(group, group.from_warps(result)[keep].astype(np.uint32), mask)
        write_valid(group, group.from_warps(in_range)[keep], mask)

    return _collective(d, member_mask, body)


def _check_source(group: Group, reads: np.ndarray, source_present: np.ndarray) -> None:
    bad = reads & ~source_present
    if bad.any():
        message = "shuffles a value from a lane that does not take part"
        raise Fault("member mask", message, group.threads[group.from_warps(bad)])


def shuffle_source(mode: str, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lane that each lane reads, and whether it is within its segment (PTX manual, shfl.sync)."""
    segment = c >> 8 & 31
    limit = (_LANES & segment) | (c & 31 & ~segment)
    first = _LANES & segment
    if mode == "up":
        source = _LANES - b
        return source, source >= limit
    if mode == "down":
        source = _LANES + b
    elif mode == "bfly":
        source = _LANES ^ b
    else:
        source = first | (b & ~segment)
    return source, source <= limit


@RULES.effect("vote")
def decode_vote(d: Decoding):
    d.choice("sync")
    mode = d.choice("ballot", "all", "any", "uni")
    d.type()
    negate = d.source(1, "pred")
    write = d.masked_set(d.operand(0), "b32" if mode == "ballot" else "pred")
    member_mask = d.source(2, "u32")

    def body(group, mask):
        present = group.present if mask is None else group.to_warps(mask)
        truth = group.to_warps(negate(group))
        if mode == "ballot":
            result = _to_mask(truth & present)
        elif mode == "any":
            result = (truth & present).any(1)
        elif mode == "all":
            result = (truth | ~present).all(1)
        else:
            result = (truth | ~present).all(1) | (~truth | ~present).all(1)
        _write_uniform(group, write, result, mask)

    return _collective(d, member_mask, body)


def _to_mask(lanes: np.ndarray) -> np.ndarray:
    """[warps, 32] bools as one 32-bit mask for each warp."""
    return np.packbits(lanes, axis=1, bitorder="little").view(np.uint32)[:, 0]


def _write_uniform(group: Group, write, per_warp: np.ndarray, mask: np.ndarray | None) -> None:
    values = per_warp[np.searchsorted(group.warp_numbers, group.warps)]
    write(group, values if mask is None else values[mask], mask)


@RULES.effect("activemask")
def decode_activemask(d: Decoding):
    d.type()
    write = d.masked_set(d.operand(0), "b32")

    def run(group, mask):
        _write_uniform(group, write, _to_mask(group.present if mask is None else group.to_warps(mask)), mask)

    return run


@RULES.effect("elect")
def decode_elect(d: Decoding):
    """The lowest lane is elected."""
    d.choice("sync")
    lane, chosen = d.destination_pair()
    write_lane, write_chosen = d.masked_set(lane, "b32"), d.masked_set(chosen, "pred")
    member_mask = d.source(1, "u32")

    def body(group, mask):
        present = group.present if mask is None else group.to_warps(mask)
        leader = np.argmax(present, 1)
        keep = slice(None) if mask is None else mask
        leaders = leader[np.searchsorted(group.warp_numbers, group.warps)]
        write_lane(group, leaders.astype(np.uint32)[keep], mask)
        write_chosen(group, (leaders == group.lanes)[keep], mask)

    return _collective(d, member_mask, body)


_REDUCTIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@RULES.effect("redux")
def decode_redux(d: Decoding):
    d.choice("sync")
    operation = _REDUCTIONS[d.choice(*_REDUCTIONS)]
    type = d.type()
    write, read, member_mask = d.masked_set(d.operand(0), type), d.source(1, type), d.source(2, "u32")

    def body(group, mask):
        present = group.present if mask is None else group.to_warps(mask)
        rows = group.to_warps(read(group))
        result = np.array(
            [operation.reduce(row[lanes], dtype=TYPES[type]) for row, lanes in zip(rows, present, strict=True)]
        )
        _write_uniform(group, write, result.astype(TYPES[type]), mask)

    return _collective(d, member_mask, body)


@RULES.effect("match")
def decode_match(d: Decoding):
    mode = d.choice("any", "all")
    d.choice("sync")
    type = d.type()
    first, second = d.destination_pair()
    write, write_same = d.masked_set(first, "b32"), d.masked_set(second, "pred")
    read, member_mask = d.source(1, type), d.source(2, "u32")

    def body(group, mask):
        present = group.present if mask is None else group.to_warps(mask)
        values = group.to_warps(read(group))
        same = (values[:, :, None] == values[:, None, :]) & present[:, None, :]
        masks = np.packbits(same, axis=2, bitorder="little").view(np.uint32)[..., 0]
        keep = slice(None) if mask is None else mask
        if mode == "all":
            agree = (count_bits(masks.reshape(-1)).reshape(masks.shape) == present.sum(1)[:, None]) & present
            masks = np.where(agree, masks, np.uint32(0))
            write_same(group, group.from_warps(agree)[keep], mask)
        write(group, group.from_warps(masks)[keep], mask)

    return _collective(d, member_mask, body)


@RULES.effect("bar.warp")
def decode_bar_warp(d: Decoding):
    d.choice("sync")
    member_mask = d.source(0, "u32")

    def body(group, mask):
        wave = group.wave
        if wave.checks is not None:
            threads = group.threads if mask is None else group.threads[mask]
            wave.checks.synchronise_warps(threads)

    return _collective(d, member_mask, body)
