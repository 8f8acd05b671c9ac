"""ld and st of every state space, with vectors, predicates and cache operators (which change nothing); prefetch;
fences.

@%p1 ld.global.L1::evict_first.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.emulator.instructions.accesses import SPACES, active, load, store
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.machine.group import Group
from deuteron.emulator.types import BITS, TYPES
from deuteron.ptx.syntax import Memory, Symbol

RULES = Rules()

_ORDER = ("weak", "relaxed", "acquire", "release", "volatile", "mmio")
_STRONG = ("relaxed", "acquire", "release", "mmio")
_RELEASES = {"release", "acq_rel", "sc"}
_SCOPES = ("cta", "cluster", "gpu", "sys")
_CACHE = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified")


def take_cache_modifiers(d: Decoding) -> None:
    """Take the modifiers that say how to cache."""
    d.flag(*_ORDER)
    d.flag(*_SCOPES)
    d.flag(*_CACHE)
    d.flag(*[name for name in d.modifiers if name.startswith(("L1::", "L2::", "level::"))])


def is_strong(d: Decoding) -> bool:
    """Whether threads may do it at any time, as they may atomics."""
    return any(name in d.modifiers for name in _STRONG)


def release_check(d: Decoding) -> Callable[[Group, np.ndarray | None], None]:
    """What an instruction looks at first, if it releases to other blocks: whether the bulk copies of its threads to
    global memory are done. Before the modifiers are taken.
    """
    releases = bool({*d.modifiers} & _RELEASES and {*d.modifiers} & {"gpu", "sys"})

    def check(group: Group, mask: np.ndarray | None) -> None:
        if releases and group.wave.checks is not None:
            group.wave.asynchronous.writes.check_release(active(group, mask))

    return check


def take_vector_type(d: Decoding) -> tuple[str, int]:
    type = d.type()
    return type, int(d.choice("v2", "v4", "v8", default="v1")[1:])


@RULES.effect("ld", "ldu")
def decode_ld(d: Decoding):
    strong = is_strong(d)
    take_cache_modifiers(d)
    space = d.choice(*SPACES, default="generic")
    type, count = take_vector_type(d)
    width = BITS[type]().itemsize
    writes = [d.masked_set(operand, type) for operand in d.vector(0)]
    if len(writes) != count:
        raise d.error(f"expected {count} destinations")
    space = space_of_symbol(d, d.operand(1), space)
    address, pc, made = d.address(1), d.pc, TYPES[type]

    def run(group, mask):
        group.pc = pc
        values = load(group, space, address(group), mask, width, count, strong)
        for index, write in enumerate(writes):
            write(group, np.ascontiguousarray(values[:, index]).view(made), mask)

    return run


@RULES.effect("st")
def decode_st(d: Decoding):
    strong, check_release = is_strong(d), release_check(d)
    take_cache_modifiers(d)
    space = d.choice(*SPACES, default="generic")
    type, count = take_vector_type(d)
    bits = f"b{8 * BITS[type]().itemsize}"
    space = space_of_symbol(d, d.operand(0), space)
    address, pc, of_address = d.address(0), d.pc, set(d.sources)
    reads = [d.get(operand, bits) for operand in d.vector(1)]
    if len(reads) != count:
        raise d.error(f"expected {count} sources")
    d.low_bytes = dict.fromkeys(d.sources - of_address, BITS[type]().itemsize)

    def run(group, mask):
        group.pc = pc
        check_release(group, mask)
        store(group, space, address(group), mask, np.stack([read(group) for read in reads], 1), strong)

    return run


def space_of_symbol(d: Decoding, operand, space: str) -> str:
    """Parameters of calls lie in local memory; so does a `param` variable that the function declares."""
    is_named = isinstance(operand, Memory) and isinstance(operand.base, Symbol)
    return "local" if is_named and operand.base.name in d.layout.local else space


@RULES.effect("prefetch", "prefetchu", "discard", "applypriority", "createpolicy")
def decode_hint(d: Decoding):
    """Hints do nothing; a policy is the number 0."""
    d.modifiers.clear()
    if d.instruction.opcode.startswith("createpolicy"):
        write = d.destination(0, "u64")
        return lambda group, mask: write(group, np.zeros(group.size, np.uint64))
    return lambda group, mask: None


@RULES.effect("fence", "membar")
def decode_fence(d: Decoding):
    """Memory is consistent here; what matters, to the checks, are the proxy fence of shared memory, and releases."""
    check_release = release_check(d)
    is_proxy = {"proxy", "async"} <= {name.split("::")[0] for name in d.modifiers} and "global" not in d.modifiers
    d.modifiers.clear()

    def run(group, mask):
        check_release(group, mask)
        if is_proxy and group.wave.checks is not None:
            group.wave.checks.proxy_fence(group.threads if mask is None else group.threads[mask])

    return run
