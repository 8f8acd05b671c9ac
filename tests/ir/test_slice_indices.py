"""Slices that an op takes: those that there are."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.slice_indices import check_slice_index
from deuteron.ir.ttg.memdesc_subslice import MemDescSliceOp

BITS = [[1 << bit] for bit in range(6)]
ENCODING = f"#ttg.shared_linear<{{offset = {BITS}, block = []}}, alignment = 16>, #ttg.shared_memory, mutable"
WHOLE, PART = f"!ttg.memdesc<64xf32, {ENCODING}>", f"!ttg.memdesc<16xf32, {ENCODING}>"


@pytest.mark.parametrize(
    ("index", "begin", "end", "step", "message"),
    [
        ("%i", 0, 4, 1, None),
        ("%i", 1, 4, 3, None),
        ("%i", 5, 5, 1, None),
        ("%b", 3, 4, 1, None),
        ("%i", 0, 5, 1, "not 4"),
        ("%i", -1, 4, 1, "not -1"),
        ("%i", 0, 9, 4, "not 8"),
        ("%b", 4, 4, 1, "not 4"),
        ("%b", -1, 4, 1, "not -1"),
        ("%n", 0, 4, 1, "which this is not"),
        ("%i", 0, 4, -1, "which this is not"),
    ],
)
def test_an_index(parse_body, index, begin, end, step, message):
    bounds = zip("bes", (begin, end, step), strict=True)
    constants = "\n".join(f'%{n} = "arith.constant"() <{{value = {v} : i32}}> : () -> i32' for n, v in bounds)
    module = parse_body(
        "%n: i32",
        f"""{constants}
        %m = "ttg.local_alloc"() : () -> {WHOLE}
        "scf.for"(%b, %e, %s) ({{
        ^bb1(%i: i32):
          %x = "ttg.memdesc_slice"(%m, {index}) <{{axis = 0 : i32}}> : ({WHOLE}, i32) -> {PART}
          "scf.yield"() : () -> ()
        }}) : (i32, i32, i32) -> ()""",
    )
    (op,) = (op for op in module.walk() if isinstance(op, MemDescSliceOp))
    if message is None:
        check_slice_index(op)
    else:
        with pytest.raises(VerifyException, match=f"takes one of 4 slices.*{message}"):
            check_slice_index(op)
