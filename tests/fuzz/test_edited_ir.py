"""Programs whose tile IR is edited. `make fuzz ARGS=--edited-ir` runs many more."""

import random

from deuteron.ir.text import print_module
from tests.fuzz.campaign import Campaign, run
from tests.fuzz.edited_programs import edit
from tests.fuzz.generator import generate
from tests.fuzz.ir_edits import EDITS, edited, edited_once, without_hints
from tests.fuzz.validity import lowered

SEED, COUNT = 6000, 3


def test_no_difference(tmp_path):
    report = run(Campaign(SEED, COUNT, ("cpu",), folder=tmp_path, timeout=120, shrink_seconds=20, make=edit))
    assert not report.signatures, report.table()
    assert report.tally["cpu", "ok"] == COUNT, report.table()


def test_a_seed_gives_one_program_and_its_edits_one_text():
    case = edit(8)
    assert case == edit(8)
    assert case.edits
    texts = [print_module(edited(lowered(case), case.edits), locations=False) for _ in range(2)]
    assert texts[0] == texts[1]
    assert texts[0] != print_module(without_hints(lowered(case)), locations=False)


def test_edits_find_something_to_change():
    module = without_hints(lowered(generate(12)))
    text = print_module(module)
    others = {print_module(edited_once(module, random.Random(seed))) for seed in range(len(set(EDITS)))}
    assert print_module(module) == text
    assert len(others - {text}) > len(others) // 2
