"""Kernels as other projects write them, unlike those of `everyday`: `python -m benchmarks.gpu --projects`.

*_kernels.py   the kernels, one source that Deuteron and Triton both run
the others     a family's cases, as in `everyday`

They were written to find what our own choice of kernels does not show: many strides as arguments, branches around
loops, loops that look up where they read, atomics, sorts, scans, convolutions, recurrences with small states.
"""

from benchmarks.gpu.projects import algebra, images, recurrences, reductions, serving

FAMILIES = (serving, recurrences, reductions, images, algebra)
