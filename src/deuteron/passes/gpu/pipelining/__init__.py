"""Loads and products of other iterations, by the warps of the program themselves.

pipeline_loads.py              what products read, copied into shared memory iterations ahead
pipelined_loads.py             which loads
copy_ring.py                   the buffers that take turns
pipeline_descriptor_loads.py   blocks of tensors, by TMA
prefetch_loads.py              loads that go through registers
run_ahead.py                   what they need of later iterations
pipeline_products.py           products that depend on others, an iteration later
"""
