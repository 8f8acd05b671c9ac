"""The `ttng` dialect: what NVIDIA GPUs from Hopper on can do. Names are those of Triton's dialect.

cluster.py          the blocks that run one program together
warp_group_dot.py   dots by wgmma, in flight until they are waited for
fence.py            fences between ordinary and asynchronous accesses of shared memory
mbarrier.py         barriers in shared memory that count arrivals and bytes
tma.py              copies of blocks of tensors between global and shared memory
turns.py            warpgroups in ping-pong: they take turns
"""

from xdsl.ir import Dialect

from deuteron.ir.named_values import read_by_name
from deuteron.ir.ttng import cluster, fence, mbarrier, tma, turns, warp_group_dot

TTNG = Dialect("ttng", [*cluster.OPS, *fence.OPS, *mbarrier.OPS, *tma.OPS, *turns.OPS, *warp_group_dot.OPS], [])
read_by_name(TTNG)
