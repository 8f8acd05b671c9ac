"""Kernels as other projects write them, unlike those of `everyday`: `python -m benchmarks.gpu --projects`.

A folder is a family, a module in it a topic: `serving/attention.py` has cases, as in `everyday`, of the kernels in
`serving/attention_kernels.py`, one source that Deuteron and Triton both run.

They were written to find what our own choice of kernels does not show: many strides as arguments, branches around
loops, loops that look up where they read, atomics, sorts, scans, convolutions, recurrences with small states.
"""

from benchmarks.gpu.projects import algebra, images, recurrences, reductions, serving

FAMILIES = (serving, recurrences, reductions, images, algebra)
