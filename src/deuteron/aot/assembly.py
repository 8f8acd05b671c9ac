r"""LLVM's assembly as a block of C, so that the compiler which builds a program needs nothing but the `.c`.

    callq   helper            ->    "\tcallq\t.L1f0c88aa_helper\n"
    .LBB0_1:                        ".L1f0c88aa_BB0_1:\n"

The block stands among what the C compiler emits, in one unit or, with -flto, in one with other kernels. So every
label but the kernel's own gets a prefix of its kernel, the kernel's symbol is hidden, the section is restored at the
end, and what would clash with the C compiler's own output (file names, line tables, debug sections) is left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

# The C compiler writes these itself, once for its whole unit.
_DROPPED = (".file", ".ident", ".loc", ".cv_", ".addrsig", ".hidden")
_LABEL = re.compile(r"^([A-Za-z_.$][\w.$]*):")
_NAME = re.compile(r"(?<![\w.$%])[A-Za-z_.$][\w.$]*")
_QUOTED = re.compile(r'("(?:[^"\\]|\\.)*")')


def assembly_block(assembly: str, symbol: str, name: str | None = None) -> str:
    """A file-scope `__asm__` that defines `symbol`, hidden, and nothing else that another file could see.

    Where a `name` is given, the symbol is called so.
    """
    lines = list(_kept_lines(assembly.splitlines()))
    prefix = f".L{hashlib.sha256(symbol.encode()).hexdigest()[:8]}_"
    labels = {match[1] for line in lines if (match := _LABEL.match(line))} - {symbol}
    renamed = {label: prefix + label.removeprefix(".L") for label in labels} | {symbol: name or symbol}
    body = [
        "\t.pushsection\t.text",
        f"\t.hidden\t{name or symbol}",
        *(_rename(line, renamed) for line in lines),
        "\t.popsection",
    ]
    return "__asm__(\n" + "\n".join(_c_string(line) for line in body) + "\n);\n"


def _kept_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines that belong to the kernel: no blank ones, no debug information, no marks of the unit."""
    in_debug_section = False
    for line in lines:
        directive = line.split(maxsplit=1)[0] if line.strip() else ""
        if directive in (".section", ".text", ".data"):
            in_debug_section = directive == ".section" and (".debug" in line or ".note" in line)
        if directive and not in_debug_section and not directive.startswith(_DROPPED):
            yield line


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
