"""Waiting for a value in memory, written in the language.

tl.atomic_poll(ready_ptr, 1)                              goes on when another program has stored 1
if tl.atomic_poll(ready_ptr, 1, timeout_ns=1000000): ...
"""

from __future__ import annotations

from deuteron.language.atomic import atomic_load
from deuteron.language.constant import constexpr
from deuteron.language.convert import to_tensor
from deuteron.language.debug import static_assert
from deuteron.language.function import Function
from deuteron.language.program import globaltimer
from deuteron.language.reductions import reduce_or
from deuteron.language.types import int64


@Function
def _any(pending):
    if len(pending.shape) == 0:
        return pending
    else:  # noqa: RET505
        return reduce_or(pending, None)


@Function
def atomic_poll(pointer, expected_value, sem: constexpr = None, scope: constexpr = None, timeout_ns=None):
    """Wait until memory at `pointer` holds `expected_value`; whether it did, int1 of the shape of `pointer`.

    :param pointer: a pointer or a tile of pointers to integers of 16, 32 or 64 bits.
    :param expected_value: broadcast to the shape of `pointer` and converted to the type it points to.
    :param sem: "acquire" (the default): what comes after sees what was stored before that value was released; or
        "relaxed".
    :param scope: among whom: "gpu" (the default), "cta" or "sys".
    :param timeout_ns: nanoseconds after which the wait ends, for all elements together; None waits for ever. Each
        element is loaded at least once.

    Errors: other elements, another `sem` or `scope`.
    """
    element: constexpr = pointer.dtype.element_ty
    static_assert(element.is_int() and element.primitive_bitwidth >= 16, "it needs integers of 16 to 64 bits")
    expected = to_tensor(expected_value).to(element)
    matched = atomic_load(pointer, None, sem, scope) == expected
    if timeout_ns is None:
        while _any(~matched):
            matched = matched | (atomic_load(pointer, ~matched, sem, scope) == expected)
    else:
        now = globaltimer()
        end = now + to_tensor(timeout_ns).to(int64)
        while _any(~matched) & (now < end):
            matched = matched | (atomic_load(pointer, ~matched, sem, scope) == expected)
            now = globaltimer()
    return matched
