"""The block's place in its cluster."""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.cuda.context import Context, Rule
from deuteron.backend.llvm.types import Value


def cluster_cta_rank(ctx: Context, op: Operation) -> Value:
    return ctx.b.call("i32", "llvm.nvvm.read.ptx.sreg.cluster.ctarank")


RULES: dict[str, Rule] = {"ttng.cluster_cta_rank": cluster_cta_rank}
