"""What the types of a signature are in C, on every target.

c_type("*fp16")   deuteron_ptr          (`void *` on the CPU)
c_type("*fp16", is_read=True)     deuteron_const_ptr, through which no kernel writes (`const void *`)
c_type("u8")      uint8_t
declaration("deuteron_status", "add", ["deuteron_stream stream", "int32_t n"])
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from deuteron.aot.checked_params import checked_params
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.aot.symbols import declaration_of
from deuteron.dtypes import C_NAMES
from deuteron.errors import UsageError

MAX_LINE = 110
STREAM = "deuteron_stream stream"

_JOINED = "\x00"  # stands for a space at which no line is broken


def c_type(type: str, is_read: bool = False) -> str:
    """The C type of a type in a signature; raises UsageError for one that no C function can take.

    `is_read`: nothing is written through it.
    """
    if type.startswith("*"):
        return "deuteron_const_ptr" if is_read else "deuteron_ptr"
    if type not in C_NAMES:
        raise UsageError(f"a parameter of type {type} has no type in C: pass it through a pointer, or as fp32")
    return C_NAMES[type]


def c_parameter(param: ParamRecord, records: Iterable[KernelRecord]) -> str:
    """The parameter of a function that calls these kernels; a pointer that none of them writes through is const."""
    return f"{c_type(param.type, is_read(param, records))} {param.c_name}"


def is_read(param: ParamRecord, records: Iterable[KernelRecord]) -> bool:
    """Whether none of these kernels writes through a parameter."""
    return not any(record.may_write(param.name) for record in records)


def launch_declaration(record: KernelRecord) -> str:
    """The head of the function that launches a kernel."""
    return declaration("deuteron_status", record.function, _launch_params(record))


def checked_declaration(record: KernelRecord) -> str:
    """The head of the function that launches a kernel which checks what it accesses."""
    more = checked_params(record.c_params)
    given = [*_launch_params(record), *more.declared_sizes, *more.declared_message]
    return declaration("deuteron_status", f"check_{record.function}", given)


def _launch_params(record: KernelRecord) -> list[str]:
    return [STREAM, *(c_parameter(param, [record]) for param in record.runtime_params)]


def kernel_declarations(record: KernelRecord) -> tuple[str, ...]:
    """The functions of a kernel, with their symbols: what launches it, loads and unloads it, launches it checked."""
    maintenance = (f"deuteron_status {function}(void)" for function in record.functions[1:4])
    checked = (checked_declaration(record),) if record.is_checked else ()
    heads = (launch_declaration(record), *maintenance, *checked)
    return tuple(
        declaration_of(head, function, record.digest) for head, function in zip(heads, record.functions, strict=True)
    )


def declaration(result: str, function: str, params: Sequence[str]) -> str:
    """`result function(params)`, in lines that fit and that break between parameters."""
    head = f"{result} {function}("
    lines = textwrap.wrap(
        ", ".join(param.replace(" ", _JOINED) for param in params) + ")",
        MAX_LINE,
        initial_indent=head,
        subsequent_indent=" " * (len(head) if len(head) < 60 else 4),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace(_JOINED, " ")


def renamed(head: str, function: str, name: str) -> str:
    """The head of `function` as that of `name`, in lines that fit."""
    result, _, params = head.removesuffix(")").partition(f" {function}(")
    return declaration(result, name, " ".join(params.split()).split(", "))
