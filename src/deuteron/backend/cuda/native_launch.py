"""Machine code that launches a kernel on a GPU, for the compiled launcher.

    launch(target, extents, values, stream)         as `backend/native_launch.py` has it
    target_words(function, (128, 1, 2**31 - 1, 0), 5, device=0, is_only_device=True)      what `target` points to

A grid that is too large, a thread without a context and, where there are several GPUs, one whose context is of another
are left to Python, which knows what to do.
"""

from __future__ import annotations

from functools import cache

from deuteron.backend.cuda.libcuda import library_function
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.compile import emit_object
from deuteron.backend.llvm.loader import LoadedObject, load_object
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.native_launch import PYTHON_LAUNCHES

_TARGET = "launch function num_threads num_ctas max_x shared num_arguments device current_device".split()  # noqa: SIM905
_MAX_Y = 65535  # and z
_INVALID_CONTEXT = 201


def target_words(
    function: int, shape: tuple[int, int, int, int], num_arguments: int, device: int, is_only_device: bool
) -> tuple[int, ...]:
    """The words of _TARGET; `shape` has threads, CTAs, the largest extent along x, bytes of shared memory."""
    asked = 0 if is_only_device else library_function("cuCtxGetDevice")
    return library_function("cuLaunchKernel"), function, *shape, num_arguments, device, asked


@cache
def launch_function() -> int:
    """The address of the machine code."""
    return _loaded().address("launch")


@cache
def _loaded() -> LoadedObject:
    module = Module("cuda_launch")
    parameters = [("ptr", "target"), ("ptr", "extents"), ("ptr", "values"), ("i64", "stream")]
    _emit(module.function("launch", "i64", parameters, "external"))
    return load_object(emit_object(module.text(), "generic"), ["launch"])


def _emit(b: Builder) -> None:
    target, extents, values, stream = b.parameters
    words = dict(zip(_TARGET, _words(b, target, len(_TARGET)), strict=True))
    x, y, z = _words(b, extents, 3)
    in_python = b.block("in_python")
    current = b.alloca("i32", 1, align=8)
    for extent, limit in ((x, words["max_x"]), (y, const("i64", _MAX_Y)), (z, const("i64", _MAX_Y))):
        _leave_if(b, b.icmp("ugt", extent, limit), in_python)
    with b.if_(b.icmp("ne", words["current_device"], const("i64", 0))) as branch:
        status = b.call_pointer("i32", b.inttoptr(words["current_device"]), current)
        is_same = b.icmp("eq", b.load("i32", current), b.trunc(words["device"], "i32"))
        branch.yield_(b.and_(b.icmp("eq", status, const("i32", 0)), is_same))
        branch.otherwise()
        branch.yield_(const("i1", 1))
    _leave_if(b, b.xor(branch.results[0], const("i1", 1)), in_python)
    status = _launch(b, words, (x, y, z), values, stream)
    _leave_if(b, b.icmp("eq", status, const("i32", _INVALID_CONTEXT)), in_python)
    b.ret(b.zext(status, "i64"))
    b.position(in_python)
    b.ret(const("i64", PYTHON_LAUNCHES))


def _words(b: Builder, record: Value, count: int) -> list[Value]:
    return [b.load("i64", b.gep("i64", record, const("i64", index))) for index in range(count)]


def _leave_if(b: Builder, condition: Value, block) -> None:
    further = b.block("on")
    b.cond_br(condition, block, further)
    b.position(further)


def _launch(b: Builder, words: dict[str, Value], extents: tuple[Value, ...], values: Value, stream: Value) -> Value:
    """Call cuLaunchKernel; its status."""
    count = words["num_arguments"]
    addresses = b.alloca("ptr", b.add(count, const("i64", 1)), align=16)
    with b.loop(const("i64", 0), count, const("i64", 1)) as loop:
        b.store(b.gep("i64", values, loop.index), b.gep("ptr", addresses, loop.index))
    one, null = const("i32", 1), const("ptr", 0)
    x, y, z = extents
    grid = [b.trunc(extent, "i32") for extent in (b.mul(x, words["num_ctas"]), y, z)]
    threads, shared = (b.trunc(words[name], "i32") for name in ("num_threads", "shared"))
    function, queue = b.inttoptr(words["function"]), b.inttoptr(stream)
    given = (function, *grid, threads, one, one, shared, queue, addresses, null)
    return b.call_pointer("i32", b.inttoptr(words["launch"]), *given)
