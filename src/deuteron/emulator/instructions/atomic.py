"""atom and red: read, modify, write, one thread after the other in the order of their numbers.

    atom.global.gpu.acq_rel.add.f32 %r2, [%rd1], %r1;

Threads with different addresses are done together; those with the same address in as many rounds as they are.
In global memory GPUs add fp32 with subnormal numbers taken for zeros of their sign, the sum's as well, and in shared
memory they do not (PTX ISA, `atom`; seen on an H100).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from deuteron.emulator.instructions.accesses import SPACES, load, store
from deuteron.emulator.instructions.floating import maximum, minimum
from deuteron.emulator.instructions.half import in_float32
from deuteron.emulator.instructions.memory import release_check, space_of_symbol, take_cache_modifiers
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.types import BITS, KINDS, TYPES

RULES = Rules()

_ORDERS = ("relaxed", "acquire", "release", "acq_rel")


def _increment(old, limit):
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old, limit):
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


_OPERATIONS: dict[str, Callable] = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "min": np.minimum,
    "max": np.maximum,
    "inc": _increment,
    "dec": _decrement,
}


def operation(name: str, type: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The new value from the old one and the operand, both viewed as the type (halves: as bits)."""
    function = _OPERATIONS[name]
    if KINDS[type] == "half" and name in ("add", "min", "max"):
        wide = {"add": np.add, "min": minimum, "max": maximum}[name]
        return in_float32(wide, type)
    if KINDS[type] == "float" and name in ("min", "max"):
        return {"min": minimum, "max": maximum}[name]
    return function


def _add_flushed(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The sum of fp32 numbers without subnormal ones."""
    return _flushed(np.add(_flushed(old), _flushed(new)))


def _flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def rounds(address: np.ndarray) -> Iterator[np.ndarray]:
    """Positions of threads, in as many parts as the most frequent address has threads; within a part all differ."""
    order = np.argsort(address, kind="stable")
    ordered = address[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    for number in range(int(rank.max()) + 1 if len(rank) else 0):
        yield order[rank == number]


@RULES.effect("atom", "red")
def decode_atomic(d: Decoding):
    is_atom = d.instruction.opcode.startswith("atom")
    check_release = release_check(d)
    d.flag(*_ORDERS)
    take_cache_modifiers(d)
    d.flag("noftz")
    space = d.choice(*SPACES, default="generic")
    type = d.modifiers.pop()
    count = int(d.choice("v2", "v4", "v8", default="v1")[1:])
    name = d.choice(*_OPERATIONS, "cas")
    bits, view = f"b{8 * BITS[type]().itemsize}", TYPES[type]
    first = 1 if is_atom else 0
    writes = [d.masked_set(operand, bits) for operand in d.vector(0)] if is_atom else []
    space = space_of_symbol(d, d.operand(first), space)
    address = d.address(first)
    operands = [d.get(operand, bits) for operand in d.vector(first + 1)]
    swap = d.source(first + 2, bits) if name == "cas" else None
    is_flushed = (name, type) == ("add", "f32") and not space.startswith("shared")
    change = _add_flushed if is_flushed else operation(name, type) if swap is None else None
    pc, width = d.pc, BITS[type]().itemsize

    def run(group, mask):
        group.pc = pc
        check_release(group, mask)
        everyone = np.ones(group.size, bool) if mask is None else mask
        where = address(group)
        new = np.stack([read(group) for read in operands], 1)
        old_values = np.zeros_like(new)
        swapped = swap(group)[:, None] if swap is not None else None
        positions = np.flatnonzero(everyone)
        for part in rounds(where[positions]):
            chosen = np.zeros(group.size, bool)
            chosen[positions[part]] = True
            old = load(group, space, where, chosen, width, count, atomic=True)
            if change is None:
                result = np.where(old == new[chosen], swapped[chosen], old)
            else:
                result = change(old.view(view), new[chosen].view(view)).view(new.dtype)
            old_values[chosen] = old
            # A failed cas is no event: a kernel that only spins must be seen to do nothing.
            if (result != old).any():
                updated = np.zeros_like(new)
                updated[chosen] = result
                store(group, space, where, chosen, updated, atomic=True)
        for index, write in enumerate(writes):
            write(group, old_values[positions, index], mask)

    return run
