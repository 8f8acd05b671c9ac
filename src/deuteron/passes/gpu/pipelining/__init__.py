"""Loads and dots of other iterations, by the warps of the program themselves.

pipeline_loads.py  what dots read, copied into rings of buffers iterations ahead
choose_loads.py    which loads
address_loads.py   loads that addresses of others depend on, further ahead
run_ahead.py       what a loop computes, and fills, ahead of its iterations
prefetch_loads.py  loads that go through registers
delay_dots.py      dots that depend on others, an iteration later
chained_dots.py    which dots
"""
