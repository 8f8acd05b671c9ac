"""What the compiled launcher reads, as records of words: written by Python, read by the machine code.

    ENTRY.pack(num_words=3, fire=address)      [3, 0, ..., address, 0]     what is not given is 0
    ENTRY.index("fire")                        which word of the record it is

A word has 8 bytes; objects of Python are the addresses that they have, and whoever writes a record keeps them alive.

    SHARED    one for the process: classes, constants, tables that grow while the process meets dtypes and tensors
    KERNEL    one for each JITFunction, and each autotuner: its parameters, each a PARAMETER, follow
    ENTRY     one for each compiled kernel: then come the words of its key, its conditions, its slots, and what its
              target needs to launch it
    CHOICE    the same of an autotuner: what it chose for such arguments

A key has one word for each argument, the number of its token, and two for a constexpr: how it is compared, and the
value. Equal keys mean equal tokens. What else a launch depends on is a condition of the entry.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from deuteron.backend.metadata import KernelMetadata, Param, TileStep
from deuteron.backend.spans import View
from deuteron.language.signature import parse_type

EXPORTED = ("launch", "launch_chosen", "launch_prepared", "with_grid", "hash_words")
WORD = 8  # bytes
MOST_PARAMETERS, MOST_OPTIONS, MOST_SLOTS = 128, 16, 256
MOST_WORDS = 4 * MOST_PARAMETERS + 3 * MOST_OPTIONS + 3


class Record:
    """The names of the words of a record, in order."""

    def __init__(self, names: str):
        self.names = tuple(names.split())
        self._index = {name: index for index, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        return self._index[name]

    def pack(self, **values: int) -> list[int]:
        """The words; raises KeyError for a name that the record does not have."""
        words = [0] * len(self)
        for name, value in values.items():
            words[self._index[name]] = value
        return words


# `none` to `i64_16` are numbers of tokens, 0 where the token depends on more than the class of the argument.
PARAMETER = Record(
    "name default is_constexpr is_compared specialise arrays none float false true i32 i32_one i32_16 i64 i64_16",
)
# What `arrays` says: the specialiser is called for them, or their token depends on their alignment, or does not.
ARRAYS_CALLED, ARRAYS_ALIGNED, ARRAYS_UNALIGNED = 0, 1, 2

# Where a launch `is_choice` its entries are CHOICEs, and it has no defaults: the word of what is not given is 0. Of a
# parameter that `is_compared` the value is in the key as well.
KERNEL = Record("num_parameters shared definition entries run_slowly is_choice extents grid_failed names")

ENTRY = Record("num_words num_conditions num_slots kernel fire target stream device run_packed fail none apart")
# What an autotuner chose: the KERNEL that is launched, names and values of the keywords that it is given besides, and
# the attribute of the tuner that is set to the configuration. The values follow the conditions.
CHOICE = Record(
    "num_words num_conditions num_slots kernel names num_values tuner attribute config unused_0 unused_1 unused_2"
)
CONDITION = Record("kind owner name expected")
IS_ITEM, IS_FALSE_ITEM, IS_ATTRIBUTE, IS_FALSE_ATTRIBUTE, IS_SUBSCRIPT, IS_IN_CELL = range(6)
SLOT = Record("parameter part format mask")
# What arrays a kernel relies on being apart (`apart.py`): those that are looked at, by the number of the object, the
# slot of the address, the bytes of an element and who knows where the elements are of arrays of other libraries, which
# may be nobody; and pairs of them.
APART = Record("num_views num_pairs num_equal num_tiles")
LOOKED_AT = Record("object slot item measure")
# PAIRs, then the slots of numbers that are EQUAL, TILEs and STEPs, of each pair, and tile, from one to another. A step
# is a factor, times the number in a slot if `has_slot`, which is moved left and right to have its sign.
PAIR = Record("first second or_equal begin_equal end_equal begin_tiles end_tiles")
EQUAL = Record("first second")
TILE = Record("begin end")
STEP = Record("extent factor has_slot slot shift")
# Where the elements of an array are: from the lowest byte to behind the highest one, and its axes, steps in `unit`s;
# `owner` is an object that has these.
VIEW = Record("begin end address item num_axes extents steps unit owner")
WHOLE = (1 << 64) - 1  # the part of an argument that is no tuple
# How an argument becomes a word; of an integer the bits of the mask.
AS_INTEGER, AS_BOOL, AS_FLOAT, AS_DOUBLE = range(4)

# Of launches with everything in order (`plain_call.py`): a kernel, the slots that follow, and the arguments that come
# before the kernel's own.
RUNNER = Record("shared num_args num_slots fire target in_python fail apart overlapping")
PLAIN_SLOT = Record("argument format mask")
AS_ADDRESS = AS_DOUBLE + 1
STREAM, ENTER, EXIT, FIRST = 3, 7, 8, 9

SHARED = Record(
    "int float str tuple bytes none true false exception tokens strings identities constant may_alias "
    "ndarray tensor parameter tensor_offset tensor_data tensor_dtype tensor_device_type tensor_device tensor_layout "
    "tensor_dim tensor_sizes tensor_strides tensor_keys tensor_negative"
)
# How a constexpr is compared: as the same object, by its value, or by the number of its token.
BY_IDENTITY, BY_INTEGER, BY_FLOAT, BY_TOKEN = range(1, 5)

# After SHARED: pairs of a NumPy dtype and its first token, by address; then, of torch, first tokens by device and
# dtype. The four tokens of an array follow each other: unaligned, aligned, and both of read-only ones.
NUMPY_DTYPES = 64
TORCH_DTYPES, TORCH_DEVICES = 64, 17  # the CPU, then GPUs
NUMPY_TABLE = len(SHARED)
TORCH_TABLE = NUMPY_TABLE + 2 * NUMPY_DTYPES
SHARED_WORDS = TORCH_TABLE + TORCH_DTYPES * TORCH_DEVICES
READ_ONLY, ALIGNED = 2, 1


def to_bytes(words: Sequence[int]) -> bytes:
    """Words as they lie in memory."""
    return bytes((ctypes.c_uint64 * len(words))(*[word & WHOLE for word in words]))


def entry_words(
    fields: dict[str, int],
    words: Sequence[int],
    conditions: Sequence[list[int]],
    slots: Sequence[list[int]],
    target: Sequence[int],
    apart: Sequence[int],
) -> list[int]:
    """The whole record of an entry."""
    before = len(ENTRY) + len(words) + len(conditions) * len(CONDITION) + len(slots) * len(SLOT)
    counts = {"num_words": len(words), "num_conditions": len(conditions), "num_slots": len(slots), "target": before}
    counts |= {"apart": before + len(target)}
    parts = [word for part in (*conditions, *slots) for word in part]
    return [*ENTRY.pack(**counts, **fields), *words, *parts, *target, *apart]


def apart_words(metadata: KernelMetadata, objects: Sequence[int], measures: Sequence[int]) -> list[int]:
    """An APART with what is LOOKED_AT, and PAIRs.

    For each runtime parameter `objects` has the number of the object it is of, and `measures` the address of a function
    of that, which returns what `view_words` does, or 0.
    """
    params = metadata.runtime_params
    numbers = {param.name: number for number, param in enumerate(params)}
    looked_at = sorted({numbers[name] for pair in metadata.apart for name in (pair.first, pair.second)})
    described = [
        LOOKED_AT.pack(object=objects[one], slot=one, item=_item_bytes(params[one]), measure=measures[one])
        for one in looked_at
    ]
    places = {name: looked_at.index(number) for name, number in numbers.items() if number in looked_at}
    pairs: list[list[int]] = []
    equal: list[list[int]] = []
    tiles: list[list[int]] = []
    steps: list[list[int]] = []
    for pair in metadata.apart:
        fields = {"or_equal": int(pair.or_equal), "begin_equal": len(equal), "begin_tiles": len(tiles)}
        equal += [EQUAL.pack(first=numbers[first], second=numbers[second]) for first, second in pair.equal]
        for tile in pair.tiles:
            tiles.append(TILE.pack(begin=len(steps), end=len(steps) + len(tile)))
            steps += [_step_words(step, params, numbers) for step in tile]
        fields |= {"end_equal": len(equal), "end_tiles": len(tiles)}
        pairs.append(PAIR.pack(first=places[pair.first], second=places[pair.second], **fields))
    counts = {"num_pairs": len(pairs), "num_equal": len(equal), "num_tiles": len(tiles)}
    head = APART.pack(num_views=len(described), **counts)
    return [word for record in (head, *described, *pairs, *equal, *tiles, *steps) for word in record]


def _step_words(step: TileStep, params: Sequence[Param], numbers: Mapping[str, int]) -> list[int]:
    if step.parameter is None:
        return STEP.pack(extent=step.extent, factor=step.factor)
    slot = numbers[step.parameter]
    type = params[slot].type
    shift = WORD * 8 - int(type[1:]) if type.startswith("i") else 0
    return STEP.pack(extent=step.extent, factor=step.factor, has_slot=1, slot=slot, shift=shift)


def view_words(view: View | None) -> bytes | None:
    """The bytes of an element, the number of axes, extents and steps; None where that is not known."""
    if view is None:
        return None
    extents, steps = zip(*view.axes, strict=True) if view.axes else ((), ())
    return to_bytes([view.item, len(view.axes), *extents, *steps])


def _item_bytes(param: Param) -> int:
    """Of an element of its array."""
    return max(parse_type(param.type).element_ty.itemsize, 1)
