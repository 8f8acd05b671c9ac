"""What is checked of memory: who wrote what, who may read it, what is in flight.

clocks.py          which accesses of which thread are ordered before now (vector clocks)
shared_checks.py   for every word of shared memory the last write, the last reads, asynchronous operations on it
global_checks.py   the same of arrays, among the threads of a block
"""
