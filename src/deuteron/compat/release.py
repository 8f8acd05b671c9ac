"""What `importlib.metadata` has of an installed Triton: the version of the language."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from deuteron.compat.modules import TRITON_VERSION


class Release(Distribution):
    """The distribution `triton`; its files are those of this package."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: triton\nVersion: {TRITON_VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Path:
        return Path(__file__).parent / path
