"""Files of timings: what is written is read, merging keeps both, any number of writers, nothing half."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from deuteron.errors import UsageError
from deuteron.runtime.autotuning.tuned_file import MOST_SOURCES, Choice, Outcome, Tuned, merge_into, read_tuned

FAST, SLOW, FAILED = Outcome([0.5, 0.4, 0.6]), Outcome(2.0, is_stopped=True), Outcome(failure="out of resources")
ABOUT = ("cpu:znver3, 2 threads", "6f1c", "0.1.0 91ab")


def choice(n=4096, source="6f1c", **outcomes):
    texts = {json.dumps({"BLOCK": int(name[1:])}): outcome for name, outcome in outcomes.items()}
    return Choice(ABOUT[0], source, ABOUT[2], {"n": n}, {"x_ptr": "fp32"}, texts)


def test_what_is_written_is_read(tmp_path):
    written = merge_into(tmp_path / "new" / "a.json", "m.scale", [choice(b16=FAST, b32=SLOW, b64=FAILED)])
    assert read_tuned(tmp_path / "new" / "a.json") == written
    (found,) = written.choices
    assert found.best == '{"BLOCK": 16}' and found.target == "cpu:znver3"
    assert [outcome.time for outcome in found.outcomes.values()] == [0.5, 2.0, float("inf")]


def test_a_timing_is_a_line(tmp_path):
    merge_into(tmp_path / "a.json", "m.scale", [choice(b16=FAST, b32=SLOW)])
    lines = (tmp_path / "a.json").read_text().splitlines()
    assert '   {"config": {"BLOCK": 16}, "ms": [0.5, 0.4, 0.6]},' in lines
    assert '   {"config": {"BLOCK": 32}, "ms": 2.0, "stopped": true}]}' in lines


def test_merging_keeps_what_is_not_measured_again():
    merged = Tuned("scale", (choice(b16=FAST, b32=SLOW),)).merged([choice(b32=FAST, b64=FAILED), choice(8, b16=SLOW)])
    first, second = merged.choices
    assert list(first.outcomes.values()) == [FAST, FAST, FAILED] and second.key == {"n": 8}


def test_the_oldest_sources_go():
    tuned = Tuned("scale")
    for i in range(MOST_SOURCES + 2):
        tuned = tuned.merged([choice(source=f"s{i}", b16=FAST), choice(8, source=f"s{i}", b16=FAST)])
    sources = [found.source for found in tuned.choices]
    assert len(sources) == 2 * MOST_SOURCES and "s0" not in sources and f"s{MOST_SOURCES + 1}" in sources


def test_nothing_can_be_run():
    assert choice(b16=FAILED).best is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot read the timings"),
        ("[]", "its format is not 'deuteron-tuned'"),
        ('{"format": "deuteron-tuned", "version": 2}', "is of version 2, and this Deuteron reads version 1"),
        ('{"format": "deuteron-tuned", "version": 1, "kernel": "k", "choices": [{"device": "cpu"}]}', "are damaged"),
    ],
)
def test_files_that_are_none(tmp_path, text, message):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_tuned(tmp_path / "a.json")
    with pytest.raises(UsageError, match=message):
        merge_into(tmp_path / "a.json", "scale", [choice(b16=FAST)])
    assert (tmp_path / "a.json").read_text() == text and os.listdir(tmp_path) == ["a.json"]


def test_timings_that_are_no_numbers(tmp_path):
    merge_into(tmp_path / "a.json", "scale", [choice(b16=FAST)])
    text = (tmp_path / "a.json").read_text()
    for wrong in ('"fast"', "[]", '["1"]', "null"):
        (tmp_path / "a.json").write_text(text.replace("[0.5, 0.4, 0.6]", wrong))
        with pytest.raises(UsageError, match="are damaged"):
            read_tuned(tmp_path / "a.json")


WRITER = """
import sys
from pathlib import Path
from deuteron.runtime.autotuning.tuned_file import Choice, Outcome, merge_into
for n in range(int(sys.argv[2]), 60, 3):
    merge_into(Path(sys.argv[1]), "scale", [Choice("cpu", "s", "c", {"n": n}, {}, {"{}": Outcome(1.0)})])
"""


def test_many_writers(tmp_path):
    path = tmp_path / "a.json"
    running = [subprocess.Popen([sys.executable, "-c", WRITER, path, str(start)]) for start in range(3)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: merge_into(path, "scale", [choice(n, b16=FAST)]), range(100, 140)))
    assert [process.wait() for process in running] == [0] * 3
    assert sorted(found.key["n"] for found in read_tuned(path).choices) == [*range(60), *range(100, 140)]
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize("part", ["key", "types", "timings", "config"])
@pytest.mark.parametrize("value", ["abc", 3, True, None, [1], 0.5])
def test_parts_that_are_something_else(tmp_path, part, value):
    merge_into(tmp_path / "a.json", "scale", [choice(b16=FAST)])
    fields = json.loads((tmp_path / "a.json").read_text())
    (found,) = fields["choices"]
    (found if part != "config" else found["timings"][0])[part] = value
    (tmp_path / "a.json").write_text(json.dumps(fields))
    with pytest.raises(UsageError, match="are damaged"):
        read_tuned(tmp_path / "a.json")
