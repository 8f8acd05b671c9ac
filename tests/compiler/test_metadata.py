"""Kernel metadata: JSON and back, and texts that are no metadata."""

import json

import pytest

from deuteron.compiler import KernelMetadata, Param
from deuteron.errors import UsageError
from deuteron.options import Target

METADATA = KernelMetadata(
    name="add",
    symbol="add_0d1",
    target=Target("cpu", "x86-64-v3", 1),
    options={"num_warps": 8, "maxnreg": None},
    params=(
        Param("x", "*fp32", "pointer", 16),
        Param("n", "i32", "scalar"),
        Param("BLOCK", "constexpr", "constexpr"),
    ),
    scratch_bytes=4096,
    stage_times={"ttir": 0.25},
)


def test_json_round_trip():
    assert KernelMetadata.from_json(METADATA.to_json()) == METADATA


def test_runtime_params_are_those_that_are_not_constexpr():
    assert [param.name for param in METADATA.runtime_params] == ["x", "n"]


def test_options_of_the_launch_are_attributes():
    assert (METADATA.num_warps, METADATA.num_stages, METADATA.num_ctas) == (8, 3, 1)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', "null"])
def test_other_text_is_refused(text):
    with pytest.raises(UsageError, match="not the metadata"):
        KernelMetadata.from_json(text)


def test_another_version_is_refused():
    newer = json.dumps({**json.loads(METADATA.to_json()), "version": 99})
    with pytest.raises(UsageError, match="another version"):
        KernelMetadata.from_json(newer)
