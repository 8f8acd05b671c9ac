"""Which kernels can be linked, and the errors of those that cannot."""

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from aot.workspace import ADD_ALPHA, Workspace

from deuteron.aot.link import group, link_kernels
from deuteron.aot.metadata import KernelRecord, ParamRecord, read_record, record_of
from deuteron.errors import UsageError

RECORD = KernelRecord(
    kernel="add",
    out_name="add",
    hash="01234567",
    suffix="01",
    digest="0123456789ab",
    deuteron="0.1.0",
    source="89ab",
    target="cpu:x86-64-v3",
    device_rank=13,
    num_warps=1,
    num_stages=3,
    num_ctas=1,
    extras=(),
    grid="n",
    params=(
        ParamRecord("x", "x", "*fp32", None, None),
        ParamRecord("n", "n", "i32", None, None),
        ParamRecord("BLOCK", "BLOCK", None, None, "128"),
    ),
)


def with_value(value: str, **changes: object) -> KernelRecord:
    params = (*RECORD.params[:2], ParamRecord("BLOCK", "BLOCK", None, None, value))
    return dataclasses.replace(RECORD, params=params, hash=f"{value:0>8}", **changes)


def with_hints(x: int | None, n: int | None, **changes: object) -> KernelRecord:
    params = tuple(dataclasses.replace(p, hint=hint) for p, hint in zip(RECORD.params, (x, n, None), strict=True))
    return dataclasses.replace(RECORD, params=params, suffix=f"{x}{n}", **changes)


def test_algorithms_are_in_order_of_appearance_and_kernels_by_specialisation():
    records = [
        with_value("256"),
        RECORD,
        with_hints(16, None),
        with_hints(16, 1),
        with_hints(None, None, target="cpu:x86-64-v4", device_rank=18, extras=("cpu:x86-64-v4",)),
    ]
    ((name, algos),) = group(records).items()
    assert name == "add"
    assert algos[0] == [records[0]]
    assert algos[1] == [records[4], records[3], records[2], records[1]]


def test_other_warps_stages_blocks_and_options_are_other_algorithms():
    records = [
        RECORD,
        dataclasses.replace(RECORD, num_warps=2),
        dataclasses.replace(RECORD, num_stages=1),
        dataclasses.replace(RECORD, num_ctas=2),
        dataclasses.replace(RECORD, extras=("opt_level=2",)),
    ]
    assert len(group(records)["add"]) == 5


@pytest.mark.parametrize(
    "other, message",
    [
        (RECORD, "are for the same arguments, options and target"),
        (
            dataclasses.replace(
                RECORD, hash="x", params=(ParamRecord("x", "x", "*fp16", None, None), *RECORD.params[1:])
            ),
            r"take \(\*fp32 x, i32 n\) and \(\*fp16 x, i32 n\), so they cannot both be 'add'",
        ),
        (dataclasses.replace(RECORD, out_name="add_default"), "both give a function add_default"),
    ],
)
def test_kernels_that_cannot_be_told_apart(other: KernelRecord, message: str):
    with pytest.raises(UsageError, match=message):
        group([RECORD, other])


def emit(workspace: Workspace, signature: str = "*fp32, fp32, i32, 128") -> Path:
    return workspace.emit(ADD_ALPHA, signature, "n")


def test_the_record_survives_the_file(workspace: Workspace):
    header = emit(workspace, "*fp32:16, fp32, i32:1, -3")
    record = read_record(header.with_suffix(".json"))
    assert record.params[0] == ParamRecord("x", "x", "*fp32", 16, None)
    assert record.params[3] == ParamRecord("BLOCK", "BLOCK", None, None, "-3")
    assert json.loads(record.to_json())["function"] == record.function == header.stem.replace(".", "_")


def test_a_record_from_before_there_were_clusters(workspace: Workspace):
    metadata = emit(workspace).with_suffix(".json")
    fields = json.loads(metadata.read_text())
    del fields["num_ctas"], fields["checksum"]
    metadata.write_text(json.dumps(fields))
    assert read_record(metadata).num_ctas == 1


