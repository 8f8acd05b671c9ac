"""The `ttg` dialect: what tile IR gains when every tile has a layout. Text forms are those of Triton's dialect.

layout.py   layouts as encodings of tile types; descriptors of shared memory
shared.py   allocation, stores and loads of shared memory
convert.py  conversion between layouts
barrier.py  barriers
"""

from xdsl.ir import Dialect

from deuteron.ir.ttg import barrier, convert, layout, shared

TTG = Dialect("ttg", [*barrier.OPS, *convert.OPS, *shared.OPS], [*layout.ATTRIBUTES])
