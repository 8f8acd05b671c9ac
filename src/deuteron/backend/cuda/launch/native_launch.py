"""Machine code that launches a kernel on a GPU, for the compiled launcher.

    launch(target, extents, values, stream)         as `backend/native_launch.py` has it
    target_words(maps, attributes, ...)             what `target` points to: a TARGET, the maps of `native_maps.py`, the
                                                    attributes of `launch_attributes.py`

A grid that is too large, a map that the driver would refuse, a thread without a context and, where there are several
GPUs, one whose context is of another are left to Python, which knows what to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.backend.cuda.launch import launch_attributes
from deuteron.backend.cuda.launch.launch_attributes import attribute_words
from deuteron.backend.cuda.launch.libcuda import library_function
from deuteron.backend.cuda.launch.native_maps import define_encode, map_words
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.records import WORD, Record
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.loader import LoadedObject, load_kept
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.native_launch import PYTHON_LAUNCHES
from deuteron.backend.tensor_map import ALIGNMENT, SIZE, TensorMap
from deuteron.once import once

# `current_device` is a function of the driver, 0 where there is only one device. `attributes` are words from the first
# word of the record on; where there are none `launch_ex` is 0.
TARGET = Record(
    "function num_threads num_ctas max_x shared num_arguments device num_maps launch current_device encode_tiled "
    "num_attributes attributes launch_ex"
)
_MAX_Y = 65535  # and z
_INVALID_CONTEXT = 201


def target_words(
    tensor_maps: Sequence[TensorMap], attributes: Sequence[int], device: int, is_only_device: bool, **fields: int
) -> tuple[int, ...] | None:
    """The words of a kernel on a device; None where Python has to make a map."""
    maps = [map_words(described) for described in tensor_maps]
    if None in maps:
        return None
    functions = {"launch": library_function("cuLaunchKernel")}
    if not is_only_device:
        functions["current_device"] = library_function("cuCtxGetDevice")
    if maps:
        functions["encode_tiled"] = library_function("cuTensorMapEncodeTiled")
    if attributes:
        functions["launch_ex"] = library_function("cuLaunchKernelEx")
    further = [word for described in maps for word in described or ()]
    counts = {"num_maps": len(maps), "num_attributes": len(attributes), "attributes": len(TARGET) + len(further)}
    words = TARGET.pack(device=device, **counts, **functions, **fields)
    return (*words, *further, *attribute_words(attributes))


def launch_function() -> int:
    """The address of the machine code."""
    return _loaded().address("launch")


@once
def _loaded() -> LoadedObject:
    return load_kept("launches on a GPU", _text, ["launch"])


def _text() -> str:
    module = Module("cuda_launch")
    define_encode(module)
    _define_make_maps(module)
    _define_launch(module)
    return module.text()


def _define_make_maps(module: Module) -> None:
    """Encode all maps, and put their addresses behind those of the arguments; 0 where Python has to."""
    given = [("ptr", "target"), ("ptr", "values"), ("ptr", "space"), ("ptr", "addresses")]
    c = module.function("make_maps", "i32", given, kind=Code)
    target, values, space, addresses = c.parameters
    described = c.variable("ptr", c.after(target, len(TARGET)))
    fail = c.block("fail")
    encode_tiled = c.field(target, TARGET, "encode_tiled", "ptr")
    with c.repeat(c.field(target, TARGET, "num_maps")) as index:
        place, words = c.gep("i8", space, c.mul(index, c.word(SIZE))), c.load("ptr", described)
        c.leave_if(c.is_null(c.call("i32", "encode", words, values, encode_tiled, place)), fail)
        c.put(addresses, index, place)
        c.store(c.after(words, c.at(words, c.word(0))), described)
    c.ret(const("i32", 1))
    c.position(fail)
    c.ret(const("i32", 0))


def _define_launch(module: Module) -> None:
    given = [("ptr", "target"), ("ptr", "extents"), ("ptr", "values"), ("i64", "stream")]
    c = module.function("launch", "i64", given, "external", kind=Code)
    target, extents, values, stream = c.parameters
    current = c.variable("i32", const("i32", 0))
    count, num_maps = (c.field(target, TARGET, name) for name in ("num_arguments", "num_maps"))
    addresses = c.alloca("ptr", c.add(c.add(count, num_maps), c.word(1)), align=16)
    space = c.alloca("i8", c.mul(num_maps, c.word(SIZE)), align=ALIGNMENT)
    in_python = c.block("in_python")
    x, y, z = (c.at(extents, c.word(axis)) for axis in range(3))
    limits = c.field(target, TARGET, "max_x"), c.word(_MAX_Y), c.word(_MAX_Y)
    for extent, limit in zip((x, y, z), limits, strict=True):
        c.leave_if(c.icmp("ugt", extent, limit), in_python)
    _check_device(c, target, current, in_python)
    with c.repeat(count) as index:
        c.put(addresses, index, c.after(values, index))
    made = c.call("i32", "make_maps", target, values, space, c.after(addresses, count))
    c.leave_if(c.is_null(made), in_python)
    status = _call_driver(c, target, (x, y, z), addresses, stream)
    c.leave_if(c.equal(status, const("i32", _INVALID_CONTEXT)), in_python)
    c.ret(c.zext(status, "i64"))
    c.position(in_python)
    c.ret(c.word(PYTHON_LAUNCHES))


def _check_device(c: Code, target: Value, current: Value, in_python: Block) -> None:
    """Leave where there are several devices and the thread's context is not of the kernel's."""
    current_device = c.field(target, TARGET, "current_device", "ptr")
    with c.when(c.is_not_null(current_device)):
        c.leave_if(c.is_not_null(c.call_pointer("i32", current_device, current)), in_python)
        device = c.trunc(c.field(target, TARGET, "device"), "i32")
        c.leave_if(c.differ(c.load("i32", current), device), in_python)


def _call_driver(c: Code, target: Value, extents: tuple[Value, ...], addresses: Value, stream: Value) -> Value:
    """Call cuLaunchKernel, or cuLaunchKernelEx where there are attributes; its status."""
    x, y, z = extents
    grid = [c.trunc(extent, "i32") for extent in (c.mul(x, c.field(target, TARGET, "num_ctas")), y, z)]
    threads, shared = (c.trunc(c.field(target, TARGET, name), "i32") for name in ("num_threads", "shared"))
    one, function = const("i32", 1), c.field(target, TARGET, "function", "ptr")
    shape, queue = (*grid, threads, one, one, shared), c.inttoptr(stream)
    status, end = c.alloca("i32", c.word(1), align=WORD), c.block("launched")
    launch_ex = c.field(target, TARGET, "launch_ex", "ptr")
    with c.when(c.is_not_null(launch_ex)):
        config = _make_config(c, target, shape, queue)
        c.store(c.call_pointer("i32", launch_ex, config, function, addresses, NULL), status)
        c.leave(end)
    launch = c.field(target, TARGET, "launch", "ptr")
    c.store(c.call_pointer("i32", launch, function, *shape, queue, addresses, NULL), status)
    c.leave(end)
    c.position(end)
    return c.load("i32", status)


def _make_config(c: Code, target: Value, shape: Sequence[Value], stream: Value) -> Value:
    """A CUlaunchConfig: `shape` are the extents of the grid and of a block, and the bytes of shared memory."""
    config = c.alloca("i8", c.word(launch_attributes.CONFIG_BYTES), align=WORD)
    for index, number in enumerate(shape):
        c.store(number, c.gep("i32", config, c.word(index)))
    attributes = c.after(target, c.field(target, TARGET, "attributes"))
    count = c.trunc(c.field(target, TARGET, "num_attributes"), "i32")
    further = {
        launch_attributes.STREAM: stream,
        launch_attributes.ATTRIBUTES: attributes,
        launch_attributes.NUM_ATTRIBUTES: count,
    }
    for offset, value in further.items():
        c.store(value, c.gep("i8", config, c.word(offset)))
    return config
