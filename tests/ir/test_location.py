"""Locations as attributes, and the line that a kernel's author wrote."""

from pathlib import Path

from xdsl.dialects.builtin import BytesAttr, ModuleOp, StringAttr

import deuteron.language
from deuteron.errors import Location
from deuteron.ir.location import from_attribute, to_attribute, user_location
from deuteron.ir.text import parse_module, print_module

LIBRARY = str(Path(deuteron.language.__file__).with_name("reductions.py"))
KERNEL, HELPER, SUM = Location("k.py", 7, 9), Location("helpers.py", 3, 5), Location(LIBRARY, 74, 12)


def test_round_trip():
    assert from_attribute(to_attribute(HELPER, "x", (KERNEL,))) == (HELPER, (KERNEL,))


def test_user_location():
    assert user_location(to_attribute(KERNEL)) == KERNEL
    assert user_location(to_attribute(HELPER, None, (KERNEL,))) == HELPER
    assert user_location(to_attribute(SUM, None, (Location(LIBRARY, 144, 16), KERNEL))) == KERNEL
    assert user_location(to_attribute(SUM)) == SUM


def test_a_folder_with_a_name_of_more_than_ascii():
    place = Location("/home/mü/größe k.py", 7, 9)
    module = ModuleOp([])
    module.location = to_attribute(place, "größe")
    again = parse_module(print_module(module))
    assert from_attribute(again.location) == (place, ()) and again.location == module.location


def test_bytes_that_are_no_text():
    module = parse_module('"builtin.module"() ({^bb0:}) {a = "\\FF\\00", b = "\\C3\\BC"} : () -> ()')
    assert isinstance(module.attributes["a"], BytesAttr) and module.attributes["b"] == StringAttr("ü")
