"""What was measured of a kernel's configurations, as a file that can be committed, merged and looked at.

    {"format": "deuteron-tuned", "version": 1, "kernel": "scale", "choices": [
      {"device": "cuda:90, 132 multiprocessors", "source": "6f1c...", "compiler": "0.1.0 91ab...",
       "key": {"n": 4096}, "types": {"x_ptr": "fp32"}, "timings": [
         {"config": {"BLOCK": 128, "num_warps": 4}, "ms": [0.011, 0.010, 0.012]},
         {"config": {"BLOCK": 512, "num_warps": 4}, "ms": [0.21], "stopped": true},
         {"config": {"BLOCK": 8192, "num_warps": 4}, "failed": "out of resources: ..."}]}]}

A *choice* is what is measured together: one kernel with one key on one device. Its timings are kept by configuration,
so that of a changed list only what is new is measured. Files are read and merged under a lock and replaced whole: any
number of threads and processes may write to one, and one that is killed leaves it as it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deuteron.compiler.locks import locked
from deuteron.errors import UsageError, not_read
from deuteron.json_fields import read_json
from deuteron.whole_file import whole_file

FORMAT = "deuteron-tuned"
VERSION = 1
MOST_SOURCES = 8  # of a kernel that is edited, in one file: a bound on its size, not measured


@dataclass(frozen=True)
class Outcome:
    """What became of a configuration: milliseconds as `do_bench` gave them, or why there are none.

    `is_stopped`: it was so slow in a first short timing that it was not timed any further. `is_lasting`: it is so, or
    fails, whenever it is tried; what fails only now is not kept.
    """

    ms: float | Sequence[float] | None = None
    is_stopped: bool = False
    failure: str | None = None
    is_lasting: bool = True

    @property
    def time(self) -> float:
        """Milliseconds, of quantiles the first, the median; infinite where it cannot be run."""
        if self.ms is None:
            return math.inf
        return self.ms if isinstance(self.ms, int | float) else self.ms[0]

    def to_fields(self) -> dict[str, Any]:
        if self.ms is None:
            return {"failed": self.failure}
        return {"ms": self.ms, **({"stopped": True} if self.is_stopped else {})}


@dataclass(frozen=True)
class Choice:
    """The outcomes of one kernel's configurations for a key on a device. They are by the text of a configuration, which
    is JSON of its values by name."""

    device: str
    source: str
    compiler: str
    key: Mapping[str, Any]
    types: Mapping[str, str]
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        return json.dumps([self.device, self.source, self.compiler, self.key, self.types])

    @property
    def target(self) -> str:
        """`cuda:90` of `cuda:90, 132 multiprocessors`."""
        return self.device.partition(",")[0]

    @property
    def best(self) -> str | None:
        """The fastest configuration; None where none can be run."""
        timed = [text for text, outcome in self.outcomes.items() if outcome.ms is not None]
        return min(timed, key=lambda text: self.outcomes[text].time) if timed else None

    def to_fields(self) -> dict[str, Any]:
        timings = [{"config": json.loads(text), **outcome.to_fields()} for text, outcome in self.outcomes.items()]
        about = {"device": self.device, "source": self.source, "compiler": self.compiler}
        return {**about, "key": dict(self.key), "types": dict(self.types), "timings": timings}


@dataclass(frozen=True)
class Tuned:
    """The content of a file."""

    kernel: str
    choices: tuple[Choice, ...] = ()

    def merged(self, choices: Iterable[Choice]) -> Tuned:
        """With these too: of one configuration the timing that is merged in holds. The oldest of many sources go."""
        found = {choice.identity: choice for choice in self.choices}
        for choice in choices:
            known = found.pop(choice.identity, choice)
            found[choice.identity] = replace(known, outcomes={**known.outcomes, **choice.outcomes})
        sources = list(dict.fromkeys(choice.source for choice in reversed(found.values())))[:MOST_SOURCES]
        return Tuned(self.kernel, tuple(choice for choice in found.values() if choice.source in sources))

    def to_json(self) -> str:
        """A line for each timing, so that versions of a file can be compared and merged as texts."""
        choices = ",\n".join(_choice_text(choice) for choice in self.choices)
        head = f'"format": "{FORMAT}", "version": {VERSION}, "kernel": {json.dumps(self.kernel)}'
        return f'{{{head}, "choices": [\n{choices}\n]}}\n'


def _choice_text(choice: Choice) -> str:
    fields = choice.to_fields()
    timings = ",\n".join(f"   {json.dumps(timing)}" for timing in fields.pop("timings"))
    return f' {json.dumps(fields)[:-1]}, "timings": [\n{timings}]}}'


def read_tuned(path: Path) -> Tuned:
    """The content of a file; raises UsageError for what is none."""
    try:
        fields = read_json(path.read_text())
    except (OSError, ValueError) as error:
        raise not_read(f"the timings '{path}'", error) from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise UsageError(f"'{path}' has no timings of configurations: its format is not '{FORMAT}'")
    if fields.get("version") != VERSION:
        raise UsageError(f"'{path}' is of version {fields.get('version')}, and this Deuteron reads version {VERSION}")
    try:
        return Tuned(fields["kernel"], tuple(map(_choice, fields["choices"])))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"the timings '{path}' are damaged: {error!r}") from None


def _choice(fields: Mapping[str, Any]) -> Choice:
    outcomes = {json.dumps(dict(timing["config"])): _outcome(timing) for timing in fields["timings"]}
    about = (str(fields[name]) for name in ("device", "source", "compiler"))
    return Choice(*about, dict(fields["key"]), dict(fields["types"]), outcomes)


def _outcome(fields: Mapping[str, Any]) -> Outcome:
    if "failed" in fields:
        return Outcome(failure=str(fields["failed"]))
    ms = fields["ms"]
    times = [ms] if isinstance(ms, int | float) else ms
    if not times or not all(isinstance(time, int | float) for time in times):
        raise TypeError(f"no milliseconds: {ms!r}")
    return Outcome(ms, fields.get("stopped", False))


def merge_into(path: Path, kernel: str, choices: Iterable[Choice]) -> Tuned:
    """Add choices to a file, which is made where there is none; raises UsageError, and OSError where it cannot be
    written: then it is what it was."""
    with locked(path.parent):
        before = read_tuned(path) if path.exists() else Tuned(kernel)
        after = before.merged(choices)
        with whole_file(path) as beside:
            beside.write_text(after.to_json())
    return after
