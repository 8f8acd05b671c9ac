"""`import triton` where Triton is not installed: the package that `import deuteron.compat` makes, under the same name.

This file is a module, and Triton's is a folder, so that neither replaces a file of the other. While it runs, the module
that it stands for is put into `sys.modules` in its place.
"""

__deuteron__ = True  # by which deuteron.compat knows that this is not Triton itself

import deuteron.compat  # noqa: E402, F401
