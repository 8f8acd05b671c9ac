"""C for kernels that check every access against the sizes that a call gives: `DEUTERON_CHECK=bounds`.

    deuteron_status check_scale_6979ce4b_01(deuteron_stream stream, deuteron_ptr x, int32_t n, uint64_t x_bytes,
                                            char *message, uint64_t message_size)

Beside the function of a kernel there is this one, of the same kernel compiled with the option `check="bounds"`. An
access that is out of bounds ends the launch with a status, and `message` says which, in the words of a launch from
Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deuteron.aot.c_text import c_string
from deuteron.aot.checked_params import pointers
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.backend.assertion import Assertion
from deuteron.backend.checked_access import CheckedAccess
from deuteron.errors import Location


def is_checked(records: Sequence[KernelRecord]) -> bool:
    """Whether a function that chooses among these kernels has one that checks."""
    return any(record.is_checked for record in records)


def shape_code(checks: Sequence[Assertion | CheckedAccess]) -> str:
    """The shapes of the tiles that are accessed, each a table."""
    return "".join(
        f"  static const int64_t deuteron_shape{i}[] = {{{', '.join(map(str, check.shape))}}};\n"
        for i, check in enumerate(checks)
        if check.shape
    )


def access_code(checks: Sequence[Assertion | CheckedAccess]) -> str:
    """The rows of a table: what the metadata says of each number that a kernel may tell."""
    return "".join(f"      {{{', '.join(_fields(i, check))}}},\n" for i, check in enumerate(checks))


def _fields(number: int, check: Assertion | CheckedAccess) -> Iterator[str]:
    is_access = isinstance(check, CheckedAccess)
    yield c_string(f"{check.place}: " if check.place else "")
    yield c_string(check.access if is_access else check.message)
    yield c_string("".join(_caller(call) for call in check.calls))
    yield f"deuteron_shape{number}" if check.shape else "NULL"
    yield str(len(check.shape))
    yield str(check.base if is_access else -1)
    yield str(check.num_bytes if is_access else 0)


def _caller(call: Location) -> str:
    return f"\n  called from {call}"


def span_code(params: Sequence[ParamRecord], sizes: Sequence[str]) -> str:
    """The statements that tell a kernel the memory of each pointer: all there is where the size is not known, and none
    where the pointer is null.
    """
    lines = []
    for i, (param, size) in enumerate(zip(pointers(params), sizes, strict=True)):
        span = f"deuteron_block.spans[{i}]"
        lines.append(f"  {span}.address = {size} == UINT64_MAX ? 0 : (uint64_t)(uintptr_t){param.c_name};\n")
        lines.append(f"  {span}.num_bytes = {param.c_name} ? {size} : 0;\n")
    return "".join(lines)