def test_one_header_in_two_folders_is_a_clash(workspace: Workspace, tmp_path: Path):
    header = emit(workspace)
    copy = Workspace(tmp_path / "other")
    with pytest.raises(UsageError, match="both define add_alpha_.*another --out-name"):
        link_kernels([header, emit(copy)], tmp_path / "linked")
    assert not (tmp_path / "linked.c").exists()


def test_kernels_that_meet_are_named_by_their_headers(workspace: Workspace, tmp_path: Path):
    first, same, other = (
        emit(workspace, f"*fp32, {rest}") for rest in ("fp32, i32, 128", "fp32,i32,0x80", "fp32, i64, 8")
    )
    with pytest.raises(UsageError, match=f"^'{first}' and '{same}' are for the same arguments, options and target"):
        link_kernels([first, same], tmp_path / "linked")
    with pytest.raises(UsageError, match=rf"^'{first}' and '{other}' take \(\*fp32 x, fp32 alpha, i32 n\) and"):
        link_kernels([first, other], tmp_path / "linked")


def test_one_header_named_twice_is_one_kernel(workspace: Workspace, tmp_path: Path):
    header = emit(workspace)
    link_kernels([header, header, header.parent / ".." / header.parent.name / header.name], tmp_path / "linked")
    assert len(re.findall(r"deuteron_result = add_alpha_[0-9a-f]{8}_", (tmp_path / "linked.c").read_text())) == 1


def mutations(value: object, path: tuple = ()) -> Iterator[tuple]:
    """The paths of all values in JSON, and while one is yielded another value is there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(inner):
        for other in (None, "x", 3, -1, 0.5, [], {}, [3], {"a": 1}, True):
            if json.dumps(other) != json.dumps(item):
                value[key] = other
                yield (*path, key), other
        value[key] = item
        yield from mutations(item, (*path, key))


def test_no_value_of_the_metadata_can_be_another(workspace: Workspace):
    metadata = emit(workspace, "*fp32:16, fp32, i32, 128").with_suffix(".json")
    fields = json.loads(metadata.read_text())
    for path, other in mutations(fields):
        with pytest.raises(UsageError):
            pytest.fail(f"{path} may be {other!r}: {record_of(fields, metadata)}")
    assert record_of(fields, metadata) == read_record(metadata)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_warps", "4", "num_warps is '4', and must be a whole number"),
        ("num_warps", True, "num_warps is True, and must be a whole number"),
        ("written", 3, "written is 3, and must be an array or null"),
        ("params", [{"name": "x"}], r"params\[0\].c_name is missing"),
        ("grid", "1", "it is not what was written"),
    ],
)
def test_what_is_said_of_damaged_metadata(workspace: Workspace, name: str, value: object, message: str):
    metadata = emit(workspace).with_suffix(".json")
    fields = json.loads(metadata.read_text())
    metadata.write_text(json.dumps({**fields, name: value}))
    with pytest.raises(UsageError, match=rf"\({message}\): compile the kernel again"):
        read_record(metadata)


def test_damaged_and_missing_metadata(workspace: Workspace, tmp_path: Path):
    header = emit(workspace)
    metadata = header.with_suffix(".json")
    fields = json.loads(metadata.read_text())

    def error() -> str:
        with pytest.raises(UsageError) as caught:
            link_kernels([header], tmp_path / "linked")
        return str(caught.value)

    metadata.write_text(json.dumps({**fields, "version": 99}))
    assert "has metadata version 99, this Deuteron reads version 3: compile the kernel again" in error()
    metadata.write_text("{}")
    assert "is not the metadata of a compiled kernel" in error()
    metadata.write_text("{")
    assert "cannot read the metadata" in error()
    del fields["hash"]
    metadata.write_text(json.dumps(fields))
    assert "is damaged (hash is missing): compile the kernel again" in error()
    metadata.unlink()
    assert "has no metadata" in error() and "must be beside it" in error()
    with pytest.raises(UsageError, match="linked.h' is what this link writes, and among the headers"):
        link_kernels([header, tmp_path / "linked.h"], tmp_path / "linked")
    with pytest.raises(UsageError, match="does not exist"):
        link_kernels([tmp_path / "none.h"], tmp_path / "linked")
    with pytest.raises(UsageError, match="is not a header"):
        link_kernels([header.with_suffix(".c")], tmp_path / "linked")
