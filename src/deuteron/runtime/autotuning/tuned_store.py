"""Where an autotuner keeps what it measures, for itself and for other processes: a file for a kernel and a device.

    store = TunedStore(kernel, where, target)
    choice = store.choice({"n": 4096}, {"x_ptr": "fp32"})
    store.known(choice, configs)            {Config(BLOCK: 128): Outcome([0.5, 0.4, 0.6])}: those that were measured
    store.add(choice, outcomes)             <where>/kernels.scale.cpu-znver3.json

In the cache folder timings hold for the compiler that they were measured with. A folder, or a file, that the user names
is meant to last: there those of another version of Deuteron hold as well. A kernel whose source has changed is measured
again in either. What cannot be read or written is not there: a warning says so of a file that the user named.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import deuteron
from deuteron.backend import get_backend
from deuteron.errors import UsageError
from deuteron.language.functions.names import name_of
from deuteron.language.functions.stable_text import stable_repr
from deuteron.options import Target
from deuteron.runtime.autotuning.config import Config
from deuteron.runtime.autotuning.tuned_file import Choice, Outcome, merge_into, read_tuned
from deuteron.settings import settings
from deuteron.toolchain import toolchain

_PLAIN = (bool, int, float, str, type(None))


class TunedStore:
    """The file of one kernel for one target. `where` is the user's file (`.json`) or folder; None: the cache folder."""

    def __init__(self, kernel: Any, where: Path | None, target: Target):
        self.kernel = f"{name_of(kernel.__module__)}.{kernel.__qualname__}".replace(".<locals>", "")
        self._source = kernel.cache_key[:16]
        self._is_users = where is not None
        self._device = device_text(target)
        folder = settings.cache_dir / "autotune" if where is None else where
        is_file = where is not None and where.suffix == ".json"
        device = re.sub(r"\W+", "-", self._device)
        self.path = folder if is_file else folder / f"{re.sub(r'[^.0-9A-Za-z_]', '_', self.kernel)}.{device}.json"

    def choice(self, key: Mapping[str, Any], types: Mapping[str, str]) -> Choice:
        """What is chosen for a key, without outcomes."""
        plain = {name: plain_value(value) for name, value in key.items()}
        return Choice(self._device, self._source, compiler_text(), plain, dict(types))

    def known(self, choice: Choice, configs: Iterable[Config]) -> dict[Config, Outcome]:
        """The outcomes of configurations that were measured before; none where all of them failed."""
        if settings.always_compile or not self.path.exists():
            return {}
        try:
            choices = read_tuned(self.path).choices
        except UsageError as error:
            self._warn(error)
            return {}
        outcomes: dict[str, Outcome] = {}
        for found in choices:
            if self._holds_for(found, choice):
                outcomes |= {json.dumps(json.loads(text), sort_keys=True): one for text, one in found.outcomes.items()}
        texts = {config: json.dumps(config_fields(config), sort_keys=True) for config in configs}
        found = {config: outcomes[text] for config, text in texts.items() if text in outcomes}
        return found if any(outcome.ms is not None for outcome in found.values()) else {}

    def _holds_for(self, found: Choice, choice: Choice) -> bool:
        asked = (choice.device, choice.source, dict(choice.key), dict(choice.types))
        is_same = (found.device, found.source, dict(found.key), dict(found.types)) == asked
        return is_same and (self._is_users or found.compiler == choice.compiler)

    @staticmethod
    def with_outcomes(choice: Choice, outcomes: Mapping[Config, Outcome]) -> Choice:
        """The choice with what was measured for it."""
        return replace(choice, outcomes={json.dumps(config_fields(config)): one for config, one in outcomes.items()})

    def add(self, choice: Choice, outcomes: Mapping[Config, Outcome]) -> None:
        """Keep what was measured, and what fails whenever it is tried; what cannot be kept is not."""
        try:
            self.merge(choice, outcomes)
        except (OSError, UsageError) as error:
            self._warn(error)

    def merge(self, choice: Choice, outcomes: Mapping[Config, Outcome]) -> None:
        """As `add`; raises UsageError, or OSError, where it cannot be kept."""
        lasting = {config: outcome for config, outcome in outcomes.items() if outcome.is_lasting}
        if lasting:
            merge_into(self.path, self.kernel, [self.with_outcomes(choice, lasting)])

    def _warn(self, error: Exception) -> None:
        if self._is_users:
            warnings.warn(f"timings of kernel '{self.kernel}' are not kept: {error}", stacklevel=6)


def device_text(target: Target) -> str:
    """What timings are of: `cpu:znver3, 8 threads`, `cuda:90, 132 multiprocessors`."""
    if target.backend == "cpu":
        return f"cpu:{get_backend(target).fingerprint(target).split()[0]}, {settings.num_threads} threads"
    from deuteron.runtime.driver import driver  # deferred: asks the machine's GPU

    active = driver.active
    properties = active.utils.get_device_properties(active.get_current_device())
    return f"{target}, {properties['multiprocessor_count']} multiprocessors"


def compiler_text() -> str:
    """The version of Deuteron, and a digest of all that takes part in a compile."""
    return f"{deuteron.__version__} {hashlib.sha256(repr(toolchain()).encode()).hexdigest()[:8]}"


def config_fields(config: Config) -> dict[str, Any]:
    """A configuration as JSON has it."""
    return {name: plain_value(value) for name, value in config.all_kwargs().items()}


def plain_value(value: Any) -> Any:
    """A value as JSON has it: what JSON has no form for is a text that is equal for equal values."""
    return value if type(value) in _PLAIN else stable_repr(value)
