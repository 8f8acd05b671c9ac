"""The CTA's place in its cluster, and the barrier of all its threads."""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.cuda.context import CUDAContext
from deuteron.backend.gpu.context import Rule
from deuteron.backend.llvm.types import Value


def cluster_cta_rank(ctx: CUDAContext, op: Operation) -> Value:
    return ctx.cluster_rank


def cluster_barrier(ctx: CUDAContext, op: Operation) -> None:
    for half in ("arrive", "wait"):
        ctx.b.intrinsic(f"llvm.nvvm.barrier.cluster.{half}", "void", overloads=())


RULES: dict[str, Rule] = {"ttng.cluster_cta_rank": cluster_cta_rank, "ttng.cluster_barrier": cluster_barrier}
