"""An environment of its own for Triton, the peer that scripts and benchmarks compare with: build/triton.

Needs the network the first time (`pip install triton`, about 1 GB on disk). Nothing else of the project imports Triton.
"""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "build" / "triton"


def triton_python() -> Path:
    """The Python of an environment with Triton."""
    python = FOLDER / "bin" / "python"
    if not (FOLDER / "installed").exists():
        print(f"Installing Triton into {FOLDER}")
        venv.create(FOLDER, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "triton", "numpy"], check=True)
        (FOLDER / "installed").touch()
    return python
