r"""LLVM's assembly as a block of C, so that the compiler which builds a program needs nothing but the `.c`.

    callq   helper            ->    "\tcallq\t.L1f0c88aa_helper\n"
    .LBB0_1:                        ".L1f0c88aa_BB0_1:\n"

The block stands among what the C compiler emits, in one unit or, with -flto, in one with other kernels. So every
label but the kernel's own gets a prefix of its kernel, the section is restored at the end, and what would clash with
the C compiler's own output (names of files, places in them) is left out. The kernel's symbol is hidden, weak, and
defined once in a unit: two libraries of a program may have an equal kernel. Debug information is a unit of its own,
with a line table that is data (`line_table.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from deuteron.aot.line_table import START, LineTable

# The C compiler writes these itself, once for its whole unit.
_DROPPED = (".file", ".ident", ".loc", ".cv_", ".addrsig", ".cfi_sections")
_LINKAGE = (".globl", ".hidden")  # said anew
_LABEL = re.compile(r"^([A-Za-z_.$][\w.$]*):")
_NAME = re.compile(r"(?<![\w.$%])[A-Za-z_.$][\w.$]*")
_QUOTED = re.compile(r'("(?:[^"\\]|\\.)*")')
_ABBREVIATIONS = ".debug_abbrev"
# Code that has debug information of its own is not among that of the C compiler's unit, which has its own, too.
_CODE, _CODE_WITH_LINES = "\t.text", '\t.section\t.text.deuteron,"ax",@progbits'


def assembly_block(assembly: str, symbol: str, name: str | None = None) -> str:
    """A file-scope `__asm__` that defines `symbol`, weak and hidden, and nothing else that another file could see.

    Where a `name` is given, the symbol is called so.
    """
    prefix = f".L{hashlib.sha256(symbol.encode()).hexdigest()[:8]}_"
    table = LineTable(prefix) if f"\n{START}:" in assembly else None
    lines = list(_kept_lines(assembly.splitlines(), table))
    labels = {match[1] for line in lines if (match := _LABEL.match(line))} - {symbol}
    renamed = {label: prefix + label.removeprefix(".L").removeprefix(prefix[2:]) for label in labels}
    renamed |= {symbol: name or symbol, START: f"{prefix}line_table"}
    defined = renamed[symbol]
    body = [
        f"\t.ifndef\t{defined}",
        "\t.pushsection\t.text",
        f"\t.weak\t{defined}",
        f"\t.hidden\t{defined}",
        *(_rename(_CODE_WITH_LINES if table and line == _CODE else line, renamed) for line in lines),
        *(_rename(line, renamed) for line in (table.lines(START) if table else ())),
        "\t.popsection",
        "\t.endif",
    ]
    return "__asm__(\n" + "\n".join(_c_string(line) for text in body for line in text.split("\n")) + "\n);\n"


def _kept_lines(lines: Iterable[str], table: LineTable | None) -> Iterator[str]:
    """The lines that belong to the kernel: no blank ones, no marks of the unit, nothing that the table has."""
    dropped_sections = (".note", ".debug_line" if table else ".debug")
    is_dropped = False
    for line in lines:
        directive = line.split(maxsplit=1)[0] if line.strip() else ""
        if directive in (".section", ".text", ".data"):
            is_dropped = directive == ".section" and any(section in line for section in dropped_sections)
        if is_dropped or not directive:
            continue
        instead = table.take(line) if table else None
        if instead:
            yield instead
        elif not directive.startswith((*_DROPPED, *_LINKAGE)):
            yield from _of_debug_section(line, table) if table else (line,)


def _of_debug_section(line: str, table: LineTable) -> Iterator[str]:
    """The line; of debug information one that is in sections apart, whose abbreviations begin at a label."""
    begin = f"{table.prefix}abbreviations"
    if line.split() == [".long", _ABBREVIATIONS]:
        yield line.replace(_ABBREVIATIONS, begin)
        return
    is_debug = line.startswith("\t.section\t.debug_")
    yield table.own_section(line) if is_debug else line
    if is_debug and _ABBREVIATIONS in line:
        yield f"{begin}:"


def _rename(line: str, renamed: dict[str, str]) -> str:
    """The line with its labels renamed: in operands and label definitions, never in a mnemonic or a string."""
    label = _LABEL.match(line)
    head = "" if label else re.match(r"\s*\S*", line)[0]
    parts = _QUOTED.split(line[len(head) :])
    parts[::2] = [_NAME.sub(lambda match: renamed.get(match[0], match[0]), part) for part in parts[::2]]
    return head + "".join(parts)


def _c_string(line: str) -> str:
    escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{escaped}\\n"'
