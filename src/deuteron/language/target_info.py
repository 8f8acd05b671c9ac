"""`tl.target_info`: what a kernel is compiled for, known at compile time.

    if tl.target_info.cuda_capability_geq(9, 0): ...     one side is compiled

In the interpreter there is no target, so that each of these is False. Within a kernel only.
"""

from __future__ import annotations

from typing import Any

from deuteron.language.builtin import builtin


@builtin
def current_target() -> Any:
    """The target: `backend` ("cpu", "cuda"), `arch`, `warp_size`; None in the interpreter."""


@builtin
def is_cuda() -> bool:
    """Whether the kernel is compiled for a GPU of NVIDIA."""


@builtin
def is_hip() -> bool:
    """Whether the kernel is compiled for a GPU of AMD."""


@builtin
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """Whether the kernel is compiled for a GPU of NVIDIA of this compute capability or a later one."""
