"""Loads and products of other iterations, by the warps of the program themselves.

pipeline_loads.py      what products read, copied into rings of buffers iterations ahead
choose_loads.py        which loads
run_ahead.py           what a loop computes, and fills, ahead of its iterations
prefetch_loads.py      loads that go through registers
delay_products.py      products that depend on others, an iteration later
chained_products.py    which products
"""
