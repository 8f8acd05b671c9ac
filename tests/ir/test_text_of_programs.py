"""The text of a random program is read as the same program, whichever form it is printed in."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deuteron.errors import DeuteronError, Location
from deuteron.frontend import lower_function
from deuteron.ir.location import from_attribute
from deuteron.ir.text import parse_module, print_module
from tests.fuzz.executors import source_of
from tests.fuzz.generator import generate


@settings(max_examples=15, deadline=None, derandomize=False)
@given(seed=st.integers(0, 1 << 30))
def test_round_trip(seed: int):
    source = source_of(generate(seed))
    try:
        module = lower_function(source.fn, source.signature, source.constexprs, source.attrs)
    except DeuteronError:
        return  # a program that the frontend refuses
    text = print_module(module)
    again = parse_module(text)
    assert again.is_structurally_equivalent(module)
    assert print_module(again) == text
    generic = print_module(module, generic=True)
    assert parse_module(generic).is_structurally_equivalent(module)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(file=NAMES, line=st.integers(0, 1 << 20))
def test_locations_of_any_name(file: str, line: int):
    text = "".join(f"\\{byte:02X}" for byte in file.encode())
    module = parse_module(f'module {{\n  tt.func public @k() {{\n    tt.return loc("{text}":{line}:1)\n  }}\n}}\n')
    again = parse_module(print_module(module))
    places = [from_attribute(op.location)[0] for op in (*module.walk(), *again.walk()) if op.name == "tt.return"]
    assert places == [Location(file, line, 1)] * 2


@pytest.mark.parametrize("key", ["plain", "with space", "tt.dotted", "ttg.num-warps", "9digits", "true"])
def test_attributes_of_any_name(key: str):
    text = f'module attributes {{"{key}" = 4 : i32, unit}} {{\n  tt.func public @k() {{\n    tt.return\n  }}\n}}\n'
    module = parse_module(text)
    assert module.attributes[key].value.data == 4
    again = parse_module(print_module(module))
    assert again.is_structurally_equivalent(module) and set(again.attributes) == {key, "unit"}
