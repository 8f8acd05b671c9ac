"""Boxes of TMA copies: that the copies write a layout is checked byte by byte against the emulator's tensor map."""

from __future__ import annotations

import numpy as np
import pytest

from deuteron.emulator import TensorMap
from deuteron.layout.linear import OFFSET, LinearLayout
from deuteron.layout.shared import mma_shared, row_major
from deuteron.layout.tensor_box import TensorBox, box_places, tensor_box

DTYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def copied(layout: LinearLayout, size: int, min_copies: int = 1) -> np.ndarray:
    """Shared memory, element by element, after the copies of a tile of the numbers 0, 1, 2 ..."""
    count = int(np.prod(layout.shape))
    space = np.zeros(count * size + 16, np.uint8)
    begin = -space.ctypes.data % 16
    tile = space[begin : begin + count * size].view(DTYPES[size]).reshape(layout.shape)
    tile[...] = np.arange(count, dtype=DTYPES[size]).reshape(layout.shape)
    box = tensor_box(layout, size, min_copies)
    tensor_map = TensorMap(tile, box.shape, box.swizzle)
    shared = np.zeros(count * size, np.uint8)
    for coordinates, offset in box_places(layout, box):
        shared[tensor_map.shared_addresses(offset * size)] = tensor_map.read(coordinates[::-1])
    return shared.view(DTYPES[size])


LAYOUTS = {
    "panels of 128 bytes": (mma_shared([128, 128], 1, 2), 2, TensorBox((128, 64), 128)),
    "one panel": (mma_shared([64, 64], 1, 2), 2, TensorBox((64, 64), 128)),
    "few rows in one panel": (mma_shared([4, 64], 1, 2), 2, TensorBox((4, 64), 128)),
    "64 bytes": (mma_shared([32, 32], 1, 2), 2, TensorBox((32, 32), 64)),
    "narrow panels of a wide tile": (mma_shared([32, 128], 1, 2, 32), 2, TensorBox((32, 16), 32)),
    "16 bytes": (mma_shared([64, 8], 1, 2), 2, TensorBox((64, 8), 0)),
    "bytes": (mma_shared([64, 256], 1, 1), 1, TensorBox((64, 128), 128)),
    "words": (mma_shared([16, 64], 1, 4), 4, TensorBox((16, 32), 128)),
    "many rows": (mma_shared([512, 32], 1, 4), 4, TensorBox((256, 32), 128)),
    "three dimensions": (mma_shared([4, 32, 128], 2, 2), 2, TensorBox((1, 32, 64), 128)),
    "row-major": (row_major([4, 8, 32]), 4, TensorBox((4, 8, 32), 0)),
    "long rows": (row_major([2, 512]), 2, TensorBox((1, 256), 0)),
    "a vector": (row_major([1024]), 4, TensorBox((256,), 0)),
    "doubles": (row_major([8, 16]), 8, TensorBox((8, 16), 0)),
}


@pytest.mark.parametrize(("layout", "size", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_copies_make_the_layout(layout: LinearLayout, size: int, expected: TensorBox):
    assert tensor_box(layout, size) == expected
    places = layout(**{OFFSET: np.arange(int(np.prod(layout.shape)))})
    index = sum(place * int(np.prod(layout.shape[axis + 1 :])) for axis, place in enumerate(places))
    np.testing.assert_array_equal(copied(layout, size), index.astype(DTYPES[size]))


@pytest.mark.parametrize(("alignment", "swizzle"), [(1024, 32), (256, 32), (128, 0)])
def test_rows_in_order_are_swizzled_only_where_the_pattern_begins(alignment: int, swizzle: int):
    """At 128 bytes, the second of two chunks of 16 would be the first."""
    assert tensor_box(row_major([4]), 8, alignment=alignment) == TensorBox((4,), swizzle)


SHARED = {
    "panels enough": (mma_shared([64, 256], 1, 2), 2, 4, TensorBox((64, 64), 128)),
    "halves of a panel": (mma_shared([128, 64], 1, 2), 2, 2, TensorBox((64, 64), 128)),
    "an eighth of one": (mma_shared([64, 64], 1, 2), 2, 8, TensorBox((8, 64), 128)),
    "both": (mma_shared([128, 128], 1, 2), 2, 4, TensorBox((64, 64), 128)),
    "not even 8 rows": (mma_shared([32, 64], 1, 2), 2, 8, None),
    "row-major": (row_major([4, 8, 32]), 4, 2, TensorBox((2, 8, 32), 0)),
}


@pytest.mark.parametrize(("layout", "size", "min_copies", "expected"), SHARED.values(), ids=SHARED)
def test_as_many_copies_as_share_a_tile(layout: LinearLayout, size: int, min_copies: int, expected: TensorBox | None):
    assert tensor_box(layout, size, min_copies) == expected
    if expected is not None:
        np.testing.assert_array_equal(copied(layout, size, min_copies), copied(layout, size))


@pytest.mark.parametrize(
    ("layout", "size"),
    [
        (mma_shared([64, 64], 0, 2), 2),
        (mma_shared([4, 128], 1, 2), 2),
        (row_major([16, 4]), 2),
        (row_major([64, 64], [0, 1]), 4),
    ],
    ids=["transposed", "panels that begin within a pattern", "rows of 8 bytes", "column-major"],
)
def test_layouts_that_no_copy_makes(layout: LinearLayout, size: int):
    assert tensor_box(layout, size) is None
