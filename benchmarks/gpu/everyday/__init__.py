"""Kernels of everyday use: `python -m benchmarks.gpu --everyday`.

*_kernels.py   the kernels, one source that Deuteron and Triton both run
declare.py     shorter ways to declare cases
philox.py      the random numbers of `tl.rand`, to compare with
the others     a family's cases: sizes, configurations, reference, torch's function

Each module of a family has `cases(is_small=False)`; small ones are for tests.
"""

from benchmarks.gpu.everyday import attention, models, norms, pointwise, products, rows, shared_products

FAMILIES = (norms, pointwise, rows, products, shared_products, attention, models)
