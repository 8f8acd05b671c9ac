"""What a pass has to say of an op to whoever reads the IR or the compile report.

    remark(load, "no product reads it")         %x = "tt.load"(%p) {remark = "no product reads it"} ...

A remark changes nothing; where a pass that comes later says more, its remark counts.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

_REMARK = "remark"


def remark(op: Operation, text: str) -> None:
    """Keep a remark with an op."""
    op.attributes[_REMARK] = StringAttr(text)


def remark_of(op: Operation) -> str | None:
    """The remark that a pass kept with an op."""
    found = op.attributes.get(_REMARK)
    return found.data if isinstance(found, StringAttr) else None
