"""xDSL's dialects that tile IR takes over, imported in less time: their assembly formats are parsed when they are used.

    import deuteron.ir.dialects      before anything that imports `xdsl.dialects`

Each op class of xDSL parses its format when it is made, 89 of them and a tenth of the time that a process takes to its
first compile. Tile IR is read and printed by `pretty/`, which asks for none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from xdsl.irdl import OpDef
from xdsl.irdl.declarative_assembly_format import FormatProgram

from deuteron.cached_property import cached_property


class _FormatOnUse:
    """Stands for the format of an op until something is parsed or printed by it."""

    def __init__(self, text: str, op_def: OpDef):
        self._text, self._op_def = text, op_def

    @cached_property
    def _program(self) -> FormatProgram:
        return FormatProgram.from_str(self._text, self._op_def)

    def parse(self, *args: Any) -> Any:
        return self._program.parse(*args)

    def print(self, *args: Any) -> None:
        self._program.print(*args)


@contextmanager
def _formats_parsed_on_use() -> Iterator[None]:
    parse_now = FormatProgram.from_str
    FormatProgram.from_str = staticmethod(_FormatOnUse)
    try:
        yield
    finally:
        FormatProgram.from_str = staticmethod(parse_now)


with _formats_parsed_on_use():
    from xdsl.dialects import arith, builtin, math, scf  # noqa: F401
