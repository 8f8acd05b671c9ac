"""Atomic operations on memory: read-modify-write, compare-and-swap, loads, stores.

    old = tl.atomic_add(counter_ptr, 1)
    tl.atomic_max(row_max_ptr + rows, values, mask=rows < n_rows, sem="relaxed")

    tl.atomic_store(ready_ptr, 1)                    what was stored before it is seen by whoever
    if tl.atomic_load(ready_ptr) == 1: ...           acquires the 1
    tl.atomic_poll(ready_ptr, 1)                     goes on when another program has stored it

What modifies gives what was in memory before. Parameters and errors of `atomic_add` are those of the others like it.
"""

from __future__ import annotations

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor

Operand = tensor | float


@builtin
def atomic_add(
    pointer: tensor, val: Operand, mask: tensor | None = None, sem: str | None = None, scope: str | None = None
) -> tensor:
    """Add `val` to memory and give what was there before. Types: integers of 32 and 64 bits, all floats but fp8.

    :param pointer: a pointer or a tile of pointers.
    :param val: broadcast to the shape of `pointer` and converted to the type it points to.
    :param mask: int1, broadcast to the shape of `pointer`; where it is false nothing is done.
    :param sem: "acquire", "release", "acq_rel" (the default) or "relaxed".
    :param scope: who sees that order: "gpu" (the default), "cta" or "sys".

    Errors: no pointer, a pointer to constant data, a value or mask of another shape, a mask that is not int1, a type
    the operation does not have, another `sem` or `scope`.
    """


@builtin
def atomic_max(
    pointer: tensor, val: Operand, mask: tensor | None = None, sem: str | None = None, scope: str | None = None
) -> tensor:
    """Let memory hold the larger of itself and `val`, and give what was there before.

    Types: integers of 32 and 64 bits, fp32, fp64. Floats are compared by their bits, which orders all but NaN.
    Parameters and errors as `atomic_add`.
    """


@builtin
def atomic_min(
    pointer: tensor, val: Operand, mask: tensor | None = None, sem: str | None = None, scope: str | None = None
) -> tensor:
    """Let memory hold the smaller of itself and `val`, and give what was there before.

    Types as `atomic_max`, parameters and errors as `atomic_add`.
    """


@builtin
def atomic_and(
    pointer: tensor, val: Operand, mask: tensor | None = None, sem: str | None = None, scope: str | None = None
) -> tensor:
    """Bitwise and of memory with `val`; gives what was there before.

    Types: integers of 32 and 64 bits. Parameters and errors as `atomic_add`.
    """


@builtin
def atomic_or(
    pointer: tensor, val: Operand, mask: tensor | None = None, sem: str | None = None, scope: str | None = None
) -> tensor:
    """Bitwise or of memory with `val`; gives what was there before.

    Types: integers of 32 and 64 bits. Parameters and errors as `atomic_add`.
    """


@builtin
def atomic_xor(
    pointer: tensor, val: Operand, mask: tensor | None = None, sem: str | None = None, scope: str | None = None
) -> tensor:
    """Bitwise exclusive or of memory with `val`; gives what was there before.

    Types: integers of 32 and 64 bits. Parameters and errors as `atomic_add`.
    """


@builtin
def atomic_xchg(
    pointer: tensor, val: Operand, mask: tensor | None = None, sem: str | None = None, scope: str | None = None
) -> tensor:
    """Put `val` in memory and give what was there before.

    Types: integers and floats of 32 and 64 bits. Parameters and errors as `atomic_add`.
    """


@builtin
def atomic_cas(pointer: tensor, cmp: Operand, val: Operand, sem: str | None = None, scope: str | None = None) -> tensor:
    """Put `val` in memory where it holds `cmp`, and give what was there before.

    :param cmp: what memory is expected to hold, compared by bits. Types: those of 16, 32 and 64 bits.

    The other parameters and the errors are those of `atomic_add`.
    """


@builtin
def atomic_load(
    pointer: tensor, mask: tensor | None = None, sem: str | None = None, scope: str | None = None
) -> tensor:
    """What is in memory at `pointer`, loaded atomically. Types: integers and floats of 8 to 64 bits, int1.

    :param pointer: a pointer or a tile of pointers.
    :param mask: int1, broadcast with `pointer`; where it is false nothing is loaded, and the result is unspecified.
    :param sem: "acquire" (the default): what comes after sees what was stored before the value that is loaded was
        released; or "relaxed".
    :param scope: among whom: "gpu" (the default), "cta" or "sys".

    Errors: no pointer, a mask of another shape or not int1, another `sem` or `scope`.
    """


@builtin
def atomic_poll(
    pointer: tensor,
    expected_value: Operand,
    sem: str | None = None,
    scope: str | None = None,
    timeout_ns: tensor | int | None = None,
) -> tensor:
    """Wait until memory at `pointer` holds `expected_value`; whether it did, int1 of the shape of `pointer`.

    :param pointer: a pointer or a tile of pointers to integers of 16, 32 or 64 bits.
    :param expected_value: broadcast to the shape of `pointer` and converted to the type it points to.
    :param sem: "acquire" (the default): what comes after sees what was stored before that value was released; or
        "relaxed".
    :param scope: among whom: "gpu" (the default), "cta" or "sys".
    :param timeout_ns: nanoseconds after which the wait ends, for all elements together; None waits for ever. Each
        element is loaded at least once.

    Errors: other elements, another `sem` or `scope`, a timeout that is no whole number or is negative.
    """


@builtin
def atomic_store(
    pointer: tensor, val: Operand, mask: tensor | None = None, sem: str | None = None, scope: str | None = None
) -> None:
    """Store `val` in memory at `pointer` atomically. Types: integers and floats of 8 to 64 bits, int1.

    :param pointer: a pointer or a tile of pointers.
    :param val: broadcast to the shape of `pointer` and converted to the type it points to.
    :param mask: int1, broadcast to the shape of `pointer`; where it is false nothing is stored.
    :param sem: "release" (the default): whoever acquires the value sees what was stored before; or "relaxed".
    :param scope: among whom: "gpu" (the default), "cta" or "sys".

    Errors: those of `atomic_add`.
    """
