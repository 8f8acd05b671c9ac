"""What an autotuner has measured, kept on disk for other processes.

    kept = StoredTimings(kernel, configs, key)
    kept.load()               {Config(BLOCK: 128): [0.5, 0.4, 0.6], ...}, or None
    kept.store(timings)       <cache dir>/autotune/3fa91c....json

The name is a hash of the kernel, the configurations, the key, the target, and the versions of what compiles. What
cannot be read or written is not there, which is never an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deuteron.compiler import resolve_target
from deuteron.compiler.key import toolchain
from deuteron.options import settings
from deuteron.runtime.config import Config


class StoredTimings:
    """The timings of some configurations of a kernel for one key."""

    def __init__(self, kernel: Any, configs: Sequence[Config], key: tuple):
        self.configs = {str(config): config for config in configs}
        parts = (kernel.cache_key, str(resolve_target(None)), repr(key), *self.configs, *toolchain())
        name = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        self.path = settings.cache_dir / "autotune" / f"{name}.json"

    def load(self) -> dict[Config, Any] | None:
        """The timings, or None where there are none for these configurations."""
        if settings.always_compile:
            return None
        try:
            pairs = json.loads(self.path.read_text())
            return {self.configs[text]: timing for text, timing in pairs} or None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def store(self, timings: Mapping[Config, Any]) -> None:
        """Write them whole or not at all."""
        content = json.dumps([(str(config), timing) for config, timing in timings.items()])
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.path.parent)
            with open(handle, "w") as file:
                file.write(content)
            os.replace(temporary, Path(self.path))
