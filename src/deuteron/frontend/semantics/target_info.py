"""What `tl.target_info` says: asked of the target that the kernel is compiled for, where there is one.

tl.target_info.cuda_capability_geq(9, 0)      True for cuda:90 and cuda:100, False for cuda:80 and cpu
"""

from __future__ import annotations

from typing import Any

from deuteron.frontend.context import Context
from deuteron.frontend.values import Value, describe, is_runtime
from deuteron.language import target_info


def current_target(ctx: Context) -> Any:
    return ctx.target


def is_cuda(ctx: Context) -> bool:
    return target_info.is_cuda.answer(ctx.target)


def is_hip(ctx: Context) -> bool:
    return target_info.is_hip.answer(ctx.target)


def cuda_capability_geq(ctx: Context, major: Value, minor: Value = 0) -> bool:
    if is_runtime((major, minor)):
        raise ctx.error(f"A compute capability is two known numbers, got {describe(major)} and {describe(minor)}.")
    return target_info.cuda_capability_geq.answer(ctx.target, major, minor)


RULES = {
    target_info.current_target: current_target,
    target_info.is_cuda: is_cuda,
    target_info.is_hip: is_hip,
    target_info.cuda_capability_geq: cuda_capability_geq,
}
