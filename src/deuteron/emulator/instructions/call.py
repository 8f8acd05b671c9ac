"""Calls of the functions that every CUDA program has: vprintf, __assertfail, malloc-free code has no others.

    call.uni (retval0), vprintf, (param0, param1);

`param0` and so on lie in local memory. What is printed comes in the order of the threads.
"""

from __future__ import annotations

import re
import struct

import numpy as np

from deuteron.emulator.faults import Fault
from deuteron.emulator.instructions.accesses import load
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.machine.group import Group
from deuteron.ptx.syntax import Symbol, Vector

RULES = Rules()

_FORMAT = re.compile(rb"%[-+ #0]*\d*(?:\.\d+)?(hh|h|ll|l|z|j|t)?([diouxXeEfFgGaAcspn%])")


@RULES.effect("call")
def decode_call(d: Decoding):
    d.flag("uni")
    name = next(operand.name for operand in d.operands if isinstance(operand, Symbol))
    lists = [operand for operand in d.operands if isinstance(operand, Vector)]
    arguments = [element.name for element in lists[-1].elements] if lists else []
    pc = d.pc
    if name == "vprintf":
        return lambda group, mask: _print(group, mask, pc, arguments)
    if name == "__assertfail":
        return lambda group, mask: _assert_fail(group, mask, pc, arguments)
    raise d.error(f"calls '{name}', which the emulator does not know (it knows vprintf and __assertfail)")


def _argument(group: Group, mask, name: str, width: int) -> np.ndarray:
    offset = group.wave.launch.layout.local[name]
    return load(group, "local", np.full(group.size, offset, np.uint64), mask, width, 1)[:, 0]


def _assert_fail(group: Group, mask, pc: int, arguments: list[str]) -> None:
    group.pc = pc
    threads = group.threads if mask is None else group.threads[mask]
    if not len(threads):
        return
    message, file = (_text(group, int(_argument(group, mask, name, 8)[0])) for name in arguments[:2])
    line = int(_argument(group, mask, arguments[2], 4)[0])
    place = f" ({file.decode()}:{line})" if file else ""
    raise Fault("assertion", f"device assertion failed: {message.decode(errors='replace')}{place}", threads)


def _print(group: Group, mask, pc: int, arguments: list[str]) -> None:
    group.pc = pc
    formats, buffers = (_argument(group, mask, name, 8) for name in arguments)
    threads = group.threads if mask is None else group.threads[mask]
    for index, (format, buffer) in enumerate(zip(formats.tolist(), buffers.tolist(), strict=True)):
        one = np.zeros(group.size, bool)
        one[np.searchsorted(group.threads, threads[index])] = True
        text = _format(group, one, _text(group, format), buffer)
        group.wave.launch.options.print(text)


def _text(group: Group, address: int) -> bytes:
    """The bytes of a C string in global memory."""
    allocation = group.wave.memory.find(address)
    if allocation is None or address >= allocation.end:
        return b""
    start = address - allocation.origin
    data = allocation.views[1][start : allocation.end - allocation.origin].tobytes()
    return data.split(b"\0")[0]


def _format(group: Group, one: np.ndarray, format: bytes, buffer: int) -> str:
    offset = 0
    parts, last = [], 0
    for match in _FORMAT.finditer(format):
        parts.append(format[last : match.start()].decode())
        last = match.end()
        length, kind = match[1] or b"", match[2].decode()
        if kind == "%":
            parts.append("%")
            continue
        width = 8 if kind in "eEfFgGaAsp" or length in (b"l", b"ll", b"z", b"j", b"t") else 4
        offset = -(-offset // width) * width
        parts.append(_one(group, one, match[0].decode(), kind, buffer + offset, width))
        offset += width
    return "".join([*parts, format[last:].decode()])


def _one(group: Group, one: np.ndarray, spec: str, kind: str, address: int, width: int) -> str:
    where = np.full(group.size, address, np.uint64)
    bits = int(load(group, "generic", where, one, width, 1)[0, 0])
    spec = re.sub(r"(hh|h|ll|l|z|j|t)(?=[a-zA-Z]$)", "", spec)
    if kind in "eEfFgG":
        return spec % struct.unpack("<d", struct.pack("<Q", bits))[0]
    if kind == "s":
        return spec % _text(group, bits).decode()
    if kind == "p":
        return f"{bits:#x}"
    if kind == "c":
        return chr(bits & 255)
    is_signed = kind in "di"
    value = bits - (1 << 8 * width) if is_signed and bits >> (8 * width - 1) else bits
    return spec.replace("i", "d") % value
