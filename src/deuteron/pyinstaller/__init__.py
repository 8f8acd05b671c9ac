"""What PyInstaller asks an installed package for: where its hooks are. `hook-deuteron.py` says what goes along."""

from __future__ import annotations

from pathlib import Path


def hook_dirs() -> list[str]:
    """The folder of the hooks: the entry point `hook-dirs` of `pyinstaller40`."""
    return [str(Path(__file__).parent)]
