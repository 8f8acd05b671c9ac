"""`triton.language.core.base_value` and `base_type`, of which Triton's values and types are.

isinstance(x, core.base_value)      of every tensor, descriptor, constexpr, tuple
isinstance(t, core.base_type)       of every type

They are for such questions: a value of a class made of one is none that kernels know.
"""

from __future__ import annotations

from abc import ABC

from deuteron.language.constant import constexpr
from deuteron.language.traced import Traced
from deuteron.language.types import dtype


class base_value(ABC):  # noqa: B024  it is for isinstance
    """Values of a kernel, as functions of Python see them."""


for _cls in (Traced, constexpr, tuple):
    base_value.register(_cls)

base_type = dtype
