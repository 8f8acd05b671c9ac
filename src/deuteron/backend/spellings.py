"""What a kernel says as older versions of Triton did, for its report: the remarks that the frontend left in tile IR.

old_spellings({"ttir": ...})    (OldSpelling(kernels.py:84, "trans_b=True is tl.trans(other) now"),)
"""

from __future__ import annotations

from collections.abc import Mapping

from deuteron.backend.report import OldSpelling, line_of
from deuteron.backend.ttir import parse_tile_ir


def old_spellings(texts: Mapping[str, str | bytes]) -> tuple[OldSpelling, ...]:
    """Each once, in the order of the kernel; none where there is no tile IR."""
    from deuteron.ir.remarks import Kind, remarks_in  # deferred: xDSL is slow to import

    if "ttir" not in texts:
        return ()
    said = remarks_in(parse_tile_ir(texts["ttir"], "<ttir>"))
    found = (OldSpelling(line_of(place), remark.reason) for place, remark in said if remark.kind is Kind.OLD_SPELLING)
    return tuple(dict.fromkeys(found))
