"""Says so when both Triton and `triton-deuteron` are installed and Python would take Triton.

    RuntimeError: Triton is installed in .../site-packages/triton, and goes before triton-deuteron: ...

`triton_deuteron.pth` has this imported when Python starts; it does nothing before the program says `import triton`.
"""

import os
import sys
from importlib.machinery import PathFinder

OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "triton.py")


class Refusal:
    """First on `sys.meta_path`: looks where `triton` would come from. `import deuteron.compat` goes before it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "triton":
            return None
        found = PathFinder.find_spec(name)
        if found is None or found.origin is None or os.path.abspath(found.origin) == OWN:
            return found
        raise RuntimeError(
            f"Triton is installed in {os.path.dirname(found.origin)}, and goes before triton-deuteron: "
            "`pip uninstall triton` to use Deuteron, or `pip uninstall triton-deuteron` to use Triton"
        )


sys.meta_path.insert(0, Refusal)
