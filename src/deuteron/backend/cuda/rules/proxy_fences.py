"""ttng.fence_async_shared and ttng.fence_async_global: fences between threads and what TMA and wgmma access."""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context, Rule


def fence_async_shared(ctx: Context, op: Operation) -> None:
    space = "shared_cluster" if op.b_cluster.value.data else "shared_cta"
    ctx.b.intrinsic(f"llvm.nvvm.fence.proxy.async.{space}", "void", overloads=())


def fence_async_global(ctx: Context, op: Operation) -> None:
    ctx.b.intrinsic("llvm.nvvm.fence.proxy.async.global", "void", overloads=())


RULES: dict[str, Rule] = {
    "ttng.fence_async_shared": fence_async_shared,
    "ttng.fence_async_global": fence_async_global,
}
