"""The state of lowering a kernel for NVIDIA GPUs: what all GPUs have, and tensor maps, clusters, an elected thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context
from deuteron.backend.llvm.types import Value, const
from deuteron.options import CUDAOptions


@dataclass(eq=False, kw_only=True)
class CUDAContext(Context):
    """`tensor_maps` says where the map of each TMA copy is."""

    options: CUDAOptions
    tensor_maps: dict[Operation, Value] = field(default_factory=dict)

    @property
    def cluster_rank(self) -> Value:
        """The number of the CTA in its cluster."""
        return self.b.call("i32", "llvm.nvvm.read.ptx.sreg.cluster.ctarank")

    @contextmanager
    def in_first_warp(self, pred: Value | None = None) -> Iterator[Value]:
        """Within, the first warp executes the code, where `pred` is on; gives whether a lane is the one that it elects.

        A branch that is uniform and a predicate that elect.sync gives: ptxas then knows that one thread issues an
        instruction of TMA, and leaves away the loop over threads.
        """
        is_first = self.b.icmp("eq", self.threads.uniform_warp, const("i32", 0)) if self.num_warps > 1 else None
        conditions = [condition for condition in (is_first, pred) if condition is not None]
        with self.b.if_(reduce(self.b.and_, conditions, const("i1", True))):
            elected = self.b.call("{ i32, i1 }", "llvm.nvvm.elect.sync", const("i32", -1))
            yield self.b.extractvalue(elected, 1, "i1")
