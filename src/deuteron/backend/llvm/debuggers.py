"""Tells gdb and perf of code that was loaded: where it is, what it is called, which lines of which file it comes from.

    announced = announce(obj, "softmax", address)      gdb: `break softmax.py:12`, `bt`; perf: the name
    announced.withdraw()                               before the code is freed

gdb is told as its manual says (JIT Compilation Interface): LLVM's own list of objects, which llvmlite brings, gets an
entry, and a function is called at which gdb stops. The list has no exported name; it is found in the symbol table of
llvmlite's library. perf reads /tmp/perf-<process>.map, which has names and no lines. ELF only; elsewhere, and where
llvmlite's symbols were stripped, nothing is told.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm

from deuteron.once import ForkLock

_REGISTER, _UNREGISTER = 1, 2
_SYMBOL_TABLE = 2  # the type of a section
_lock = ForkLock()


class _Entry(ctypes.Structure):
    """One object. `next` and `previous` are addresses of entries."""

    _fields_ = [
        ("next", ctypes.c_void_p),
        ("previous", ctypes.c_void_p),
        ("object", ctypes.c_char_p),
        ("num_bytes", ctypes.c_uint64),
    ]


class _List(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("action", ctypes.c_uint32),
        ("relevant", ctypes.c_void_p),
        ("first", ctypes.c_void_p),
    ]


class _Section(NamedTuple):
    """The header of a section of an ELF file of 64 bits."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


_SECTION, _SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")


class _Symbol(NamedTuple):
    section: int
    value: int
    size: int


class Announced:
    """An object that debuggers know."""

    def __init__(self, image: bytes):
        self._image = image
        self._entry = _Entry(None, None, image, len(image))

    def publish(self) -> None:
        listed, tell = _gdb()
        with _lock.here():
            self._entry.next = listed.first
            if listed.first:
                _Entry.from_address(listed.first).previous = ctypes.addressof(self._entry)
            listed.first = listed.relevant = ctypes.addressof(self._entry)
            listed.action = _REGISTER
            tell()

    def withdraw(self) -> None:
        listed, tell = _gdb()
        with _lock.here():
            if self._entry.previous:
                _Entry.from_address(self._entry.previous).next = self._entry.next
            else:
                listed.first = self._entry.next
            if self._entry.next:
                _Entry.from_address(self._entry.next).previous = self._entry.previous
            listed.relevant, listed.action = ctypes.addressof(self._entry), _UNREGISTER
            tell()


def announce(data: bytes, symbol: str, address: int) -> Announced | None:
    """Tell of an object whose function `symbol` is at an address; None where debuggers cannot be told."""
    found = _symbols(data, [symbol]).get(symbol) if data.startswith(b"\x7fELF") else None
    if found is None:
        return None
    _write_perf_map(symbol, address, found.size)
    if _gdb() is None:
        return None
    announced = Announced(_placed(data, found.section, address - found.value))
    announced.publish()
    return announced


def _placed(data: bytes, section: int, address: int) -> bytes:
    """The object with the address at which a section was loaded."""
    image = bytearray(data)
    header = _header_offset(data, section)
    found = _Section(*_SECTION.unpack_from(data, header))
    _SECTION.pack_into(image, header, *found._replace(address=address))
    return bytes(image)


def _write_perf_map(symbol: str, address: int, size: int) -> None:
    try:
        with open(f"/tmp/perf-{os.getpid()}.map", "a") as file:
            file.write(f"{address:x} {size:x} {symbol}\n")
    except OSError:  # perf then shows addresses
        return


@cache
def _gdb():
    """LLVM's list of objects, and the function that tells of a change; None where they are not found."""
    library = Path(llvm.__file__).with_name("libllvmlite.so")
    names = "__jit_debug_descriptor", "__jit_debug_register_code", "LLVMPY_AddSymbol"
    try:
        with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = _symbols(data, names)
        exported = ctypes.cast(ctypes.CDLL(str(library)).LLVMPY_AddSymbol, ctypes.c_void_p).value
        base = exported - found[names[2]].value
        listed, tell = (base + found[name].value for name in names[:2])
    except (OSError, KeyError, AttributeError, ValueError):
        return None
    return _List.from_address(listed), ctypes.CFUNCTYPE(None)(tell)


def _symbols(data, names) -> dict[str, _Symbol]:
    """Those of the symbols of an ELF file that it defines."""
    table = next((section for section in _sections(data) if section.type == _SYMBOL_TABLE), None)
    if table is None:
        return {}
    strings = _Section(*_SECTION.unpack_from(data, _header_offset(data, table.link)))
    texts = data[strings.offset : strings.offset + strings.size]
    wanted = {place: name for name in names for place in _places(texts, name.encode() + b"\0")}
    symbols = _SYMBOL.iter_unpack(data[table.offset : table.offset + table.size])
    found = (symbol for symbol in symbols if symbol[0] in wanted)
    return {wanted[name]: _Symbol(section, value, size) for name, _, _, section, value, size in found}


def _places(texts: bytes, text: bytes) -> Iterator[int]:
    """Where a text is, the ends of other texts too."""
    place = texts.find(text)
    while place >= 0:
        yield place
        place = texts.find(text, place + 1)


def _sections(data) -> Iterator[_Section]:
    (count,) = struct.unpack_from("<H", data, 60)
    return (_Section(*_SECTION.unpack_from(data, _header_offset(data, number))) for number in range(count))


def _header_offset(data, number: int) -> int:
    (first,) = struct.unpack_from("<Q", data, 40)
    return first + number * _SECTION.size
