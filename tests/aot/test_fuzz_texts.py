"""Signatures, grids and declarations of all kinds: what is wrong with one is an error of the user's, with its place."""

import json
from pathlib import Path

import pytest
from aot.workspace import ADD_ALPHA_PARAMS
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from deuteron.aot.grid import Grid, grid_scope, parse_grid
from deuteron.aot.grid_code import Variable, node_code
from deuteron.aot.metadata import read_record
from deuteron.aot.signature import parse_signature
from deuteron.errors import UsageError
from deuteron.library import read_project
from deuteron.library.manifest import read_manifest
from deuteron.library.variants import variants_of

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

SIGNATURE_TOKENS = [
    *("*fp16", "*fp32", "fp32", "i32", "i1", "u8", "fp64", "*fp8e4nv", "tl.float16", "None", "True", "relu", "'relu'"),
    *(
        ":16",
        ":1",
        ":8",
        ":",
        ",",
        "(",
        ")",
        "[",
        "]",
        "=",
        "x",
        "-",
        "3",
        "0.5",
        "1e400",
        "16",
        "tensordesc<",
        ">",
        "nan",
    ),
    *("*", "**", '"', "'", "\\", "\n", "\0", " ", "é", "{", "}", "fp16[128,64]", "9" * 5000, "-0", "i32:16", "nan"),
]
GRID_TOKENS = [
    *("n", "BLOCK", "x", "alpha", "cdiv(", "min(", "max(", "(", ")", ",", "+", "-", "*", "//", "/", "%", "**", "&"),
    *(
        "0",
        "1",
        "128",
        "9223372036854775807",
        "9223372036854775808",
        "0x10",
        "1.5",
        "'",
        '"',
        "\n",
        "[",
        "lambda",
        "é",
        "\0",
    ),
    *("if", "n.x", "cdiv", "=", ":=", "not", "(" * 120, "-" * 3000),
]


def of_tokens(tokens: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(tokens), max_size=12).map("".join)


@QUICK
@given(of_tokens(SIGNATURE_TOKENS) | st.lists(st.sampled_from(SIGNATURE_TOKENS), max_size=6).map(",".join) | st.text())
def test_signatures(text: str):
    try:
        parse_signature(text, ADD_ALPHA_PARAMS, "add_alpha")
    except UsageError as error:
        assert str(error)


@QUICK
@example("-" * 5000 + "1")
@example("(" * 5000 + "1")
@example("+".join("1" * 5000))
@given(of_tokens(GRID_TOKENS) | st.text())
def test_grids(text: str):
    scope = grid_scope(parse_signature("*fp32, fp32, i32, 128", ADD_ALPHA_PARAMS, "add_alpha"))
    try:
        grid: Grid = parse_grid(text, scope)
    except UsageError as error:
        assert str(error)
    else:
        code = [node_code(node, {"n": Variable("n", "i32")}) for node in grid]
        assert len(code) == 3


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["*fp16:16", "same:X", "same:", "cpu", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["X", "n", "BLOCK"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = ["source", "module", "name", "grid", "out_name", "types", "constexprs", "options", "host_parameters", "exclude"]
KERNELS = st.dictionaries(st.sampled_from(KEYS), VALUES | st.text(max_size=3), max_size=8)
LIBRARY_KEYS = st.sampled_from(["targets", "namespace", "shared", "kernel", "odd"])
LIBRARIES = st.dictionaries(LIBRARY_KEYS, VALUES | st.lists(KERNELS | VALUES, max_size=2), max_size=5)


def toml_of(value: object) -> str:
    """A value as TOML has it within a line; what TOML cannot say is a text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml_of(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    return (
        repr(value) if type(value) in (int, float) else json.dumps(value) if isinstance(value, str | bool) else '"None"'
    )


@QUICK
@given(LIBRARIES)
def test_declarations(tmp_path: Path, library: dict):
    good = {"name": "k", "source": "k.py", "grid": "1"}
    kernels = library.get("kernel")
    if isinstance(kernels, list):
        library = {
            "targets": ["cpu"],
            **library,
            "kernel": [{**good, **k} if isinstance(k, dict) else k for k in kernels],
        }
    (tmp_path / "deuteron.toml").write_text(f"[library]\nnorms = {toml_of(library)}\n")
    try:
        for declared in read_project(tmp_path / "deuteron.toml").values():
            assert variants_of(declared)
    except UsageError as error:
        assert str(error)


@QUICK
@given(
    st.text() | st.lists(st.sampled_from(["[", "]", "library", ".", "=", '"', "\n", "{", "}", "x", "1"])).map("".join)
)
def test_texts_that_are_no_declarations(tmp_path: Path, text: str):
    (tmp_path / "deuteron.toml").write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(UsageError):
        read_project(tmp_path / "deuteron.toml")


@QUICK
@given(VALUES | st.dictionaries(st.sampled_from(["format", "version", "variants", "params", "name"]), VALUES))
def test_metadata(tmp_path: Path, fields: object):
    for file_format, read in (("deuteron-aot-kernel", read_record), ("deuteron-library", read_manifest)):
        known = {"format": file_format, "version": {"deuteron-aot-kernel": 3, "deuteron-library": 1}[file_format]}
        given = {**known, **fields} if isinstance(fields, dict) else fields
        (tmp_path / "x.json").write_text(json.dumps(given))
        with pytest.raises(UsageError):
            read(tmp_path / "x.json")
