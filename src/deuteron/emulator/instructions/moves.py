"""mov, with packing and unpacking of vectors, and cvta, isspacep, mapa-free address conversions.

mov.b64 {%r1, %r2}, %rd1;        mov.b32 %r1, {%rs1, %rs2};        cvta.to.shared.u64 %rd2, %rd1;
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.machine.windows import LOCAL_WINDOW, OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW, WINDOW_SIZE
from deuteron.emulator.specials import special
from deuteron.emulator.types import BITS, UNSIGNED
from deuteron.ptx.syntax import Register, Symbol, Vector

RULES = Rules()

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


@RULES.pure("mov")
def decode_mov(d: Decoding):
    type = d.type()
    if isinstance(d.operand(0), Vector):
        return _decode_unpack(d, type)
    if isinstance(d.operand(1), Vector):
        return _decode_pack(d, type)
    if isinstance(d.operand(1), Register) and type != "pred":
        type = f"b{8 * BITS[type]().itemsize}"  # as registers hold it: what was never written has no other view
    write, read = d.destination(0, type), d.source(1, type)
    d.moves_parts(BITS[type]().itemsize)
    return lambda group: write(group, read(group))


def _part_type(type: str, count: int) -> str:
    return f"b{8 * BITS[type]().itemsize // count}"


def _decode_unpack(d: Decoding, type: str):
    parts = d.vector(0)
    part = _part_type(type, len(parts))
    writes = [d.set(operand, part) for operand in parts]
    whole = f"b{8 * BITS[type]().itemsize}"
    read, view = d.source(1, whole), BITS[part]
    moved, held = d.moves_parts(BITS[type]().itemsize), np.dtype(BITS[whole])

    def run(group):
        if read(group) is None:
            moved.fill(group, held)
        values = np.ascontiguousarray(read(group))[:, None].view(view)
        for index, write in enumerate(writes):
            write(group, values[:, index].copy())

    return run


def _decode_pack(d: Decoding, type: str):
    parts = d.vector(1)
    part = _part_type(type, len(parts))
    reads = [d.get(operand, part) for operand in parts]
    write, view = d.destination(0, type), UNSIGNED[BITS[type]().itemsize]
    moved, held = d.moves_parts(BITS[type]().itemsize), np.dtype(BITS[part])

    def run(group):
        values = [read(group) for read in reads]
        if any(value is None for value in values):
            moved.fill(group, held)
            values = [read(group) for read in reads]
        write(group, np.stack(values, 1).view(view)[:, 0])

    return run


@RULES.pure("cvta")
def decode_cvta(d: Decoding):
    """Between an address of a state space and a generic one."""
    is_to_space = d.flag("to")
    space = d.choice("global", "const", "param", "param::entry", "shared", "shared::cta", "shared::cluster", "local")
    type = d.type()
    write, read = d.destination(0, type), d.source(1, "u64" if type.endswith("64") else "u32")
    window = _WINDOWS.get(space.split("::")[0], 0)
    step = np.array(window % (1 << 8 * BITS[type]().itemsize), BITS[type])[()]
    if is_to_space:
        return lambda group: write(group, read(group) - step)
    return lambda group: write(group, read(group) + step)


@RULES.pure("isspacep")
def decode_isspacep(d: Decoding):
    space = d.choice("global", "const", "param", "shared", "shared::cta", "shared::cluster", "local")
    write, read = d.destination(0, "pred"), d.source(1, "u64")
    window = _WINDOWS.get(space.split("::")[0])
    if window is None:
        return lambda group: write(group, ~_is_in(read(group), SHARED_WINDOW) & ~_is_in(read(group), LOCAL_WINDOW))
    return lambda group: write(group, _is_in(read(group), window))


def _is_in(address: np.ndarray, window: int) -> np.ndarray:
    return (address >= np.uint64(window)) & (address < np.uint64(window + WINDOW_SIZE))


@RULES.pure("mapa")
def decode_mapa(d: Decoding):
    """The shared::cluster address of a variable in the block of a rank."""
    is_shared = d.flag("shared::cluster")
    type = d.type()
    window = 0 if is_shared or isinstance(d.operand(1), Symbol) else SHARED_WINDOW
    write, read, rank = d.destination(0, type), d.source(1, type), d.source(2, "u32")
    word = BITS[type]

    def run(group):
        offset = read(group) & word(OFFSET_MASK)
        write(group, word(window) + offset + ((rank(group).astype(word) + word(1)) << word(RANK_SHIFT)))

    return run


@RULES.pure("getctarank")
def decode_getctarank(d: Decoding):
    d.flag("shared::cluster")
    type = d.type()
    write, read = d.destination(0, "u32"), d.source(1, type)

    def run(group):
        rank = (read(group) >> BITS[type](RANK_SHIFT)).astype(np.uint32) & np.uint32(0xFF)
        mine = special(group.wave, "%cluster_ctarank")[group.threads]
        write(group, np.where(rank == 0, mine, rank - np.uint32(1)))

    return run
