"""Random loops around dots and loads store on the emulator what they store in the interpreter."""

import pytest

from random_ir.programs import Program


@pytest.mark.share(6)
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("number", range(20))
def test_stores_the_same(seed, number, target):
    program = Program.of(seed + number)
    assert not program.fault(target, by_any_costs=True), program.text


def test_a_seed_gives_one_program():
    assert Program.of(5).text == Program.of(5).text
    assert Program.of(5).text != Program.of(6).text
