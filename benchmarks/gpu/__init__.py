"""Speed on an NVIDIA GPU beside Triton, cuBLAS, cuDNN and a plain copy: `python -m benchmarks.gpu` runs all of it.

kernels.py       the kernels, one source that Deuteron and Triton both run
elementwise.py, matmul.py, attention.py      the cases of a family: sizes, configurations, reference, vendor's function
peers.py         Deuteron and Triton behind one interface; compiles in parallel
timing.py        events with the L2 flushed, rounds that alternate
measure.py       check, choose the best configurations, time
report.py        the table, and a file in benchmarks/results
"""
