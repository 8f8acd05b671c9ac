"""Tensor maps of a launch: evaluated from the arguments, checked, and kept."""

from __future__ import annotations

import pytest

from deuteron.backend.cuda.launch.map_encoder import MapEncoder
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.tensor_map import MapValues, TensorMap, evaluate
from deuteron.errors import LaunchError
from deuteron.options import Target

POINTER, ROWS, COLUMNS = ("argument", 0, 64), ("argument", 1, 32), ("argument", 3, 32)
MAP = TensorMap("fp16", (64, 64), 128, "zero", POINTER, (ROWS, COLUMNS), (COLUMNS,), "k.py:7")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (("constant", -3), -3),
        (("argument", 1, 32), 5),
        (("argument", 2, 32), -1),
        (("add", 32, ("argument", 1, 32), ("constant", 2**31 - 1)), -(2**31) + 4),
        (("sub", 64, ("constant", 2), ("argument", 1, 32)), -3),
        (("mul", 64, ("argument", 1, 32), ("constant", 2**40)), 5 * 2**40),
    ],
)
def test_expressions(expression: tuple, value: int):
    """An unsigned argument is taken for the signed number of its bits."""
    assert evaluate(expression, [0, 5, 2**32 - 1]) == value


def test_maps_are_kept_by_the_arguments_that_they_depend_on():
    seen = []

    def encode(described: TensorMap, values: MapValues) -> bytes:
        seen.append(values)
        return bytes(128)

    encoder = MapEncoder("k", [MAP], encode)
    for alpha in (1, 2, 3):
        assert encoder.encoded([4096, 100, alpha, 80]) == (bytes(128),)
    assert seen == [MapValues(4096, (100, 80), (160,))]
    encoder.encoded([4096, 101, 1, 80])
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([4100, 100, 0, 80], "begins at address 0x1004, which is no multiple of 16"),
        ([4096, 100, 0, 81], "a stride of it is 162 bytes"),
        ([4096, 0, 0, 80], "a size of it is 0"),
    ],
)
def test_what_tma_cannot_copy_is_refused(arguments: list[int], message: str):
    with pytest.raises(LaunchError, match=f"kernel 'k': the tensor descriptor in k.py:7 cannot .*{message}"):
        MapEncoder("k", [MAP]).encoded(arguments)


def test_maps_in_metadata():
    metadata = KernelMetadata("k", "k", Target("cuda", 90, 32), {}, (), tensor_maps=(MAP,))
    assert KernelMetadata.from_json(metadata.to_json()) == metadata
