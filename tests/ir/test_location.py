"""Locations as attributes, and the line that a kernel's author wrote."""

from pathlib import Path

import deuteron.language
from deuteron.errors import Location
from deuteron.ir.location import from_attribute, to_attribute, user_location

LIBRARY = str(Path(deuteron.language.__file__).with_name("reductions.py"))
KERNEL, HELPER, SUM = Location("k.py", 7, 9), Location("helpers.py", 3, 5), Location(LIBRARY, 74, 12)


def test_round_trip():
    assert from_attribute(to_attribute(HELPER, "x", (KERNEL,))) == (HELPER, (KERNEL,))


def test_user_location():
    assert user_location(to_attribute(KERNEL)) == KERNEL
    assert user_location(to_attribute(HELPER, None, (KERNEL,))) == HELPER
    assert user_location(to_attribute(SUM, None, (Location(LIBRARY, 144, 16), KERNEL))) == KERNEL
    assert user_location(to_attribute(SUM)) == SUM
