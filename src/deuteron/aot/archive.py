r"""A static library, in the `ar` format that linkers of each system read, out of objects: no archiver is needed.

    archive({"add.o": elf}, {"add.o": ["deuteron_2b8c_kernel_add"]}, "gnu")       for ELF, and for COFF
    archive({"add.o": mach_o}, {"add.o": ["_deuteron_2b8c_kernel_add"]}, "bsd")   for Mach-O

    !<arch>\n                              60 bytes of header before each member, which begins at an even offset
    /         which member defines what    in "bsd" the member __.SYMDEF SORTED
    //        names of members             in "bsd" a member begins with its own
    add.o/    the object

LLVM's own writer is in no Python package. The formats: ar(5) of FreeBSD, ranlib.h of macOS, the PE specification.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

_MAGIC = b"!<arch>\n"
_HEADER_BYTES = 60
_MACH_O_ALIGNMENT = 8  # of what a member has, which macOS's linker maps

Objects = Mapping[str, bytes]
Symbols = Mapping[str, Sequence[str]]


def archive(objects: Objects, symbols: Symbols, kind: str) -> bytes:
    """The bytes, equal for equal objects. `symbols` are those that each defines, as they are in it."""
    return {"gnu": _gnu, "bsd": _bsd}[kind](objects, symbols)


def _gnu(objects: Objects, symbols: Symbols) -> bytes:
    names, places = b"", {}
    for name in objects:
        places[name] = len(names)
        names += f"{name}/\n".encode()
    members = [_member(f"/{places[name]}", content) for name, content in objects.items()]
    defined = _defined(objects, symbols)
    table = b"".join(symbol.encode() + b"\0" for symbol, _ in defined)

    def index(offsets: Sequence[int]) -> bytes:
        numbers = struct.pack(f">{len(defined) + 1}I", len(defined), *(offsets[member] for _, member in defined))
        return _member("/", numbers + table) + _member("//", names)

    return _assembled(index, members)


def _bsd(objects: Objects, symbols: Symbols) -> bytes:
    members = [_named(name, content) for name, content in objects.items()]
    defined = sorted(_defined(objects, symbols))
    table = b"".join(symbol.encode() + b"\0" for symbol, _ in defined)
    table += b"\0" * (-len(table) % _MACH_O_ALIGNMENT)

    def index(offsets: Sequence[int]) -> bytes:
        words, place = [8 * len(defined)], 0
        for symbol, member in defined:
            words += [place, offsets[member]]
            place += len(symbol) + 1
        numbers = struct.pack(f"<{len(words)}I", *words)
        return _named("__.SYMDEF SORTED", numbers + struct.pack("<I", len(table)) + table)

    return _assembled(index, members)


def _assembled(index: Callable[[Sequence[int]], bytes], members: Sequence[bytes]) -> bytes:
    """The archive; `index` gives what comes before the members, which is as long wherever they begin."""
    offsets, place = [], len(_MAGIC) + len(index([0] * len(members)))
    for member in members:
        offsets.append(place)
        place += len(member)
    return b"".join([_MAGIC, index(offsets), *members])


def _defined(objects: Objects, symbols: Symbols) -> list[tuple[str, int]]:
    """Every symbol with the number of its member."""
    return [(symbol, number) for number, name in enumerate(objects) for symbol in symbols[name]]


def _member(name: str, content: bytes) -> bytes:
    """A member with its header: name, time, owner, group, mode, size. Nothing of the machine is in it."""
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content):<10}`\n".encode()
    assert len(header) == _HEADER_BYTES
    return header + content + b"\n" * (len(content) % 2)


def _named(name: str, content: bytes) -> bytes:
    """A member whose content begins with its name, so that the rest begins at a multiple of eight."""
    size = len(name) + -(_HEADER_BYTES + len(name)) % _MACH_O_ALIGNMENT
    padded = name.encode().ljust(size, b"\0")
    return _member(f"#1/{size}", padded + content + b"\n" * (-len(content) % _MACH_O_ALIGNMENT))
