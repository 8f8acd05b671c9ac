"""Speed on an NVIDIA GPU beside Triton, cuBLAS, cuDNN and a plain copy: `python -m benchmarks.gpu` runs all of it.

kernels.py       the kernels, one source that Deuteron and Triton both run
elementwise.py, matmul.py, attention.py      the cases of a family: sizes, configurations, reference, vendor's function
everyday/        kernels of everyday use: `--everyday`
peers.py         Deuteron and Triton behind one interface; compiles in parallel
cubins.py        cubins of another Triton as a peer; peer_cubins.py makes them
worker.py        cases in a process of its own, which may fault
timing.py        events with the L2 flushed, rounds that alternate
measure.py       check, choose the best configurations, time
report.py        the table, and a file in benchmarks/results
"""
