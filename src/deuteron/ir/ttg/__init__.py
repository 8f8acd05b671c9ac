"""The `ttg` dialect: what tile IR gains when every tile has a layout. Text forms are those of Triton's dialect.

layout.py   layouts as encodings of tile types; descriptors of shared memory
shared.py   allocation, stores and loads of shared memory
views.py    views of shared memory
convert.py  conversion between layouts
barrier.py  barriers
fence.py    order among a thread's accesses
async_copy.py       copies from global to shared memory that run on, and waits for them
memdesc_index.py    one of several buffers
memdesc_subslice.py part of a tile in shared memory
sliced_dot.py       dots by multiply-adds, of operands in shared memory
ring.py             the next of buffers that take turns
private.py          tiles in memory of each thread, in slices
warp_specialize.py  warps that do different things
"""

from xdsl.ir import Dialect

from deuteron.ir.named_values import read_by_name
from deuteron.ir.ttg import (
    async_copy,
    barrier,
    convert,
    fence,
    layout,
    memdesc_index,
    memdesc_subslice,
    private,
    ring,
    shared,
    sliced_dot,
    views,
    warp_specialize,
)

TTG = Dialect(
    "ttg",
    [
        *barrier.OPS,
        *convert.OPS,
        *fence.OPS,
        *shared.OPS,
        *sliced_dot.OPS,
        *async_copy.OPS,
        *memdesc_index.OPS,
        *memdesc_subslice.OPS,
        *private.OPS,
        *ring.OPS,
        *views.OPS,
        *warp_specialize.OPS,
    ],
    [*layout.ATTRIBUTES, *async_copy.ATTRIBUTES, *private.ATTRIBUTES],
)
read_by_name(TTG)
